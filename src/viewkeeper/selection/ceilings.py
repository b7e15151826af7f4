"""What adding something can save at most, known without trying it, so that greedy methods try little."""

from __future__ import annotations

import math
from collections.abc import Iterable
from heapq import heappop, heappush

import numpy as np

from viewkeeper.selection.choice import Budget
from viewkeeper.selection.costs import Costs, Move
from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.reach import fill, weights

_ROUNDING = 1 + 1e-12


class Ceilings:
    """Upper bounds of query savings and lower bounds of the maintenance that comes with them, given what is kept.

    If the cost of using v falls by d, queries save at most d·weight(v) and the kept views above v at most d·helped(v).
    """

    def __init__(self, graph: ViewGraph, costs: Costs) -> None:
        self.graph = costs.graph
        self.costs = costs
        self.is_or = graph.kind == "or"
        self.weight: list[float] = weights(self.graph).tolist()
        self.helped = [0.0] * len(self.graph)
        for i in costs.kept:
            self._help(i)

    def take(self, move: Move) -> set[int]:
        """Follows a move that `costs` has taken; the nodes whose own ceilings may have risen or fallen come back."""
        graph = self.graph
        changed = move.query_side.keys() | move.upkeep_side.keys() | move.there.keys()
        touched = set(changed)
        for i in move.there:
            helped = self._help(i)
            touched |= helped
            changed |= helped if not self.is_or else set()
            touched.update(graph.layouts[i])
        for y in changed:
            touched.update(j for j in graph.inputs[y] if not self.is_or or graph.layout_of[j] >= 0)
            if not self.is_or:
                for x in graph.users[y]:
                    touched.update(graph.inputs[x])
        return touched

    def _help(self, kept: int) -> set[int]:
        """A newly kept view would gain from cheaper changes of everything it can be maintained from."""
        often = self.graph.updates[kept]
        if not often or self.graph.layout_of[kept] >= 0:
            return set()
        if self.is_or:
            below = self.graph.descendants[kept]
            for i in below:
                self.helped[i] += often
            return set(below)
        uses = {kept: often}
        for i in range(kept, -1, -1):
            for _, inputs in self.graph.maintenance_arcs[i] if i in uses else ():
                for j in inputs:
                    uses[j] = uses.get(j, 0.0) + uses[i]
        del uses[kept]
        for i, use in uses.items():
            self.helped[i] += use
        return set(uses)

    def saving(self, nodes: Iterable[int]) -> float:
        """The most that queries can save by these nodes, which are not kept. inf where one can make another useful."""
        wanted = tuple(nodes)
        if len(wanted) > 1 and not self.is_or:
            return math.inf
        return sum(map(self._saving, wanted)) * _ROUNDING

    def _saving(self, i: int) -> float:
        if self.is_or and self.graph.layout_of[i] < 0:
            return self.weight[i] * max(self.costs.queries.used[i] - self.graph.reading[i], 0.0)
        return self._saving_next_above(i)

    def _saving_next_above(self, i: int) -> float:
        """What i itself and the nodes next above it save, and with them all that is above those."""
        graph, used = self.graph, self.costs.queries.used
        reading = graph.reading[i]
        total = graph.queries[i] * (used[i] - reading) if graph.queries[i] and used[i] > reading else 0.0
        for x in graph.users[i]:
            best = now = used[x]
            for cost, inputs in graph.query_arcs[x]:
                if i in inputs:
                    best = min(best, cost + sum(min(reading, used[i]) if j == i else used[j] for j in inputs))
            total += self.weight[x] * (now - best)
        return total

    def refine(self, i: int, enough: float) -> tuple[float, Iterable[int]]:
        """A lower ceiling for one node, followed upwards only until it is below `enough`; and the nodes it rests on.

        Where a saving has been followed to, what is above is still at its ceiling, weight × fall.
        """
        side, weight, often = self.costs.queries, self.weight, self.graph.queries
        used = side.used
        now = {i: min(used[i], self.graph.reading[i])}
        gained, above = 0.0, math.inf
        waiting = [i]
        while waiting and (gained + above) * _ROUNDING >= enough:
            j = heappop(waiting)
            if j == i:
                # A layout is no query, and from nothing to something is no number.
                gained, above = often[i] * (used[i] - now[i]) if often[i] else 0.0, 0.0
            else:
                gained += often[j] * (used[j] - now[j])
                above -= weight[j] * (used[j] - now[j])
            for x, own, inputs in side.uses[j]:
                cost = own
                for k in inputs:
                    cost += now[k] if k in now else used[k]
                before = now.get(x, used[x])
                if cost < before:
                    if x not in now:
                        heappush(waiting, x)
                    now[x] = cost
                    above += weight[x] * (before - cost)
        return (gained + max(above, 0.0)) * _ROUNDING, now

    def upkeep(self, nodes: Iterable[int]) -> float:
        """The least by which maintenance grows with these nodes; it may shrink."""
        wanted = tuple(nodes)
        if not self.graph.has_updates:
            return 0.0
        if len(wanted) > 1 and not self.is_or:
            return -math.inf
        return sum(self.costs.own_upkeep(i) - self._help_by(i) * _ROUNDING for i in wanted)

    def _help_by(self, i: int) -> float:
        graph, side = self.graph, self.costs.upkeeps
        change = graph.change[i]
        if self.is_or and graph.layout_of[i] < 0:
            return self.helped[i] * max(side.used[i] - change, 0.0)
        total = 0.0
        for x in graph.users[i]:
            often = self.helped[x] + (graph.updates[x] if x in self.costs.kept else 0.0)
            if not often:
                continue
            best = now = side.computed[x]
            for cost, inputs in graph.maintenance_arcs[x]:
                if i in inputs:
                    best = min(best, cost + sum(min(change, side.used[i]) if j == i else side.used[j] for j in inputs))
            total += often * (now - best)
        return total

    def bound(self, budget: Budget) -> float:
        """A lower bound of τ over all choices within the budget, from what is still to be gained when a run ends.

        In an OR graph B(O,M) ≤ Σ over o of B(o,M), so what O saves beyond M is at most a knapsack of ceilings.
        """
        if not self.is_or:
            return -math.inf
        left = [i for i in self.graph.candidates if i not in self.costs.kept]
        values = np.array([self._saving_next_above(i) * _ROUNDING for i in left])
        best = -math.inf
        if budget.space is not None:
            sizes = np.array([self.graph.size[i] for i in left])
            best = self.costs.query - fill(values, sizes, budget.space)
        if budget.maintenance is not None:
            everything = Costs(self.graph, self.graph.candidates)
            least = np.array([everything.own_upkeep(i) for i in left])
            best = max(best, self.costs.query - fill(values, least, budget.maintenance))
        return best
