"""How long the methods take on large graphs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from statistics import median

from report import Report, timed

from viewkeeper.planner.strategy.order import min_work
from viewkeeper.planner.strategy.schedule import schedule
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.selection.choice import Budget
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.graph import Layout, View, ViewGraph
from viewkeeper.selection.methods import Exact, Greedy
from viewkeeper.testing.update_graphs import random_changed_graph
from viewkeeper.testing.view_graphs import random_and_or_graph, random_cube, random_memo, random_or_graph

RUNS = 3
GRAPHS = 5


def side_by_side(graphs: Sequence[ViewGraph]) -> ViewGraph:
    """Graphs that share nothing, as one."""
    nodes: list[View | Layout] = []
    for k, graph in enumerate(graphs):
        for node in graph.nodes:
            assert isinstance(node, View)
            arcs = tuple(replace(arc, inputs=tuple(f"{k}.{name}" for name in arc.inputs)) for arc in node.arcs)
            nodes.append(replace(node, name=f"{k}.{node.name}", arcs=arcs))
    return ViewGraph(tuple(nodes))


def any_over_any(n: int, *, updates: bool = False, seed: int = 1) -> ViewGraph:
    return random_and_or_graph(Random(seed), n, updates=updates)


def greedy_rows() -> Iterator[list[object]]:
    groups = [random_and_or_graph(Random(k), 25) for k in range(400)]
    graphs: list[tuple[str, ViewGraph]] = [
        ("tree, 10 000 views", random_or_graph(Random(1), 10_000, "tree", updates=False)),
        ("2n edges, 10 000 views", random_or_graph(Random(1), 10_000, "edges", updates=False)),
        ("2n edges with updates, 10 000 views", random_or_graph(Random(1), 10_000, "edges")),
        ("cube of 13 dimensions, 8 192 views", random_cube(Random(1), 13)),
        ("AND-OR, 400 groups of 25 views", side_by_side(groups)),
        ("AND-OR, any view over any, 2 000 views", any_over_any(2_000)),
        ("AND-OR, any view over any, 10 000 views", any_over_any(10_000)),
        ("AND-OR, any view over any, with updates, 10 000 views", any_over_any(10_000, updates=True)),
    ]
    for label, graph in graphs:
        yield timed_row(label, graph, Greedy(), "space")
    for shape in ("tree", "edges"):
        graph = random_or_graph(Random(1), 10_000, shape, cheap=0.01)  # type: ignore[arg-type]
        label = f"{shape}, view-to-view maintenance next to nothing, 10 000 views"
        yield timed_row(label, graph, Greedy(), "maintenance")


def exact_rows() -> Iterator[list[object]]:
    for nodes in (25, 400):
        for shape in ("tree", "edges"):
            for updates in (False, True):
                graph = random_or_graph(Random(5), nodes, shape, updates=updates)  # type: ignore[arg-type]
                label = f"{shape}{' with updates' if updates else ''}, {nodes} views"
                for gap in (0.0, 0.01):
                    yield timed_row(label, graph, Exact(gap=gap), "maintenance" if updates else "space")
    graph = random_or_graph(Random(5), 400, "edges")
    yield timed_row("edges with updates, 400 views", graph, Exact(gap=0.01), "both")
    for updates in (False, True):
        label = f"AND-OR, joins{', with updates' if updates else ''}, 400 views"
        for gap in (0.0, 0.01):
            yield timed_row(label, random_memo(Random(5), 400, updates=updates), Exact(gap=gap), "space")
    for nodes in (100, 400):
        for updates in (False, True):
            label = f"AND-OR, any view over any{', with updates' if updates else ''}, {nodes} views; {GRAPHS} graphs"
            graphs = [any_over_any(nodes, updates=updates, seed=seed) for seed in range(1, GRAPHS + 1)]
            for limited in ("space", "maintenance", "both") if updates else ("space",):
                yield timed_row(label, graphs, Exact(gap=0.01), limited)


def timed_row(
    label: str, graphs: ViewGraph | Sequence[ViewGraph], method: Greedy | Exact, limited: str
) -> list[object]:
    """Several runs of one graph, or one of each."""
    several = [graphs] * RUNS if isinstance(graphs, ViewGraph) else graphs
    runs = [timed(graph, a_tenth(graph, limited), method) for graph in several]
    what = "greedy" if isinstance(method, Greedy) else f"exact, gap {method.gap:g}"
    kept, gaps = len(runs[0][0].views), sorted(f"{choice.gap:.4f}" for choice, _ in runs)
    shown = gaps[-1] if isinstance(graphs, ViewGraph) else ", ".join(gaps)
    return [label, f"{what}, 10 % of {limited}", kept, *spread([seconds for _, seconds in runs]), shown]


def a_tenth(graph: ViewGraph, limited: str) -> Budget:
    everything = Costs(graph.numbered, graph.numbered.candidates)
    space = everything.size * 0.1 if limited in ("space", "both") else None
    return Budget(space, everything.upkeep * 0.1 if limited in ("maintenance", "both") else None)


def spread(seconds: Sequence[float]) -> tuple[str, str]:
    return f"{median(seconds):.2f}", f"{min(seconds):.2f} – {max(seconds):.2f}"


def updating_rows() -> Iterator[list[object]]:
    changed = random_changed_graph(Random(1), 10_000)
    ordering, scheduling = [], []
    for _ in range(RUNS):
        started = time.process_time()
        found = min_work(changed)
        ordered = time.process_time()
        makespan = schedule(changed, with_versions(changed), 8).makespan
        ordering.append(ordered - started)
        scheduling.append(time.process_time() - ordered)
    label = "views over views, 10 000"
    yield [label, "MinWork", len(found.strategy), *spread(ordering), ""]
    yield [label, f"schedule on 8 workers, window {makespan:.3g}", "", *spread(scheduling), ""]


def speed(report: Report) -> None:
    report.table(
        "Speed",
        f"Seconds of one core, median of {RUNS} runs, or of one run of each graph, least and most; the largest gap, or that of each graph. Graphs are built before the clock starts. Exact has a minute by the clock on the wall. "
        "Wanted: 10 000 views in 10 seconds at most.",
        ["graph", "what", "chosen or steps", "seconds", "least – most", "proved gap"],
        [*greedy_rows(), *exact_rows(), *updating_rows()],
    )
