"""The linear work metric: what is read and installed, in rows.   [Labio et al. 1999, def. 3.5]"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.steps import Comp, CompAt, Inst, Strategy, VersionedStrategy


@dataclass(frozen=True)
class Metric:
    """What reading a row for a Comp and installing a row of a change cost."""

    compute: float = 1.0
    install: float = 1.0


def work(graph: ChangedGraph, strategy: Strategy | VersionedStrategy, metric: Metric | None = None) -> float:
    """Σ of the work of the steps, each in the state that those before it leave."""
    return sum(step_works(graph, strategy, metric))


def step_works(
    graph: ChangedGraph, strategy: Strategy | VersionedStrategy, metric: Metric | None = None
) -> list[float]:
    """The work of every step, in their order."""
    metric = metric or Metric()
    installed: set[str] = set()
    works: list[float] = []
    for step in strategy:
        match step:
            case Inst(view):
                installed.add(view)
                works.append(metric.install * graph[view].change_rows)
            case Comp(view, changed):
                works.append(metric.compute * comp_rows(graph, view, changed, installed))
            case CompAt(view, changed, new):
                works.append(metric.compute * comp_rows(graph, view, changed, new))
    return works


def comp_rows(graph: ChangedGraph, view: str, changed: Iterable[str], installed: Iterable[str]) -> float:
    """The rows that the terms of a Comp read together.

    A term takes, of the k inputs it is about, the changes of some and the old states of the rest, and all other
    inputs as they are: 2^k - 1 terms. Terms with an empty change are not run, so unchanged inputs do not count
    towards k.
    """
    active = [name for name in changed if graph[name].change_rows]
    if not active:
        return 0.0
    half = 2.0 ** (len(active) - 1)
    terms = 2 * half - 1
    there = set(installed)
    rows = sum(half * graph[name].change_rows + (half - 1) * graph[name].rows for name in active)
    for name in graph[view].inputs:
        if name not in active:
            rows += terms * (graph[name].new_rows if name in there else graph[name].rows)
    return rows


def terms(graph: ChangedGraph, strategy: Strategy | VersionedStrategy) -> int:
    """How many terms the Comps of a strategy have together."""
    sizes = [sum(1 for n in s.changed if graph[n].change_rows) for s in strategy if not isinstance(s, Inst)]
    return sum(2**k - 1 for k in sizes)
