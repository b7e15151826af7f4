"""Update strategies: the paper's examples, its conditions by name, its theorems on random graphs, schedules and windows."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations
from random import Random

import pytest
from graph_examples import seeds

from viewkeeper.errors import GraphError
from viewkeeper.planner.strategy.check import versioned_violations, violations
from viewkeeper.planner.strategy.compare import compare
from viewkeeper.planner.strategy.fit import within
from viewkeeper.planner.strategy.graph import Changed, ChangedGraph
from viewkeeper.planner.strategy.order import (
    Conflict,
    combine,
    dual_stage,
    min_work,
    min_work_single,
    modify_ordering,
    one_way,
    wanted_order,
)
from viewkeeper.planner.strategy.schedule import dependencies, schedule
from viewkeeper.planner.strategy.search import best_one_way, ordered_partitions, strategies, view_strategies
from viewkeeper.planner.strategy.steps import Comp, CompAt, Inst, Strategy
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.window import leave_out
from viewkeeper.planner.strategy.work import Metric, comp_rows, step_works, terms, work
from viewkeeper.testing.update_graphs import figure_2, figure_6, random_changed_graph, tpcd

pytestmark = pytest.mark.core

COMPUTE = Metric(compute=1.0, install=0.0)


def comp(view: str, *changed: str) -> Comp:
    return Comp(view, frozenset(changed))


def text(strategy) -> str:  # type: ignore[no-untyped-def]
    return " ".join(map(str, strategy))


# The paper's examples


def test_min_work_on_figure_6() -> None:
    found = min_work(figure_6())
    assert found.order == ("V4", "V2", "V1", "V3", "V5")
    assert text(found.strategy) == (
        "Comp(V4,{V2}) Inst(V2) Comp(V4,{V3}) Inst(V3) Comp(V5,{V4}) Inst(V4) Comp(V5,{V1}) Inst(V1) Inst(V5)"
    )
    assert found.conflict is None


@pytest.mark.parametrize(("view", "count"), [("Q3", 13), ("Q10", 75), ("Q5", 4683)])
def test_the_correct_strategies_of_one_view_are_the_ordered_partitions(view: str, count: int) -> None:
    graph = tpcd(view)
    found = {text(strategy): strategy for strategy in view_strategies(graph, view)}
    assert len(found) == count
    for strategy in list(found.values())[:: max(1, count // 40)]:
        assert list(violations(graph, strategy)) == []


def test_every_correct_sequence_of_a_small_view_is_one_of_them_up_to_installs() -> None:
    """All orders of all sets of Comps that could be, checked one by one: exactly the ordered partitions come through."""
    graph = ChangedGraph((Changed("a"), Changed("b"), Changed("v", ("a", "b"))))
    comps = [comp("v", "a"), comp("v", "b"), comp("v", "a", "b")]
    installs = [Inst("a"), Inst("b"), Inst("v")]
    correct = set()
    for size in range(4):
        for chosen in combinations(comps, size):
            for strategy in permutations([*chosen, *installs]):
                if not list(violations(graph, strategy)):
                    correct.add(tuple(step for step in strategy if isinstance(step, Comp)))
    assert correct == {tuple(comp("v", *part) for part in parts) for parts in ordered_partitions("ab")}


def test_strategies_of_figure_2_that_can_and_cannot_be_combined() -> None:
    graph = figure_2()
    one_by_one = tuple(frozenset(t) for t in "COL")
    lines_first = (frozenset("L"), frozenset("CO"))
    conflict = combine(graph, {"V": one_by_one, "V'": lines_first})
    assert isinstance(conflict, Conflict)
    assert Inst("L") in conflict.circle
    together = combine(graph, {"V": (frozenset("COL"),), "V'": lines_first})
    assert not isinstance(together, Conflict)
    assert list(violations(graph, together)) == []


def test_q3s_thirteen_strategies_under_the_metric() -> None:
    graph = tpcd("Q3")
    works = {
        " ".join("+".join(sorted(s.changed)) for s in strategy if isinstance(s, Comp)): work(graph, strategy, COMPUTE)
        for strategy in view_strategies(graph, "Q3")
    }
    least = min(works.values())
    assert {name: round(cost / least, 3) for name, cost in sorted(works.items(), key=lambda w: w[1])} == {
        "L O C": 1.000,
        "L C O": 1.009,
        "O L C": 1.031,
        "C L O": 1.049,
        "O C L": 1.070,
        "C O L": 1.080,
        "L+O C": 1.102,
        "C L+O": 1.150,
        "C+L O": 1.194,
        "O C+L": 1.205,
        "L C+O": 1.388,
        "C+O L": 1.500,
        "C+L+O": 1.768,
    }


@pytest.mark.parametrize(
    ("views", "dual_terms", "dual", "with_installs", "reverse"),
    [
        (("Q3",), 7, 1.77, 1.73, 1.080),
        (("Q10",), 15, 2.76, 2.70, 1.090),
        (("Q5",), 31, 4.46, 4.37, 1.095),
        (("Q3", "Q5", "Q10"), 53, 3.28, 3.26, 1.090),
    ],
)
def test_the_metric_on_tpcd(views, dual_terms, dual, with_installs, reverse) -> None:  # type: ignore[no-untyped-def]
    graph = tpcd(*views)
    assert [name for name in min_work(graph).order if name not in views] == [t for t in "LOCSNR" if t in graph.by_name]
    found = {c.name: c for c in compare(graph, metric=COMPUTE)}
    best = found["MinWork"].work
    assert found["dual-stage"].terms == dual_terms
    assert round(found["dual-stage"].work / best, 2) == dual
    assert round(found["reverse order"].work / best, 3) == reverse
    assert found["best one-way"].work == pytest.approx(best)
    assert found["with versions"].work == pytest.approx(best)
    installed = {c.name: c.work for c in compare(graph)}
    assert round(installed["dual-stage"] / installed["MinWork"], 2) == with_installs


@pytest.mark.parametrize("percent", range(1, 11))
def test_min_work_single_is_best_whatever_the_share(percent: int) -> None:
    graph = tpcd("Q3", share=percent / 100)
    best = work(graph, min_work_single(graph, "Q3"), COMPUTE)
    works = [work(graph, strategy, COMPUTE) for strategy in view_strategies(graph, "Q3")]
    assert best == pytest.approx(min(works))
    assert round(max(works) / best, 2) == pytest.approx(1.53 + 0.24 * (percent - 1) / 9, abs=0.05)


def test_example_3_2_of_the_metric() -> None:
    graph = ChangedGraph(
        (Changed("V2", (), 100, 90, 10), Changed("V3", (), 200, 230, 30), Changed("V4", ("V2", "V3"), 50, 60, 10))
    )
    assert comp_rows(graph, "V4", ["V2"], []) == 10 + 200
    assert comp_rows(graph, "V4", ["V2", "V3"], []) == (10 + 200) + (30 + 100) + (10 + 30)
    assert comp_rows(graph, "V4", ["V3"], ["V2"]) == 30 + 90
    assert work(graph, (Inst("V4"),), Metric(install=3.0)) == 30.0


# The conditions by name

CORRECT: Strategy = (comp("V", "a"), Inst("a"), comp("V", "b"), Inst("b"), comp("W", "V"), Inst("V"), Inst("W"))
CHAIN = ChangedGraph((Changed("a"), Changed("b"), Changed("V", ("a", "b")), Changed("W", ("V",))))


def test_a_correct_strategy_has_no_violations() -> None:
    assert list(violations(CHAIN, CORRECT)) == []


@pytest.mark.parametrize(
    ("condition", "strategy"),
    [
        ("C1", (comp("V", "a"), Inst("a"), Inst("b"), comp("W", "V"), Inst("V"), Inst("W"))),
        ("C2", (comp("V", "a"), Inst("a"), comp("V", "b"), Inst("b"), comp("W", "V"), Inst("V"))),
        ("C3", (Inst("a"), comp("V", "a"), comp("V", "b"), Inst("b"), comp("W", "V"), Inst("V"), Inst("W"))),
        ("C4", (comp("V", "a"), comp("V", "b"), Inst("a"), Inst("b"), comp("W", "V"), Inst("V"), Inst("W"))),
        ("C5", (comp("V", "a"), Inst("a"), comp("W", "V"), Inst("V"), comp("V", "b"), Inst("b"), Inst("W"))),
        ("C6", (*CORRECT, Inst("W"))),
        ("C8", (comp("V", "a"), Inst("a"), comp("W", "V"), comp("V", "b"), Inst("b"), Inst("V"), Inst("W"))),
    ],
)
def test_the_violated_condition_is_named(condition: str, strategy: Strategy) -> None:
    found = list(violations(CHAIN, strategy))
    # What is installed before it is complete has also been used before it was complete.
    also = {"C8"} if condition == "C5" else set()
    assert {v.condition for v in found} == {condition} | also
    assert all(v.text and v.view in CHAIN.by_name for v in found)


def test_two_comps_of_the_same_change_are_caught() -> None:
    twice = (comp("V", "a", "b"), comp("V", "b"), Inst("a"), Inst("b"), comp("W", "V"), Inst("V"), Inst("W"))
    assert {v.condition for v in violations(CHAIN, twice)} == {"C4"}


def test_a_strategy_about_something_else_is_refused() -> None:
    with pytest.raises(GraphError):
        list(violations(CHAIN, (Inst("x"),)))
    with pytest.raises(GraphError):
        list(violations(CHAIN, (comp("W", "a"),)))


def test_versioned_strategies_are_checked_too() -> None:
    at = lambda view, changed, *new: CompAt(view, frozenset([changed]), frozenset(new))  # noqa: E731
    good = (Inst("b"), Inst("a"), at("V", "b", "a"), at("V", "a"), at("W", "V"), Inst("V"), Inst("W"))
    assert list(versioned_violations(CHAIN, good)) == []
    both_old = (at("V", "a"), at("V", "b"), Inst("a"), Inst("b"), at("W", "V"), Inst("V"), Inst("W"))
    assert {v.condition for v in versioned_violations(CHAIN, both_old)} == {"versions"}
    too_early = (at("V", "a"), at("V", "b", "a"), Inst("a"), Inst("b"), at("W", "V"), Inst("V"), Inst("W"))
    assert {v.condition for v in versioned_violations(CHAIN, too_early)} == {"versions"}


# Theorems on random graphs


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


# Schedules


@seeds(15)
def test_schedules_keep_to_the_dependencies_and_to_the_workers(seed: int) -> None:
    rng = Random(seed)
    graph = random_changed_graph(rng, rng.randint(3, 12))
    for strategy in (min_work(graph).strategy, combine(graph, dual_stage(graph)), with_versions(graph)):
        assert not isinstance(strategy, Conflict)
        alone = work(graph, strategy)
        for workers in (1, 2, 5):
            found = schedule(graph, strategy, workers)
            ends = {slot.step: slot.end for slot in found.slots}
            assert len(ends) == len(strategy)
            for slot in found.slots:
                assert all(ends[before] <= slot.start for before in dependencies(graph, strategy)[slot.step])
            for k in range(workers):
                mine = sorted((slot.start, slot.end) for slot in found.slots if slot.worker == k)
                assert all(first[1] <= second[0] for first, second in pairwise(mine))
            assert found.bound <= found.makespan * (1 + 1e-9)
            assert found.makespan <= (2 - 1 / workers) * found.bound * (1 + 1e-9)
            if workers == 1:
                assert found.makespan == pytest.approx(alone)


def test_any_order_that_keeps_the_dependencies_reads_the_same() -> None:
    """The work of every Comp depends on what is installed before it; dependencies must settle that."""
    rng = Random(5)
    for _ in range(30):
        graph = random_changed_graph(rng, 7)
        strategy = min_work(graph).strategy
        needs = dependencies(graph, strategy)
        shuffled, left = [], set(strategy)
        while left:
            ready = [step for step in strategy if step in left and not needs[step] & left]
            shuffled.append(rng.choice(ready))
            left.remove(shuffled[-1])
        assert list(violations(graph, tuple(shuffled))) == []  # type: ignore[arg-type]
        assert work(graph, tuple(shuffled)) == pytest.approx(work(graph, strategy))  # type: ignore[arg-type]


def test_versions_allow_more_at_the_same_time() -> None:
    graph = tpcd("Q3", "Q5", "Q10")
    alone = {c.name: c.makespan for c in compare(graph, workers=1, metric=COMPUTE)}
    together = {c.name: c.makespan for c in compare(graph, workers=4, metric=COMPUTE)}
    assert alone["with versions"] == pytest.approx(alone["MinWork"])
    assert together["with versions"] < together["MinWork"] < alone["MinWork"]


def shortest(graph: ChangedGraph, workers: int) -> float:
    """By trying every order, each step as early as those before it allow."""
    strategy = with_versions(graph)
    needs = dependencies(graph, strategy)
    works = dict(zip(strategy, step_works(graph, strategy), strict=True))
    best = float("inf")
    for order in permutations(strategy):
        ends: dict[object, float] = {}
        free = [0.0] * workers
        for step in order:
            if any(before not in ends for before in needs[step]):
                break
            start = max([min(free), *(ends[before] for before in needs[step])])
            worker = max((w for w in range(workers) if free[w] <= start), key=lambda w: free[w])
            free[worker] = ends[step] = start + works[step]
        else:
            best = min(best, max(free))
    return best


@seeds(15)
def test_a_schedule_within_a_window_is_found_or_there_is_none(seed: int) -> None:
    graph = random_changed_graph(Random(seed), 4, most_inputs=2)
    if len(with_versions(graph)) > 7:
        return
    best = shortest(graph, 2)
    found = within(graph, with_versions(graph), 2, best * (1 + 1e-9))
    assert not isinstance(found, str)
    assert found.makespan == pytest.approx(best)
    if best > 0:
        assert within(graph, with_versions(graph), 2, best * (1 - 1e-6)) == "impossible"


# A window that is too short


def least_harm(graph: ChangedGraph, window: float, harm: dict[str, float], workers: int) -> float:
    """By trying every set that can be left out, and for several workers every schedule."""
    names = [view.name for view in graph.views]
    best = sum(harm.values())
    for size in range(len(names) + 1):
        for out in combinations(names, size):
            kept = tuple(view for view in graph.views if view.name not in out)
            if any(below in out for view in kept for below in view.inputs):
                continue
            rest = ChangedGraph(kept)
            if within(rest, with_versions(rest), workers, window * (1 + 1e-9)) != "impossible":
                best = min(best, sum(harm[name] for name in out))
    return best


@seeds(20)
def test_the_least_harm_is_left_out(seed: int) -> None:
    rng = Random(seed)
    graph = random_changed_graph(rng, rng.randint(3, 7))
    harm = {view.name: float(rng.randint(0, 9)) for view in graph.views}
    workers = rng.choice([1, 1, 2])
    window = schedule(graph, with_versions(graph), workers).makespan * rng.uniform(0.0, 1.1)
    found = leave_out(graph, window, harm, workers=workers)
    kept = [view for view in graph.views if view.name not in found.left_out]
    assert all(below not in found.left_out for view in kept for below in view.inputs)
    assert found.schedule.makespan <= window * (1 + 1e-9)
    assert found.harm == sum(harm[name] for name in found.left_out)
    best = least_harm(graph, window, harm, workers)
    assert (found.harm, found.bound, found.gap) == (pytest.approx(best), pytest.approx(best), 0.0)


def test_a_window_that_is_long_enough_leaves_nothing_out() -> None:
    graph = tpcd("Q3", "Q5", "Q10")
    found = leave_out(
        graph, schedule(graph, with_versions(graph), 3).makespan, dict.fromkeys(("Q3", "Q5"), 1.0), workers=3
    )
    assert (found.left_out, found.harm, found.gap) == ((), 0.0, 0.0)
    assert leave_out(graph, 0.0, {"Q3": 1.0, "Q5": 2.0, "Q10": 4.0}).harm == 7.0


# What is refused


def test_graphs_that_are_none() -> None:
    for views in (
        (Changed("a"), Changed("a")),
        (Changed("a", ("b",)),),
        (Changed("a", ("b",)), Changed("b", ("a",))),
    ):
        with pytest.raises(GraphError):
            ChangedGraph(views)
    for wrong in ({"rows": -1.0}, {"rows": 5.0, "new_rows": 9.0, "change_rows": 1.0}, {"rows": float("nan")}):
        with pytest.raises(GraphError):
            Changed("a", **wrong)  # type: ignore[arg-type]
    with pytest.raises(GraphError):
        Changed("a", ("b", "b"))
    with pytest.raises(GraphError):
        schedule(CHAIN, CORRECT, 0)
    with pytest.raises(GraphError):
        leave_out(CHAIN, -1.0, {})
    with pytest.raises(GraphError):
        leave_out(CHAIN, 1.0, {"a": -1.0})


def test_terms_of_unchanged_inputs_are_not_run() -> None:
    graph = tpcd("Q5")
    strategy = combine(graph, dual_stage(graph))
    assert not isinstance(strategy, Conflict)
    assert terms(graph, strategy) == 31
