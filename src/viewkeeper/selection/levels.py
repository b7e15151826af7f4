"""Queries and maintenance of an OR graph, by the levels their costs can take.

The cost of a query takes one of few levels c0 < c1 < … < cK, one per view that could answer it. With z(k) = 1 if
nothing kept answers it for at most ck, Q = c0 + Σ over k of (c(k+1) - ck)·z(k), and z(k) ≥ z(k-1) - Σ x of the views
of level k. UC likewise, with z(-1) = x(v) instead of 1. The z need not be integral, and of queries alone the relaxation
is as tight as that of facility location.

With maintenance it is not: halves of views could answer a query together, as if kept at different times, and each be
maintained from a half of another, as if kept at the same time. Whether v is kept or not, that nothing else of level k
or before is kept means the same:

    z(v,k) + y(v,l) = P(nothing of A(v,k) but v itself is kept) ≥ z(p,k') - Σ x of A(v,k) that are not in A(p,k')

where z are the levels of the query v and y those of its maintenance, A(v,k) is what answers v for at most ck, l the
last level of maintenance within A(v,k), p what v can be computed from, and k' its last level within A(v,k). In a tree
A(v,k) without v is A(p,k').
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from viewkeeper.selection.costs import Costs, Side
from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.ledger import Ledger

Level = tuple[float, list[int]]


@dataclass(frozen=True)
class Chain:
    """z of every level, with the step to the next level, which it must pay.

    within   the nodes of each level and all before, as the bits of a number
    """

    steps: tuple[tuple[int, float], ...]
    within: tuple[int, ...]

    def last_within(self, nodes: int) -> int | None:
        """The last level whose nodes are all among these."""
        inside = (k for k in range(len(self.steps) - 1, -1, -1) if not self.within[k] & ~nodes)
        return next(inside, None)


class Levels:
    """Adds all queries and all maintenance of a graph to a ledger."""

    def __init__(self, graph: Numbered, ledger: Ledger, empty: Costs) -> None:
        self.graph = graph
        self.ledger = ledger
        self.empty = empty
        self.queries: dict[int, Chain] = {}

    def add(self) -> None:
        graph = self.graph
        answers = _reach(graph, self.empty.queries)
        sources = _reach(graph, self.empty.upkeeps) if graph.has_updates else []
        for i in range(len(graph)):
            # With updates even a query that is never asked has levels: they tie those above it.
            if graph.queries[i] or (graph.has_updates and graph.inputs[i]):
                self._add_query(i, answers[i])
            if graph.updates[i] and i in self.ledger.keep:
                self._add_upkeep(i, sources[i])

    def _add_query(self, i: int, answers: dict[int, float]) -> None:
        often = self.graph.queries[i]
        worst = self.empty.queries.used[i]
        levels = self._levels(answers.items(), worst)
        self.ledger.constant += often * (levels[0][0] if levels else worst)
        self.queries[i] = self._chain(levels, worst, None)
        for z, step in self.queries[i].steps:
            self.ledger.program.add_cost(z, often * step)

    def _add_upkeep(self, i: int, sources: dict[int, float]) -> None:
        graph, x = self.graph, self.ledger.keep[i]
        often = graph.updates[i]
        if graph.layout_of[i] >= 0:
            self.ledger.pay_upkeep(x, often * graph.maintenance[i])
            return
        worst = self.empty.upkeeps.computed[i]
        levels = self._levels(((j, cost) for j, cost in sources.items() if j != i), worst)
        self.ledger.pay_upkeep(x, often * (graph.maintenance[i] + (levels[0][0] if levels else worst)))
        chain = self._chain(levels, worst, x)
        for y, step in chain.steps:
            self.ledger.pay_upkeep(y, often * step)
        if chain.steps:
            self._tie(i, chain)

    def _levels(self, costs: Iterable[tuple[int, float]], worst: float) -> list[Level]:
        """The distinct costs below the worst, from the least up, each with the nodes that give it."""
        levels: dict[float, list[int]] = {}
        for j, cost in sorted(costs, key=lambda c: c[1]):
            if cost < worst and j in self.ledger.keep:
                levels.setdefault(cost, []).append(j)
        return list(levels.items())

    def _chain(self, levels: list[Level], worst: float, start: int | None) -> Chain:
        """z(k) ≥ z(k-1) - Σ x of level k."""
        program, keep = self.ledger.program, self.ledger.keep
        steps, within = [], []
        before, so_far = start, 0
        for k, (cost, nodes) in enumerate(levels):
            z = program.variable(upper=1.0)
            row = [(z, 1.0), *((keep[j], 1.0) for j in nodes)]
            if before is None:
                program.row(row, least=1.0)
            else:
                program.row([*row, (before, -1.0)], least=0.0)
            steps.append((z, (levels[k + 1][0] if k + 1 < len(levels) else worst) - cost))
            so_far |= sum(1 << j for j in nodes)
            within.append(so_far)
            before = z
        return Chain(tuple(steps), tuple(within))

    def _tie(self, i: int, upkeep: Chain) -> None:
        """What a view's query and its maintenance have in common, against that input which has most of it."""
        program, keep = self.ledger.program, self.ledger.keep
        query = self.queries[i]
        inputs = [self.queries[p] for _, (p,) in self.graph.query_arcs[i] if p in self.queries]
        for k, (z, _) in enumerate(query.steps):
            others = query.within[k] & ~(1 << i)
            level = upkeep.last_within(others)
            if level is None:
                continue
            row = [(z, 1.0), (upkeep.steps[level][0], 1.0)]
            least, most = 1.0, 0
            for below in inputs:
                last = below.last_within(others)
                if last is not None and below.within[last].bit_count() > most.bit_count():
                    least, most, z_below = 0.0, below.within[last], below.steps[last][0]
            if most:
                row.append((z_below, -1.0))
            program.row([*row, *((keep[j], 1.0) for j in _bits(others & ~most))], least=least)


def _reach(graph: Numbered, side: Side) -> list[dict[int, float]]:
    """For each node, what it costs from every single node that could be kept, if less than from base tables."""
    reach: list[dict[int, float]] = []
    for i in range(len(graph)):
        found = {} if graph.is_base[i] or side.price[i] >= side.used[i] else {i: side.price[i]}
        for cost, (below,) in side.arcs[i]:
            for j, further in reach[below].items():
                if cost + further < min(found.get(j, math.inf), side.used[i]):
                    found[j] = cost + further
        reach.append(found)
    return reach


def _bits(nodes: int) -> Iterator[int]:
    while nodes:
        lowest = nodes & -nodes
        yield lowest.bit_length() - 1
        nodes ^= lowest
