"""How far the use of a view reaches: the weight of all queries that could gain from it.

If v becomes cheaper by d, the total query cost falls by at most d·weight(v). This bound costs nothing to bring up to
date, so that greedy methods evaluate exactly only what could still be the best.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from viewkeeper.selection.graph import Numbered

Floats = NDArray[np.float64]
_COLUMNS = 512  # memory is nodes × columns; more columns are hardly faster


def weights(graph: Numbered) -> Floats:
    """weight(v) = Σ over x of f(x)·uses(x,v): in an OR graph, the frequency of all queries above v."""
    weight = np.zeros(len(graph))
    for first in range(0, len(graph), _COLUMNS):
        last = min(first + _COLUMNS, len(graph))
        for i, row in uses(graph, first, last).items():
            if graph.queries[i]:
                weight[first:last] += graph.queries[i] * row
    return weight


def uses(graph: Numbered, first: int, last: int) -> dict[int, Floats]:
    """How often computing x can use v at most, as rows over v from first to last, for every x that can use any of them.

    uses(x,v) = max over the arcs of x of Σ over its inputs of uses(input,v), and uses(v,v) = 1.
    """
    rows: dict[int, Floats] = {}
    for i in range(first, len(graph)):
        best: Floats | None = None
        for _, inputs in graph.query_arcs[i]:
            found = [rows[j] for j in inputs if j in rows]
            if found:
                row = found[0] if len(found) == 1 else np.sum(found, axis=0)
                best = row if best is None else np.maximum(best, row)
        if i < last:
            best = np.zeros(last - first) if best is None else best.copy()
            best[i - first] = 1.0
        if best is not None:
            rows[i] = best
    return rows


def fill(values: Floats, sizes: Floats, capacity: float) -> float:
    """The most value a knapsack of this capacity can hold if things may be cut: an upper bound for whole ones."""
    worth = values > 0
    values, sizes = values[worth], sizes[worth]
    free = float(values[sizes <= 0].sum())
    values, sizes = values[sizes > 0], sizes[sizes > 0]
    order = np.argsort(-values / sizes, kind="stable")
    values, sizes = values[order], sizes[order]
    taken = np.cumsum(sizes)
    whole = int(np.searchsorted(taken, capacity, side="right"))
    total = free + float(values[:whole].sum())
    if whole < len(values):
        left = capacity - (float(taken[whole - 1]) if whole else 0.0)
        total += float(values[whole] / sizes[whole]) * max(left, 0.0)
    return total
