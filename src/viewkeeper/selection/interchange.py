"""Greedy-interchange: one in for one out while it helps.   [Gupta 1999, Alg. 2]

The thesis states it for things of one size. Here the one that comes in may be of any size that fits.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable

from viewkeeper.selection.ceilings import Ceilings
from viewkeeper.selection.choice import Budget, Choice, Step, finish, names
from viewkeeper.selection.costs import Costs, Move
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.greedy import Stages, small_sets


def greedy_interchange(graph: ViewGraph, budget: Budget) -> Choice:
    stages = interchanged(graph, budget)
    return finish(graph, budget, stages.costs.kept, stages.ceilings.bound(budget), stages.trace)


def interchanged(
    graph: ViewGraph,
    budget: Budget,
    seconds: float = math.inf,
    start: Iterable[int] = (),
    ceilings: Ceilings | None = None,
) -> Stages:
    """A greedy run, from a start that fits, and then exchanges until none helps any more or the time is over."""
    stages = Stages(graph, budget, small_sets(graph.numbered, 1), start, ceilings)
    stages.run()
    exchange = Exchange(stages, time.monotonic() + seconds)
    while exchange.improve():
        pass
    return stages


class Exchange:
    """Looks for the best newcomer for each thing that could go, and takes every exchange that helps."""

    def __init__(self, stages: Stages, end: float) -> None:
        self.stages = stages
        self.end = end
        self.costs: Costs = stages.costs
        self.graph: Numbered = stages.numbered
        # Greedy may have used more than the budget; exchanges must not use still more.
        limit = stages.budget
        self.limit = Budget(
            limit.space and max(limit.space, self.costs.size),
            limit.maintenance and max(limit.maintenance, self.costs.upkeep),
        )

    def improve(self) -> bool:
        """Once through all that is kept; whether anything helped."""
        helped = False
        for out in sorted(self.costs.kept, key=lambda i: self.graph.rank[i]):
            if time.monotonic() >= self.end:
                return False
            helped |= self._exchange(out)
        return helped

    def _exchange(self, out: int) -> bool:
        if any(layout in self.costs.kept for layout in self.graph.layouts[out]):
            return False
        gone = self.costs.move(drop=[out])
        undo = self.costs.take(gone)
        found = self._best_newcomer(out, max(-self._worth(gone), 0.0))
        worth = self._worth(gone) + (self._worth(found) if found else 0.0)
        if worth <= self.stages.noise:
            self.costs.take(undo)
            return False
        if found:
            self.costs.take(found)
            self.stages.ceilings.take(found)
        added = names(self.graph, found.there) if found else ()
        reason = "saves more in its place" if found else "costs more than it saves"
        self.stages.trace.append(Step(added, worth, reason, dropped=names(self.graph, [out])))
        return True

    def _best_newcomer(self, out: int, best: float) -> Move | None:
        """The newcomer with the highest benefit above `best`; those whose ceiling is not above it are not tried."""
        ceilings = self.stages.ceilings
        ceilings.look()
        most = ceilings.savings - ceilings.upkeeps if self.limit.counts_upkeep else ceilings.savings
        options = [i for i in self.graph.candidates if most[i] > best and self._may_come(i, out)]
        found: Move | None = None
        for i in sorted(options, key=lambda i: -most[i]):
            if most[i] <= best:
                break
            move = self.costs.move([i])
            if self._worth(move) > best and self._fits(move):
                found, best = move, self._worth(move)
        return found

    def _may_come(self, i: int, out: int) -> bool:
        view = self.graph.layout_of[i]
        stands = view < 0 or self.graph.is_base[view] or view in self.costs.kept
        return i != out and i not in self.costs.kept and stands

    def _fits(self, move: Move) -> bool:
        return self.limit.fits(self.costs.size + move.size, self.costs.upkeep + move.upkeep)

    def _worth(self, move: Move) -> float:
        return -move.query - (move.upkeep if self.limit.counts_upkeep else 0.0)
