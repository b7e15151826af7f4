"""Strategies on several workers, and what is left out when a window is too short."""

from __future__ import annotations

import time
from itertools import combinations, pairwise, permutations
from random import Random

import pytest
from graph_examples import seeds

from viewkeeper.planner.strategy.check import violations
from viewkeeper.planner.strategy.compare import compare
from viewkeeper.planner.strategy.fit import within
from viewkeeper.planner.strategy.graph import Changed, ChangedGraph
from viewkeeper.planner.strategy.order import Conflict, combine, dual_stage, min_work
from viewkeeper.planner.strategy.schedule import dependencies, schedule
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.window import leave_out
from viewkeeper.planner.strategy.work import Metric, step_works, work
from viewkeeper.testing.update_graphs import random_changed_graph, tpcd

pytestmark = pytest.mark.core

COMPUTE = Metric(compute=1.0, install=0.0)


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


@seeds(15)
def test_nothing_is_left_out_for_nothing(seed: int) -> None:
    """Views whose staleness harms nobody are all the same to the program; those that fit are kept nevertheless."""
    rng = Random(seed)
    graph = random_changed_graph(rng, rng.randint(4, 12))
    harm = {view.name: rng.choice([0.0, 0.0, 5.0, 1000.0]) for view in graph.views}
    window = work(graph, with_versions(graph)) * rng.uniform(0.2, 1.0)
    out = set(leave_out(graph, window, harm).left_out)
    for name in out:
        rest = tuple(view for view in graph.views if view.name not in out - {name})
        if out.isdisjoint(graph[name].inputs):
            assert work(ChangedGraph(rest), with_versions(ChangedGraph(rest))) > window


def test_the_seconds_are_for_all_rounds_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else each of forty rounds could take as long; what is left then is done by hand."""
    tried = []

    def within_slowly(*_: object) -> str:
        tried.append(time.sleep(0.05))
        return "unknown"

    monkeypatch.setattr("viewkeeper.planner.strategy.window.within", within_slowly)
    # By work alone three of them fit into the window of two workers, by any schedule only two do.
    graph = ChangedGraph(tuple(Changed(f"t{k}", (), 10.0, 10.0, 3.0) for k in range(8)))
    found = leave_out(graph, 5.0, {view.name: 1.0 for view in graph.views}, workers=2, seconds=0.2)
    assert 1 <= len(tried) <= 5
    assert (len(found.left_out), found.bound, found.schedule.makespan) == (6, pytest.approx(5.0), 3.0)
