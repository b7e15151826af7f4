"""A* over the nodes, each after all it is computed from: keep it or not.   [Gupta 1999, Alg. 7, 8]

Once all below a node is decided, what it costs to use and to maintain is settled. So g is exact for the decided
nodes, and h must bound what the undecided ones will cost at least. As printed, Alg. 7 looks at the budget before
adding a view and so exceeds it by one; here, as in its text, the extended set must fit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Literal as OneOf

import numpy as np

from viewkeeper.selection.choice import Budget, Choice, Step, finish, names, total
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.greedy import Stages, small_sets
from viewkeeper.selection.reach import fill

Bound = OneOf["thesis", "tight"]


def astar(graph: ViewGraph, budget: Budget, bound: Bound, limit: int) -> Choice:
    """Optimal; after `limit` expansions the best known choice, with the least cost that was still possible."""
    budget = replace(budget, overshoot=False)
    search = Search(graph.numbered, budget, bound)
    known = Stages(graph, budget, small_sets(graph.numbered, 1))
    known.run()
    found, least, expanded = search.run(limit, total(known.costs, budget))
    if found is None:
        kept = known.costs.kept
        reason = f"greedy; nothing better in {expanded} expanded nodes"
    else:
        kept = {i for i, chosen in enumerate(found.chosen) if chosen}
        reason = f"optimal: the first complete choice of {expanded} expanded nodes"
    ordered = sorted(kept, key=lambda i: graph.numbered.rank[i])
    worth = total(Costs(graph.numbered), budget) - total(Costs(graph.numbered, kept), budget)
    return finish(graph, budget, kept, least, [Step(names(graph.numbered, ordered), worth, reason)])


@dataclass(frozen=True)
class Partial:
    """The first nodes decided: what is chosen, what each costs to use and to carry changes from, and the sums."""

    chosen: tuple[bool, ...]
    used: tuple[float, ...]
    carried: tuple[float, ...]
    cost: float
    size: float
    upkeep: float


class Search:
    def __init__(self, graph: Numbered, budget: Budget, bound: Bound) -> None:
        self.graph = graph
        self.budget = budget
        self.bound = bound
        self.keepable = set(graph.candidates)
        everything = Costs(graph, graph.candidates)
        # p(v) = f·Q(v, N - v) and s(v) = g·UC(v, N), of which the thesis makes its bound.
        self.left_out = [f * q if f else 0.0 for f, q in zip(graph.queries, everything.queries.computed, strict=True)]
        self.least_upkeep = [everything.own_upkeep(i) if i in self.keepable else 0.0 for i in range(len(graph))]

    def run(self, limit: int, known: float) -> tuple[Partial | None, float, int]:
        """The best complete choice, or None if the known cost is not beaten or the limit is reached; a lower bound."""
        start = Partial((), (), (), 0.0, 0.0, 0.0)
        heap: list[tuple[float, int, Partial]] = [(self.least(start), 0, start)]
        order = expanded = 0
        while heap:
            least, _, partial = heappop(heap)
            if least >= known:
                return None, known, expanded
            if len(partial.chosen) == len(self.graph):
                return partial, partial.cost, expanded
            if expanded >= limit:
                return None, least, expanded
            expanded += 1
            for keep in (False, True):
                following = self.decide(partial, keep)
                if following is not None:
                    order -= 1  # among equals the deepest first: it is nearest to complete
                    heappush(heap, (max(least, self.least(following)), order, following))
        return None, known, expanded

    def decide(self, partial: Partial, keep: bool) -> Partial | None:
        """The next node decided; None if it cannot be kept, or not within the budget."""
        graph, i = self.graph, len(partial.chosen)
        view = graph.layout_of[i]
        if keep and (i not in self.keepable or not (view < 0 or graph.is_base[view] or partial.chosen[view])):
            return None
        used, carried = self._cheapest(i, partial.used, partial.carried)
        size, upkeep = partial.size, partial.upkeep
        own = 0.0
        if keep:
            own = (
                graph.updates[i] * (graph.maintenance[i] + (carried if view < 0 else 0.0)) if graph.updates[i] else 0.0
            )
            size, upkeep = size + graph.size[i], upkeep + own
            if not self.budget.fits(size, upkeep):
                return None
            used, carried = min(used, graph.reading[i]), min(carried, graph.change[i])
        cost = partial.cost + (graph.queries[i] * used if graph.queries[i] else 0.0)
        cost += own if self.budget.counts_upkeep else 0.0
        return Partial((*partial.chosen, keep), (*partial.used, used), (*partial.carried, carried), cost, size, upkeep)

    def _cheapest(self, i: int, used: _Values, carried: _Values) -> tuple[float, float]:
        graph = self.graph
        if graph.is_base[i]:
            return graph.reading[i], graph.change[i]
        return (
            min((c + sum(used[j] for j in inputs) for c, inputs in graph.query_arcs[i]), default=math.inf),
            min((c + sum(carried[j] for j in inputs) for c, inputs in graph.maintenance_arcs[i]), default=math.inf),
        )

    def least(self, partial: Partial) -> float:
        """g + h: no completion of these decisions costs less."""
        return partial.cost + (self._thesis(partial) if self.bound == "thesis" else self._tight(partial))

    def _thesis(self, partial: Partial) -> float:
        """The undecided that do not fit cost p each. To make up for cutting, the most profitable one is given away."""
        undecided = range(len(partial.chosen), len(self.graph))
        # What cannot be kept must be paid whatever is chosen; the thesis has no such nodes.
        fixed = math.fsum(self.left_out[i] for i in undecided if i not in self.keepable)
        views = sorted((i for i in undecided if i in self.keepable), key=lambda i: -self.left_out[i])
        best = 0.0
        for sizes, room in self._resources(partial):
            best = max(best, _left_after_filling(views[1:], self.left_out, sizes, room))
        return fixed + best

    def _resources(self, partial: Partial) -> list[tuple[list[float], float]]:
        resources: list[tuple[list[float], float]] = []
        if self.budget.maintenance is not None:
            resources.append((self.least_upkeep, self.budget.maintenance - partial.upkeep))
        if self.budget.space is not None:
            resources.append((list(self.graph.size), self.budget.space - partial.size))
        return resources

    def _tight(self, partial: Partial) -> float:
        """As if all undecided were kept, what each saves by being kept itself; the best of that that could fit, cut.

        Q and UC take into account what has been decided against, and a kept view still costs its own reading.
        """
        graph = self.graph
        decided = len(partial.chosen)
        used, carried = list(partial.used), list(partial.carried)
        base = 0.0
        savings, upkeeps, sizes = [], [], []
        for i in range(decided, len(graph)):
            use, carry = self._cheapest(i, used, carried)
            view = graph.layout_of[i]
            if i in self.keepable and (view < 0 or graph.is_base[view] or view >= decided or partial.chosen[view]):
                own = (
                    graph.updates[i] * (graph.maintenance[i] + (carry if view < 0 else 0.0))
                    if graph.updates[i]
                    else 0.0
                )
                kept = min(use, graph.reading[i])
                if self.budget.fits(partial.size + graph.size[i], partial.upkeep + own):
                    saving = graph.queries[i] * (use - kept) if graph.queries[i] else 0.0
                    savings.append(saving - own if self.budget.counts_upkeep else saving)
                    upkeeps.append(own)
                    sizes.append(graph.size[i])
                    use_kept, carry = kept, min(carry, graph.change[i])
                else:
                    use_kept = use
            else:
                use_kept = use
            base += graph.queries[i] * use if graph.queries[i] else 0.0
            used.append(use_kept)
            carried.append(carry)
        values = np.array(savings)
        saved = float(values[values > 0].sum()) if savings else 0.0
        if self.budget.maintenance is not None and savings:
            saved = min(saved, fill(values, np.array(upkeeps), self.budget.maintenance - partial.upkeep))
        if self.budget.space is not None and savings:
            saved = min(saved, fill(values, np.array(sizes), self.budget.space - partial.size))
        return (base - saved) * (1 - 1e-12)


_Values = tuple[float, ...] | list[float]


def _left_after_filling(views: list[int], profit: list[float], sizes: list[float], room: float) -> float:
    """The profit of what is left when views are taken by profit per size until the room is full or exceeded."""
    by_density = sorted(views, key=lambda i: -(profit[i] / sizes[i] if sizes[i] else math.inf))
    taken = 0.0
    for place, i in enumerate(by_density):
        taken += sizes[i]
        if taken >= room:
            return math.fsum(profit[j] for j in by_density[place + 1 :])
    return 0.0
