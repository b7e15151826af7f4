"""The exact choice as a mixed-integer program: x(v) says whether v is kept.

In an OR graph the cost of a query takes one of few levels c0 < c1 < … < cK, one per view that could answer it. With
z(k) = 1 if nothing kept answers it for at most ck, Q = c0 + Σ over k of (c(k+1) - ck)·z(k), and z(k) ≥ z(k-1) - Σ x
of the views of level k. UC likewise, with z(-1) = x(v) instead of 1. The z need not be integral, and the relaxation
is as tight as that of facility location.

In an AND-OR graph one unit of flow goes from each query down through its arcs, an arc sending one unit to each of its
inputs, until it ends in base tables and in what is kept.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace

from viewkeeper.selection.choice import Budget, Choice, Step, finish, names, total
from viewkeeper.selection.costs import Costs, Side
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.greedy import Stages, small_sets
from viewkeeper.selection.program import Program
from viewkeeper.selection.reach import Floats, uses

_NARROWER = 1 - 2e-6  # HiGHS may exceed a row by a millionth


def exact(graph: ViewGraph, budget: Budget, gap: float, seconds: float) -> Choice:
    """Proved optimal up to `gap`, or the best found in time with the gap that was proved."""
    budget = replace(budget, overshoot=False)
    model = Model(graph, budget)
    solution = model.program.solve(gap, seconds, model.constant)
    bound = solution.bound + model.constant
    kept = model.kept(solution.values)
    if kept is None or not model.fits(kept):
        narrow = Model(graph, budget, _NARROWER)
        kept = narrow.kept(narrow.program.solve(gap, seconds, model.constant).values)
    fallback = Stages(graph, budget, small_sets(graph.numbered, 1))
    fallback.run()
    proof = f"proved by HiGHS within {gap:.3g}" if solution.proved else f"the best found in {seconds:.3g} s"
    if kept is None or not model.fits(kept) or model.cost(kept) > total(fallback.costs, budget) * (1 + 1e-9):
        kept, proof = fallback.costs.kept, f"greedy; nothing better was found in {seconds:.3g} s"
    worth = total(Costs(graph.numbered), budget) - model.cost(kept)
    ordered = sorted(kept, key=lambda i: graph.numbered.rank[i])
    return finish(graph, budget, kept, bound, [Step(names(graph.numbered, ordered), worth, proof)])


class Model:
    """The program of one graph and budget. `constant` is the part of the cost that no choice changes."""

    def __init__(self, graph: ViewGraph, budget: Budget, narrower: float = 1.0) -> None:
        self.graph = graph.numbered
        self.budget = budget
        self.program = Program()
        self.constant = 0.0
        self.keep = {i: self.program.variable(upper=1.0, integral=True) for i in self.graph.candidates}
        for i in self.graph.candidates:
            view = self.graph.layout_of[i]
            if view in self.keep:
                self.program.row([(self.keep[i], 1.0), (self.keep[view], -1.0)], most=0.0)
        self.upkeep_row: list[tuple[int, float]] = []
        empty = Costs(self.graph)
        ways: Levels | Flows = Levels(self, empty) if graph.kind == "or" else Flows(self, empty)
        ways.queries()
        if self.graph.has_updates:
            ways.upkeeps()
        if budget.space is not None:
            share = [(x, self.graph.size[i] / budget.space) for i, x in self.keep.items() if self.graph.size[i]]
            self.program.row(share, most=narrower)
        if budget.maintenance is not None:
            self.program.row(((x, cost / budget.maintenance) for x, cost in self.upkeep_row), most=narrower)

    def pay_upkeep(self, variable: int, cost: float) -> None:
        """Maintenance is limited, or else it is part of what is to be the least."""
        if not cost:
            return
        if self.budget.counts_upkeep:
            self.program.add_cost(variable, cost)
        else:
            self.upkeep_row.append((variable, cost))

    def kept(self, values: Floats | None) -> set[int] | None:
        return None if values is None else {i for i, x in self.keep.items() if values[x] > 0.5}

    def fits(self, kept: set[int]) -> bool:
        costs = Costs(self.graph, kept)
        return self.budget.fits(costs.size, costs.upkeep)

    def cost(self, kept: set[int]) -> float:
        return total(Costs(self.graph, kept), self.budget)


class Levels:
    """Queries and maintenance of an OR graph, by the levels their costs can take."""

    def __init__(self, model: Model, empty: Costs) -> None:
        self.model = model
        self.graph = model.graph
        self.empty = empty

    def queries(self) -> None:
        graph, model = self.graph, self.model
        for i, reach in enumerate(_reach(graph, self.empty.queries)):
            often = graph.queries[i]
            if not often:
                continue
            worst = self.empty.queries.used[i]
            levels = _levels(((j, cost) for j, cost in reach.items() if j in model.keep), worst)
            model.constant += often * (levels[0][0] if levels else worst)
            for z, step in self._chain(levels, worst, None):
                model.program.add_cost(z, often * step)

    def upkeeps(self) -> None:
        graph, model = self.graph, self.model
        reach = _reach(graph, self.empty.upkeeps)
        for i, x in model.keep.items():
            often = graph.updates[i]
            if not often:
                continue
            if graph.layout_of[i] >= 0:
                model.pay_upkeep(x, often * graph.maintenance[i])
                continue
            worst = self.empty.upkeeps.computed[i]
            levels = _levels(((j, cost) for j, cost in reach[i].items() if j in model.keep and j != i), worst)
            model.pay_upkeep(x, often * (graph.maintenance[i] + (levels[0][0] if levels else worst)))
            for z, step in self._chain(levels, worst, x):
                model.pay_upkeep(z, often * step)

    def _chain(self, levels: list[tuple[float, list[int]]], worst: float, start: int | None) -> list[tuple[int, float]]:
        """z(k) ≥ z(k-1) - Σ x of level k. Every z comes back with the step to the next level, which it must pay."""
        program = self.model.program
        chain: list[tuple[int, float]] = []
        before = start
        for k, (cost, nodes) in enumerate(levels):
            z = program.variable(upper=1.0)
            row = [(z, 1.0), *((self.model.keep[j], 1.0) for j in nodes)]
            if before is None:
                program.row(row, least=1.0)
            else:
                program.row([*row, (before, -1.0)], least=0.0)
            chain.append((z, (levels[k + 1][0] if k + 1 < len(levels) else worst) - cost))
            before = z
        return chain


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


def _levels(costs: Iterable[tuple[int, float]], worst: float) -> list[tuple[float, list[int]]]:
    """The distinct costs below the worst, from the least up, each with the nodes that give it."""
    levels: dict[float, list[int]] = {}
    for j, cost in sorted(costs, key=lambda c: c[1]):
        if cost < worst:
            levels.setdefault(cost, []).append(j)
    return list(levels.items())


class Flows:
    """Queries and maintenance of an AND-OR graph, as flows from each view down to what is there."""

    def __init__(self, model: Model, empty: Costs) -> None:
        self.model = model
        self.graph = model.graph
        self.empty = empty
        self.uses = uses(self.graph, 0, len(self.graph))

    def queries(self) -> None:
        for i, often in enumerate(self.graph.queries):
            if often and self.graph.is_base[i]:
                self.model.constant += often * self.graph.reading[i]
            elif often:
                for variable, cost in self._flow(i, None, self.empty.queries):
                    self.model.program.add_cost(variable, often * cost)

    def upkeeps(self) -> None:
        graph = self.graph
        for i, x in self.model.keep.items():
            often = graph.updates[i]
            if not often:
                continue
            self.model.pay_upkeep(x, often * graph.maintenance[i])
            if graph.layout_of[i] < 0:
                for variable, cost in self._flow(i, x, self.empty.upkeeps):
                    self.model.pay_upkeep(variable, often * cost)

    def _flow(self, top: int, source: int | None, side: Side) -> list[tuple[int, float]]:
        """One unit, or x of the source, enters at the top; what enters a node leaves by its arcs or ends if it is kept.

        The variables come back with what one unit through each costs.
        """
        graph, program, keep = self.graph, self.model.program, self.model.keep
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
