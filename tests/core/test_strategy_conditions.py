"""What is correct: C1 to C8 by name, with versions and without, and graphs that are none."""

from __future__ import annotations

import pytest

from viewkeeper.errors import GraphError
from viewkeeper.planner.strategy.check import versioned_violations, violations
from viewkeeper.planner.strategy.graph import Changed, ChangedGraph
from viewkeeper.planner.strategy.schedule import schedule
from viewkeeper.planner.strategy.steps import Comp, CompAt, Inst, Strategy
from viewkeeper.planner.strategy.window import leave_out

pytestmark = pytest.mark.core


def comp(view: str, *changed: str) -> Comp:
    return Comp(view, frozenset(changed))


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
