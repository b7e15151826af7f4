"""Annealing: what it finds fits, is the same each time, and is better than what exchanges find."""

from __future__ import annotations

import time
from random import Random

import pytest
from graph_examples import every_choice, random_budget, random_graph, seeds, share_of_all

from viewkeeper.selection.anneal import Walk
from viewkeeper.selection.choice import Budget, total
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.exact import Search
from viewkeeper.selection.methods import Annealing, GreedyInterchange
from viewkeeper.testing.view_graphs import figure_3_1, random_and_or_graph

pytestmark = pytest.mark.core


@seeds(20)
def test_a_walk_ends_within_the_budget_with_what_it_says(seed: int) -> None:
    rng = Random(seed)
    graph = random_graph(rng)
    numbered = graph.numbered
    if not 0 < len(numbered.candidates) <= 8:
        return
    budget = random_budget(rng, graph)
    walk = Walk(numbered, budget, (), numbered.candidates, 1)
    walk.run(600)
    costs = Costs(numbered, walk.best)
    assert budget.fits(costs.size, costs.upkeep)
    assert total(costs, budget) == pytest.approx(walk.least)
    assert every_choice(graph, budget) * (1 - 1e-9) <= walk.least <= total(Costs(numbered), budget)
    assert all(numbered.layout_of[i] < 0 or _there(numbered, i, walk.best) for i in walk.best)


def _there(numbered, layout, kept) -> bool:  # type: ignore[no-untyped-def]
    return numbered.is_base[numbered.layout_of[layout]] or numbered.layout_of[layout] in kept


def test_annealing_leaves_where_greedy_and_exchanges_stop() -> None:
    """In figure 3.1 only V2 with three others is better than V1, and V1 and V2 together are too dear."""
    budget = Budget(maintenance=4.0)
    assert choose(figure_3_1(), budget, GreedyInterchange()).views == ("V1",)
    choice = choose(figure_3_1(), budget, Annealing())
    assert set(choice.views) == {"V2", "V3", "V4", "V5"} and choice.cost == pytest.approx(61.0)
    step = next(step for step in choice.trace if "random moves" in step.reason)
    assert step.dropped == ("V1",) and step.reason == "the best of 500 random moves"
    assert choose(figure_3_1(), budget, Annealing(moves=0)).views == ("V1",)


def test_a_walk_is_the_same_each_time_and_another_with_another_seed() -> None:
    numbered = random_and_or_graph(Random(3), 60, updates=True).numbered
    budget = Budget(maintenance=Costs(numbered, numbered.candidates).upkeep * 0.1)
    walks = [Walk(numbered, budget, (), numbered.candidates, seed) for seed in (1, 1, 2)]
    for walk in walks:
        walk.run(300)
    assert walks[0].costs.kept == walks[1].costs.kept != walks[2].costs.kept
    assert walks[0].best == walks[1].best


def test_a_walk_keeps_only_candidates_and_stops_when_the_time_is_over() -> None:
    numbered = random_and_or_graph(Random(3), 60).numbered
    budget = Budget(space=100.0)
    some = numbered.candidates[::3]
    walk = Walk(numbered, budget, (), some, 1)
    started = time.monotonic()
    walk.run(10**9, 0.1)
    assert time.monotonic() - started < 5
    assert walk.best and walk.best <= set(some)


def test_a_walk_that_never_met_the_budget_can_still_come_back_to_it() -> None:
    """Else what an excess counts for had fallen to two billionths by then."""
    numbered = random_and_or_graph(Random(3), 10, updates=True).numbered
    walk = Walk(numbered, Budget(space=1e6), (), numbered.candidates, 1)
    walk.run(20_000)
    assert walk.price == pytest.approx(0.01)
    walk.budget = Budget(space=10.0)
    walk.run(20_000)
    assert walk.budget.fits(walk.costs.size, 0.0)


@pytest.mark.parametrize("seed", [2, 3])
def test_annealing_finds_what_exchanges_do_not(seed: int) -> None:
    """Where views are cheap to keep only beside others."""
    graph = random_and_or_graph(Random(seed), 100, updates=True)
    search = Search(graph, Budget(*share_of_all(graph, 0.1)), 0.01, 60.0)
    before = search.cost
    search._anneal(graph.numbered.candidates)
    assert search.cost < 0.98 * before
    assert search._fits(set(search.kept))


@seeds(10)
def test_annealing_is_never_worse_than_exchanges(seed: int) -> None:
    rng = Random(seed)
    graph = random_graph(rng)
    budget = random_budget(rng, graph)
    walked = choose(graph, budget, Annealing(20))
    assert walked.cost <= choose(graph, budget, GreedyInterchange()).cost * (1 + 1e-9)
