"""Greedy methods that evaluate little take what those take that evaluate everything."""

from __future__ import annotations

import math
from random import Random

import pytest
from graph_examples import one_by_one, random_budget, random_graph, seeds, share_of_all

from viewkeeper.selection.ceilings import Ceilings
from viewkeeper.selection.choice import Budget
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import Costs, benefit, tau
from viewkeeper.selection.graph import Arc, View, ViewGraph
from viewkeeper.selection.greedy import Candidate, Stages, small_sets
from viewkeeper.selection.methods import (
    Greedy,
    GreedyInterchange,
)
from viewkeeper.selection.trials import Followed
from viewkeeper.testing.view_graphs import (
    random_and_or_graph,
    random_or_graph,
)

pytestmark = pytest.mark.core


@seeds(60)
def test_lazy_greedy_takes_what_greedy_takes(seed: int) -> None:
    rng = Random(seed)
    graph = random_graph(rng)
    budget = random_budget(rng, graph, overshoot=rng.random() < 0.5)
    check_greedy_order(graph, budget)


def check_greedy_order(graph: ViewGraph, budget: Budget) -> None:
    choice = choose(graph, budget, Greedy())
    cost, taken = one_by_one(graph, budget)
    assert choice.cost == pytest.approx(cost, rel=1e-9)
    assert [name for step in choice.trace for name in step.added] == taken


@pytest.mark.parametrize("seed", [7, 26])
def test_greedy_on_graphs_where_views_gain_by_each_other_far_above(seed: int) -> None:
    """Of 7 an earlier evaluation was taken for a bound, of 26 the slack of an arc was counted twice."""
    graph = random_and_or_graph(Random(seed), 40 if seed == 7 else 50)
    check_greedy_order(graph, Budget(space=share_of_all(graph, 0.3 if seed == 7 else 0.4)[0]))


@pytest.mark.parametrize("seed", range(3))
def test_greedy_where_any_view_may_be_computed_and_maintained_from_any(seed: int) -> None:
    graph = random_and_or_graph(Random(seed), 40, updates=True)
    check_greedy_order(graph, Budget(space=share_of_all(graph, 0.5)[0]))


