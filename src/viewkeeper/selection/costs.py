"""Q(v,M), UC(v,M), τ and benefit, kept up to date change by change.   [Gupta 1999, 2.2 and 3.3]

Q(v,M) is the cheapest way to answer v: read it if it is kept, or take an arc and answer each of its inputs. An input
that is used twice is paid for twice. The thesis prints the other reading, each arc once; with it one query alone is
NP-hard and its Observation 3 does not hold (docs/algorithms/index.md).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush

from viewkeeper.errors import GraphError
from viewkeeper.selection.graph import Arcs, Numbered, Uses, ViewGraph


class Side:
    """Cheapest AND-DAGs for one kind of cost: of queries, or of maintenance.

    computed[i]   the cheapest arc of i, whether or not i is kept
    used[i]       what i costs one that uses it: `price` where it is kept and that is less
    """

    def __init__(self, graph: Numbered, arcs: Arcs, uses: Uses, price: Sequence[float], there: Set[int]) -> None:
        self.graph = graph
        self.arcs = arcs
        self.uses = uses
        self.price = price
        self.computed = [0.0] * len(graph)
        self.used = [0.0] * len(graph)
        for i in range(len(graph)):
            self.computed[i], self.used[i] = self.evaluate(i, i in there, {})

    def evaluate(self, i: int, there: bool, changed: dict[int, tuple[float, float]]) -> tuple[float, float]:
        """What i costs to compute and to use, with `changed` in the place of what is known of its inputs."""
        if self.graph.is_base[i]:
            return self.price[i], self.price[i]
        used = self.used
        best = math.inf
        for own, inputs in self.arcs[i]:
            cost = own
            for j in inputs:
                cost += changed[j][1] if j in changed else used[j]
            best = min(best, cost)
        return best, min(best, self.price[i]) if there else best

    def spread(self, there: dict[int, bool], kept: set[int]) -> dict[int, tuple[float, float]]:
        """The nodes whose costs change when these come or go, upwards until nothing changes."""
        changed: dict[int, tuple[float, float]] = {}
        waiting = list(there)
        heapify(waiting)
        seen = set(waiting)
        while waiting:
            i = heappop(waiting)
            now = self.evaluate(i, there.get(i, i in kept), changed)
            moved = now[1] != self.used[i]
            if moved or now[0] != self.computed[i]:
                changed[i] = now
            if moved:
                for j in self.graph.users[i]:
                    if j not in seen:
                        seen.add(j)
                        heappush(waiting, j)
        return changed

    def fall(self, come: Iterable[int]) -> dict[int, tuple[float, float]]:
        """The same where nodes only come, so that costs only fall: no arc is looked at that has nothing new."""
        computed, used, price = self.computed, self.used, self.price
        before: dict[int, tuple[float, float]] = {}
        for i in come:
            if price[i] < used[i]:
                before[i] = (computed[i], used[i])
                used[i] = price[i]
        waiting = list(before)
        heapify(waiting)
        # Costs are changed in place and back again: looking for each in two places would take most of the time.
        while waiting:
            i = heappop(waiting)
            if used[i] == before[i][1]:
                continue
            for x, own, inputs in self.uses[i]:
                cost = own
                for j in inputs:
                    cost += used[j]
                if cost < computed[x]:
                    if x not in before:
                        before[x] = (computed[x], used[x])
                        heappush(waiting, x)
                    computed[x] = cost
                    used[x] = min(cost, used[x])
        return self.take(before)

    def near(self, fallen: Iterable[int]) -> set[int]:
        """What was found by `fall` is no longer so, after these have become cheaper, if it is about one of those."""
        near = set(fallen)
        for i in tuple(near):
            for _, _, inputs in self.uses[i]:
                near.update(inputs)
        return near

    def take(self, changed: dict[int, tuple[float, float]]) -> dict[int, tuple[float, float]]:
        """Makes the changes; what they replaced comes back, for taking them back."""
        before = {i: (self.computed[i], self.used[i]) for i in changed}
        for i, (computed, used) in changed.items():
            self.computed[i] = computed
            self.used[i] = used
        return before


@dataclass(frozen=True)
class Move:
    """What adding and dropping some nodes would change: total query cost, total maintenance, and every node's own."""

    there: dict[int, bool]
    query: float
    upkeep: float
    size: float
    query_side: dict[int, tuple[float, float]] = field(repr=False)
    upkeep_side: dict[int, tuple[float, float]] = field(repr=False)


