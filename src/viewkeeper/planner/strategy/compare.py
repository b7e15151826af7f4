"""All strategies of a graph side by side."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.order import (
    Conflict,
    combine,
    dual_stage,
    min_work,
    modify_ordering,
    one_way,
    wanted_order,
)
from viewkeeper.planner.strategy.schedule import schedule
from viewkeeper.planner.strategy.search import best_one_way
from viewkeeper.planner.strategy.steps import Strategy, VersionedStrategy
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.work import Metric, terms, work

_MOST_FOR_SEARCH = 16


@dataclass(frozen=True)
class Compared:
    """A strategy's work, its terms, and the update window it needs on as many workers."""

    name: str
    work: float
    terms: int
    makespan: float
    strategy: Strategy | VersionedStrategy


def compare(graph: ChangedGraph, workers: int = 1, metric: Metric | None = None) -> tuple[Compared, ...]:
    """Dual-stage, the reverse of the wanted order, MinWork, the best one-way of small graphs, and with versions."""
    found: dict[str, Strategy | VersionedStrategy] = {}
    dual = combine(graph, dual_stage(graph))
    if not isinstance(dual, Conflict):
        found["dual-stage"] = dual
    found["reverse order"] = _in_order(graph, tuple(reversed(wanted_order(graph))))
    found["MinWork"] = min_work(graph).strategy
    if len(graph.views) <= _MOST_FOR_SEARCH:
        found["best one-way"] = best_one_way(graph).strategy
    found["with versions"] = with_versions(graph)
    return tuple(
        Compared(
            name,
            work(graph, strategy, metric),
            terms(graph, strategy),
            schedule(graph, strategy, workers, metric).makespan,
            strategy,
        )
        for name, strategy in found.items()
    )


def _in_order(graph: ChangedGraph, order: tuple[str, ...]) -> Strategy:
    for possible in (order, modify_ordering(graph, order)):
        strategy = combine(graph, one_way(graph, possible), possible)
        if not isinstance(strategy, Conflict):
            return strategy
    raise AssertionError("an order by level never has a circle")
