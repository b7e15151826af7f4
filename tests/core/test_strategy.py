"""Update strategies: the paper's examples, its counts, and its metric on TPC-D."""

from __future__ import annotations

from itertools import combinations, permutations

import pytest

from viewkeeper.planner.strategy.check import violations
from viewkeeper.planner.strategy.compare import compare
from viewkeeper.planner.strategy.graph import Changed, ChangedGraph
from viewkeeper.planner.strategy.order import Conflict, combine, dual_stage, min_work, min_work_single
from viewkeeper.planner.strategy.search import ordered_partitions, view_strategies
from viewkeeper.planner.strategy.steps import Comp, Inst
from viewkeeper.planner.strategy.work import Metric, comp_rows, terms, work
from viewkeeper.testing.update_graphs import figure_2, figure_6, tpcd

pytestmark = pytest.mark.core

COMPUTE = Metric(compute=1.0, install=0.0)


def comp(view: str, *changed: str) -> Comp:
    return Comp(view, frozenset(changed))


def text(strategy) -> str:  # type: ignore[no-untyped-def]
    return " ".join(map(str, strategy))


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


def test_terms_of_unchanged_inputs_are_not_run() -> None:
    graph = tpcd("Q5")
    strategy = combine(graph, dual_stage(graph))
    assert not isinstance(strategy, Conflict)
    assert terms(graph, strategy) == 31
