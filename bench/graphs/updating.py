"""Ordering updates: the linear metric's figures for TPC-D, and what versions save."""

from __future__ import annotations

from random import Random

from report import Report, plt

from viewkeeper.planner.strategy.compare import compare
from viewkeeper.planner.strategy.order import min_work, min_work_single
from viewkeeper.planner.strategy.search import best_one_way, view_strategies
from viewkeeper.planner.strategy.steps import Comp
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.work import Metric, work
from viewkeeper.testing.update_graphs import random_changed_graph, tpcd

COMPUTE = Metric(compute=1.0, install=0.0)
# Wall time ÷ that of MinWork: of the dual-stage strategy, of the reverse order.
PUBLISHED = {"Q5": ((">", 6.0),), "Q3, Q5, Q10": (("", 5.6), ("", 1.11))}


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
    ratios = {name: cost / least for name, cost in reversed(ordered)}
    report.plot(
        "updating-q3", "The 13 strategies of Q3, all tables lose 10 %", lambda axes: draw_strategies(axes, ratios)
    )
    rows = []
    ours: dict[str, tuple[float, float]] = {}
    for views in (("Q3",), ("Q10",), ("Q5",), ("Q3", "Q5", "Q10")):
        graph = tpcd(*views)
        name = ", ".join(views)
        found = {c.name: c for c in compare(graph, metric=COMPUTE)}
        installed = {c.name: c.work for c in compare(graph)}
        best = found["MinWork"].work
        ours[name] = found["dual-stage"].work / best, found["reverse order"].work / best
        four = {c.name: c.makespan for c in compare(graph, workers=4, metric=COMPUTE)}
        rows.append(
            [
                name,
                found["dual-stage"].terms,
                f"{ours[name][0]:.2f}",
                f"{installed['dual-stage'] / installed['MinWork']:.2f}",
                f"{ours[name][1]:.3f}",
                " and ".join(f"{sign}{ratio:g} ×" for sign, ratio in PUBLISHED.get(name, ())),
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
            "published: dual, reverse",
            "window, dual",
            "window, MinWork",
            "window, versions",
        ],
        rows,
    )
    report.plot(
        "updating-published",
        "Work (ours) and wall time (published) ÷ MinWork, all tables but R lose 10 %",
        lambda axes: draw_published(axes, ours),
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


def draw_strategies(axes: plt.Axes, ratios: dict[str, float]) -> None:
    bars = axes.barh(list(ratios), list(ratios.values()))
    axes.bar_label(bars, fmt="%.3f", padding=3)
    axes.margins(x=0.1)
    axes.set_xlabel("work by the linear metric ÷ best")


def draw_published(axes: plt.Axes, ours: dict[str, tuple[float, float]]) -> None:
    kinds = ("dual-stage", "reverse order")
    labels = [f"{views}\n{kind}" for views in ours for kind in kinds]
    found = [ratio for pair in ours.values() for ratio in pair]
    axes.bar_label(
        axes.bar([k - 0.2 for k in range(len(found))], found, 0.4, label="linear metric"), fmt="%.2f", fontsize=8
    )
    said = {
        2 * k + which: value for k, views in enumerate(ours) for which, value in enumerate(PUBLISHED.get(views, ()))
    }
    bars = axes.bar([k + 0.2 for k in said], [ratio for _, ratio in said.values()], 0.4, label="published")
    axes.bar_label(bars, [f"{sign}{ratio:g}" for sign, ratio in said.values()], fontsize=8)
    axes.set_xticks(range(len(labels)), labels, fontsize=7)
    axes.margins(y=0.1)
    axes.set_ylabel("÷ MinWork")
    axes.legend()
