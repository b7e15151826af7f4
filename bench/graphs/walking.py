"""What annealing finds that greedy-interchange does not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from statistics import median

from report import Report, timed
from speed import a_tenth, any_over_any

from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.methods import Annealing, GreedyInterchange
from viewkeeper.testing.view_graphs import random_memo, random_or_graph

GRAPHS = {25: 9, 100: 9, 400: 3}


def kinds(nodes: int) -> dict[str, Callable[[int], ViewGraph]]:
    return {
        "AND-OR, any view over any": lambda seed: any_over_any(nodes, updates=True, seed=seed),
        "AND-OR, joins": lambda seed: random_memo(Random(seed), nodes, updates=True),
        "2n edges": lambda seed: random_or_graph(Random(seed), nodes, "edges"),
    }


def rows() -> Iterator[list[object]]:
    for nodes, count in GRAPHS.items():
        for label, made in kinds(nodes).items():
            for limited in ("space", "maintenance", "both"):
                ratios, seconds = [], []
                for seed in range(1, count + 1):
                    graph = made(seed)
                    budget = a_tenth(graph, limited)
                    walked, taken = timed(graph, budget, Annealing())
                    exchanged, _ = timed(graph, budget, GreedyInterchange())
                    ratios.append(walked.cost / exchanged.cost)
                    seconds.append(taken)
                shown = f"{median(ratios):.3f}", f"{min(ratios):.3f}", f"{median(seconds):.2f}"
                yield [f"{label}, with updates, {nodes} views", f"10 % of {limited}", count, *shown]


def walking(report: Report) -> None:
    report.table(
        "Annealing",
        "Cost of what annealing chooses ÷ cost of what greedy-interchange chooses, median and least; seconds of one core, median.",
        ["graph", "budget", "graphs", "cost ÷", "least", "seconds"],
        [*rows()],
    )
