"""Every guarantee of the selection methods, against the exact optimum on random graphs.

"At the space used" is the thesis' way of stating them: a method may exceed its budget a little, and is compared to the best
choice of as much. Where that is not sound as printed, the test says what is, and shows the counterexample.
"""

from __future__ import annotations

import math
from itertools import chain, combinations
from random import Random

import pytest
from graph_examples import CLOSE, best_benefit, best_cost, seeds, share_of_all

from viewkeeper.selection.ao_greedy import Run, components
from viewkeeper.selection.choice import Budget, Choice, total
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import Costs, tau, upkeep
from viewkeeper.selection.graph import Arc, Layout, View, ViewGraph
from viewkeeper.selection.methods import (
    AOGreedy,
    AStar,
    Exact,
    Greedy,
    GreedyInterchange,
    GuessOne,
    InnerLevel,
    InvertedTree,
    MultiLevel,
    RGreedy,
)
from viewkeeper.selection.query_view import from_view_graph
from viewkeeper.testing.view_graphs import (
    figure_3_2,
    random_and_graph,
    random_and_layouts,
    random_and_or_graph,
    random_cube,
    random_layouts,
    random_or_graph,
    study_graph,
)

pytestmark = pytest.mark.core

GREEDY = 1 - 1 / math.e
INNER = 1 - math.exp(-GREEDY)


def level(r: int) -> float:
    """g(0) = 1, g(r) = 1 - 1/e^g(r-1)."""
    return 1.0 if r == 0 else 1 - math.exp(-level(r - 1))


def benefit_of(graph: ViewGraph, choice: Choice, budget: Budget) -> float:
    return total(Costs(graph.numbered), budget) - choice.cost


def test_the_printed_constants() -> None:
    assert [round(level(r + 1), 3) for r in range(5)] == [0.632, 0.469, 0.374, 0.312, 0.268]
    assert [round(1 - math.exp(-(r - 1) / r), 3) for r in (1, 2, 3, 4)] == [0.0, 0.393, 0.487, 0.528]


# Greedy under a space budget


def check_greedy(graph: ViewGraph, share: float) -> None:
    space, _ = share_of_all(graph, share)
    budget = Budget(space=space, overshoot=True)
    choice = choose(graph, budget, Greedy())
    largest = max(graph.numbered.size[i] for i in graph.numbered.candidates)
    assert choice.space <= (space + largest) / CLOSE
    assert benefit_of(graph, choice, budget) >= GREEDY * best_benefit(graph, choice.space) * CLOSE


@seeds(20)
def test_greedy_on_or_graphs_without_updates(seed: int) -> None:
    rng = Random(seed)
    shape = rng.choice(["tree", "density", "edges"])
    graph = random_or_graph(rng, rng.randint(4, 14), shape, rng.choice([0.1, 0.25, 0.4]), updates=False)  # type: ignore[arg-type]
    check_greedy(graph, rng.uniform(0.05, 0.8))


def test_greedy_on_a_cube() -> None:
    for share in (0.001, 0.01, 0.1):
        check_greedy(random_cube(Random(7), 5), share)


@seeds(25)
def test_greedy_on_and_graphs_without_and_with_updates(seed: int) -> None:
    """With updates, no more often than queries. Reading must not be dearer than computing; the proof assumes as much."""
    rng = Random(seed)
    check_greedy(random_and_graph(rng, rng.randint(3, 9), updates=rng.random() < 0.6), rng.uniform(0.05, 0.8))


def test_without_reading_being_cheap_an_and_graph_is_not_monotone() -> None:
    """The thesis' Observation 3 fails where a kept view costs more to read than to compute from others that are kept."""
    nodes = (
        View("b"),
        View("a1", (Arc(("b",), 10.0),)),
        View("a2", (Arc(("b",), 10.0),)),
        View("v", (Arc(("a1", "a2")),), reading=5.0, queries=1.0),
    )
    graph = ViewGraph(nodes)
    gain = {kept: tau(graph, ["v"]) - tau(graph, ["v", *kept]) for kept in (("a1",), ("a2",), ("a1", "a2"))}
    assert gain == {("a1",): 0.0, ("a2",): 0.0, ("a1", "a2"): 5.0}


