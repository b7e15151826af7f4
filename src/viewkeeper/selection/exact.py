"""The exact choice as a mixed-integer program: x(v) says whether v is kept (levels.py and flows.py say what it costs).

Greedy, exchanges and, where they may be far from the best, annealing come first: HiGHS is then asked only for what
costs less, so that it can rule out much early and need not look for good choices itself. Then the relaxation, of AND-OR
graphs several times, each time with the uses of more views told apart, more flows tied, and the maintenance of more
views followed. What it keeps, by parts or wholly, and what is kept so far are few views; the best choice among them is
nearly always the best of all. Most other views are then ruled out by their reduced costs, the least by which the cost
grows if such a view is kept, and what is left is searched.

Where few large views fill a budget the relaxation is weak: it keeps parts of them. These are tried both ways first.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection
from dataclasses import dataclass, field, replace

from viewkeeper.selection.anneal import Walk
from viewkeeper.selection.choice import Budget, Choice, Step, finish, names, total
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.flows import Divided, Flows
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.interchange import interchanged
from viewkeeper.selection.ledger import Ledger
from viewkeeper.selection.levels import Levels
from viewkeeper.selection.program import Relaxation, Solution
from viewkeeper.selection.reach import Floats
from viewkeeper.selection.ties import Tie, Ties

_NARROWER = 1 - 2e-6  # HiGHS may exceed a row by a millionth
_LARGE = 0.1  # of the budget
_FOR_FEW = 0.1  # of the time; where it does not suffice, the search among all finds more in the rest
_MOST = 0.9  # of the time left, for a relaxation: a search of what takes longer to relax would not come far
_LITTLE = 0.25  # of the gap: what costs so much less is worth finding early, since it is easier to prove
_NONE = 1e-6  # kept by less is not kept
_MOSTLY = 0.5  # what is kept by more is a start for greedy
_ROUNDING = 1e-6  # of the cost: what a reduced cost may be wrong by
_MOVES = 70  # of annealing, for each that may be kept
_WORTH_IT = 0.5  # of what is still to be proved: what one more relaxation must have brought for another


@dataclass(frozen=True)
class Detail:
    """How closely flows look: whose uses they tell apart, what ties them, and whose maintenance they follow.

    followed   None for all; the maintenance of other views is as cheap as if everything were kept
    """

    divided: Divided = field(default_factory=dict)
    ties: frozenset[Tie] = frozenset()
    followed: frozenset[int] | None = None


@dataclass(frozen=True)
class Part:
    """Some of all choices: those that keep nothing but `may`, and all of `must`; and how closely their flows look."""

    may: frozenset[int]
    must: frozenset[int] = frozenset()
    detail: Detail = Detail()

    def of(self, may: Collection[int]) -> Part:
        """Those of them that keep nothing else."""
        return replace(self, may=frozenset(may))

    def wholly(self) -> Part:
        """The same, with all maintenance followed."""
        return replace(self, detail=replace(self.detail, followed=None))


def exact(graph: ViewGraph, budget: Budget, gap: float, seconds: float) -> Choice:
    """Proved optimal up to `gap`, or the best found in time with the gap that was proved."""
    search = Search(graph, replace(budget, overshoot=False), gap, seconds)
    search.run()
    worth = total(Costs(graph.numbered), budget) - search.cost
    ordered = sorted(search.kept, key=lambda i: graph.numbered.rank[i])
    step = Step(names(graph.numbered, ordered), worth, search.reason)
    return finish(graph, search.budget, search.kept, search.bound, [step])


class Search:
    """The best choice known, its cost, what no choice is below, and how the best was found."""

    def __init__(self, graph: ViewGraph, budget: Budget, gap: float, seconds: float) -> None:
        self.graph = graph
        self.budget = budget
        self.gap = gap
        self.seconds = seconds
        self.end = time.monotonic() + seconds
        stages = interchanged(graph, budget, seconds / 10)
        self.kept = stages.costs.kept
        self.cost = total(stages.costs, budget)
        self.bound = stages.ceilings.bound(budget)
        self.ceilings = stages.ceilings
        self.walks = 0
        self.elsewhere = math.inf  # no choice that was decided against is below this
        self.reason = f"greedy-interchange; nothing better was found in {seconds:.3g} s"

    def run(self) -> None:
        everything = frozenset(self.graph.numbered.candidates)
        self._anneal(everything)
        model = Model(self.graph, self.budget, Part(everything, detail=Detail(followed=frozenset(self.kept))))
        relaxed = model.relax(self._left())
        if relaxed.values is not None:
            self.bound = max(self.bound, model.bound(relaxed))
            self._round(model, relaxed)
            model, relaxed = self._divide(model, relaxed)
        if relaxed.values is not None and not self._is_proved():
            few = Part(frozenset(model.kept(relaxed, _NONE) | self.kept), detail=model.part.detail)
            self._solve(few, self.gap / 2, self._left() * _FOR_FEW, self._enough(self.gap * _LITTLE))
            model, relaxed = self._decide(model, relaxed)
        if not self._is_proved() and time.monotonic() < self.end:
            enough = self._enough(self.gap)
            least = self._solve(model.part.of(model.worth_trying(relaxed, enough)), self.gap, self._left(), enough)
            self.bound = max(self.bound, min(least, enough, self.elsewhere))
        if self._is_proved():
            self.reason = f"proved by HiGHS within {self.gap:.3g}"

    def _divide(self, model: Model, relaxed: Relaxation) -> tuple[Model, Relaxation]:
        """What is left if flows look more closely, as long as that brings the bound much nearer."""
        while not self._is_proved() and relaxed.values is not None and self._left() > self.seconds / 4:
            detail, enough = model.closer(relaxed.values), self._enough(self.gap)
            if detail == model.part.detail:
                break
            part = replace(model.part.of(model.worth_trying(relaxed, enough)), detail=detail)
            finer = Model(self.graph, self.budget, part)
            found = finer.relax(self._left() * _MOST)
            if found.values is None and found.bound < math.inf:
                break
            self.elsewhere = min(self.elsewhere, enough)
            gained = finer.bound(found) - model.bound(relaxed)
            model, relaxed = finer, found
            self.bound = max(self.bound, min(model.bound(relaxed), self.elsewhere))
            if relaxed.values is not None:
                self._round(model, relaxed)
            if gained < _WORTH_IT * (enough - model.bound(relaxed)):
                break
        return model, relaxed

    def _round(self, model: Model, relaxed: Relaxation) -> None:
        """Greedy and exchanges once more, from what the relaxation keeps for the most part."""
        numbered, keep = self.graph.numbered, model.ledger.keep
        assert relaxed.values is not None
        share = {i: float(relaxed.values[x]) for i, x in keep.items()}
        start = Costs(numbered)
        # A layout is kept by no more than its view.
        for i in sorted(share, key=lambda i: (-share[i], numbered.layout_of[i] >= 0)):
            if share[i] > _MOSTLY and _stands(numbered, i, start.kept):
                move = start.move([i])
                if self.budget.fits(start.size + move.size, start.upkeep + move.upkeep):
                    start.take(move)
        self._exchange(start.kept, "greedy-interchange from what the relaxation keeps")
        self._anneal(model.kept(relaxed, _NONE) | self.kept)

    def _anneal(self, candidates: Collection[int]) -> None:
        """Where views are cheap to maintain only beside several others, exchanges stop far from the best.

        On OR graphs the relaxation tells more, and sooner.
        """
        if self.graph.kind == "or" or not self.graph.numbered.has_updates or self._is_proved():
            return
        self.walks += 1
        walk = Walk(self.graph.numbered, self.budget, self.kept, sorted(candidates), self.walks)
        walk.run(_MOVES * len(candidates), self._left() * _FOR_FEW)
        self._exchange(walk.best, "greedy-interchange after annealing")

    def _exchange(self, start: Collection[int], reason: str) -> None:
        stages = interchanged(self.graph, self.budget, self._left() * _FOR_FEW, start, self.ceilings)
        self._take(stages.costs, reason)

    def _take(self, costs: Costs, reason: str) -> None:
        """What is better than what is known."""
        if total(costs, self.budget) < self.cost:
            self.kept, self.cost, self.reason = costs.kept, total(costs, self.budget), reason

    def _decide(self, model: Model, relaxed: Relaxation) -> tuple[Model, Relaxation]:
        """What is left if views that the relaxation keeps in part are kept or not, where the other cannot be better."""
        numbered = self.graph.numbered
        everything = Costs(numbered, numbered.candidates)
        share = [self.budget.share(numbered.size[i], everything.own_upkeep(i)) for i in range(len(numbered))]
        while not self._is_proved() and self._left() > self.seconds / 4:
            parts = [i for i in model.parts(relaxed) if share[i] > _LARGE]
            if not parts:
                break
            largest = max(parts, key=lambda i: share[i])
            sides = [(side, side.relax(self._left() / 4)) for side in model.both_ways(largest)]
            better, worse = sorted(sides, key=lambda side: side[0].bound(side[1]))
            least, other = better[0].bound(better[1]), worse[0].bound(worse[1])
            self.bound = max(self.bound, min(least, self.elsewhere, self.cost))
            if other < self._enough(self.gap):
                break
            self.elsewhere = min(self.elsewhere, other)
            model, relaxed = better
        return model, relaxed

    def _enough(self, gap: float) -> float:
        """What costs no less need not be looked for."""
        return self.cost - max(gap, 1e-9) * abs(self.cost) * (1 - 1e-6)

    def _left(self) -> float:
        return max(self.end - time.monotonic(), 0.01)

    def _is_proved(self) -> bool:
        return self.cost - self.bound <= max(self.gap, 1e-9) * abs(self.cost)

    def _solve(self, part: Part, gap: float, seconds: float, below: float) -> float:
        """Takes the best choice among these that is below that cost, if there is one; what none is below comes back."""
        part = part.wholly()
        model = Model(self.graph, self.budget, part)
        solution = model.solve(gap, seconds, below)
        kept = model.kept(solution, 0.5)
        if not self._fits(kept):
            narrow = Model(self.graph, self.budget, part, _NARROWER)
            kept = narrow.kept(narrow.solve(gap, self._left(), below), 0.5)
        costs = Costs(self.graph.numbered, kept)
        if self._fits(kept):
            self._take(costs, f"the best found in {self.seconds:.3g} s")
        return solution.bound + model.ledger.constant

    def _fits(self, kept: set[int]) -> bool:
        costs = Costs(self.graph.numbered, kept)
        return self.budget.fits(costs.size, costs.upkeep)


class Model:
    """The program of one graph and budget, and a part of all choices."""

    def __init__(self, graph: ViewGraph, budget: Budget, part: Part, narrower: float = 1.0) -> None:
        self.graph = graph
        self.budget = budget
        self.part = part
        numbered = graph.numbered
        may = [i for i in numbered.candidates if i in part.may and _stands(numbered, i, part.may)]
        self.ledger = Ledger(budget, may)
        program, keep = self.ledger.program, self.ledger.keep
        for i, x in keep.items():
            if numbered.layout_of[i] in keep:
                program.row([(x, 1.0), (keep[numbered.layout_of[i]], -1.0)], most=0.0)
        self.flows: Flows | None = None
        if graph.kind == "or":
            Levels(numbered, self.ledger, Costs(numbered)).add()
        else:
            detail, least = part.detail, Costs(numbered, part.must)
            self.flows = Flows(numbered, self.ledger, least, detail.divided, detail.followed)
            self.flows.add()
            Ties(self.flows).add(detail.ties)
        if budget.space is not None:
            share = [(x, numbered.size[i] / budget.space) for i, x in keep.items() if numbered.size[i]]
            program.row(share, most=narrower)
        if budget.maintenance is not None:
            program.row(((x, cost / budget.maintenance) for x, cost in self.ledger.upkeep), most=narrower)
        for i in part.must:
            program.row([(keep[i], 1.0)], least=1.0)

    def both_ways(self, view: int) -> tuple[Model, Model]:
        """The same without this view, and with it."""
        part = self.part
        parts = part.of(part.may - {view}), replace(part, must=part.must | {view})
        return Model(self.graph, self.budget, parts[0]), Model(self.graph, self.budget, parts[1])

    def closer(self, values: Floats) -> Detail:
        """What is to be told apart in flows, what to be tied, and what to follow, after what the relaxation gave."""
        detail = self.part.detail
        if self.flows is None:
            return detail
        kept = {i for i, x in self.ledger.keep.items() if values[x] > _NONE}
        followed = None if detail.followed is None else detail.followed | kept
        return Detail(self.flows.divided_further(values), detail.ties | Ties(self.flows).found(values), followed)

    def relax(self, seconds: float) -> Relaxation:
        return self.ledger.program.relax(seconds)

    def bound(self, relaxed: Relaxation) -> float:
        return relaxed.bound + self.ledger.constant

    def parts(self, relaxed: Relaxation) -> set[int]:
        """What is kept, but not wholly."""
        return self.kept(relaxed, _NONE) - self.kept(relaxed, 1 - _NONE)

    def solve(self, gap: float, seconds: float, below: float) -> Solution:
        constant = self.ledger.constant
        return self.ledger.program.solve(gap, seconds, constant, below - constant)

    def kept(self, found: Solution | Relaxation, least: float) -> set[int]:
        """What is kept by more than the least; nothing if nothing was found."""
        values = found.values
        return set() if values is None else {i for i, x in self.ledger.keep.items() if values[x] > least}

    def worth_trying(self, relaxed: Relaxation, cost: float) -> set[int]:
        """What may be part of a choice below this cost."""
        room = cost - self.bound(relaxed) + _ROUNDING * abs(cost)
        return {i for i, x in self.ledger.keep.items() if relaxed.reduced[x] <= room}


def _stands(numbered: Numbered, i: int, there: Collection[int]) -> bool:
    """Whether it is no layout, or that of a view among these or of a base table."""
    view = numbered.layout_of[i]
    return view < 0 or numbered.is_base[view] or view in there
