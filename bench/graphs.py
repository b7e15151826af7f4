"""The published studies of choosing views and of ordering updates, on plain graphs: tables and plots.

    python bench/graphs.py [--out bench-results/graphs] [--instances 8] [--expand 20000] [--only choosing,hard,updating,speed]

No Spark. Counts and ratios are what to compare with the papers; seconds are of this machine. Each table says its protocol.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

import matplotlib
import numpy as np

from viewkeeper.planner.strategy.compare import compare
from viewkeeper.planner.strategy.order import min_work, min_work_single
from viewkeeper.planner.strategy.schedule import schedule
from viewkeeper.planner.strategy.search import best_one_way, view_strategies
from viewkeeper.planner.strategy.steps import Comp
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.work import Metric, work
from viewkeeper.selection.choice import Budget, Choice
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import Costs, tau
from viewkeeper.selection.graph import Layout, View, ViewGraph
from viewkeeper.selection.methods import AStar, Exact, Greedy, GuessOne, InnerLevel, InvertedTree, Method
from viewkeeper.testing.update_graphs import random_changed_graph, tpcd
from viewkeeper.testing.view_graphs import random_and_or_graph, random_cube, random_layouts, random_or_graph

matplotlib.use("Agg")
import matplotlib.pyplot as plt

COMPUTE = Metric(compute=1.0, install=0.0)
SHAPES: tuple[tuple[str, str, float], ...] = (
    ("balanced tree", "tree", 0.0),
    ("density 10 %", "density", 0.10),
    ("density 15 %", "density", 0.15),
    ("density 25 %", "density", 0.25),
    ("density 40 %", "density", 0.40),
    ("2n edges", "edges", 0.0),
)
NODES = (10, 15, 20, 25)


@dataclass
class Report:
    """Markdown and plots in one folder."""

    out: Path
    lines: list[str] = field(default_factory=list)

    def table(self, title: str, protocol: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        body = ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
        section = [f"## {title}", "", protocol, "", *body, ""]
        print("\n".join(section), flush=True)
        self.lines += section

    def plot(self, name: str, title: str, draw: Callable[[plt.Axes], None]) -> None:
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        draw(axes)
        axes.set_title(title)
        figure.savefig(self.out / f"{name}.png", dpi=120)
        plt.close(figure)
        self.lines += [f"![{title}]({name}.png)", ""]

    def write(self) -> None:
        (self.out / "results.md").write_text("\n".join(["# Studies on plain graphs", "", *self.lines]), "utf-8")


def timed(graph: ViewGraph, budget: Budget, method: Method) -> tuple[Choice, float]:
    started = time.perf_counter()
    choice = choose(graph, budget, method)
    return choice, time.perf_counter() - started


# Choosing views under a maintenance budget


@dataclass(frozen=True)
class Run:
    """One instance: what inverted-tree greedy found, the optimum at the budget it used and at the budget given."""

    shape: str
    nodes: int
    gained: float
    best_at_used: float
    hard_gained: float
    best_hard: float
    overshoot: float
    seconds: dict[str, float]
    cut: bool
    exact_gap: float


def instances(count: int) -> Iterator[tuple[str, int, ViewGraph, float]]:
    for kind, (label, shape, density) in enumerate(SHAPES):
        for nodes in NODES:
            for seed in range(count):
                rng = Random(100_000 * kind + 1000 * nodes + seed)
                graph = random_or_graph(rng, nodes, shape, density)  # type: ignore[arg-type]
                everything = Costs(graph.numbered, graph.numbered.candidates)
                cheapest = min(Costs(graph.numbered, [i]).upkeep for i in graph.numbered.candidates)
                yield label, nodes, graph, cheapest + rng.random() * (everything.upkeep - cheapest)


def study(count: int, expand: int) -> list[Run]:
    runs = []
    for label, nodes, graph, limit in instances(count):
        soft, hard = Budget(maintenance=limit, overshoot=True), Budget(maintenance=limit)
        seconds = {}
        tree, seconds["inverted tree"] = timed(graph, soft, InvertedTree())
        hard_tree, _ = timed(graph, hard, InvertedTree())
        thesis, seconds["A* thesis"] = timed(graph, hard, AStar("thesis", expand))
        _, seconds["A* tight"] = timed(graph, hard, AStar("tight", expand))
        exact, seconds["exact"] = timed(graph, hard, Exact())
        used = choose(graph, Budget(maintenance=tree.maintenance * (1 + 1e-9))) if tree.maintenance else tree
        before = tau(graph)
        runs.append(
            Run(
                label,
                nodes,
                before - tree.cost,
                before - used.cost,
                before - hard_tree.cost,
                before - exact.cost,
                tree.maintenance / limit,
                seconds,
                thesis.gap > 1e-9,
                exact.gap,
            )
        )
    return runs


def choosing(report: Report, count: int, expand: int) -> None:
    runs = study(count, expand)
    rows = []
    for label in (*(label for label, _, _ in SHAPES), "all"):
        mine = [run for run in runs if label in (run.shape, "all")]
        soft = [ratio(run.gained, run.best_at_used) for run in mine]
        hard = [ratio(run.hard_gained, run.best_hard) for run in mine]
        over = [run.overshoot for run in mine]
        rows.append(
            [
                label,
                len(mine),
                share(soft),
                f"{min(soft):.3f}",
                share(hard),
                f"{min(hard):.3f}",
                f"{statistics.median(over):.2f} / {max(over):.2f}",
            ]
        )
    report.table(
        "Inverted-tree greedy against the optimum",
        "Random OR graphs of 10 to 25 nodes, each 0.3 to 0.99 of its smallest input, |u| + |v| maintenance, one random budget each, between the cheapest view and all of them. Published: optimal in "
        "96 % of the instances, else about 95 % of the benefit. *At the budget used*: the greedy may exceed its budget, and the "
        "optimum is of as much; the thesis' protocol. *Hard*: neither exceeds it.",
        [
            "graphs",
            "instances",
            "optimal at the budget used",
            "worst",
            "optimal, hard",
            "worst",
            "overshoot median / max",
        ],
        rows,
    )
    rows = []
    for label, _, _ in SHAPES:
        for nodes in NODES:
            mine = [run for run in runs if (run.shape, run.nodes) == (label, nodes)]
            middle = {name: statistics.median(run.seconds[name] for run in mine) for name in mine[0].seconds}
            tree = middle["inverted tree"]
            rows.append(
                [
                    label,
                    nodes,
                    f"{tree * 1000:.1f}",
                    *(f"{middle[name] / tree:.1f}" for name in ("A* thesis", "A* tight", "exact")),
                    sum(run.cut for run in mine),
                    f"{max(run.seconds['exact'] for run in mine):.2f}",
                    f"{max(run.exact_gap for run in mine):.1e}",
                ]
            )
    report.table(
        "Run times against inverted-tree greedy",
        f"The same instances, hard budgets, medians. Published: A* takes 10 to 500 times as long. Ours stops after {expand} expanded nodes "
        "(*cut*), so its ratio is a lower bound there. The exact program always proves the optimum.",
        [
            "graphs",
            "nodes",
            "inverted tree, ms",
            "A* thesis ×",
            "A* tight ×",
            "exact ×",
            "cut",
            "exact, max s",
            "exact, max gap",
        ],
        rows,
    )
    report.plot("choosing-times", "Seconds by nodes, median over all shapes", lambda axes: draw_times(axes, runs))
    report.plot("choosing-quality", "Inverted-tree greedy ÷ optimum", lambda axes: draw_quality(axes, runs))


def ratio(gained: float, best: float) -> float:
    return gained / best if best > 0 else 1.0


def share(ratios: Sequence[float]) -> str:
    return f"{100 * sum(r >= 1 - 1e-6 for r in ratios) / len(ratios):.0f} %"


def draw_times(axes: plt.Axes, runs: list[Run]) -> None:
    for name in runs[0].seconds:
        middle = [statistics.median(run.seconds[name] for run in runs if run.nodes == nodes) for nodes in NODES]
        axes.semilogy(NODES, middle, marker="o", label=name)
    axes.set_xlabel("nodes")
    axes.set_ylabel("seconds")
    axes.legend()


def draw_quality(axes: plt.Axes, runs: list[Run]) -> None:
    soft = sorted(ratio(run.gained, run.best_at_used) for run in runs)
    hard = sorted(ratio(run.hard_gained, run.best_hard) for run in runs)
    places = np.linspace(0, 100, len(runs))
    axes.plot(places, soft, label="at the budget used")
    axes.plot(places, hard, label="hard budget")
    axes.axhline(1 - 1 / np.e, linestyle=":", label="0.632")
    axes.set_xlabel("% of the instances, worst first")
    axes.legend()


# Hard budgets


def hard_budgets(report: Report, count: int) -> None:
    rows = []
    for label, make in (
        ("OR graphs of 25 views", lambda rng: random_or_graph(rng, 25, "density", 0.15, updates=False)),
        ("views with layouts", lambda rng: random_layouts(rng, 8, 16, unit=False)),
    ):
        found: dict[str, list[float]] = {"greedy": [], "inner-level": [], "guess-one": []}
        for seed in range(3 * count):
            rng = Random(seed)
            graph = make(rng)
            everything = Costs(graph.numbered, graph.numbered.candidates)
            budget = Budget(space=everything.size * rng.uniform(0.03, 0.3))
            best = tau(graph) - choose(graph, budget).cost
            for name, method in (("greedy", Greedy()), ("inner-level", InnerLevel()), ("guess-one", GuessOne())):
                found[name].append(ratio(tau(graph) - choose(graph, budget, method).cost, best))
        for name, ratios in found.items():
            rows.append([label, name, share(ratios), f"{statistics.mean(ratios):.3f}", f"{min(ratios):.3f}"])
    report.table(
        "Hard space budgets",
        f"Benefit against the optimum, {3 * count} instances each, no updates, budgets of 3 to 30 % of all. Nothing may exceed the budget.",
        ["graphs", "method", "optimal", "mean", "worst"],
        rows,
    )


# Ordering updates


def updating(report: Report) -> None:
    graph = tpcd("Q3")
    works = {
        " ".join("+".join(sorted(s.changed)) for s in strategy if isinstance(s, Comp)): work(graph, strategy, COMPUTE)
        for strategy in view_strategies(graph, "Q3")
    }
    least = min(works.values())
    ordered = sorted(works.items(), key=lambda item: item[1])
    report.table(
        "The 13 strategies of Q3",
        "Linear metric, Comps only, TPC-H sizes at scale 0.1, every table loses 10 %. Published (wall time): the one-way ones are the "
        "fastest, MinWorkSingle (L O C) very close to the best.",
        ["order", "work ÷ best"],
        [[name, f"{cost / least:.3f}"] for name, cost in ordered],
    )
    report.plot(
        "updating-q3",
        "Q3: work of its 13 strategies ÷ best",
        lambda axes: (
            axes.barh([name for name, _ in reversed(ordered)], [cost / least for _, cost in reversed(ordered)]) and None
        ),
    )
    rows = []
    published = {"Q3": "", "Q10": "", "Q5": "> 6 ×", "Q3, Q5, Q10": "5.6 × and 1.11 ×"}
    for views in (("Q3",), ("Q10",), ("Q5",), ("Q3", "Q5", "Q10")):
        graph = tpcd(*views)
        name = ", ".join(views)
        found = {c.name: c for c in compare(graph, metric=COMPUTE)}
        installed = {c.name: c.work for c in compare(graph)}
        best = found["MinWork"].work
        four = {c.name: c.makespan for c in compare(graph, workers=4, metric=COMPUTE)}
        rows.append(
            [
                name,
                found["dual-stage"].terms,
                f"{found['dual-stage'].work / best:.2f}",
                f"{installed['dual-stage'] / installed['MinWork']:.2f}",
                f"{found['reverse order'].work / best:.3f}",
                published[name],
                f"{four['dual-stage'] / best:.2f}",
                f"{four['MinWork'] / best:.2f}",
                f"{four['with versions'] / best:.2f}",
            ]
        )
    report.table(
        "Dual-stage and the reverse order against MinWork",
        "The same metric. *Window*: makespan on 4 workers ÷ the work of MinWork on one; with versions, steps wait for less. The metric explains "
        "the published 1.11 and under-predicts the dual-stage penalty, which was I/O without caching.",
        [
            "views",
            "terms, dual",
            "dual ÷ MinWork",
            "with installs",
            "reverse ÷ MinWork",
            "published",
            "window, dual",
            "window, MinWork",
            "window, versions",
        ],
        rows,
    )
    rows = []
    for percent in range(1, 11):
        graph = tpcd("Q3", share=percent / 100)
        all_works = [work(graph, strategy, COMPUTE) for strategy in view_strategies(graph, "Q3")]
        best = work(graph, min_work_single(graph, "Q3"), COMPUTE)
        rows.append([f"{percent} %", f"{min(all_works) / best:.3f}", f"{max(all_works) / best:.2f}"])
    report.table(
        "Q3 by the share that goes",
        "MinWorkSingle is 1. Published: it is the best for every share.",
        ["share", "best of all", "dual-stage"],
        rows,
    )
    rows = []
    for nodes in (5, 8, 11):
        worst, cyclic, tried = [], 0, 60
        for seed in range(tried):
            graph = random_changed_graph(Random(seed), nodes)
            found = min_work(graph)
            cyclic += found.conflict is not None
            ideal = work(graph, with_versions(graph), COMPUTE) or 1.0
            worst.append(
                (
                    work(graph, found.strategy, COMPUTE) / ideal,
                    work(graph, best_one_way(graph).strategy, COMPUTE) / ideal,
                )
            )
        rows.append(
            [nodes, f"{cyclic} of {tried}", f"{max(w[0] for w in worst):.3f}", f"{max(w[1] for w in worst):.3f}"]
        )
    report.table(
        "What versions save on any graph",
        "Random graphs of views over views. Work ÷ that with versions, worst seen.",
        ["views", "wanted order impossible", "MinWork", "best one-way without versions"],
        rows,
    )


# Speed


def side_by_side(graphs: Sequence[ViewGraph]) -> ViewGraph:
    """Graphs that share nothing, as one."""
    nodes: list[View | Layout] = []
    for k, graph in enumerate(graphs):
        for node in graph.nodes:
            assert isinstance(node, View)
            arcs = tuple(replace(arc, inputs=tuple(f"{k}.{name}" for name in arc.inputs)) for arc in node.arcs)
            nodes.append(replace(node, name=f"{k}.{node.name}", arcs=arcs))
    return ViewGraph(tuple(nodes))


def speed(report: Report) -> None:
    rows = []
    graphs: list[tuple[str, Callable[[], ViewGraph]]] = [
        ("tree, 10 000 views", lambda: random_or_graph(Random(1), 10_000, "tree", updates=False)),
        ("2n edges, 10 000 views", lambda: random_or_graph(Random(1), 10_000, "edges", updates=False)),
        ("2n edges with updates, 10 000 views", lambda: random_or_graph(Random(1), 10_000, "edges")),
        ("cube of 13 dimensions, 8 192 views", lambda: random_cube(Random(1), 13)),
        (
            "AND-OR, 400 groups of 25 views",
            lambda: side_by_side([random_and_or_graph(Random(k), 25) for k in range(400)]),
        ),
        ("AND-OR, any view over any, 2 000 views", lambda: random_and_or_graph(Random(1), 2_000)),
    ]
    for label, make in graphs:
        graph = make()
        everything = Costs(graph.numbered, graph.numbered.candidates)
        choice, seconds = timed(graph, Budget(space=everything.size * 0.1), Greedy())
        rows.append([label, "greedy, 10 % of the space", len(choice.views), f"{seconds:.1f}", f"{choice.gap:.3f}"])
    for shape in ("tree", "edges"):
        graph = random_or_graph(Random(1), 10_000, shape, cheap=0.01)  # type: ignore[arg-type]
        upkeep = Costs(graph.numbered, graph.numbered.candidates).upkeep
        choice, seconds = timed(graph, Budget(maintenance=upkeep * 0.1), Greedy())
        label = f"{shape}, view-to-view maintenance next to nothing, 10 000 views"
        rows.append(
            [label, "greedy, 10 % of the maintenance", len(choice.views), f"{seconds:.1f}", f"{choice.gap:.3f}"]
        )
    for nodes in (25, 400):
        for shape in ("tree", "edges"):
            graph = random_or_graph(Random(5), nodes, shape, updates=False)  # type: ignore[arg-type]
            everything = Costs(graph.numbered, graph.numbered.candidates)
            for gap in (0.0, 0.01):
                choice, seconds = timed(graph, Budget(space=everything.size * 0.1), Exact(gap=gap, seconds=30))
                label = f"{shape}, {nodes} views"
                rows.append(
                    [
                        label,
                        f"exact, gap {gap:g}, 10 % of the space",
                        len(choice.views),
                        f"{seconds:.2f}",
                        f"{choice.gap:.4f}",
                    ]
                )
    changed = random_changed_graph(Random(1), 10_000)
    started = time.perf_counter()
    found = min_work(changed)
    ordered = time.perf_counter()
    makespan = schedule(changed, with_versions(changed), 8).makespan
    label = "views over views, 10 000"
    rows.append([label, "MinWork", len(found.strategy), f"{ordered - started:.1f}", ""])
    rows.append(
        [label, f"schedule on 8 workers, window {makespan:.3g}", "", f"{time.perf_counter() - ordered:.1f}", ""]
    )
    report.table(
        "Speed",
        "One run each, one process. Graphs are built before the clock starts.",
        ["graph", "what", "chosen or steps", "seconds", "proved gap"],
        rows,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("bench-results/graphs"))
    parser.add_argument("--instances", type=int, default=8, help="graphs per shape and size")
    parser.add_argument("--expand", type=int, default=20_000, help="nodes that A* may expand")
    parser.add_argument("--only", default="choosing,hard,updating,speed")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    report = Report(arguments.out)
    for part in arguments.only.split(","):
        match part:
            case "choosing":
                choosing(report, arguments.instances, arguments.expand)
            case "hard":
                hard_budgets(report, arguments.instances)
            case "updating":
                updating(report)
            case "speed":
                speed(report)
            case _:
                parser.error(f"there is no part {part}")
        report.write()
    print(f"written: {arguments.out / 'results.md'}")


if __name__ == "__main__":
    main()