@seeds(15)
def test_interchange_is_never_worse_than_greedy(seed: int) -> None:
    rng = Random(seed)
    graph = random_or_graph(rng, rng.randint(4, 12), updates=rng.random() < 0.5)
    space, _ = share_of_all(graph, rng.uniform(0.05, 0.8))
    for overshoot in (False, True):
        budget = Budget(space=space, overshoot=overshoot)
        greedy, better = choose(graph, budget, Greedy()), choose(graph, budget, GreedyInterchange())
        assert better.cost <= greedy.cost / CLOSE
        assert better.space <= max(space, greedy.space) / CLOSE


@seeds(15)
def test_guess_one_under_a_hard_budget(seed: int) -> None:
    rng = Random(seed)
    graph = random_or_graph(rng, rng.randint(4, 12), rng.choice(["tree", "density"]), updates=False)  # type: ignore[arg-type]
    budget = Budget(space=share_of_all(graph, rng.uniform(0.05, 0.6))[0])
    choice = choose(graph, budget, GuessOne())
    assert choice.cost <= choose(graph, budget, Greedy()).cost / CLOSE
    best = tau(graph) - best_cost(graph, budget)
    assert benefit_of(graph, choice, budget) >= GREEDY / 2 * best * CLOSE


def test_guess_one_does_not_fall_for_small_dense_things() -> None:
    """Greedy takes the crumb, after which the cake does not fit."""
    ways = {"crumb": (1.0, 2.0), "cake": (100.0, 100.0)}
    views = [View(name, (Arc(("b",), 200.0),), size=size) for name, (size, _) in ways.items()]
    queries = [
        View(f"q {name}", (Arc(("b",), 200.0), Arc((name,), 200.0 - gain)), queries=1.0, keepable=False)
        for name, (_, gain) in ways.items()
    ]
    graph = ViewGraph((View("b"), *views, *queries))
    budget = Budget(space=100.0)
    assert choose(graph, budget, Greedy()).views == ("crumb",)
    assert choose(graph, budget, GuessOne()).views == ("cake",)


# Layouts


@seeds(12)
def test_r_greedy_with_structures_of_one_size(seed: int) -> None:
    rng = Random(seed)
    graph = random_layouts(rng, 4, 6, unit=True) if rng.random() < 0.5 else random_and_layouts(rng, 4, 5)
    space = float(rng.randint(1, 6))
    budget = Budget(space=space, overshoot=True)
    for r in (1, 2, 3, 4):
        choice = choose(graph, budget, RGreedy(r))
        assert choice.space <= space + r - 1
        promised = 1 - math.exp(-(r - 1) / r)
        assert benefit_of(graph, choice, budget) >= promised * best_benefit(graph, choice.space) * CLOSE


@seeds(20)
def test_inner_level_with_structures_of_one_size(seed: int) -> None:
    rng = Random(seed)
    graph = random_layouts(rng, 4, 6, unit=True) if rng.random() < 0.5 else random_and_layouts(rng, 4, 5)
    space = float(rng.randint(1, 6))
    budget = Budget(space=space, overshoot=True)
    choice = choose(graph, budget, InnerLevel())
    assert choice.space <= 2 * space
    assert benefit_of(graph, choice, budget) >= INNER * best_benefit(graph, choice.space) * CLOSE


@seeds(20)
def test_inner_level_with_structures_of_any_size_up_to_the_budget(seed: int) -> None:
    rng = Random(seed)
    graph = random_layouts(rng, 4, 6, unit=False)
    space = float(rng.randint(6, 16))
    budget = Budget(space=space, overshoot=True)
    choice = choose(graph, budget, InnerLevel())
    assert choice.space < 3 * space
    assert benefit_of(graph, choice, budget) >= INNER * best_benefit(graph, space) * CLOSE


