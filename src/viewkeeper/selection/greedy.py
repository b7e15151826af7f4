"""Greedy choices, evaluated lazily: Greedy, r-greedy and inner-level greedy.   [Gupta 1999, Alg. 1, 3, 4]

Each stage takes the set with the highest benefit per share of the budget. Sets wait under upper bounds of their
density; only the one on top is evaluated, and it is taken if it stays there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from viewkeeper.errors import GraphError
from viewkeeper.selection.ceilings import Ceilings
from viewkeeper.selection.choice import Budget, Choice, Step, finish, names
from viewkeeper.selection.costs import Costs, Move
from viewkeeper.selection.graph import Numbered, ViewGraph

_NOTHING = 1e-9  # of τ(∅): what saves less is noise


def greedy(graph: ViewGraph, budget: Budget) -> Choice:
    """One view, or one layout of a kept view, at a time."""
    return r_greedy(graph, budget, 1)


def r_greedy(graph: ViewGraph, budget: Budget, r: int) -> Choice:
    """Sets of a view and up to r - 1 of its layouts, or one layout of a kept view."""
    if r < 1:
        raise GraphError(f"r-greedy with r = {r}")
    stages = Stages(graph, budget, small_sets(graph.numbered, r))
    stages.run()
    return stages.choice()


def inner_level(graph: ViewGraph, budget: Budget) -> Choice:
    """Sets of a view and the layouts that raise its density, grown greedily, or one layout of a kept view.

    As printed, Alg. 4 looks at views already chosen and never stops at the best density; the text of the thesis is
    followed.
    """
    numbered = graph.numbered
    sets = [Candidate((i, *numbered.layouts[i]), grown=True) for i in numbered.candidates if numbered.layout_of[i] < 0]
    stages = Stages(graph, budget, [*sets, *_single_layouts(numbered)])
    stages.run()
    return stages.choice()


@dataclass(frozen=True)
class Candidate:
    """Nodes to be taken together; if grown, the first of them and as many of the others as raise the density."""

    nodes: tuple[int, ...]
    grown: bool = False


def small_sets(numbered: Numbered, r: int) -> list[Candidate]:
    """Every view with up to r - 1 of its layouts, in the order of the graph; then every layout alone."""
    views = [i for i in numbered.candidates if numbered.layout_of[i] < 0]
    subsets = ((v, *some) for v in views for p in range(r) for some in combinations(numbered.layouts[v], p))
    return [*map(Candidate, subsets), *_single_layouts(numbered)]


def _single_layouts(numbered: Numbered) -> Iterator[Candidate]:
    return (Candidate((i,)) for i in numbered.candidates if numbered.layout_of[i] >= 0)


class Stages:
    """A greedy run: what is kept, and what each candidate could at most be worth."""

    def __init__(
        self, graph: ViewGraph, budget: Budget, candidates: Iterable[Candidate], start: Iterable[int] = ()
    ) -> None:
        self.graph = graph
        self.budget = budget
        self.numbered = graph.numbered
        self.costs = Costs(self.numbered)
        self.noise = _NOTHING * max(self.costs.query, 1e-300)
        started = tuple(start)
        if started:
            self.costs.take(self.costs.move(started))
        self.ceilings = Ceilings(graph, self.costs)
        self.candidates = list(candidates)
        self.savings = [math.inf] * len(self.candidates)
        self.touched_by: list[list[int]] = [[] for _ in range(len(self.numbered))]
        for c, candidate in enumerate(self.candidates):
            for i in candidate.nodes:
                self.touched_by[i].append(c)
        self.refused: set[int] = set()
        self.top = np.array([self._ceiling(c) for c in range(len(self.candidates))])
        # Evaluated candidates: what each would do, and its density.
        self.tried: dict[int, Move] = {}
        self.known = np.full(len(self.candidates), -math.inf)
        self.watched_by: dict[int, set[int]] = {}
        self.trace: list[Step] = []

    def run(self) -> None:
        while not self.budget.is_used_up(self.costs.size, self.costs.upkeep):
            c = self.best()
            if c is None:
                return
            self.take(c)

    def choice(self) -> Choice:
        return finish(self.graph, self.budget, self.costs.kept, self.ceilings.bound(self.budget), self.trace)

    def best(self) -> int | None:
        """The densest candidate that may be taken; ties go to the first. None if nothing is worth taking."""
        while len(self.top):
            c = int(np.argmax(self.top))
            if self.top[c] <= 0:
                return None
            if c not in self.tried:
                if not self._is_beaten(c):
                    self._try(c)
            elif self._has_room(self.tried[c].size, self.tried[c].upkeep):
                return c
            else:
                self.top[c] = self.known[c] = self._refuse(c)
        return None

    def _refuse(self, c: int) -> float:
        """What does not fit is out; for good under a space budget, until the next stage under one for maintenance."""
        if self.budget.maintenance is not None:
            self.refused.add(c)
        return -math.inf

    def _is_beaten(self, c: int) -> bool:
        """Whether a closer look already puts a candidate below one that has been evaluated."""
        nodes = self.candidates[c].nodes
        to_beat = float(self.known.max())
        if len(nodes) > 1 or to_beat <= 0 or math.isinf(to_beat):
            return False
        size, upkeep = self.numbered.size[nodes[0]], self.ceilings.upkeep(nodes)
        enough = to_beat * self.budget.share(size, upkeep) + (upkeep if self.budget.counts_upkeep else 0.0)
        saving, rests_on = self.ceilings.refine(nodes[0], enough)
        if saving >= enough:
            return False
        self._watch(c, rests_on)
        self.savings[c] = min(self.savings[c], saving)
        self.top[c] = self._density(self.savings[c], size, upkeep)
        return True

    def _watch(self, c: int, nodes: Iterable[int]) -> None:
        for i in nodes:
            self.watched_by.setdefault(i, set()).add(c)

    def take(self, c: int) -> None:
        move = self.tried[c]
        self.trace.append(self._step(move, float(self.top[c])))
        self.costs.take(move)
        again = {other for node in self.ceilings.take(move) for other in self.touched_by[node]}
        changed = move.query_side.keys() | move.upkeep_side.keys() | move.there.keys()
        again |= self._forget(changed)
        again |= self.refused
        self.refused = set()
        for other in again:
            self.tried.pop(other, None)
            self.known[other] = -math.inf
            self.top[other] = self._ceiling(other)

    def _forget(self, changed: Iterable[int]) -> set[int]:
        """The candidates whose evaluation these changes may have made untrue.

        What was found stays an upper bound of the saving as long as costs only fell around it. Only where one input
        of an arc has become cheaper, another may save more than before.
        """
        numbered = self.numbered
        near = {i for y in changed for x in (y, *numbered.users[y]) for i in (x, *numbered.inputs[x])}
        if not self.ceilings.is_or:
            partners = {i for y in changed for _, _, inputs in self.costs.queries.uses[y] for i in inputs if i != y}
            for i in partners:
                for c in (*self.watched_by.get(i, ()), *self.touched_by[i]):
                    self.savings[c] = math.inf
        return {c for i in near for c in self.watched_by.pop(i, ())}

    def _ceiling(self, c: int) -> float:
        nodes = self.candidates[c].nodes
        kept = self.costs.kept
        if any(i in kept for i in nodes) or not self._view_is_there(nodes[0]):
            return -math.inf
        if self.candidates[c].grown:
            return self._grown_ceiling(nodes)
        size, upkeep = sum(self.numbered.size[i] for i in nodes), self.ceilings.upkeep(nodes)
        if not self._has_room(size, upkeep):
            return self._refuse(c)
        return self._density(min(self.ceilings.saving(nodes), self.savings[c]), size, upkeep)

    def _grown_ceiling(self, nodes: tuple[int, ...]) -> float:
        """No set of a view and some layouts is denser than the view with its densest layouts, each at its ceiling."""
        if len(nodes) > 1 and not self.ceilings.is_or:
            return math.inf
        parts = [(self.ceilings.saving([i]), self.numbered.size[i], self.ceilings.upkeep([i])) for i in nodes]
        more = sorted(parts[1:], key=lambda part: self._density(*part), reverse=True)
        saving, size, upkeep = parts[0]
        best = self._density(saving, size, upkeep)
        for part in more:
            saving, size, upkeep = saving + part[0], size + part[1], upkeep + part[2]
            best = max(best, self._density(saving, size, upkeep))
        return best

    def _view_is_there(self, i: int) -> bool:
        view = self.numbered.layout_of[i]
        return view < 0 or self.numbered.is_base[view] or view in self.costs.kept

    def _density(self, saving: float, size: float, upkeep: float) -> float:
        """Benefit per share of the budget; inf for what costs nothing and helps, -inf for what does not help."""
        worth = saving - upkeep if self.budget.counts_upkeep else saving
        if worth <= self.noise:
            return -math.inf
        share = self.budget.share(size, upkeep)
        return worth / share if share > 1e-12 else math.inf

    def _try(self, c: int) -> None:
        candidate = self.candidates[c]
        move = self._grow(candidate.nodes) if candidate.grown else self.costs.move(candidate.nodes)
        self.tried[c] = move
        self._watch(c, move.query_side.keys() | move.upkeep_side.keys())
        if not candidate.grown and (self.ceilings.is_or or len(candidate.nodes) == 1):
            self.savings[c] = -move.query * (1 + 1e-12)
        has_room = self._has_room(move.size, move.upkeep)
        density = self._density(-move.query, move.size, move.upkeep) if has_room else self._refuse(c)
        self.top[c] = self.known[c] = density

    def _has_room(self, size: float, upkeep: float) -> bool:
        if self.budget.overshoot:
            # Anything may overshoot a space budget; a set that alone exceeds a maintenance budget may not.
            return self.budget.maintenance is None or self.budget.fits(0.0, upkeep)
        return self.budget.fits(self.costs.size + size, self.costs.upkeep + upkeep)

    def _grow(self, nodes: tuple[int, ...]) -> Move:
        """A view, and one after the other the layout with the best density, while that of the whole set rises."""
        chosen = [nodes[0]]
        left = list(nodes[1:])
        move = self.costs.move(chosen)
        density = self._density(-move.query, move.size, move.upkeep)
        while left and not self.budget.is_used_up(move.size, move.upkeep):
            options = [(self.costs.move([*chosen, i]), i) for i in left]
            option, i = max(options, key=lambda o: self._added_density(o[0], move))
            grown = self._density(-option.query, option.size, option.upkeep)
            if grown <= density or not self._has_room(option.size, option.upkeep):
                break
            move, density = option, grown
            chosen.append(i)
            left.remove(i)
        return move

    def _added_density(self, option: Move, move: Move) -> float:
        return self._density(move.query - option.query, option.size - move.size, option.upkeep - move.upkeep)

    def _step(self, move: Move, density: float) -> Step:
        added = names(self.numbered, move.there)
        worth = -move.query - (move.upkeep if self.budget.counts_upkeep else 0.0)
        if math.isinf(density):
            return Step(added, worth, "helps and uses up nothing")
        unit = "benefit" if self.budget.space is self.budget.maintenance is None else "benefit per whole budget"
        return Step(added, worth, f"highest {unit}, {density:.6g}")
