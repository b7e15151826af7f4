"""Queries and maintenance of an AND-OR graph, as flows from each view down to what is there.

One unit of flow goes from each query down through its arcs, an arc sending one unit to each of its inputs, until it
ends in base tables and in what is kept.
"""

from __future__ import annotations

from viewkeeper.selection.costs import Costs, Side
from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.ledger import Ledger
from viewkeeper.selection.reach import uses


class Flows:
    """Adds all queries and all maintenance of a graph to a ledger."""

    def __init__(self, graph: Numbered, ledger: Ledger, empty: Costs) -> None:
        self.graph = graph
        self.ledger = ledger
        self.empty = empty
        self.uses = uses(graph, 0, len(graph))

    def add(self) -> None:
        for i, often in enumerate(self.graph.queries):
            if often and self.graph.is_base[i]:
                self.ledger.constant += often * self.graph.reading[i]
            elif often:
                for variable, cost in self._flow(i, None, self.empty.queries):
                    self.ledger.program.add_cost(variable, often * cost)
        for i, x in self.ledger.keep.items():
            self._add_upkeep(i, x)

    def _add_upkeep(self, i: int, x: int) -> None:
        often = self.graph.updates[i]
        if not often:
            return
        self.ledger.pay_upkeep(x, often * self.graph.maintenance[i])
        if self.graph.layout_of[i] < 0:
            for variable, cost in self._flow(i, x, self.empty.upkeeps):
                self.ledger.pay_upkeep(variable, often * cost)

    def _flow(self, top: int, source: int | None, side: Side) -> list[tuple[int, float]]:
        """One unit, or x of the source, enters at the top; what enters a node leaves by its arcs or ends if it is kept.

        The variables come back with what one unit through each costs.
        """
        graph, program, keep = self.graph, self.ledger.program, self.ledger.keep
        below = sorted((i for i in {top, *graph.descendants[top]} if not graph.is_base[i]), reverse=True)
        entering: dict[int, list[tuple[int, float]]] = {i: [] for i in below}
        costs: list[tuple[int, float]] = []
        for i in below:
            leaving: list[tuple[int, float]] = []
            for cost, inputs in side.arcs[i]:
                z = program.variable()
                costs.append((z, cost + sum(side.price[j] for j in inputs if graph.is_base[j])))
                leaving.append((z, 1.0))
                for j in dict.fromkeys(inputs):
                    if not graph.is_base[j]:
                        entering[j].append((z, -float(inputs.count(j))))
            if i in keep and not (i == top and source is not None) and side.price[i] < side.used[i]:
                read = program.variable()
                costs.append((read, side.price[i]))
                program.row([(read, 1.0), (keep[i], -float(self.uses[top][i]))], most=0.0)
                leaving.append((read, 1.0))
            if i != top:
                program.row([*leaving, *entering[i]], 0.0, 0.0)
            elif source is None:
                program.row(leaving, 1.0, 1.0)
            else:
                program.row([*leaving, (source, -1.0)], 0.0, 0.0)
        return costs