def test_at_the_space_used_inner_level_promises_nothing_for_large_views() -> None:
    """Theorem 3 as printed fails: a view of 9.5 leaves room for one layout only, so its ten are never seen to be good."""
    nodes: list[View | Layout] = [View("b"), View("v", (Arc(("b",), 100.0),), size=9.5)]
    for k in range(10):
        nodes.append(Layout(f"l{k}", "v"))
        nodes.append(View(f"q{k}", (Arc(("b",), 100.0), Arc((f"l{k}",), 99.0)), queries=1.0, keepable=False))
    for k in range(2):
        nodes.append(View(f"w{k}", (Arc(("b",), 100.0),), size=9.9))
        nodes.append(View(f"p{k}", (Arc(("b",), 100.0), Arc((f"w{k}",), 98.0)), queries=1.0, keepable=False))
    graph = ViewGraph(tuple(nodes))
    budget = Budget(space=10.0, overshoot=True)
    choice = choose(graph, budget, InnerLevel())
    gained = benefit_of(graph, choice, budget)
    assert gained < INNER * best_benefit(graph, choice.space)
    assert gained >= INNER * best_benefit(graph, 10.0)


# Query-view graphs


@seeds(5)
def test_ao_greedy_and_multi_level_greedy(seed: int) -> None:
    rng = Random(seed)
    graph = random_and_or_graph(rng, rng.randint(3, 6), layouts=rng.random() < 0.5)
    largest = max(graph.numbered.size[i] for i in graph.numbered.candidates)
    space = max(largest, share_of_all(graph, rng.uniform(0.1, 0.6))[0])
    budget = Budget(space=space, overshoot=True)
    for r in range(5):
        choice = choose(graph, budget, MultiLevel(r) if r else AOGreedy())
        assert choice.space < (2 if r == 0 else 3) * space
        assert benefit_of(graph, choice, budget) >= level(r + 1) * best_benefit(graph, space) * CLOSE
        if r == 0 and choice.space > 0 and _parts_fit(graph, choice.space, space):
            assert benefit_of(graph, choice, budget) >= GREEDY * best_benefit(graph, choice.space) * CLOSE


def _parts_fit(graph: ViewGraph, used: float, space: float) -> bool:
    """Whether every connected part of the best choice of the space used would have been looked at."""
    best = choose(graph, Budget(space=used * (1 + 1e-9)))
    run = Run(from_view_graph(graph, 50_000), space, overshoot=True)
    kept = frozenset({*best.views, *best.layouts})
    parts = components({s for s in run.open_sets(frozenset()) if s <= kept})
    return all(run.graph.size(frozenset[str]().union(*part)) <= space for part in parts)


@seeds(8)
def test_multi_level_greedy_with_one_level_promises_what_inner_level_greedy_does(seed: int) -> None:
    rng = Random(seed)
    graph = random_layouts(rng, 3, 5, unit=True)
    budget = Budget(space=float(rng.randint(2, 5)), overshoot=True)
    choice = choose(graph, budget, MultiLevel(1))
    assert benefit_of(graph, choice, budget) >= INNER * best_benefit(graph, choice.space) * CLOSE


# Under a maintenance budget


def check_inverted_tree(graph: ViewGraph, maintenance: float) -> None:
    budget = Budget(maintenance=maintenance, overshoot=True)
    choice = choose(graph, budget, InvertedTree())
    gained = tau(graph) - choice.cost
    used = choice.maintenance
    assert used <= 2 * maintenance / CLOSE
    at_limit = tau(graph) - best_cost(graph, Budget(maintenance=maintenance))
    assert gained * maintenance >= 0.5 * at_limit * used * CLOSE
    if used > 0:
        best = choose(graph, Budget(maintenance=used * (1 + 1e-9)), Exact())
        if _trees_fit(graph, best.views, maintenance):
            assert gained >= GREEDY * (tau(graph) - best.cost) * CLOSE


