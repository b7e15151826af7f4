"""What ties the flows of the exact program: right on every choice, and worth it where maintenance is limited."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import pytest
from graph_examples import every_choice, random_budget, seeds, share_of_all

from viewkeeper.selection.choice import Budget
from viewkeeper.selection.choose import choose
from viewkeeper.selection.exact import Detail, Model, Part, Search
from viewkeeper.selection.graph import Arc, View, ViewGraph
from viewkeeper.selection.methods import Exact
from viewkeeper.selection.ties import Tie, Ties
from viewkeeper.testing.view_graphs import random_and_graph, random_and_or_graph

pytestmark = pytest.mark.core


def by_hand() -> ViewGraph:
    """v is computed from w and s, w from t. To keep w is dear, and to keep v beside it is cheap."""
    return ViewGraph(
        (
            View("s"),
            View("t", reading=100.0, change=50.0),
            View("w", (Arc(("t",)),), reading=40.0, updates=1.0, change=1.0),
            View("v", (Arc(("w", "s")),), reading=10.0, queries=1.0, updates=1.0, change=1.0),
        )
    )


def every_tie(model: Model) -> frozenset[Tie]:
    """Most of them are about nothing."""
    assert model.flows is not None
    keep = model.ledger.keep
    return frozenset(Tie(flowing, v, w) for flowing in model.flows.all for v in keep for w in keep if v != w)


def test_half_of_a_view_is_not_there_with_another_and_without_it_at_once() -> None:
    """If half of v is maintained from half of w, all for 25.5, no half of w is left for when v is not kept."""
    graph = by_hand()
    w, v = graph.numbered.number(["w", "v"])
    whole = Model(graph, Budget(maintenance=25.5), Part(frozenset((v, w))))
    relaxed = whole.relax(1.0)
    assert whole.bound(relaxed) == pytest.approx(25.0)  # v read by half, and w by half where v is not kept
    assert whole.closer(relaxed.values).ties == {Tie((v, False), v, w)}
    tied = Model(graph, whole.budget, replace(whole.part, detail=whole.closer(relaxed.values)))
    assert tied.bound(tied.relax(1.0)) == pytest.approx(54.1)  # just over half of v, maintained from t
    assert Ties(tied.flows).found(tied.relax(1.0).values) == set()


@pytest.mark.parametrize("limit", [60.0, 500.0])
def test_what_is_cheaper_than_to_read_a_kept_view_is_used_though_it_is_kept(limit: float) -> None:
    """w is cheaper than v: with both kept, v is asked from w, and maintained from w."""
    nodes = tuple(replace(node, reading=80.0) if node.name == "v" else node for node in by_hand().nodes)
    graph = ViewGraph(nodes)
    w, v = graph.numbered.number(["w", "v"])
    budget = Budget(maintenance=limit)
    whole = Model(graph, budget, Part(frozenset((v, w)), frozenset((v,))))
    tied = Model(graph, budget, replace(whole.part, detail=Detail(ties=every_tie(whole))))
    assert tied.ledger.program.solve(0.0, 1.0).bound + tied.ledger.constant == pytest.approx(40.0)


@seeds(30)
def test_ties_rule_out_no_choice(seed: int) -> None:
    """With all ties there could be, uses told apart or not, the best of all sets is still the best."""
    rng = Random(seed)
    if rng.random() < 0.25:
        graph = random_and_graph(rng, 6, updates=True)
    else:
        graph = random_and_or_graph(rng, 6, updates=True, layouts=rng.random() < 0.5)
    numbered = graph.numbered
    if len(numbered.candidates) > 9:
        return
    budget = random_budget(rng, graph)
    must = frozenset(i for i in numbered.candidates if rng.random() < 0.1 and numbered.layout_of[i] < 0)
    best = every_choice(graph, budget, must)
    if math.isinf(best):
        return
    nodes = range(len(numbered))
    divided = {(i, up): frozenset(j for j in nodes if rng.random() < 0.5) for i in nodes for up in (False, True)}
    part = Part(frozenset(numbered.candidates), must, Detail(divided))
    detail = replace(part.detail, ties=every_tie(Model(graph, budget, part)))
    model = Model(graph, budget, replace(part, detail=detail))
    solved = model.solve(0.0, 10.0, math.inf)
    assert solved.proved and solved.bound + model.ledger.constant == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize("seed", [2, 3, 12])
def test_ties_bring_the_relaxation_nearer(seed: int) -> None:
    """By more than half of what is missing when all uses are told apart that should be."""
    graph = random_and_or_graph(Random(seed), 60, updates=True)
    search = Search(graph, Budget(maintenance=share_of_all(graph, 0.1)[1]), 0.01, 10.0)
    search.run()
    missing = []
    for has_ties in (False, True):
        model = Model(graph, search.budget, Part(frozenset(graph.numbered.candidates)))
        for _ in range(4):
            detail = model.closer(model.relax(10.0).values)
            detail = detail if has_ties else replace(detail, ties=frozenset())
            model = Model(graph, search.budget, replace(model.part, detail=detail))
        missing.append(search.cost - model.bound(model.relax(10.0)))
    assert missing[1] < 0.5 * missing[0]


@seeds(10)
def test_maintenance_that_is_not_followed_costs_less(seed: int) -> None:
    """Then the relaxation says what to follow, until it follows all that it keeps."""
    rng = Random(seed)
    graph = random_and_or_graph(rng, 12, updates=True)
    budget = random_budget(rng, graph)
    best = choose(graph, budget, Exact()).cost
    part = Part(frozenset(graph.numbered.candidates), detail=Detail(followed=frozenset()))
    bounds = []
    for _ in range(30):
        model = Model(graph, budget, part)
        relaxed = model.relax(10.0)
        bounds.append(model.bound(relaxed))
        if model.closer(relaxed.values) == model.part.detail:
            break
        part = replace(part, detail=model.closer(relaxed.values))
    assert part.detail.followed is not None and model.kept(relaxed, 1e-6) <= part.detail.followed
    assert bounds == sorted(bounds, key=lambda bound: round(bound, 6)) and bounds[-1] <= best * (1 + 1e-6)
    assert model.part.wholly().detail.followed is None


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_search_follows_all_maintenance(seed: int) -> None:
    """Otherwise what it finds would not fit, or not be the best."""
    graph = random_and_or_graph(Random(seed), 20, updates=True)
    budget = Budget(maintenance=share_of_all(graph, 0.3)[1])
    best = choose(graph, budget, Exact()).cost
    search = Search(graph, budget, 0.0, 10.0)
    search.kept, search.cost = set(), math.inf
    part = Part(frozenset(graph.numbered.candidates), detail=Detail(followed=frozenset()))
    assert search._solve(part, 0.0, 10.0, math.inf) == pytest.approx(best)
    assert search.cost == pytest.approx(best)
