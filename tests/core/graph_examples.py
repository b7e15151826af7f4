"""How the random graphs of the tests are drawn, and the slow but certain ways to judge a method."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from itertools import chain, combinations
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.selection.choice import Budget, total
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.graph import Layout, Numbered, View, ViewGraph
from viewkeeper.selection.methods import Exact
from viewkeeper.testing.view_graphs import (
    random_and_graph,
    random_and_or_graph,
    random_layouts,
    random_or_graph,
)

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


def any_or_graph(rng: Random, n: int) -> ViewGraph:
    """An OR graph in which nothing costs the same to read and to maintain, with layouts."""
    graph = random_and_or_graph(rng, n, updates=True, layouts=True)
    nodes: list[View | Layout] = []
    for node in graph.nodes:
        if isinstance(node, View):
            node = replace(node, arcs=tuple(replace(arc, inputs=arc.inputs[:1]) for arc in node.arcs))
        nodes.append(node)
    return ViewGraph(tuple(nodes))


def random_graph(rng: Random) -> ViewGraph:
    match rng.randrange(5):
        case 0:
            return random_or_graph(rng, rng.randint(3, 8), updates=rng.random() < 0.6, cheap=rng.choice([1.0, 0.01]))
        case 1:
            return random_layouts(rng, 3, 4, unit=rng.random() < 0.5)
        case 2:
            return random_and_graph(rng, 6, updates=rng.random() < 0.5)
        case 3:
            return any_or_graph(rng, 5)
        case _:
            return random_and_or_graph(rng, 5, updates=rng.random() < 0.6, layouts=rng.random() < 0.6)


def random_budget(rng: Random, graph: ViewGraph, *, overshoot: bool = False) -> Budget:
    space, maintenance = share_of_all(graph, rng.uniform(0.1, 0.9))
    limits = [(space, None)] if maintenance <= 0 else [(space, None), (None, maintenance), (space, maintenance)]
    limit = rng.choice(limits)
    return Budget(limit[0], limit[1], overshoot)


def every_choice(graph: ViewGraph, budget: Budget, must: frozenset[int] = frozenset()) -> float:
    """The least cost within a budget, by trying every set that has what must be in it."""
    numbered = graph.numbered
    best = math.inf
    sizes = range(len(numbered.candidates) + 1)
    for kept in chain.from_iterable(combinations(numbered.candidates, size) for size in sizes):
        if must <= set(kept) and all(_stands(numbered, i, kept) for i in kept):
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