class Costs:
    """The costs of one set M of kept nodes; `move` asks what if, `take` does it, `back` undoes it.

    query, upkeep, size   Σ f·Q(v,M), U(M) = Σ g·UC(v,M), and the space of M
    """

    def __init__(self, graph: Numbered, kept: Iterable[int] = ()) -> None:
        self.graph = graph
        self.kept = set(kept)
        there = {i for i in self.kept if self._stands(i, {})}
        self.queries = Side(graph, graph.query_arcs, graph.query_uses, graph.reading, there)
        # Changes of what is kept, of base tables and of layouts can be read; all others are computed.
        self.upkeeps = Side(graph, graph.maintenance_arcs, graph.maintenance_uses, graph.change, there)
        self.query = math.fsum(f * q for f, q in zip(graph.queries, self.queries.used, strict=True) if f)
        self.upkeep = math.fsum(map(self.own_upkeep, self.kept))
        self.size = math.fsum(graph.size[i] for i in self.kept)
        if not math.isfinite(self.query):
            raise GraphError("a query cannot be answered from base tables and what is kept")

    def move(self, add: Iterable[int] = (), drop: Iterable[int] = ()) -> Move:
        """What M with some nodes more and some less would cost, compared to M."""
        graph = self.graph
        toggled = {i: True for i in add if i not in self.kept} | {i: False for i in drop if i in self.kept}
        there: dict[int, bool] = {}
        for i, now in toggled.items():
            there[i] = now and self._stands(i, toggled)
            for layout in graph.layouts[i]:
                there[layout] = now and toggled.get(layout, layout in self.kept)
        come = [i for i, now in there.items() if now] if all(toggled.values()) else None

        def side(costs: Side) -> dict[int, tuple[float, float]]:
            return costs.spread(there, self.kept) if come is None else costs.fall(come)

        changed, carried = side(self.queries), side(self.upkeeps) if graph.has_updates else {}
        used = self.queries.used
        # Exactly rounded: the order in which the changes were found must not decide between equals.
        query = math.fsum(graph.queries[i] * (now[1] - used[i]) for i, now in changed.items() if graph.queries[i])
        upkeep = self._upkeep_change(toggled, carried) if graph.has_updates else 0.0
        size = sum(graph.size[i] if now else -graph.size[i] for i, now in toggled.items())
        return Move(toggled, query, upkeep, size, changed, carried)

    def _stands(self, i: int, toggled: dict[int, bool]) -> bool:
        """A layout is of no use without its view."""
        view = self.graph.layout_of[i]
        return view < 0 or self.graph.is_base[view] or toggled.get(view, view in self.kept)

    def _upkeep_change(self, toggled: dict[int, bool], carried: dict[int, tuple[float, float]]) -> float:
        graph = self.graph
        parts = [
            self._own_upkeep(i, carried.get(i)) if now else -self._own_upkeep(i, None) for i, now in toggled.items()
        ]
        for i, (computed, _) in carried.items():
            if i in self.kept and i not in toggled and graph.layout_of[i] < 0 and graph.updates[i]:
                parts.append(graph.updates[i] * (computed - self.upkeeps.computed[i]))
        return math.fsum(parts)

    def _own_upkeep(self, i: int, carried: tuple[float, float] | None) -> float:
        graph = self.graph
        if not graph.updates[i]:
            return 0.0
        computed = 0.0 if graph.layout_of[i] >= 0 else carried[0] if carried else self.upkeeps.computed[i]
        return graph.updates[i] * (graph.maintenance[i] + computed)

    def own_upkeep(self, i: int) -> float:
        """g·UC(i, M), were i kept."""
        return self._own_upkeep(i, None)

    def take(self, move: Move) -> Move:
        """Does it; what comes back undoes it."""
        self._toggle(move)
        return Move(
            {i: not now for i, now in move.there.items()},
            -move.query,
            -move.upkeep,
            -move.size,
            self.queries.take(move.query_side),
            self.upkeeps.take(move.upkeep_side),
        )

    def _toggle(self, move: Move) -> None:
        for i, now in move.there.items():
            if now:
                self.kept.add(i)
            else:
                self.kept.discard(i)
        self.query += move.query
        self.upkeep += move.upkeep
        self.size += move.size


def query_cost(graph: ViewGraph, view: str, kept: Iterable[str] = ()) -> float:
    """Q(v,M): the cheapest AND-DAG for v whose leaves are kept or base tables."""
    numbered = graph.numbered
    return _costs(graph, kept).queries.used[numbered.number([view])[0]]


def update_cost(graph: ViewGraph, view: str, kept: Iterable[str] = ()) -> float:
    """UC(v,M): the cheapest way to bring v up to date from changes of what is kept and of base tables."""
    numbered = graph.numbered
    i = numbered.number([view])[0]
    return numbered.maintenance[i] + _costs(graph, kept).upkeeps.computed[i]


def upkeep(graph: ViewGraph, kept: Iterable[str]) -> float:
    """U(M) = Σ g·UC(v,M) over the kept."""
    return _costs(graph, kept).upkeep


def tau(graph: ViewGraph, kept: Iterable[str] = (), *, with_upkeep: bool = False) -> float:
    """τ(G,M) = Σ f·Q(v,M), and with upkeep + Σ g·UC(v,M)."""
    costs = _costs(graph, kept)
    return costs.query + costs.upkeep if with_upkeep else costs.query


def benefit(graph: ViewGraph, more: Iterable[str], kept: Iterable[str] = (), *, with_upkeep: bool = False) -> float:
    """B(C,M) = τ(G,M) - τ(G,M∪C)."""
    already = set(kept)
    before = tau(graph, already, with_upkeep=with_upkeep)
    return before - tau(graph, already | set(more), with_upkeep=with_upkeep)


def _costs(graph: ViewGraph, kept: Iterable[str]) -> Costs:
    return Costs(graph.numbered, graph.numbered.number(kept))
