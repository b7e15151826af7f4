"""Choosing views under a maintenance budget, and under a hard space budget."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

import numpy as np
from report import Report, plt, timed

from viewkeeper.selection.choice import Budget
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import Costs, tau
from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.methods import AStar, Exact, Greedy, GuessOne, InnerLevel, InvertedTree
from viewkeeper.testing.view_graphs import Shape, StudyShape, random_layouts, random_or_graph, study_graph

# "tree" is ours: there all views that lie above another can be taken with it, not only those of one chain.
SHAPES: tuple[tuple[str, Shape | StudyShape, float], ...] = (
    ("balanced tree", "chains", 0.0),
    ("density 10 %", "density", 0.10),
    ("density 15 %", "density", 0.15),
    ("density 25 %", "density", 0.25),
    ("density 40 %", "density", 0.40),
    ("2n edges", "edges", 0.0),
    ("tree upside down", "tree", 0.0),
)
NODES = (10, 15, 20, 25)


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
                graph = (
                    random_or_graph(rng, nodes, shape) if shape == "tree" else study_graph(rng, nodes, shape, density)
                )
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
                share(soft, 0.99),
                f"{min(soft):.3f}",
                share([ratio(run.gained, run.best_hard) for run in mine]),
                share(hard),
                f"{min(hard):.3f}",
                f"{statistics.median(over):.2f} / {max(over):.2f}",
            ]
        )
    report.table(
        "Inverted-tree greedy against the optimum",
        "Random OR graphs of 10 to 25 views, each 0.3 to 0.99 of its smallest input, |u| + |v| maintenance, one random limit each, between the cheapest view and all of them. Published: optimal in "
        "96 % of the instances, else about 95 % of the benefit; not said: how sizes were drawn, and the optimum of which limit. The greedy may exceed its limit. *At the budget used*: the "
        "optimum is of as much as it used. *Of the limit*: the optimum keeps to the limit. *Hard*: neither exceeds it.",
        [
            "graphs",
            "instances",
            "optimal at the budget used",
            "within 1 %",
            "worst",
            "reaches the optimum of the limit",
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
            most = max(run.seconds["A* thesis"] / run.seconds["inverted tree"] for run in mine)
            rows.append(
                [
                    label,
                    nodes,
                    f"{tree * 1000:.1f}",
                    f"{most:.0f}",
                    *(f"{middle[name] / tree:.1f}" for name in ("A* thesis", "A* tight", "exact")),
                    sum(run.cut for run in mine),
                    f"{max(run.seconds['exact'] for run in mine):.2f}",
                    f"{max(run.exact_gap for run in mine):.1e}",
                ]
            )
    report.table(
        "Run times against inverted-tree greedy",
        f"The same instances, the limits hard for A* and the exact program, medians. Published: A* takes 10 to 500 times as long, 100 to 500 times on trees and at 10 %. Ours stops after {expand} expanded nodes "
        "(*cut*), so its ratio is a lower bound there. The exact program always proves the optimum.",
        [
            "graphs",
            "nodes",
            "inverted tree, ms",
            "A* thesis ×, max",
            "A* thesis ×",
            "A* tight ×",
            "exact ×",
            "cut",
            "exact, max s",
            "exact, max gap",
        ],
        rows,
    )
    report.plot(
        "choosing-times",
        "Maintenance budgets: medians over all shapes",
        lambda axes: draw_times(axes, runs),
    )
    report.plot("choosing-quality", "Inverted-tree greedy against the optimum", lambda axes: draw_quality(axes, runs))


def ratio(gained: float, best: float) -> float:
    return gained / best if best > 0 else 1.0


def share(ratios: Sequence[float], least: float = 1 - 1e-6) -> str:
    return f"{100 * sum(r >= least for r in ratios) / len(ratios):.0f} %"


def draw_times(axes: plt.Axes, runs: list[Run]) -> None:
    for name in runs[0].seconds:
        middle = [statistics.median(run.seconds[name] for run in runs if run.nodes == nodes) for nodes in NODES]
        axes.semilogy(NODES, middle, marker="o", label=name)
    axes.set_xticks(NODES)
    axes.set_xlabel("views")
    axes.set_ylabel("seconds of one core")
    axes.legend()


def draw_quality(axes: plt.Axes, runs: list[Run]) -> None:
    soft = sorted(ratio(run.gained, run.best_at_used) for run in runs)
    hard = sorted(ratio(run.hard_gained, run.best_hard) for run in runs)
    places = np.linspace(0, 100, len(runs))
    axes.plot(places, soft, label="at the budget used")
    axes.plot(places, hard, label="hard budget")
    axes.axhline(1 - 1 / np.e, linestyle=":", color="grey", label="0.632, promised at the budget used")
    axes.set_xlabel("% of the instances, worst first")
    axes.set_ylabel("benefit ÷ optimum")
    axes.legend()


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
