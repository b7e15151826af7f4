"""Greedy-interchange: one in for one out while it helps.   [Gupta 1999, Alg. 2]

The thesis states it for things of one size. Here the one that comes in may be of any size that fits.
"""

from __future__ import annotations

import math

import numpy as np

from viewkeeper.selection.choice import Budget, Choice, Step, finish, names
from viewkeeper.selection.costs import Costs, Move
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.greedy import Stages, small_sets


def greedy_interchange(graph: ViewGraph, budget: Budget) -> Choice:
    stages = Stages(graph, budget, small_sets(graph.numbered, 1))
    stages.run()
    exchange = Exchange(stages)
    while exchange.improve():
        pass
    bound = stages.ceilings.bound(budget)
    return finish(graph, budget, stages.costs.kept, bound, stages.trace)


class Exchange:
    """Looks for the best newcomer for each thing that could go, and takes the first exchange that helps."""

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self.costs: Costs = stages.costs
        self.graph: Numbered = stages.numbered
        self.candidates = set(self.graph.candidates)
        # Greedy may have used more than the budget; exchanges must not use still more.
        self.budget = stages.budget
        self.space = max(self.budget.space or 0.0, self.costs.size)
        self.upkeep = max(self.budget.maintenance or 0.0, self.costs.upkeep)

    def improve(self) -> bool:
        ceilings = np.array([self._ceiling(i) for i in range(len(self.graph))])
        for out in sorted(self.costs.kept, key=lambda i: self.graph.rank[i]):
            if any(layout in self.costs.kept for layout in self.graph.layouts[out]):
                continue
            gone = self.costs.move(drop=[out])
            undo = self.costs.take(gone)
            # Others save more without it only near it; elsewhere they must save more than it did.
            options = {*np.flatnonzero(ceilings > -self._worth(gone)).tolist(), *self._near(gone)}
            found = self._best_newcomer(out, options)
            worth = self._worth(gone) + (self._worth(found[1]) if found else 0.0)
            if worth > self.stages.noise:
                self._keep(out, found, worth)
                return True
            self.costs.take(undo)
        return False

    def _keep(self, out: int, found: tuple[int, Move] | None, worth: float) -> None:
        gone = names(self.graph, [out])
        if found is None:
            self.stages.trace.append(Step((), worth, "costs more than it saves", dropped=gone))
            return
        self.costs.take(found[1])
        self.stages.trace.append(Step(names(self.graph, [found[0]]), worth, "saves more in its place", dropped=gone))

    def _near(self, move: Move) -> set[int]:
        changed = move.query_side.keys() | move.there.keys()
        users = {x for y in changed for x in (y, *self.graph.users[y])}
        return {i for x in users for i in (x, *self.graph.inputs[x])}

    def _best_newcomer(self, out: int, possible: set[int]) -> tuple[int, Move] | None:
        """The newcomer with the highest benefit; those that cannot beat the best so far are not tried."""
        options = [(self._ceiling(i), i) for i in possible if i in self.candidates and self._may_come(i, out)]
        options.sort(key=lambda option: (-option[0], self.graph.rank[option[1]]))
        best: tuple[int, Move] | None = None
        best_worth = 0.0
        for ceiling, i in options:
            if ceiling <= best_worth:
                break
            move = self.costs.move([i])
            if self._worth(move) > best_worth and self._fits(move):
                best, best_worth = (i, move), self._worth(move)
        return best

    def _may_come(self, i: int, out: int) -> bool:
        view = self.graph.layout_of[i]
        stands = view < 0 or self.graph.is_base[view] or view in self.costs.kept
        return i != out and i not in self.costs.kept and stands and self._has_room(i)

    def _has_room(self, i: int) -> bool:
        return self.budget.space is None or self.costs.size + self.graph.size[i] <= self.space * (1 + 1e-9)

    def _fits(self, move: Move) -> bool:
        return self.budget.maintenance is None or self.costs.upkeep + move.upkeep <= self.upkeep * (1 + 1e-9)

    def _ceiling(self, i: int) -> float:
        if i not in self.candidates or i in self.costs.kept:
            return -math.inf
        if self.budget.counts_upkeep and self.graph.has_updates:
            return math.inf
        return self.stages.ceilings.saving([i])

    def _worth(self, move: Move) -> float:
        return -move.query - (move.upkeep if self.budget.counts_upkeep else 0.0)
