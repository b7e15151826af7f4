"""Strategies over versioned tables.

A Comp may read the old or the new version of a table whatever has been installed, so C4 binds nothing: every view
takes its own best order, on any graph.
"""

from __future__ import annotations

from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.steps import CompAt, Inst, VersionedStrategy


def with_versions(graph: ChangedGraph) -> VersionedStrategy:
    """Bottom up; each view's inputs by increasing |V'| - |V|. No correct strategy has less work."""
    steps: list[CompAt | Inst] = []
    for name in graph.bottom_up:
        new: frozenset[str] = frozenset()
        for below in sorted(graph[name].inputs, key=lambda below: graph[below].growth):
            steps.append(CompAt(name, frozenset([below]), new))
            new |= {below}
        steps.append(Inst(name))
    return tuple(steps)