@seeds(40)
def test_ceilings_are_never_exceeded(seed: int) -> None:
    """Alone or together, whatever is kept already, nodes save no more and cost no less maintenance than is foreseen."""
    rng = Random(seed)
    graph = random_and_or_graph(rng, 12, updates=True, layouts=True) if rng.random() < 0.6 else random_graph(rng)
    numbered = graph.numbered
    views = [i for i in numbered.candidates if numbered.layout_of[i] < 0]
    costs = Costs(numbered, rng.sample(views, rng.randint(0, len(views) // 2)))
    ceilings = Ceilings(graph, costs)
    check_ceilings(rng, ceilings)
    if graph.kind != "or":
        # They hold while nothing is taken but what was expected to be.
        ahead = [i for i in rng.sample(views, len(views) // 2) if i not in costs.kept]
        ceilings.expect(ahead)
        for i in rng.sample(ahead, len(ahead) // 2):
            move = costs.move([i])
            if move.upkeep < math.inf:
                costs.take(move)
                assert ceilings.take(move)
                check_ceilings(rng, ceilings)


def check_ceilings(rng: Random, ceilings: Ceilings) -> None:
    costs = ceilings.costs
    close = 1e-9 * costs.query
    left = [i for i in costs.graph.candidates if i not in costs.kept]
    for i in left:
        move = costs.move([i])
        assert -move.query <= ceilings.savings[i] + close
        assert move.upkeep >= ceilings.upkeeps[i] - close
    for _ in range(5):
        some = rng.sample(left, rng.randint(0, len(left)))
        assert -costs.move(some).query <= ceilings.shared[some].sum() + close


@seeds(12)
def test_what_is_remembered_of_earlier_stages_changes_nothing(seed: int) -> None:
    """Greedy, r-greedy and inner-level greedy take the same as if every stage started anew."""
    rng = Random(seed)
    graph = random_and_or_graph(rng, rng.randint(8, 16), updates=rng.random() < 0.5, layouts=True)
    numbered, budget = graph.numbered, random_budget(rng, graph)
    grown = [Candidate((i, *numbered.layouts[i]), grown=True) for i in numbered.candidates if numbered.layout_of[i] < 0]
    layouts = [Candidate((i,)) for i in numbered.candidates if numbered.layout_of[i] >= 0]
    for sets in (small_sets(numbered, 1), small_sets(numbered, 3), [*grown, *layouts]):
        stages = Stages(graph, budget, sets)
        stages.run()
        kept: set[int] = set()
        for step in stages.trace:
            anew = Stages(graph, budget, sets, kept)
            best = anew.best()
            assert best is not None
            anew.take(best)
            assert set(step.added) == set(anew.trace[-1].added)
            kept = anew.costs.kept
        assert kept == stages.costs.kept


@seeds(20)
def test_what_a_followed_candidate_saves_is_known_after_others_are_taken(seed: int) -> None:
    """Of queries and of the maintenance of what is kept, from whenever it was followed: no less, and hardly more."""
    rng = Random(seed)
    graph = random_and_or_graph(rng, 30, updates=rng.random() < 0.7, layouts=rng.random() < 0.5)
    stages = Stages(graph, Budget(), small_sets(graph.numbered, rng.choice([1, 2])))
    trials = stages.trials
    if not isinstance(trials, Followed):
        return
    for _ in range(8):
        is_open = [c for c in range(len(stages.candidates)) if stages.is_open[c]]
        more = [c for c in is_open if not trials.is_followed(c)]
        if more:
            trials.follow({c: stages.candidates[c].nodes for c in rng.sample(more, min(len(more), 9))})
        for c in is_open:
            if trials.is_followed(c):
                move = stages.costs.move(stages.candidates[c].nodes)
                own = stages.ceilings.own[list(stages.candidates[c].nodes)].sum()
                close = 1e-9 * stages.costs.query
                assert -move.query <= trials.savings[c] <= -move.query + close
                if graph.numbered.has_updates and move.upkeep < math.inf:
                    assert own - move.upkeep <= trials.carried[c] + 1e-15 * own
                    assert trials.carried[c] <= own - move.upkeep + close
        taken = rng.choice(is_open)
        stages._try(taken)
        if trials.moves[taken].upkeep < math.inf:
            stages.take(taken)


def test_what_gains_by_a_partner_being_kept_is_looked_at_again() -> None:
    """b looks good because of y, is found to save only 40, and saves 60 once a is kept, which it is used with."""

    def query(name: str, often: float, *arcs: Arc) -> View:
        return View(name, arcs, queries=often, keepable=False)

    nodes = (
        View("t"),
        View("a", (Arc(("t",), 60.0),), queries=1.0),
        View("b", (Arc(("t",), 60.0),)),
        View("d", (Arc(("t",), 50.0),), queries=1.0),
        query("y", 0.0, Arc(("b",))),
        query("z", 10.0, Arc(("y",)), Arc(("t",))),
        query("x", 1.0, Arc(("t",), 100.0), Arc(("a", "b"))),
    )
    graph = ViewGraph(nodes)
    assert (benefit(graph, ["b"]), benefit(graph, ["b"], ["a"])) == (40.0, 60.0)
    choice = choose(graph, Budget(space=2.0), Greedy())
    assert [step.added for step in choice.trace] == [("a",), ("b",)]


def test_without_a_budget_everything_that_helps_is_kept() -> None:
    graph = random_or_graph(Random(3), 12, updates=False)
    everything = choose(graph, Budget(), Greedy())
    assert everything.cost == pytest.approx(tau(graph, [n.name for n in graph.nodes[1:]]))
    assert everything.gap == 0.0


def test_interchange_repairs_what_greedy_did() -> None:
    """Greedy takes the middle view first, which the two others make useless."""
    nodes = [View("b", reading=10.0)]
    nodes += [View(f"v{k}", (Arc(("b",)),)) for k in range(3)]
    for k, served in enumerate((("v0",), ("v0", "v1"), ("v1", "v2"), ("v2",))):
        ways = (Arc(("b",), 100.0), *(Arc((v,), 5.0 if v == "v1" else 9.0) for v in served))
        nodes.append(View(f"q{k}", tuple(ways), queries=1.0, keepable=False))
    graph = ViewGraph(tuple(nodes))
    budget = Budget(space=2.0)
    greedy, better = choose(graph, budget, Greedy()), choose(graph, budget, GreedyInterchange())
    assert "v1" in greedy.views
    assert (better.views, better.trace[-1].dropped) == (("v0", "v2"), ("v1",))
    assert better.cost == pytest.approx(choose(graph, budget).cost)
    assert better.cost < greedy.cost
