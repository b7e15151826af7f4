"""Queries and maintenance of an AND-OR graph, as flows from each view down to what is there.

One unit of flow goes from each query down through its arcs, an arc sending one unit to each of its inputs, until it
ends in base tables and in what is kept. Nothing takes a way that costs as much as base tables alone do. So of all
below a query only that is part of its flow with which it could cost less, were everything kept.
"""

from __future__ import annotations

import math
from heapq import heappop, heappush

import numpy as np

from viewkeeper.selection.costs import Costs, Side
from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.ledger import Ledger

Ways = dict[int, list[tuple[float, tuple[int, ...]]]]


class Flows:
    """Adds all queries and all maintenance of a graph to a ledger."""

    def __init__(self, graph: Numbered, ledger: Ledger, empty: Costs) -> None:
        self.graph = graph
        self.ledger = ledger
        self.empty = empty
        self.everything = Costs(graph, ledger.keep)

    def add(self) -> None:
        for i, often in enumerate(self.graph.queries):
            if often and self.graph.is_base[i]:
                self.ledger.constant += often * self.graph.reading[i]
            elif often:
                for variable, cost in self._flow(i, None, self.empty.queries, self.everything.queries):
                    self.ledger.program.add_cost(variable, often * cost)
        for i, x in self.ledger.keep.items():
            self._add_upkeep(i, x)

    def _add_upkeep(self, i: int, x: int) -> None:
        often = self.graph.updates[i]
        if not often:
            return
        self.ledger.pay_upkeep(x, often * self.graph.maintenance[i])
        if self.graph.layout_of[i] < 0:
            for variable, cost in self._flow(i, x, self.empty.upkeeps, self.everything.upkeeps):
                self.ledger.pay_upkeep(variable, often * cost)

    def _flow(self, top: int, source: int | None, worst: Side, best: Side) -> list[tuple[int, float]]:
        """One unit, or x of the source, enters at the top; what enters a node leaves by its ways or ends if it is kept.

        The variables come back with what one unit through each costs.
        """
        program, keep = self.ledger.program, self.ledger.keep
        ways = self.ways(top, worst, best)
        uses = _uses(ways)
        entering: dict[int, list[tuple[int, float]]] = {i: [] for i in ways}
        costs: list[tuple[int, float]] = []
        for i in ways:
            leaving: list[tuple[int, float]] = []
            for cost, inputs in ways[i]:
                z = program.variable()
                costs.append((z, cost))
                leaving.append((z, 1.0))
                for j in dict.fromkeys(inputs):
                    entering[j].append((z, -float(inputs.count(j))))
            if i in keep and not (i == top and source is not None) and worst.price[i] < worst.used[i]:
                read = program.variable()
                costs.append((read, worst.price[i]))
                program.row([(read, 1.0), (keep[i], -uses[i])], most=0.0)
                leaving.append((read, 1.0))
            if i != top:
                program.row([*leaving, *entering[i]], 0.0, 0.0)
            elif source is None:
                program.row(leaving, 1.0, 1.0)
            else:
                program.row([*leaving, (source, -1.0)], 0.0, 0.0)
        return costs

    def ways(self, top: int, worst: Side, best: Side) -> Ways:
        """The nodes that are of use to the top, each before those it is computed from, and their ways worth taking.

        A way is what it costs and the inputs that are no base tables. One needs none: base tables alone.
        """
        is_base = self.graph.is_base
        ways: Ways = {}
        # What all else costs at least that the top needs if it uses a node.
        beside = {top: 0.0}
        waiting = [-top]
        while waiting:
            i = -heappop(waiting)
            most = min(worst.used[i], worst.used[top] - beside[i])
            ways[i] = [(worst.used[i], ())] if worst.used[i] <= most < math.inf else []
            for own, inputs in worst.arcs[i]:
                least = own + sum(best.used[j] for j in inputs)
                if least >= most:
                    continue
                further = tuple(j for j in inputs if not is_base[j])
                ways[i].append((own + sum(worst.price[j] for j in inputs if is_base[j]), further))
                for j in further:
                    if j not in beside:
                        heappush(waiting, -j)
                    beside[j] = min(beside.get(j, math.inf), beside[i] + least - best.used[j])
        return ways


def _uses(ways: Ways) -> dict[int, float]:
    """How often computing the first node can use each of the others at most."""
    place = {i: k for k, i in enumerate(ways)}
    rows = np.zeros((len(ways), len(ways)))
    for i in reversed(ways):
        row = rows[place[i]]
        for _, inputs in ways[i]:
            np.maximum(row, rows[[place[j] for j in inputs]].sum(axis=0), out=row)
        row[place[i]] = 1.0
    return dict(zip(ways, rows[0].tolist(), strict=True))
