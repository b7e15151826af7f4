"""MinWorkSingle, the expression graph, and MinWork with ModifyOrdering.   [Labio et al. 1999, sections 4 and 5]"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from heapq import heapify, heappop, heappush

from viewkeeper.errors import InternalError
from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.steps import Comp, Inst, Strategy

Parts = tuple[frozenset[str], ...]


@dataclass(frozen=True)
class Conflict:
    """The strategies of single views cannot be combined: each of these expressions must follow the one before it."""

    circle: tuple[Comp | Inst, ...]

    def __str__(self) -> str:
        return " → ".join(map(str, self.circle))


@dataclass(frozen=True)
class Ordered:
    """A strategy and the order of views behind it; `conflict` is why it is not the wanted order, if it is not."""

    strategy: Strategy
    order: tuple[str, ...]
    conflict: Conflict | None = None


def wanted_order(graph: ChangedGraph) -> tuple[str, ...]:
    """All views by increasing |V'| - |V|: what shrinks most is installed first, so that all others read less."""
    return tuple(view.name for view in sorted(graph.views, key=lambda view: view.growth))


def modify_ordering(graph: ChangedGraph, order: Iterable[str]) -> tuple[str, ...]:
    """By level first, within a level as wanted; its expression graph never has a circle."""
    return tuple(sorted(order, key=lambda name: graph.levels[name]))


def one_way(graph: ChangedGraph, order: Iterable[str]) -> dict[str, Parts]:
    """Every view takes the changes of its inputs one at a time, in this order."""
    rank = {name: place for place, name in enumerate(order)}
    return {
        view.name: tuple(frozenset([name]) for name in sorted(view.inputs, key=lambda name: rank[name]))
        for view in graph.views
        if view.inputs
    }


def dual_stage(graph: ChangedGraph) -> dict[str, Parts]:
    """Every view takes the changes of all its inputs at once."""
    return {view.name: (frozenset(view.inputs),) for view in graph.views if view.inputs}


def min_work_single(graph: ChangedGraph, view: str) -> Strategy:
    """The best strategy for one view: its inputs one at a time, by increasing |V'| - |V|."""
    inputs = sorted(graph[view].inputs, key=lambda name: graph[name].growth)
    steps = [step for name in inputs for step in (Comp(view, frozenset([name])), Inst(name))]
    return (*steps, Inst(view))


def min_work(graph: ChangedGraph) -> Ordered:
    """One-way in the wanted order if that can be; else in the order ModifyOrdering makes of it."""
    order = wanted_order(graph)
    strategy = combine(graph, one_way(graph, order), order)
    if not isinstance(strategy, Conflict):
        return Ordered(strategy, order)
    conflict = strategy
    order = modify_ordering(graph, order)
    strategy = combine(graph, one_way(graph, order), order)
    if isinstance(strategy, Conflict):
        raise InternalError(f"an order by level has a circle: {strategy}")
    return Ordered(strategy, order, conflict)


def expression_graph(graph: ChangedGraph, parts: Mapping[str, Parts]) -> dict[Comp | Inst, set[Comp | Inst]]:
    """For each expression those it must follow: C3, C5 and C8, and C4 by the order of each view's parts."""
    follows: dict[Comp | Inst, set[Comp | Inst]] = {Inst(view.name): set() for view in graph.views}
    last = {view: Comp(view, ordered[-1]) for view, ordered in parts.items() if ordered}
    for view, ordered in parts.items():
        before: frozenset[str] = frozenset()
        for part in ordered:
            step = Comp(view, part)
            # The last part of an input follows all its other parts, by C4.
            follows[step] = {last[name] for name in part if name in last} | {Inst(name) for name in before}
            follows[Inst(view)].add(step)
            for name in part:
                follows[Inst(name)].add(step)
            before = part
    return follows


def combine(graph: ChangedGraph, parts: Mapping[str, Parts], order: Iterable[str] = ()) -> Strategy | Conflict:
    """A strategy in which every view takes its inputs' changes in these parts, if there is one.

    A topological order of the expression graph: installs as early as they can be, ties by `order`.
    """
    follows = expression_graph(graph, parts)
    rank = {name: place for place, name in enumerate(order or wanted_order(graph))}
    waiting = {step: len(before) for step, before in follows.items()}
    released: dict[Comp | Inst, list[Comp | Inst]] = {step: [] for step in follows}
    for step, before in follows.items():
        for earlier in before:
            released[earlier].append(step)
    ready = [(_priority(step, rank), step) for step, count in waiting.items() if not count]
    heapify(ready)
    strategy: list[Comp | Inst] = []
    while ready:
        _, step = heappop(ready)
        strategy.append(step)
        for later in released[step]:
            waiting[later] -= 1
            if not waiting[later]:
                heappush(ready, (_priority(later, rank), later))
    return tuple(strategy) if len(strategy) == len(follows) else _circle(follows)


def _priority(step: Comp | Inst, rank: Mapping[str, int]) -> tuple[int, int, int]:
    match step:
        case Inst(view):
            return 0, rank[view], 0
        case Comp(view, changed):
            return 1, min(rank[name] for name in changed), rank[view]


def _circle(follows: dict[Comp | Inst, set[Comp | Inst]]) -> Conflict:
    try:
        TopologicalSorter(follows).prepare()
    except CycleError as error:
        return Conflict(tuple(error.args[1]))
    raise InternalError("an expression graph without a circle has no order")
