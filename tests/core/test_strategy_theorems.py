"""The paper's theorems on random graphs, against every strategy there is."""

from __future__ import annotations

from itertools import permutations
from random import Random

import pytest
from graph_examples import seeds

from viewkeeper.planner.strategy.check import versioned_violations, violations
from viewkeeper.planner.strategy.graph import Changed, ChangedGraph
from viewkeeper.planner.strategy.order import (
    Conflict,
    combine,
    min_work,
    min_work_single,
    modify_ordering,
    one_way,
    wanted_order,
)
from viewkeeper.planner.strategy.search import best_one_way, strategies, view_strategies
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.work import work
from viewkeeper.testing.update_graphs import random_changed_graph

pytestmark = pytest.mark.core


@seeds(25)
def test_one_way_strategies_are_optimal_for_one_view(seed: int) -> None:
    """Theorems 4.1 to 4.3, against every strategy there is."""
    rng = Random(seed)
    bases = random_changed_graph(rng, 3 * rng.randint(2, 4)).views
    tables = tuple(view for view in bases if not view.inputs)
    graph = ChangedGraph((*tables, Changed("V", tuple(t.name for t in tables))))
    best = work(graph, min_work_single(graph, "V"))
    assert best <= min(work(graph, strategy) for strategy in view_strategies(graph, "V")) * (1 + 1e-9)


@seeds(30)
def test_trees_and_uniform_graphs_are_acyclic_in_every_order(seed: int) -> None:
    rng = Random(seed)
    for shape in ("tree", "uniform"):
        graph = random_changed_graph(rng, rng.randint(4, 12), shape)  # type: ignore[arg-type]
        assert graph.is_tree if shape == "tree" else graph.is_uniform
        order = [view.name for view in graph.views]
        rng.shuffle(order)
        assert not isinstance(combine(graph, one_way(graph, order)), Conflict)


@seeds(30)
def test_min_work_is_correct_and_optimal_where_the_wanted_order_can_be_had(seed: int) -> None:
    """Theorems 5.2 to 5.5; versions always reach what an acyclic graph would."""
    rng = Random(seed)
    graph = random_changed_graph(rng, rng.randint(4, 8))
    found, best = min_work(graph), best_one_way(graph)
    versioned = with_versions(graph)
    for strategy in (found.strategy, best.strategy):
        assert list(violations(graph, strategy)) == []
    assert list(versioned_violations(graph, versioned)) == []
    ideal, least, heuristic = (work(graph, s) for s in (versioned, best.strategy, found.strategy))
    assert ideal <= least * (1 + 1e-9) <= heuristic * (1 + 2e-9)
    if found.conflict is None:
        assert heuristic == pytest.approx(ideal)
    else:
        assert found.order == modify_ordering(graph, wanted_order(graph))
        assert isinstance(combine(graph, one_way(graph, wanted_order(graph))), Conflict)


@seeds(12)
def test_the_search_over_installed_sets_finds_what_all_orders_find(seed: int) -> None:
    graph = random_changed_graph(Random(seed), 5)
    names = [view.name for view in graph.views]
    possible = (combine(graph, one_way(graph, order), order) for order in permutations(names))
    least = min(work(graph, s) for s in possible if not isinstance(s, Conflict))
    assert work(graph, best_one_way(graph).strategy) == pytest.approx(least)


@seeds(10)
def test_no_combination_of_strategies_beats_versions(seed: int) -> None:
    graph = random_changed_graph(Random(seed), 5, most_inputs=3)
    versioned = work(graph, with_versions(graph))
    count = 0
    for strategy in strategies(graph):
        count += 1
        assert list(violations(graph, strategy)) == []
        assert versioned <= work(graph, strategy) * (1 + 1e-9)
    assert count >= 1


def test_a_graph_whose_wanted_order_cannot_be_had() -> None:
    """W wants V installed before a, V's own input: but V's change is not complete before a is."""
    graph = ChangedGraph(
        (
            Changed("a", (), 100, 200, 100),
            Changed("b", (), 100, 150, 50),
            Changed("V", ("a", "b"), 1000, 500, 500),
            Changed("W", ("V", "a", "b"), 10, 10, 5),
        )
    )
    found = min_work(graph)
    assert found.conflict is not None
    assert found.order == ("b", "a", "V", "W")
    assert work(graph, with_versions(graph)) < work(graph, best_one_way(graph).strategy) <= work(graph, found.strategy)
