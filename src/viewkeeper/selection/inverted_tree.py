"""Inverted-tree greedy: a node with any set of its ancestors, by benefit per maintenance.   [Gupta 1999, Alg. 6]

Changes of a kept view make those above it cheaper to maintain, so single views can look bad that are good together.
The thesis tries all 2^ancestors sets per node. Here a branch and bound finds the best of them: no set is followed
further whose ceilings cannot beat the best ratio known. As printed, the algorithm never forgets the best ratio of
earlier stages, and divides by costs that are 0 or less; here each stage starts anew, and what costs nothing and helps
is taken at once.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from viewkeeper.errors import GraphError
from viewkeeper.selection.ceilings import Ceilings
from viewkeeper.selection.choice import Budget, Choice, Step, finish, names
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.reach import weights


def inverted_tree(graph: ViewGraph, budget: Budget, limit: int) -> Choice:
    if graph.kind != "or" or any(layout >= 0 for layout in graph.numbered.layout_of):
        raise GraphError("inverted-tree greedy is for OR graphs without layouts", hint="Exact() takes any graph")
    if budget.maintenance is None or budget.space is not None:
        raise GraphError("inverted-tree greedy is for a maintenance budget alone", hint="Exact() takes any budget")
    costs = Costs(graph.numbered)
    trace: list[Step] = []
    while True:
        stage = Stage(costs, budget, limit)
        best = stage.search()
        if best is None:
            break
        costs.take(costs.move(best.nodes))
        cut = f", cut short after {limit} sets" if stage.looked >= limit else ""
        trace.append(Step(names(costs.graph, best.nodes), best.benefit, best.reason + cut))
    return finish(graph, budget, costs.kept, Ceilings(graph, costs).bound(budget), trace)


@dataclass(frozen=True)
class Found:
    """An inverted tree set, what it saves and by how much maintenance grows with it."""

    nodes: tuple[int, ...]
    benefit: float
    upkeep: float
    ratio: float

    @property
    def reason(self) -> str:
        if math.isinf(self.ratio):
            return "helps and costs no maintenance"
        return f"highest query benefit per maintenance, {self.ratio:.6g}"


class Stage:
    """The search for the set of the highest ratio, for what is kept now."""

    def __init__(self, costs: Costs, budget: Budget, limit: int) -> None:
        self.graph = costs.graph
        self.costs = costs
        self.limit = limit
        self.looked = 0
        self.noise = 1e-9 * max(costs.query, 1e-300)
        assert budget.maintenance is not None
        self.room = budget.maintenance if budget.overshoot else budget.maintenance - costs.upkeep
        if budget.is_used_up(0.0, costs.upkeep):
            self.room = 0.0
        self.slack = 1e-9 * budget.maintenance
        everything = Costs(self.graph, self.graph.candidates)
        self.weight: list[float] = weights(self.graph).tolist()
        helped = [0.0] * len(self.graph)
        for kept in costs.kept:
            for i in self.graph.descendants[kept]:
                helped[i] += self.graph.updates[kept]
        # Whatever else is chosen, a node adds at least this much maintenance.
        self.least = [everything.own_upkeep(i) - helped[i] * self._drop(i) for i in range(len(self.graph))]
        self.best: Found | None = None
        self.start = (costs.query, costs.upkeep)

    def _drop(self, i: int) -> float:
        return max(self.costs.upkeeps.used[i] - self.graph.change[i], 0.0)

    def search(self) -> Found | None:
        free = [i for i in self.graph.candidates if i not in self.costs.kept]
        above: dict[int, list[int]] = {i: [] for i in free}
        for x in sorted(free):
            for i in self.graph.descendants[x]:
                if i in above:
                    above[i].append(x)
        # Single nodes first: a good ratio early saves most of the search.
        for i in free:
            undo = self.costs.take(self.costs.move([i]))
            self._look((i,))
            self.costs.take(undo)
        for root in free:
            if self.best is not None and math.isinf(self.best.ratio):
                return self.best
            undo = self.costs.take(self.costs.move([root]))
            self._extend((root,), above[root], 0)
            self.costs.take(undo)
        return self.best

    def _look(self, nodes: tuple[int, ...]) -> None:
        self.looked += 1
        benefit, upkeep = self.start[0] - self.costs.query, self.costs.upkeep - self.start[1]
        if benefit <= self.noise or upkeep > self.room + self.slack:
            return
        ratio = benefit / upkeep if upkeep > self.slack else math.inf
        if self.best is None or ratio > self.best.ratio:
            self.best = Found(nodes, benefit, upkeep, ratio)

    def _extend(self, nodes: tuple[int, ...], above: list[int], place: int) -> None:
        """Every set of `nodes` with some of the ancestors from `place` on that could beat the best."""
        for here in range(place, len(above)):
            if self.looked >= self.limit or not self._promises(above, here):
                return
            undo = self.costs.take(self.costs.move([above[here]]))
            extended = (*nodes, above[here])
            self._look(extended)
            self._extend(extended, above, here + 1)
            self.costs.take(undo)

    def _promises(self, above: list[int], place: int) -> bool:
        """Whether benefit - λ·maintenance can still become positive: λ the best ratio, each ancestor at its ceiling."""
        ratio = self.best.ratio if self.best is not None else 0.0
        if math.isinf(ratio):
            return False
        most = self.start[0] - self.costs.query - ratio * (self.costs.upkeep - self.start[1])
        for i in above[place:]:
            saving = self.weight[i] * max(self.costs.queries.used[i] - self.graph.reading[i], 0.0)
            most += max(saving - ratio * self.least[i], 0.0)
        return most > self.noise
