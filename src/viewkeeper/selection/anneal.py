"""Annealing: random moves, of which those that cost more are taken with a chance that falls.   [Kirkpatrick 1983]

Exchanges stop where no single one helps. Where views are cheap to keep only beside others, much better choices may be
several moves away, over some that cost more or exceed the budget for a while. What an excess counts for rises as long
as there is one and falls as long as there is none, so that the walk goes along the edge of the budget.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Sequence
from dataclasses import replace
from random import Random

from viewkeeper.selection.choice import Budget, Choice, Step, finish, names, total
from viewkeeper.selection.costs import Costs, Move
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.interchange import interchanged

_WARM = 1.0  # of the cost per candidate: what is worse by so much is taken at first with a chance of 1/e
_COLD = 0.02  # of that, at last
_EXCESS = 0.5  # of the cost: what exceeding a budget by all of it counts for at first
_DEARER = 1.001  # by so much more with each move from where there is an excess
_FURTHEST = 100.0  # times as much, or as little, at most: else a walk that never met the budget could leave it for good
_AFRESH = 10_000  # moves after which costs are found anew: sums of many small changes drift
_GOING = (0, 1, 1, 2)  # how many may go for one that comes


def annealing(graph: ViewGraph, budget: Budget, moves: int, seed: int) -> Choice:
    """Greedy and exchanges, a walk from there, and exchanges from the best that it met."""
    budget = replace(budget, overshoot=False)
    numbered = graph.numbered
    first = interchanged(graph, budget)
    bound = first.ceilings.bound(budget)
    before = frozenset(first.costs.kept)
    walk = Walk(numbered, budget, before, numbered.candidates, seed)
    walk.run(moves * len(numbered.candidates))
    last = interchanged(graph, budget, start=walk.best, ceilings=first.ceilings)
    trace = [*first.trace, *last.trace]
    if walk.best != before:
        come, go = (names(numbered, sorted(some)) for some in (walk.best - before, before - walk.best))
        worth = total(first.costs, budget) - walk.least
        trace.insert(len(first.trace), Step(come, worth, f"the best of {walk.moves} random moves", dropped=go))
    return finish(graph, budget, last.costs.kept, bound, trace)


class Walk:
    """From a choice within the budget, by moves that keep or drop one of the candidates; the same for the same seed.

    best    the best choice within the budget that it met
    moves   how many were tried
    price   what an excess counts for, compared to the start
    """

    def __init__(
        self, graph: Numbered, budget: Budget, start: Iterable[int], candidates: Sequence[int], seed: int
    ) -> None:
        self.graph = graph
        self.budget = budget
        self.candidates = candidates
        self.random = Random(seed)
        self.costs = Costs(graph, start)
        self.best = frozenset(self.costs.kept)
        self.least = self.scale = total(self.costs, budget)
        self.price = 1.0
        self.moves = 0

    def run(self, moves: int, seconds: float = math.inf) -> None:
        """So many moves, fewer if the time is over."""
        end = time.monotonic() + seconds
        for k in range(moves):
            if time.monotonic() >= end:
                break
            self.moves += 1
            if self.moves % _AFRESH == 0:
                self.costs = Costs(self.graph, self.costs.kept)
            self._step(_WARM * _COLD ** (k / moves) * self.scale / len(self.graph.candidates))

    def _step(self, temperature: float) -> None:
        """A random move, taken if it saves something or by chance."""
        move = self._move()
        before = self._excess(self.costs.size, self.costs.upkeep)
        after = self._excess(self.costs.size + move.size, self.costs.upkeep + move.upkeep)
        self.price = min(self.price * _DEARER, _FURTHEST) if before else max(self.price / _DEARER, 1 / _FURTHEST)
        worse = move.query + (move.upkeep if self.budget.counts_upkeep else 0.0)
        worse += self.price * _EXCESS * self.scale * (after - before)
        if worse > 0 and worse >= temperature * self.random.expovariate(1.0):
            return
        self.costs.take(move)
        if not after and total(self.costs, self.budget) < self.least:
            self.least, self.best = total(self.costs, self.budget), frozenset(self.costs.kept)

    def _move(self) -> Move:
        """Something goes, or comes, mostly for others that go. A layout comes with its view and goes with it."""
        graph, kept = self.graph, self.costs.kept
        i = self.random.choice(self.candidates)
        if i in kept:
            return self.costs.move(drop=self._with_layouts([i]))
        view = graph.layout_of[i]
        come = [i] if view < 0 or graph.is_base[view] else [view, i]
        going = self.random.sample(sorted(kept), min(self.random.choice(_GOING), len(kept)))
        return self.costs.move(come, [j for j in self._with_layouts(going) if j not in come])

    def _with_layouts(self, views: Iterable[int]) -> list[int]:
        return [j for i in views for j in (i, *self.graph.layouts[i])]

    def _excess(self, size: float, upkeep: float) -> float:
        """By which shares of the limits this is too much."""
        if self.budget.fits(size, upkeep):
            return 0.0
        space, maintenance = self.budget.space or math.inf, self.budget.maintenance or math.inf
        return max(size / space - 1, 0.0) + max(upkeep / maintenance - 1, 0.0)
