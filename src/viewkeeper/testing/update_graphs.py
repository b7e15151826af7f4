"""Graphs of changed views to test update strategies with: the paper's, and random ones."""

from __future__ import annotations

from random import Random
from typing import Literal as OneOf

from viewkeeper.planner.strategy.graph import Changed, ChangedGraph

# TPC-H at scale 0.1, as experiments on the linear metric count it.
ROWS = {"L": 600_572.0, "O": 150_000.0, "C": 15_000.0, "S": 1_000.0, "N": 25.0, "R": 5.0}
READS = {"Q3": "COL", "Q10": "COLN", "Q5": "COLSNR"}

Shape = OneOf["tree", "uniform", "any"]


def tpcd(*views: str, share: float = 0.1) -> ChangedGraph:
    """Q3, Q5, Q10 over six tables; all tables but R lose a share of their rows."""
    read = sorted({table for view in views for table in READS[view]}, key=list(ROWS).index)
    bases = [
        Changed(t, (), ROWS[t], ROWS[t], 0.0)
        if t == "R"
        else Changed(t, (), ROWS[t], ROWS[t] * (1 - share), ROWS[t] * share)
        for t in read
    ]
    # The paper's figures are about computing the changes; the views' own are small and the same for all strategies.
    return ChangedGraph((*bases, *(Changed(view, tuple(READS[view])) for view in views)))


def figure_6() -> ChangedGraph:
    """V4 over V2, V3; V5 over V1, V4; wanted order V4, V2, V1, V3, V5."""
    growth = {"V4": -50.0, "V2": -40.0, "V1": -30.0, "V3": -20.0, "V5": -10.0}
    inputs = {"V1": (), "V2": (), "V3": (), "V4": ("V2", "V3"), "V5": ("V1", "V4")}
    return ChangedGraph(tuple(Changed(v, inputs[v], 100.0, 100.0 + growth[v], -growth[v]) for v in sorted(inputs)))


def figure_2() -> ChangedGraph:
    """V and V' over C, O, L."""
    bases = [Changed(t, (), ROWS[t], ROWS[t] * 0.9, ROWS[t] * 0.1) for t in "COL"]
    return ChangedGraph((*bases, Changed("V", ("C", "O", "L")), Changed("V'", ("C", "O", "L"))))


def random_changed_graph(rng: Random, n: int, shape: Shape = "any", most_inputs: int = 3) -> ChangedGraph:
    """n views of which some third are base tables; sizes and changes up and down."""
    bases = max(2, n // 3)
    views = [_random_view(rng, f"t{i}", ()) for i in range(bases)]
    previous, current = [view.name for view in views], list[str]()
    unread = [view.name for view in views]
    for i in range(n - bases):
        match shape:
            case "tree":
                pool = unread
            case "uniform":
                if len(current) >= max(2, len(previous) - 1):
                    previous, current = current, []
                pool = previous
            case "any":
                pool = [view.name for view in views]
        inputs = tuple(rng.sample(pool, min(len(pool), rng.randint(1, most_inputs))))
        views.append(_random_view(rng, f"v{i}", inputs))
        current.append(f"v{i}")
        unread = [name for name in unread if name not in inputs] + [f"v{i}"]
    return ChangedGraph(tuple(views))


def _random_view(rng: Random, name: str, inputs: tuple[str, ...]) -> Changed:
    rows = float(rng.randint(10, 1000))
    gone, come = float(rng.randint(0, int(rows) // 2)), float(rng.choice([0, rng.randint(0, 500)]))
    return Changed(name, inputs, rows, rows - gone + come, gone + come)