def _trees_fit(graph: ViewGraph, views: tuple[str, ...], maintenance: float) -> bool:
    """Theorem 10's side condition: no inverted tree of the optimum, by who is maintained from whom, exceeds the limit."""
    trees: dict[str, set[str]] = {}
    numbered = graph.numbered
    by_number = sorted(views, key=lambda name: numbered.number([name]))
    for name in by_number:
        below = [v for v in trees if numbered.number([v])[0] in numbered.descendants[numbered.number([name])[0]]]
        alone = upkeep(graph, [name])
        source = min(below, key=lambda v: upkeep(graph, [v, name]) - upkeep(graph, [v]), default=None)
        if source is not None and upkeep(graph, [source, name]) - upkeep(graph, [source]) < alone:
            trees[source].add(name)
            trees[name] = trees[source]
        else:
            trees[name] = {name}
    return all(upkeep(graph, tree) <= maintenance * (1 + 1e-9) for tree in trees.values())


@seeds(20)
def test_inverted_tree_greedy(seed: int) -> None:
    """On the thesis' random graphs, and on those where maintaining a view from a view costs next to nothing."""
    rng = Random(seed)
    shape = rng.choice(["tree", "density", "edges"])
    cheap = rng.choice([1.0, 0.01, 0.0])
    graph = random_or_graph(rng, rng.randint(3, 11), shape, rng.choice([0.1, 0.25, 0.4]), cheap=cheap)  # type: ignore[arg-type]
    check_inverted_tree(graph, share_of_all(graph, rng.uniform(0.02, 0.7))[1])


@seeds(15)
def test_the_first_stage_of_inverted_tree_greedy_takes_the_best_of_all_sets(seed: int) -> None:
    rng = Random(seed)
    graph = random_or_graph(
        rng, rng.randint(3, 9), rng.choice(["density", "edges"]), 0.3, cheap=rng.choice([1.0, 0.01])
    )  # type: ignore[arg-type]
    numbered = graph.numbered
    limit = share_of_all(graph, rng.uniform(0.05, 0.7))[1]
    best = 0.0
    for root in numbered.candidates:
        above = [i for i in numbered.candidates if root in numbered.descendants[i]]
        for some in chain.from_iterable(combinations(above, size) for size in range(len(above) + 1)):
            costs = Costs(numbered, [root, *some])
            if costs.upkeep <= limit * (1 + 1e-9):
                best = max(best, (tau(graph) - costs.query) / costs.upkeep)
    first = next(iter(choose(graph, Budget(maintenance=limit, overshoot=True), InvertedTree()).trace), None)
    found = first.benefit / upkeep(graph, first.added) if first else 0.0
    assert found == pytest.approx(best, rel=1e-6)


@pytest.mark.parametrize(("height", "count"), [(1, 1), (2, 5), (3, 21), (4, 85)])
def test_there_are_few_inverted_trees_where_few_views_are_above_another(height: int, count: int) -> None:
    """T(h) = 2r·T(h-1) + 1 = ((2r)^h - 1)/(2r - 1), which is O(n²); the thesis prints r - 1 below the line."""
    numbered = study_graph(Random(1), 2**height - 1, "chains").numbered
    above = [sum(i in numbered.descendants[x] for x in numbered.candidates) for i in numbered.candidates]
    assert sum(2**many for many in above) == count


@pytest.mark.parametrize("n", [2, 4, 7])
def test_inverted_tree_greedy_on_figure_3_2(n: int) -> None:
    for limit in (4.0, 5.0, 8.0):
        check_inverted_tree(figure_3_2(n), limit)


@seeds(15)
def test_a_star_is_optimal(seed: int) -> None:
    rng = Random(seed)
    graph = random_or_graph(rng, rng.randint(3, 11), density=rng.choice([0.1, 0.4]), cheap=rng.choice([1.0, 0.01]))
    budget = Budget(maintenance=share_of_all(graph, rng.uniform(0.05, 0.8))[1])
    best = best_cost(graph, budget)
    for bound in ("thesis", "tight"):
        assert choose(graph, budget, AStar(bound)).cost == pytest.approx(best, rel=1e-6)  # type: ignore[arg-type]
