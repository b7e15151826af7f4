"""Choosing views: what graphs cost, and what is refused."""

from __future__ import annotations

from random import Random

import pytest
from graph_examples import seeds

from viewkeeper.errors import GraphError
from viewkeeper.selection.choice import Budget
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import Costs, benefit, query_cost, tau, upkeep
from viewkeeper.selection.graph import Arc, Layout, View, ViewGraph
from viewkeeper.selection.methods import (
    AOGreedy,
    InvertedTree,
    MultiLevel,
    RGreedy,
)
from viewkeeper.selection.query_view import from_view_graph
from viewkeeper.testing.view_graphs import (
    figure_2_2,
    figure_3_1,
    random_and_or_graph,
)

pytestmark = pytest.mark.core

G = figure_3_1()


def test_what_is_used_twice_is_paid_for_twice() -> None:
    nodes = (View("b", reading=3.0), View("v", (Arc(("b",), 1.0),)), View("w", (Arc(("v", "v"), 1.0),), queries=1.0))
    assert query_cost(ViewGraph(nodes), "w") == 9.0


def test_were_shared_parts_paid_for_once_benefits_would_not_be_monotone() -> None:
    """Why the thesis' Definition 4 is not taken at its word: w costs 100 and serves a and b, which x needs both.

    Paid for once, keeping a alone saves nothing, b alone saves nothing, both save 100: more than the sum. The thesis'
    Observation 3, from which its bound for AND graphs follows, excludes that. Paid for per use it holds.
    """
    arcs = {"w": ("t",), "a": ("w",), "b": ("w",), "x": ("a", "b")}
    costs = {"w": 100.0, "a": 0.0, "b": 0.0, "x": 0.0}

    def paid_once(kept: set[str]) -> float:
        needed, left = set[str](), ["x"]
        while left:
            name = left.pop()
            if name in arcs and name not in kept and name not in needed:
                needed.add(name)
                left += arcs[name]
        return sum(costs[name] for name in needed)

    saved_once = {kept: paid_once(set()) - paid_once(set(kept)) for kept in ("a", "b", "ab")}
    assert saved_once == {"a": 0.0, "b": 0.0, "ab": 100.0}
    graph = ViewGraph((View("t"), *(View(n, (Arc(arcs[n], costs[n]),), queries=float(n == "x")) for n in arcs)))
    assert [benefit(graph, kept) for kept in ("a", "b", "ab")] == [100.0, 100.0, 200.0]


def test_a_layout_helps_maintenance_too() -> None:
    nodes = (
        View("b", change=50.0),
        View("v", (Arc(("b",), maintenance=1.0),), updates=1.0, change=20.0),
        Layout("by day", "v", maintenance=2.0),
        View("w", (Arc(("v",), maintenance=1.0), Arc(("by day",), maintenance=3.0)), updates=2.0),
    )
    graph = ViewGraph(nodes)
    assert upkeep(graph, ["v", "w"]) == 51.0 + 2 * 21.0
    assert upkeep(graph, ["v", "by day", "w"]) == 51.0 + 2.0 + 2 * 3.0
    assert upkeep(graph, ["by day", "w"]) == 2.0 + 2 * 52.0  # of no use without its view


@seeds(40)
def test_costs_kept_up_to_date_are_those_computed_afresh(seed: int) -> None:
    rng = Random(seed)
    graph = random_and_or_graph(rng, 9, updates=True, layouts=True).numbered
    costs = Costs(graph)
    undo = []
    for _ in range(8):
        toggled = rng.sample(graph.candidates, 2)
        undo.append(costs.take(costs.move([i for i in toggled if rng.random() < 0.7], toggled)))
        fresh = Costs(graph, costs.kept)
        assert (costs.query, costs.upkeep, costs.size) == pytest.approx((fresh.query, fresh.upkeep, fresh.size))
        assert costs.queries.used == pytest.approx(fresh.queries.used)
    for move in reversed(undo):
        costs.take(move)
    assert (costs.kept, costs.query) == (set(), pytest.approx(Costs(graph).query))


@seeds(40)
def test_the_query_view_graph_of_a_view_graph_costs_the_same(seed: int) -> None:
    rng = Random(seed)
    graph = random_and_or_graph(rng, 5, layouts=True)
    converted = from_view_graph(graph, 50_000)
    names = [graph.numbered.names[i] for i in graph.numbered.candidates]
    for _ in range(6):
        kept = [name for name in names if rng.random() < 0.5]
        assert converted.cost(kept) == pytest.approx(tau(graph, kept))


@pytest.mark.parametrize(
    ("nodes", "message"),
    [
        ((View("a"), View("a")), "same name"),
        ((View("a", (Arc(("b",)),)),), "not in the graph"),
        ((View("a", (Arc(()),)),), "without inputs"),
        ((View("a", reading=-1.0),), "reading is -1.0"),
        ((View("a"), View("b", (Arc(("a",), cost=float("nan")),))), "cost of an arc is nan"),
        ((View("a"), Layout("l", "a"), Layout("m", "l")), "is a layout itself"),
        ((View("a"), View("v", (Arc(("a",)),), keepable=False), Layout("l", "v")), "cannot be kept"),
    ],
)
def test_graphs_that_are_none(nodes: tuple[View | Layout, ...], message: str) -> None:
    with pytest.raises(GraphError, match=message):
        ViewGraph(nodes)


def test_circles_and_queries_without_an_answer_are_refused() -> None:
    with pytest.raises(GraphError, match="circle"):
        tau(ViewGraph((View("a", (Arc(("b",)),)), View("b", (Arc(("a",)),)))))
    only_by_layout = (View("a"), Layout("l", "a"), View("q", (Arc(("l",)),), queries=1.0))
    with pytest.raises(GraphError, match="cannot be answered"):
        tau(ViewGraph(only_by_layout))
    with pytest.raises(GraphError, match="no 'x'"):
        tau(G, ["x"])


@pytest.mark.parametrize(
    ("graph", "budget", "method"),
    [
        (G, Budget(space=2.0), InvertedTree()),
        (figure_2_2(), Budget(maintenance=2.0), InvertedTree()),
        (G, Budget(space=2.0), AOGreedy()),
        (figure_2_2(), Budget(maintenance=2.0), MultiLevel()),
        (figure_2_2(), Budget(space=2.0), MultiLevel(-1)),
        (figure_2_2(), Budget(space=2.0), RGreedy(0)),
        (figure_2_2(), Budget(space=2.0), AOGreedy(ways=2)),
    ],
)
def test_methods_refuse_what_they_are_not_made_for(graph, budget, method) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(GraphError):
        choose(graph, budget, method)


@pytest.mark.parametrize("limit", [0.0, -1.0, float("inf"), float("nan")])
def test_budgets_that_are_none(limit: float) -> None:
    with pytest.raises(GraphError):
        Budget(space=limit)
