"""A view graph and a choice in it, drawn as Mermaid text."""

from __future__ import annotations

from viewkeeper.selection.choice import Choice
from viewkeeper.selection.graph import Arc, Layout, View, ViewGraph


def mermaid(graph: ViewGraph, choice: Choice | None = None, *, only_used: bool = False) -> str:
    """Arrows lead from what is read to what is computed from it; what is kept is filled.

    With `only_used`, what is kept and what can be computed from that in one step.
    """
    kept = {*choice.views, *choice.layouts} if choice else set()
    shown = [n for n in graph.nodes if not only_used or n.name in kept or _inputs(n) & kept]
    number = {node.name: f"n{k}" for k, node in enumerate(shown)}
    lines = ["graph BT", "  classDef kept fill:#cde4ff,stroke:#1f5fa8,stroke-width:2px;"]
    for node in shown:
        style = ":::kept" if node.name in kept else ""
        lines.append(f"  {number[node.name]}{_shape(node)}{style}")
    for node in shown:
        if isinstance(node, Layout):
            lines += [f"  {number[node.view]} -.- {number[node.name]}"] if node.view in number else []
            continue
        for k, arc in enumerate(node.arcs):
            if all(name in number for name in arc.inputs):
                lines += _arrows(arc, number, number[node.name], f"{number[node.name]}a{k}")
    return "\n".join(lines)


def _inputs(node: View | Layout) -> set[str]:
    return {name for arc in node.arcs for name in arc.inputs} if isinstance(node, View) else set()


def _shape(node: View | Layout) -> str:
    match node:
        case Layout():
            return f'[["{node.name}"]]'
        case View(arcs=()):
            return f'[("{node.name}{_reading(node)}")]'
        case View(keepable=False):
            return f'(["{node.name}"])'
        case View():
            return f'["{node.name}{_reading(node)}"]'


def _reading(view: View) -> str:
    return f"<br/>read {view.reading:g}" if view.reading else ""


def _arrows(arc: Arc, number: dict[str, str], target: str, junction: str) -> list[str]:
    said = [f"cost {arc.cost:g}"] if arc.cost else []
    said += [f"maintain {arc.maintenance:g}"] if arc.maintenance else []
    label = f'|"{", ".join(said)}"| ' if said else ""
    if len(arc.inputs) == 1:
        return [f"  {number[arc.inputs[0]]} -->{label or ' '}{target}"]
    joined = [f"  {number[name]} --- {junction}(( ))" for name in arc.inputs]
    return [*joined, f"  {junction} -->{label or ' '}{target}"]
