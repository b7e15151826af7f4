"""All correct strategies, and the best one-way strategy of a whole graph."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from heapq import heappop, heappush
from itertools import combinations, count, product

from viewkeeper.errors import InternalError
from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.order import Conflict, Ordered, Parts, combine, one_way
from viewkeeper.planner.strategy.steps import Comp, Inst, Strategy
from viewkeeper.planner.strategy.work import comp_rows


def ordered_partitions(names: Iterable[str]) -> Iterator[Parts]:
    """Every way to put the names into one group after the other: 1, 3, 13, 75, 541, 4683 …"""
    left = tuple(names)
    if not left:
        yield ()
        return
    for size in range(1, len(left) + 1):
        for first in combinations(left, size):
            rest = [name for name in left if name not in first]
            for following in ordered_partitions(rest):
                yield (frozenset(first), *following)


def view_strategies(graph: ChangedGraph, view: str) -> Iterator[Strategy]:
    """Every correct strategy for one view, installs right after the Comp that allows them."""
    for parts in ordered_partitions(graph[view].inputs):
        steps: list[Comp | Inst] = []
        for part in parts:
            steps.append(Comp(view, part))
            steps += [Inst(name) for name in sorted(part)]
        yield (*steps, Inst(view))


def strategies(graph: ChangedGraph) -> Iterator[Strategy]:
    """Every way to combine strategies of the single views, as one strategy each. For very small graphs."""
    derived = [view for view in graph.views if view.inputs]
    for chosen in product(*(list(ordered_partitions(view.inputs)) for view in derived)):
        strategy = combine(graph, {view.name: parts for view, parts in zip(derived, chosen, strict=True)})
        if not isinstance(strategy, Conflict):
            yield strategy


def best_one_way(graph: ChangedGraph) -> Ordered:
    """The one-way strategy of least work, by A* over the sets of installed views.

    In a one-way strategy Comp(V,{X}) reads those inputs of V as new that are installed before X. So the work depends
    on the order of installs alone, and what is still to come on the set of those installed, not on their order: at
    most 2^n states instead of n! orders. What is left costs each view at least its own best order of what is left.
    """
    names = graph.bottom_up
    bit = {name: 1 << place for place, name in enumerate(names)}
    full = (1 << len(names)) - 1
    tie = count()
    heap: list[tuple[float, int, int, float, tuple[str, ...]]] = [(_least_left(graph, bit, 0), next(tie), 0, 0.0, ())]
    done: set[int] = set()
    while heap:
        _, _, installed, so_far, path = heappop(heap)
        if installed in done:
            continue
        done.add(installed)
        if installed == full:
            return _ordered(graph, path)
        there = [name for name in names if installed & bit[name]]
        for name in names:
            if installed & bit[name] or not _is_computed(graph, bit, installed, name):
                continue
            cost = so_far + sum(comp_rows(graph, reader, [name], there) for reader in graph.readers[name])
            following = installed | bit[name]
            if following not in done:
                least = cost + _least_left(graph, bit, following)
                heappush(heap, (least, next(tie), following, cost, (*path, name)))
    raise InternalError("no order of installs is possible")


def _is_computed(graph: ChangedGraph, bit: dict[str, int], installed: int, name: str) -> bool:
    """Whether a view's change can be complete: all its inputs are installed, or all but one that is complete."""
    left = [below for below in graph[name].inputs if not installed & bit[below]]
    return not left or (len(left) == 1 and _is_computed(graph, bit, installed, left[0]))


def _least_left(graph: ChangedGraph, bit: dict[str, int], installed: int) -> float:
    total = 0.0
    for view in graph.views:
        there = [name for name in view.inputs if installed & bit[name]]
        left = sorted((name for name in view.inputs if not installed & bit[name]), key=lambda name: graph[name].growth)
        for name in left:
            total += comp_rows(graph, view.name, [name], there)
            there.append(name)
    return total


def _ordered(graph: ChangedGraph, order: tuple[str, ...]) -> Ordered:
    strategy = combine(graph, one_way(graph, order), order)
    if isinstance(strategy, Conflict):
        raise InternalError(f"an order that was found possible is not: {strategy}")
    return Ordered(strategy, order)
