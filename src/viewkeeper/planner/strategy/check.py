"""Is a strategy correct? The conditions C1 to C8, by name.   [Labio et al. 1999, def. 3.1 and 3.3]"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeVar

from viewkeeper.errors import GraphError
from viewkeeper.planner.strategy.graph import Changed, ChangedGraph
from viewkeeper.planner.strategy.steps import Comp, CompAt, Inst, Strategy, VersionedStrategy

S = TypeVar("S", Comp, CompAt)
Comps = list[tuple[S, int]]
Places = dict[Comp | CompAt | Inst, int]
Condition = OneOf["C1", "C2", "C3", "C4", "C5", "C6", "C8", "versions"]


@dataclass(frozen=True)
class Violation:
    """A condition that does not hold, for which view, and where. One of C1 to C6 for any view breaks C7."""

    condition: Condition
    view: str
    text: str

    def __str__(self) -> str:
        return f"{self.condition} ({self.view}): {self.text}"


def violations(graph: ChangedGraph, strategy: Strategy) -> Iterator[Violation]:
    """Everything that is wrong with a strategy; nothing if it is correct."""
    return _violations(graph, strategy, _tables_as_they_are)


def versioned_violations(graph: ChangedGraph, strategy: VersionedStrategy) -> Iterator[Violation]:
    """The same where tables have versions: C3 and C4 bind nothing, but what is read as new must be there, and the parts
    of a view's change must add up: each reads as new exactly what some order of its parts puts before it."""
    return _violations(graph, strategy, _tables_by_version)


def _violations(
    graph: ChangedGraph,
    strategy: tuple[S | Inst, ...],
    reads: Callable[[Changed, Comps[S], Places], Iterator[Violation]],
) -> Iterator[Violation]:
    places, found = _places(graph, strategy)
    yield from found
    by_view: dict[str, Comps[S]] = {view.name: [] for view in graph.views}
    for place, step in enumerate(strategy):
        if not isinstance(step, Inst) and places[step] == place:
            by_view[step.view].append((step, place))
    for view in graph.views:
        comps = by_view[view.name]
        yield from _complete(view, [step.changed for step, _ in comps], places)
        yield from reads(view, comps, places)
        yield from _before_install(view, comps, places)
    yield from _changes_known([pair for pairs in by_view.values() for pair in pairs])


def _tables_as_they_are(view: Changed, comps: Comps[Comp], places: Places) -> Iterator[Violation]:
    for k, (step, place) in enumerate(comps):
        for name in sorted(step.changed):
            if places.get(Inst(name), place) < place:
                yield Violation("C3", view.name, f"{step} comes after {Inst(name)}")
        for earlier, _ in comps[:k]:
            for name in sorted(earlier.changed):
                if places.get(Inst(name), place) >= place:
                    yield Violation("C4", view.name, f"{step} comes after {earlier} but not after {Inst(name)}")


def _tables_by_version(view: Changed, comps: Comps[CompAt], places: Places) -> Iterator[Violation]:
    before: frozenset[str] = frozenset()
    for step, place in sorted(comps, key=lambda comp: len(comp[0].new)):
        for name in sorted(step.new):
            if places.get(Inst(name), place) >= place:
                yield Violation("versions", view.name, f"{step} reads {name} as new before {Inst(name)}")
        if step.new != before or step.changed & before:
            yield Violation("versions", view.name, f"{step} does not follow on {{{','.join(sorted(before))}}}")
        before |= step.changed


def _places(graph: ChangedGraph, strategy: Strategy | VersionedStrategy) -> tuple[Places, list[Violation]]:
    places: Places = {}
    found = []
    for place, step in enumerate(strategy):
        if step.view not in graph.by_name:
            raise GraphError(f"{step} is about a view that is not in the graph")
        if not isinstance(step, Inst) and not step.changed <= set(graph[step.view].inputs):
            raise GraphError(f"{step} is about an input that {step.view} does not have")
        if step in places:
            found.append(Violation("C6", step.view, f"{step} is there twice"))
        places.setdefault(step, place)
    return places, found


def _complete(view: Changed, parts: list[frozenset[str]], places: Places) -> Iterator[Violation]:
    for name in view.inputs:
        if not any(name in part for part in parts):
            yield Violation("C1", view.name, f"the change of {name} is not propagated")
    if Inst(view.name) not in places:
        yield Violation("C2", view.name, "its change is not installed")


def _before_install(view: Changed, comps: Sequence[tuple[Comp | CompAt, int]], places: Places) -> Iterator[Violation]:
    for step, place in comps:
        if places.get(Inst(view.name), place) < place:
            yield Violation("C5", view.name, f"{step} comes after {Inst(view.name)}")


def _changes_known(comps: Sequence[tuple[Comp | CompAt, int]]) -> Iterator[Violation]:
    last: dict[str, tuple[Comp | CompAt, int]] = {}
    for step, place in comps:
        if step.view not in last or place > last[step.view][1]:
            last[step.view] = (step, place)
    for step, place in comps:
        for name in sorted(step.changed):
            if name in last and last[name][1] > place:
                yield Violation("C8", step.view, f"{step} comes before {last[name][0]}")
