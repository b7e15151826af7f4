"""Greedy choices, evaluated lazily: Greedy, r-greedy and inner-level greedy.   [Gupta 1999, Alg. 1, 3, 4]

Each stage takes the set with the highest benefit per share of the budget. Sets wait under upper bounds of their
density; only the one on top is evaluated, and it is taken if it stays there.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from viewkeeper.errors import GraphError
from viewkeeper.selection.ceilings import Ceilings
from viewkeeper.selection.choice import SLACK, Budget, Choice, Step, finish, names
from viewkeeper.selection.costs import Costs, Move
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.reach import Floats
from viewkeeper.selection.trials import Followed, Trials, Watched

Bools = NDArray[np.bool_]
_NOTHING = 1e-9  # of τ(∅): what saves less is noise
_AHEAD = 16  # candidates that are expected to be taken next
_LITTLE = 1 / 50  # of all nodes: how many change where it is worth to look ahead
_AT_ONCE = 16  # candidates that are followed from the same time on
_FREE = 1e-12  # of the budget: what uses less is free


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


class Sets:
    """Candidates as arrays: what their nodes add up to."""

    def __init__(self, numbered: Numbered, candidates: Sequence[Candidate]) -> None:
        self.nodes = np.array([i for candidate in candidates for i in candidate.nodes], dtype=np.intp)
        counts = np.array([len(candidate.nodes) for candidate in candidates], dtype=np.intp)
        self.starts = np.cumsum(counts) - counts
        self.first = self.nodes[self.starts]
        self.single = counts == 1
        self.grown = np.array([candidate.grown for candidate in candidates], dtype=bool)
        self.number = np.repeat(np.arange(len(counts)), counts)
        self.node_size = np.array(numbered.size)[self.nodes]
        self.size = self.add(self.node_size)
        self.least_size = np.where(self.grown, self.node_size[self.starts], self.size)

    def add(self, parts: Floats) -> Floats:
        return parts if self.single.all() else np.add.reduceat(parts, self.starts)

    def total(self, alone: Floats, shared: Floats) -> Floats:
        """What is known of nodes, of candidates: of one node as if alone, of several as the sum of their shares."""
        found = alone[self.first]
        return found if self.single.all() else np.where(self.single, found, self.add(shared[self.nodes]))


class Stages:
    """A greedy run: what is kept, and what each candidate could at most be worth."""

    def __init__(
        self,
        graph: ViewGraph,
        budget: Budget,
        candidates: Iterable[Candidate],
        start: Iterable[int] = (),
        ceilings: Ceilings | None = None,
    ) -> None:
        """`ceilings` are those of another run on the same graph, if there was one."""
        self.graph = graph
        self.budget = budget
        self.numbered = graph.numbered
        self.costs = Costs(self.numbered)
        self.noise = _NOTHING * max(self.costs.query, 1e-300)
        started = tuple(start)
        if started:
            self.costs.take(self.costs.move(started))
        self.ceilings = ceilings.of(self.costs) if ceilings else Ceilings(graph, self.costs)
        self.candidates = list(candidates)
        self.sets = Sets(self.numbered, self.candidates)
        self.of_node: list[list[int]] = [[] for _ in range(len(self.numbered))]
        for c, candidate in enumerate(self.candidates):
            for i in candidate.nodes:
                self.of_node[i].append(c)
        self.is_open = np.array([self._is_open(c) for c in range(len(self.candidates))], dtype=bool)
        self.trials = self._trials()
        # The density of evaluated candidates, -inf for those that are not worth it.
        self.known = np.full(len(self.candidates), -math.inf)
        self.top = self.known
        self.trace: list[Step] = []

    def _trials(self) -> Trials:
        is_or = self.graph.kind == "or"
        if is_or or self.sets.grown.any():
            return Watched(self.costs, len(self.candidates), is_or=is_or)
        return Followed(self.costs, len(self.candidates))

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
        top = np.where(self.trials.is_current, self.known, self._ceilings())
        top[~self.is_open] = -math.inf
        while len(top):
            c = int(np.argmax(top))
            if top[c] <= 0:
                return None
            if not self.trials.is_current[c]:
                self._look_at(c, top)
            elif self._has_room(self.trials.moves[c].size, self.trials.moves[c].upkeep):
                self.top = top
                return c
            else:
                top[c] = -math.inf
        return None

    def _look_at(self, c: int, top: Floats) -> None:
        """Follows the candidate with the next of those that are not followed yet; or evaluates it, if it is."""
        trials = self.trials
        if not isinstance(trials, Followed) or trials.is_followed(c):
            top[c] = self._try(c)
            return
        unknown = np.where(np.isinf(trials.savings), top, -math.inf)
        best = np.argpartition(-unknown, _AT_ONCE)[:_AT_ONCE] if len(top) > _AT_ONCE else np.arange(len(top))
        trials.follow({o: self.candidates[o].nodes for o in {c, *best[unknown[best] > 0].tolist()}})
        top[:] = np.minimum(top, self._ceilings())

    def take(self, c: int) -> None:
        move = self.trials.moves[c]
        self.trace.append(self._step(move, float(self.known[c])))
        self.costs.take(move)
        if not self.ceilings.take(move):
            self.ceilings.expect(self._ahead(move))
        for i in move.there:
            for other in (*self.of_node[i], *(o for layout in self.numbered.layouts[i] for o in self.of_node[layout])):
                self.is_open[other] = self._is_open(other)
                if not self.is_open[other]:
                    self.trials.close(other)
        self.trials.take(move)

    def _ahead(self, move: Move) -> list[int]:
        """What will perhaps be taken next, where candidates are followed and that changes little."""
        changed = len(move.query_side) + len(move.upkeep_side)
        if not isinstance(self.trials, Followed) or changed > _LITTLE * len(self.numbered) or len(self.top) <= _AHEAD:
            return []
        next_up = np.argpartition(-self.top, _AHEAD)[:_AHEAD]
        return [i for c in next_up[self.top[next_up] > 0].tolist() for i in self.candidates[c].nodes]

    def _is_open(self, c: int) -> bool:
        """Whether nothing of a candidate is kept and its layouts have their view."""
        nodes = self.candidates[c].nodes
        view = self.numbered.layout_of[nodes[0]]
        stands = view < 0 or self.numbered.is_base[view] or view in self.costs.kept
        return stands and self.costs.kept.isdisjoint(nodes)

    def _ceilings(self) -> Floats:
        """What the density of each candidate is at most; -inf for what is not worth it or has no room."""
        ceilings, sets = self.ceilings, self.sets
        saving = np.minimum(sets.total(ceilings.savings, ceilings.shared), self.trials.savings)
        upkeep = np.maximum(
            sets.total(ceilings.upkeeps, ceilings.upkeeps), sets.add(ceilings.own[sets.nodes]) - self.trials.carried
        )
        density = self._densities(saving, sets.size, upkeep)
        if sets.grown.any():
            density = np.where(sets.grown, self._grown_ceilings(), density)
            upkeep = np.where(sets.grown, -math.inf, upkeep)
        return np.where(self._rooms(sets.least_size, upkeep), density, -math.inf)

    def _grown_ceilings(self) -> Floats:
        """No set of a view and some layouts is denser than the view with its densest layouts, each at its ceiling."""
        sets = self.sets
        parts = [self.ceilings.shared[sets.nodes], sets.node_size, self.ceilings.upkeeps[sets.nodes]]
        key = -self._densities(*parts)
        key[sets.starts] = -math.inf
        order = np.lexsort((key, sets.number))
        sums = []
        for part in parts:
            running = np.cumsum(part[order])
            sums.append(running - np.repeat(running[sets.starts] - part[order][sets.starts], np.bincount(sets.number)))
        return np.maximum.reduceat(self._densities(*sums) * (1 + 1e-9), sets.starts)

    def _densities(self, saving: Floats, size: Floats, upkeep: Floats) -> Floats:
        """`_density` of many."""
        worth = saving - upkeep if self.budget.counts_upkeep else saving
        share = np.broadcast_to(self.budget.share(size, upkeep), worth.shape)
        density = np.divide(worth, share, out=np.full(worth.shape, math.inf), where=share > _FREE)
        return np.where(worth > self.noise, density, -math.inf)

    def _density(self, saving: float, size: float, upkeep: float) -> float:
        """Benefit per share of the budget; inf for what costs nothing and helps, -inf for what does not help."""
        worth = saving - upkeep if self.budget.counts_upkeep else saving
        if worth <= self.noise:
            return -math.inf
        share = self.budget.share(size, upkeep)
        return worth / share if share > _FREE else math.inf

    def _try(self, c: int) -> float:
        candidate = self.candidates[c]
        widest = self.costs.move(candidate.nodes)
        move = self._grow(candidate.nodes) if candidate.grown else widest
        self.trials.keep(c, move, widest)
        self.known[c] = self._density(-move.query, move.size, move.upkeep)
        return float(self.known[c])

    def _rooms(self, size: Floats, upkeep: Floats) -> Bools:
        """`_has_room` of many."""
        budget = self.budget
        room = np.ones(len(size), dtype=bool)
        if budget.space is not None and not budget.overshoot:
            room &= self.costs.size + size <= budget.space * (1 + SLACK)
        if budget.maintenance is not None:
            used = 0.0 if budget.overshoot else self.costs.upkeep
            room &= used + upkeep <= budget.maintenance * (1 + SLACK)
        return room

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
