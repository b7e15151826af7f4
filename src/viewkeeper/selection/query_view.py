"""Query-view graphs: for each query, the sets of views that answer it and at what cost.   [Gupta 1999, 2.5]"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewkeeper.errors import GraphError
from viewkeeper.selection.graph import Numbered, ViewGraph


@dataclass(frozen=True)
class Way:
    """Views and layouts that together answer a query, and what that costs."""

    views: frozenset[str]
    cost: float


@dataclass(frozen=True)
class Query:
    """`without` is its cost from base tables alone; ways that cost as much are left out."""

    name: str
    frequency: float
    without: float
    ways: tuple[Way, ...]


@dataclass(frozen=True)
class QueryViewGraph:
    queries: tuple[Query, ...]
    sizes: dict[str, float]

    def cost(self, kept: Iterable[str]) -> float:
        """τ = Σ f·(the cheapest way whose views are all kept)."""
        there = frozenset(kept)
        return sum(
            q.frequency * min((w.cost for w in q.ways if w.views <= there), default=q.without) for q in self.queries
        )

    def size(self, kept: Iterable[str]) -> float:
        return sum(self.sizes[name] for name in kept)


def from_view_graph(graph: ViewGraph, most: int) -> QueryViewGraph:
    """The equivalent query-view graph: per query every minimal set of views that makes it cheaper.

    There can be exponentially many; more than `most` for any view are an error.
    """
    numbered = graph.numbered
    keepable = set(numbered.candidates)
    ways: list[dict[frozenset[int], float]] = []
    for i in range(len(numbered)):
        ways.append(_ways(numbered, i, i in keepable, ways))
        if len(ways[i]) > most:
            raise GraphError(
                f"there are more than {most} ways to compute {numbered.names[i]}", hint="Exact() does not list them"
            )
    queries = [_query(numbered, i, ways[i]) for i in range(len(numbered)) if numbered.queries[i]]
    sizes = {numbered.names[i]: numbered.size[i] for i in numbered.candidates}
    return QueryViewGraph(tuple(queries), sizes)


def _ways(
    graph: Numbered, i: int, keepable: bool, below: list[dict[frozenset[int], float]]
) -> dict[frozenset[int], float]:
    if graph.is_base[i]:
        return {frozenset(): graph.reading[i]}
    found: dict[frozenset[int], float] = {}
    if keepable:
        view = graph.layout_of[i]
        needed = {i} if view < 0 or graph.is_base[view] else {i, view}
        found[frozenset(needed)] = graph.reading[i]
    for cost, inputs in graph.query_arcs[i]:
        combined: dict[frozenset[int], float] = {frozenset(): cost}
        for j in inputs:
            combined = _cheapest((a | b, x + y) for a, x in combined.items() for b, y in below[j].items())
        found = _cheapest([*found.items(), *combined.items()])
    return found


def _cheapest(ways: Iterable[tuple[frozenset[int], float]]) -> dict[frozenset[int], float]:
    """Without the ways that need more views than another one that costs no more."""
    best: dict[frozenset[int], float] = {}
    for views, cost in sorted(ways, key=lambda way: (len(way[0]), way[1], sorted(way[0]))):
        if not any(other <= views and known <= cost for other, known in best.items()):
            best[views] = cost
    return best


def _query(graph: Numbered, i: int, ways: dict[frozenset[int], float]) -> Query:
    without = ways[frozenset()]
    better = [(views, cost) for views, cost in ways.items() if cost < without]
    named = tuple(Way(frozenset(graph.names[j] for j in views), cost) for views, cost in better)
    return Query(graph.names[i], graph.queries[i], without, named)
