"""How the random graphs of the tests are drawn, and the slow but certain ways to judge a method."""

from __future__ import annotations

import math
import os
from itertools import chain, combinations

from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.selection.choice import Budget, total
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.methods import Exact

TIMES = int(os.environ.get("VIEWKEEPER_GRAPH_EXAMPLES", "1"))
CLOSE = 1 - 1e-6


def seeds(count):  # type: ignore[no-untyped-def]
    """A property over `count` seeds: always the same ones, unless VIEWKEEPER_GRAPH_EXAMPLES=n asks for n times as many."""

    def decorate(test):  # type: ignore[no-untyped-def]
        tries = settings(max_examples=count * TIMES, derandomize=TIMES == 1, database=None)
        return tries(given(st.integers(0, 2**32 - 1))(test))

    return decorate


def share_of_all(graph: ViewGraph, share: float) -> tuple[float, float]:
    """This share of the space and of the maintenance that keeping everything would take."""
    everything = Costs(graph.numbered, graph.numbered.candidates)
    return everything.size * share, everything.upkeep * share


def best_cost(graph: ViewGraph, budget: Budget) -> float:
    """The optimum, by the exact program, whose own test is against `every_choice`."""
    choice = choose(graph, budget, Exact())
    assert choice.gap <= 1e-6
    return choice.cost


def best_benefit(graph: ViewGraph, space: float) -> float:
    """What the best choice of so much space saves."""
    if space <= 0:
        return 0.0
    budget = Budget(space=space * (1 + 1e-9))
    return total(Costs(graph.numbered), budget) - best_cost(graph, budget)


def every_choice(graph: ViewGraph, budget: Budget) -> float:
    """The least cost within a budget, by trying every set."""
    numbered = graph.numbered
    best = math.inf
    sizes = range(len(numbered.candidates) + 1)
    for kept in chain.from_iterable(combinations(numbered.candidates, size) for size in sizes):
        if all(_stands(numbered, i, kept) for i in kept):
            costs = Costs(numbered, kept)
            if budget.fits(costs.size, costs.upkeep):
                best = min(best, total(costs, budget))
    return best


def one_by_one(graph: ViewGraph, budget: Budget) -> tuple[float, list[str]]:
    """Greedy without any shortcut: everything is tried in every stage. What it costs, and what came after what."""
    numbered = graph.numbered
    costs = Costs(numbered)
    noise = 1e-9 * costs.query
    taken: list[str] = []
    order = sorted(numbered.candidates, key=lambda i: (numbered.layout_of[i] >= 0, numbered.rank[i]))
    while not budget.is_used_up(costs.size, costs.upkeep):
        best, best_density = None, 0.0
        for i in order:
            if i in costs.kept or not _stands(numbered, i, costs.kept):
                continue
            move = costs.move([i])
            worth = -move.query - (move.upkeep if budget.counts_upkeep else 0.0)
            if worth <= noise or not _may(budget, costs, move.size, move.upkeep):
                continue
            share = budget.share(move.size, move.upkeep)
            density = worth / share if share > 1e-12 else math.inf
            if density > best_density:
                best, best_density = move, density
        if best is None:
            break
        costs.take(best)
        taken += [numbered.names[i] for i in best.there]
    return total(costs, budget), taken


def _may(budget: Budget, costs: Costs, size: float, upkeep: float) -> bool:
    if budget.overshoot:
        return budget.maintenance is None or budget.fits(0.0, upkeep)
    return budget.fits(costs.size + size, costs.upkeep + upkeep)


def _stands(numbered: Numbered, i: int, kept) -> bool:  # type: ignore[no-untyped-def]
    view = numbered.layout_of[i]
    return view < 0 or numbered.is_base[view] or view in kept
