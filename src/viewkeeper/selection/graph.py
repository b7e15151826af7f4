"""AND-OR view graphs: what can be kept, from what it can be computed, what it costs.   [Gupta 1999, ch. 2]"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, fields
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Literal as OneOf

from viewkeeper.errors import GraphError

Kind = OneOf["or", "and", "and-or"]
Arcs = tuple[tuple[tuple[float, tuple[int, ...]], ...], ...]
Uses = tuple[tuple[tuple[int, float, tuple[int, ...]], ...], ...]


@dataclass(frozen=True)
class Arc:
    """One way to compute a view: all of `inputs` together, views or layouts.

    cost          what the step itself costs a query, on top of its inputs
    maintenance   what it costs to carry a change through it
    """

    inputs: tuple[str, ...]
    cost: float = 0.0
    maintenance: float = 0.0


@dataclass(frozen=True)
class View:
    """A node; several arcs are alternatives. Without arcs it is a base table, which is always there.

    queries, updates   how often it is asked for (f) and how often it must be brought up to date (g)
    reading            what it costs to read it once it is kept (R)
    maintenance        what each update of it costs however its change is computed
    change             what it costs to read its change, for a view that is maintained from it
    keepable           whether it may be chosen; a query that is only asked is not
    """

    name: str
    arcs: tuple[Arc, ...] = ()
    size: float = 1.0
    reading: float = 0.0
    queries: float = 0.0
    updates: float = 0.0
    maintenance: float = 0.0
    change: float = 0.0
    keepable: bool = True


@dataclass(frozen=True)
class Layout:
    """A physical form of a view ("index"): of use only where both are kept, and never computed for a query."""

    name: str
    view: str
    size: float = 1.0
    reading: float = 0.0
    maintenance: float = 0.0


@dataclass(frozen=True)
class Numbered:
    """The same graph by number, every node after those it is computed from; a layout right after its view.

    rank          each node's place in the graph as it was given; ties go to the first
    candidates    what may be chosen, in that order
    layout_of     the view of a layout, -1 for a view
    """

    names: tuple[str, ...]
    rank: tuple[int, ...]
    candidates: tuple[int, ...]
    is_base: tuple[bool, ...]
    layout_of: tuple[int, ...]
    layouts: tuple[tuple[int, ...], ...]
    inputs: tuple[tuple[int, ...], ...]
    users: tuple[tuple[int, ...], ...]
    query_arcs: Arcs
    maintenance_arcs: Arcs
    size: tuple[float, ...]
    reading: tuple[float, ...]
    queries: tuple[float, ...]
    updates: tuple[float, ...]
    maintenance: tuple[float, ...]
    change: tuple[float, ...]

    def __len__(self) -> int:
        return len(self.names)

    def number(self, names: Iterable[str]) -> list[int]:
        """The numbers of named nodes, in their order."""
        try:
            return sorted(self._numbers[name] for name in names)
        except KeyError as unknown:
            raise GraphError(f"there is no {unknown} in the graph") from None

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    @cached_property
    def query_uses(self) -> Uses:
        """For each node the arcs that use it, each with the node it computes and its cost."""
        return _uses(self.query_arcs)

    @cached_property
    def maintenance_uses(self) -> Uses:
        """The same with what the arcs cost maintenance."""
        return _uses(self.maintenance_arcs)

    @cached_property
    def has_updates(self) -> bool:
        """Whether keeping anything costs any maintenance at all."""
        return any(self.updates[i] > 0 for i in self.candidates)

    @cached_property
    def descendants(self) -> tuple[frozenset[int], ...]:
        """For each node, all that it can be computed from, layouts included."""
        below: list[frozenset[int]] = []
        for inputs in self.inputs:
            below.append(frozenset(inputs).union(*(below[j] for j in inputs)))
        return tuple(below)


@dataclass(frozen=True)
class ViewGraph:
    """Views and layouts. Checked when it is made: names, circles, numbers, and that base tables suffice for all."""

    nodes: tuple[View | Layout, ...]

    def __post_init__(self) -> None:
        for node in self.nodes:
            _check_numbers(node)
        known = {node.name: node for node in self.nodes}
        if len(known) < len(self.nodes):
            raise GraphError("two nodes of the graph have the same name")
        for node in self.nodes:
            for name in _inputs(node):
                if name not in known:
                    raise GraphError(f"{node.name} names {name}, which is not in the graph")
            if isinstance(node, Layout) and not isinstance(known[node.view], View):
                raise GraphError(f"{node.name} is a layout of {node.view}, which is a layout itself")
            if isinstance(node, Layout) and not _can_be_there(known[node.view]):
                raise GraphError(f"{node.name} is a layout of {node.view}, which cannot be kept")

    @cached_property
    def numbered(self) -> Numbered:
        given = {node.name: place for place, node in enumerate(self.nodes)}
        try:
            ordered = list(TopologicalSorter({node.name: _inputs(node) for node in self.nodes}).static_order())
        except CycleError as circle:
            raise GraphError(f"views are computed from each other in a circle: {' → '.join(circle.args[1])}") from None
        number = {name: i for i, name in enumerate(ordered)}
        nodes = [self.nodes[given[name]] for name in ordered]
        layouts: list[list[int]] = [[] for _ in nodes]
        users: list[dict[int, None]] = [{} for _ in nodes]
        for i, node in enumerate(nodes):
            if isinstance(node, Layout):
                layouts[number[node.view]].append(i)
                continue
            for arc in node.arcs:
                for name in arc.inputs:
                    users[number[name]][i] = None
        of_view = [n if isinstance(n, View) else View(n.name) for n in nodes]
        return Numbered(
            names=tuple(ordered),
            rank=tuple(given[name] for name in ordered),
            candidates=tuple(number[n.name] for n in self.nodes if isinstance(n, Layout) or (n.arcs and n.keepable)),
            is_base=tuple(isinstance(n, View) and not n.arcs for n in nodes),
            layout_of=tuple(number[n.view] if isinstance(n, Layout) else -1 for n in nodes),
            layouts=tuple(map(tuple, layouts)),
            inputs=tuple(tuple(number[x] for x in _inputs(n)) if isinstance(n, View) else () for n in nodes),
            users=tuple(map(tuple, users)),
            query_arcs=tuple(tuple((a.cost, tuple(number[x] for x in a.inputs)) for a in n.arcs) for n in of_view),
            maintenance_arcs=tuple(
                tuple((a.maintenance, tuple(number[x] for x in a.inputs)) for a in n.arcs) for n in of_view
            ),
            size=tuple(n.size for n in nodes),
            reading=tuple(n.reading for n in nodes),
            queries=tuple(n.queries for n in of_view),
            # A layout is brought up to date whenever its view is.
            updates=tuple(n.updates if isinstance(n, View) else of_view[number[n.view]].updates for n in nodes),
            maintenance=tuple(n.maintenance for n in nodes),
            change=tuple(n.change for n in of_view),
        )

    @cached_property
    def kind(self) -> Kind:
        """OR: one input per arc. AND: one arc per view. A chain is both, and counts as OR."""
        derived = [node for node in self.nodes if isinstance(node, View) and node.arcs]
        if all(len(arc.inputs) == 1 for view in derived for arc in view.arcs):
            return "or"
        return "and" if all(len(view.arcs) == 1 for view in derived) else "and-or"


def _uses(arcs: Arcs) -> Uses:
    uses: list[list[tuple[int, float, tuple[int, ...]]]] = [[] for _ in arcs]
    for x, ways in enumerate(arcs):
        for cost, inputs in ways:
            for i in dict.fromkeys(inputs):
                uses[i].append((x, cost, inputs))
    return tuple(map(tuple, uses))


def _inputs(node: View | Layout) -> tuple[str, ...]:
    match node:
        case View():
            return tuple(dict.fromkeys(name for arc in node.arcs for name in arc.inputs))
        case Layout():
            return (node.view,)


def _can_be_there(node: View | Layout) -> bool:
    return isinstance(node, View) and (node.keepable or not node.arcs)


def _check_numbers(node: View | Layout) -> None:
    numbers = [(f.name, getattr(node, f.name)) for f in fields(node) if f.type == "float"]
    for arc in node.arcs if isinstance(node, View) else ():
        if not arc.inputs:
            raise GraphError(f"{node.name} has an arc without inputs")
        numbers += [("cost of an arc", arc.cost), ("maintenance of an arc", arc.maintenance)]
    for what, value in numbers:
        if not (math.isfinite(value) and value >= 0):
            raise GraphError(f"{node.name}: {what} is {value}, not a number from 0 up")
