"""Graphs of views, expression graphs and schedules, drawn as Mermaid text."""

from __future__ import annotations

from collections.abc import Mapping

from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.order import Parts, expression_graph
from viewkeeper.planner.strategy.schedule import Schedule
from viewkeeper.planner.strategy.steps import Inst, Strategy, VersionedStrategy


def numbered_steps(graph: ChangedGraph, strategy: Strategy | VersionedStrategy) -> str:
    """Views over what they read: on each arrow the step that carries its change, at each view when it is installed."""
    number = {view.name: f"v{k}" for k, view in enumerate(graph.views)}
    installed = {step.view: k for k, step in enumerate(strategy, 1) if isinstance(step, Inst)}
    lines = ["graph BT"]
    for view in graph.views:
        label = f"{view.name}<br/>{view.rows:g} → {view.new_rows:g} rows<br/>installed at {installed[view.name]}"
        lines.append(f'  {number[view.name]}["{label}"]' if view.inputs else f'  {number[view.name]}[("{label}")]')
    for k, step in enumerate(strategy, 1):
        if not isinstance(step, Inst):
            lines += [f'  {number[name]} -->|"{k}"| {number[step.view]}' for name in sorted(step.changed)]
    return "\n".join(lines)


def expressions(graph: ChangedGraph, parts: Mapping[str, Parts]) -> str:
    """Arrows lead from an expression to those that must follow it."""
    follows = expression_graph(graph, parts)
    number = {step: f"e{k}" for k, step in enumerate(follows)}
    lines = ["graph LR"]
    for step, name in number.items():
        lines.append(f'  {name}(["{step}"])' if isinstance(step, Inst) else f'  {name}["{step}"]')
    for step, before in follows.items():
        lines += sorted(f"  {number[earlier]} --> {number[step]}" for earlier in before)
    return "\n".join(lines)


def gantt(schedule: Schedule, title: str) -> str:
    """A bar per step, a section per worker, in thousandths of the window."""
    unit = schedule.makespan / 1000 or 1.0
    lines = ["gantt", f"  title {title}", "  dateFormat x", "  axisFormat %L"]
    for worker in sorted({slot.worker for slot in schedule.slots}):
        lines.append(f"  section worker {worker + 1}")
        for slot in schedule.slots:
            if slot.worker == worker and slot.end > slot.start:
                name = str(slot.step).replace(":", " ").replace(",", " ")
                lines.append(f"  {name} : {round(slot.start / unit)}, {max(round(slot.end / unit), 1)}")
    return "\n".join(lines)
