"""Choosing views: the thesis' worked examples."""

from __future__ import annotations

from dataclasses import replace

import pytest

from viewkeeper.selection.choice import Budget
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import benefit, query_cost, tau, update_cost, upkeep
from viewkeeper.selection.graph import View, ViewGraph
from viewkeeper.selection.methods import (
    AOGreedy,
    AStar,
    Exact,
    Greedy,
    InnerLevel,
    InvertedTree,
    MultiLevel,
    RGreedy,
)
from viewkeeper.testing.view_graphs import (
    figure_2_2,
    figure_3_1,
    figure_3_2,
)

pytestmark = pytest.mark.core

SEVEN = Budget(space=7.0, overshoot=True)
FOUR = Budget(maintenance=4.0)
G = figure_3_1()


# Figure 3.1


def test_costs_of_figure_3_1() -> None:
    views = ("V1", "V2", "V3", "V4", "V5")
    assert [query_cost(G, v) for v in views] == [12.0] * 5
    assert [update_cost(G, v) for v in views] == [4.0] * 5
    assert tau(G) == 72.0
    assert tau(G, ["V1"]) == 67.0
    assert [benefit(G, [v]) for v in views] == [5.0, 4.0, 4.0, 4.0, 4.0]
    assert benefit(G, ["V2", "V3"]) == 7.0
    assert [upkeep(G, [v]) for v in views] == [4.0] * 5
    assert upkeep(G, ["V2", "V3"]) == 4.0
    assert (benefit(G, ["V2", "V3", "V4", "V5"]), upkeep(G, ["V2", "V3", "V4", "V5"])) == (11.0, 4.0)


def test_plain_greedy_takes_the_wrong_view_of_figure_3_1() -> None:
    choice = choose(G, FOUR, Greedy())
    assert (choice.views, tau(G) - choice.cost) == (("V1",), 5.0)
    assert choice.bound <= 61.0


@pytest.mark.parametrize("method", [InvertedTree(), AStar("thesis"), AStar("tight"), Exact()], ids=str)
def test_what_finds_the_optimum_of_figure_3_1(method) -> None:  # type: ignore[no-untyped-def]
    choice = choose(G, FOUR, method)
    assert choice.views == ("V2", "V3", "V4", "V5")
    assert (tau(G) - choice.cost, choice.maintenance) == (11.0, 4.0)
    assert choice.trace[-1].added == choice.views


def test_the_set_that_inverted_tree_greedy_takes_is_named_with_its_ratio() -> None:
    (step,) = choose(G, FOUR, InvertedTree()).trace
    assert (set(step.added), step.benefit) == ({"V2", "V3", "V4", "V5"}, 11.0)
    assert step.reason == "highest query benefit per maintenance, 2.75"


def test_an_ancestor_can_be_taken_without_the_views_between() -> None:
    """{V4, V5} is an inverted tree set, and so is {V2, V5}: the tree is one of the transitive closure."""
    nodes = tuple(n if n.name != "V4" else View("V4", n.arcs, reading=11.0, queries=1.0, updates=9.0) for n in G.nodes)  # type: ignore[union-attr]
    (step,) = choose(ViewGraph(nodes), FOUR, InvertedTree()).trace
    assert set(step.added) >= {"V2", "V5"}


def test_v4_and_v5_are_an_inverted_tree_set() -> None:
    """Where the others may not be kept they are taken together: 6 for a maintenance of 4, V5 alone saves 4."""
    nodes = tuple(replace(n, keepable=n.name in ("V4", "V5")) for n in G.nodes if isinstance(n, View))
    (step,) = choose(ViewGraph(nodes), FOUR, InvertedTree()).trace
    assert (set(step.added), step.benefit) == ({"V4", "V5"}, 6.0)


# Figure 3.2


@pytest.mark.parametrize("n", [2, 3, 6, 9])
def test_plain_greedy_is_arbitrarily_bad_on_figure_3_2(n: int) -> None:
    h = figure_3_2(n)
    assert tau(h) - choose(h, FOUR, Greedy()).cost == 9.0
    for method in (InvertedTree(), Exact()):
        choice = choose(h, FOUR, method)
        assert (tau(h) - choice.cost, choice.maintenance) == (9.0 * (n - 1), 4.0)


# Figure 2.2


@pytest.mark.parametrize(
    ("views", "r", "expected"), [("12345", 1, 77.0), ("12345", 2, 195.0), ("13245", 3, 224.0), ("12345", 3, 250.0)]
)
def test_r_greedy_on_figure_2_2(views: str, r: int, expected: float) -> None:
    """3-greedy has a tie at 26.67: V3, as in the thesis, gives 224, V2 gives 250; the first in the graph is taken."""
    graph = figure_2_2(views)
    choice = choose(graph, SEVEN, RGreedy(r))
    assert (tau(graph) - choice.cost, choice.space) == (expected, 7.0)


def test_one_greedy_takes_layouts_of_views_once_they_are_kept() -> None:
    """The thesis says 45; but once V4 is kept, its layout is worth 36."""
    choice = choose(figure_2_2(), SEVEN, Greedy())
    assert choice.views == ("V4", "V5")
    assert set(choice.layouts) == {"I4,1", "I5,1", "I5,2", "I5,3", "I5,4"}


def test_absolute_benefits_of_figure_2_2() -> None:
    graph = figure_2_2()
    assert [benefit(graph, [f"V{v}"]) for v in range(1, 6)] == [0.0, 0.0, 4.0, 6.0, 7.0]
    assert [benefit(graph, [name]) for name in ("I1,1", "I2,1", "I5,1")] == [0.0, 0.0, 0.0]
    first = ["V1", "I1,1"]
    assert benefit(graph, first) == 90.0
    assert [benefit(graph, ["V2", f"I2,{k}"], first) for k in range(1, 9)] == [40.0] * 8
    assert benefit(graph, ["V4", "I4,1"], first) == 42.0
    assert benefit(graph, ["V3", "I3,1", "I3,2"], first) == 80.0


@pytest.mark.parametrize("method", [InnerLevel(), MultiLevel(1), AOGreedy()], ids=str)
def test_inner_level_and_its_relatives_on_figure_2_2(method) -> None:  # type: ignore[no-untyped-def]
    graph = figure_2_2()
    choice = choose(graph, SEVEN, method)
    assert (tau(graph) - choice.cost, choice.space) == (330.0, 9.0)
    assert [step.benefit for step in choice.trace] == [90.0, 240.0]


@pytest.mark.parametrize(("space", "expected"), [(7.0, 300.0), (9.0, 400.0)])
def test_the_optimum_of_figure_2_2(space: float, expected: float) -> None:
    graph = figure_2_2()
    choice = choose(graph, Budget(space=space))
    assert tau(graph) - choice.cost == expected
    assert choice.gap == 0.0
