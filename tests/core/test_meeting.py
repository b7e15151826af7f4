"""A change of tables narrowed to what can meet it is the same change."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.algebra.display import show
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Changes, Filter, Join, JoinKind, Relation, Scan, ScanColumn, Union
from viewkeeper.algebra.scalars import Column, call
from viewkeeper.changes.meeting import LISTED, Spread, Spreads, Value, can_spread, compared, few_runs, only_meeting
from viewkeeper.changes.parts import mentions
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.runtime.spreads import spread_of
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing import references
from viewkeeper.testing.bags import evaluate, signed
from viewkeeper.testing.choices import both
from viewkeeper.testing.histories import History
from viewkeeper.testing.strategies import LENGTH, changing_relations, changing_views

pytestmark = pytest.mark.core

Case = tuple[Relation, History]


def spreads(history: History, listed: int) -> Spreads:
    """What reading the changes would tell, with at most so many values listed."""
    found = {}
    for table, columns in history.schemas.items():
        for at, (name, type_) in enumerate(columns):
            values = {row[at] for row, _ in history.feed(table, 0, 1)}
            present = sorted(v for v in values if v is not None)
            if present and can_spread(type_):
                all_ = frozenset[Any](present) if len(present) <= listed else None
                found[table, name] = Spread(few_runs((v, v) for v in present), all_, None in values)
    return found


@settings(max_examples=settings().max_examples // 2)
@given(changing_relations())
def test_no_value_is_asked_for_that_is_not_told(case: Case) -> None:
    """What is known of other columns than those that are compared makes no difference."""
    rel, history = case
    delta = change(rel, history.changed(0, 1))
    asked = compared(mentions(delta))
    leaves = [n for n in walk(delta) if isinstance(n, Changes)]
    told = {(n.table, c.source) for n in leaves for c in n.columns if c.name in asked}
    known = spreads(history, LISTED)
    some = {key: spread for key, spread in known.items() if key in told}
    assert only_meeting(delta, some) == only_meeting(delta, known)


@settings(max_examples=settings().max_examples // 2)
@given(changing_relations(), st.sampled_from([0, 1, LISTED]))
def test_narrowed_changes_are_the_same(case: Case, listed: int) -> None:
    rel, history = case
    delta, tables = change(rel, history.changed(0, 1)), history.between(0, 1)
    narrowed = only_meeting(delta, spreads(history, listed))
    assert signed(narrowed, tables) == signed(delta, tables), show(narrowed)


@given(both(references.relation, references.history, LENGTH), st.sampled_from([0, 1, LISTED]))
def test_narrowed_changes_of_joins_are_the_same(case: Case, listed: int) -> None:
    rel, history = case
    delta, tables = change(rel, history.changed(0, 1)), history.between(0, 1)
    narrowed = only_meeting(delta, spreads(history, listed))
    assert signed(narrowed, tables) == signed(delta, tables), show(narrowed)


@settings(max_examples=settings().max_examples // 2)
@given(changing_views())
def test_narrowed_changes_of_views_are_the_same(case: Case) -> None:
    definition, history = case
    step, tables = maintenance(stored_form(definition, "v").kept, history.changed(0, 1)), history.between(0, 1)
    narrowed = only_meeting(step.change, spreads(history, 2))
    assert evaluate(narrowed, tables) == evaluate(step.change, tables), show(narrowed)


def scan(name: str, type_: str = "bigint") -> Scan:
    return Scan(name, (ScanColumn("k", f"{name}_k", type_), ScanColumn("x", f"{name}_x", "bigint")))


def filters(rel: Relation, table: str) -> list[str]:
    """The conditions that stand right above the scans of a table."""
    return [
        unparse(n)[unparse(n).index("WHERE ") :]
        for n in walk(rel)
        if isinstance(n, Filter) and isinstance(n.input, Scan) and n.input.table == table
    ]


ON_K = call("=", Column("a_k"), Column("b_k"))


@pytest.mark.parametrize(
    ("type_", "least", "greatest", "condition"),
    [
        ("bigint", 3, 7, "WHERE ((`b`.`k` >= 3) AND (`b`.`k` <= 7))"),
        ("string", "it's", "z", "WHERE ((`b`.`k` >= 'it\\'s') AND (`b`.`k` <= 'z'))"),
        ("date", date(2024, 1, 2), date(2024, 2, 1), "WHERE ((`b`.`k` >= CAST('2024-01-02' AS date)) AND (`b`.`k` <= CAST('2024-02-01' AS date)))"),
        ("decimal(9,2)", Decimal("1.50"), Decimal(2), "WHERE ((`b`.`k` >= CAST(1.50 AS decimal(9,2))) AND (`b`.`k` <= CAST(2 AS decimal(9,2))))"),
    ],
)  # fmt: skip
def test_what_is_asked_of_the_other_table(type_: str, least: Value, greatest: Value, condition: str) -> None:
    joined = Join(scan("a", type_), scan("b", type_), "inner", ON_K)
    narrowed = only_meeting(change(joined, {"a": "any"}), {("a", "k"): Spread(((least, greatest),))})
    assert filters(narrowed, "b") == [condition]


def test_what_can_meet_the_change_is_asked_before_anything_else() -> None:
    dear = Filter(scan("b"), call("LIKE", Column("b_x"), Column("b_k")))
    joined = Join(scan("a"), dear, "inner", ON_K)
    narrowed = only_meeting(change(joined, {"a": "any"}), {("a", "k"): Spread(((1, 5),))})
    assert filters(narrowed, "b") == ["WHERE ((`b`.`k` >= 1) AND (`b`.`k` <= 5) AND (`b`.`x` LIKE `b`.`k`))"]


def test_many_values_are_told_by_the_runs_they_lie_in() -> None:
    joined = Join(scan("a"), scan("b"), "inner", ON_K)
    narrowed = only_meeting(change(joined, {"a": "any"}), {("a", "k"): Spread(((1, 5), (90, 99)))})
    assert filters(narrowed, "b") == [
        "WHERE (((`b`.`k` >= 1) AND (`b`.`k` <= 5)) OR ((`b`.`k` >= 90) AND (`b`.`k` <= 99)))"
    ]


def test_the_values_of_a_column_as_they_were_read() -> None:
    dates = [date(2024, 1, 1), None, date(2024, 1, 2), date(2024, 1, 1)]
    assert spread_of(dates) == Spread(
        ((dates[0], dates[0]), (dates[2], dates[2])), frozenset(filter(None, dates)), True
    )
    assert spread_of(["b", "a", "c"]) == Spread((("a", "c"),), frozenset("abc"))
    numbers = [Decimal(n) for n in range(2 * LISTED)]
    assert spread_of([*numbers, Decimal(10**9)]) == Spread(
        (
            (Decimal(0), Decimal(0)),
            (Decimal(1), Decimal(1)),
            (Decimal(2), numbers[-1]),
            (Decimal(10**9), Decimal(10**9)),
        )
    )
    assert spread_of([None]) is None and spread_of([]) is None


def test_the_widest_gaps_are_kept_between_runs() -> None:
    assert few_runs((n, n + 1) for n in (0, 1, 100, 110, 200, 300, 304)) == ((0, 2), (100, 111), (200, 201), (300, 305))
    assert few_runs([(5, 9), (1, 7)]) == ((1, 9),)
    assert few_runs((c, c) for c in "abcde") == (("a", "a"), ("b", "b"), ("c", "c"), ("d", "e"))
    assert few_runs([]) == ()


def test_few_values_are_listed_and_reach_the_next_table() -> None:
    joined = Join(
        Join(scan("a"), scan("b"), "inner", ON_K), scan("c"), "inner", call("=", Column("b_k"), Column("c_k"))
    )
    narrowed = only_meeting(change(joined, {"a": "any"}), {("a", "k"): Spread(((3, 7),), frozenset({7, 3}))})
    assert filters(narrowed, "b") == ["WHERE (`b`.`k` IN (3, 7))"]
    assert filters(narrowed, "c") == ["WHERE (`c`.`k` IN (3, 7))"]


@pytest.mark.parametrize("kind", ["left", "anti", "semi", "inner"])
def test_matches_are_looked_for_among_the_values_of_the_change(kind: JoinKind) -> None:
    joined = Join(scan("a"), scan("b"), kind, ON_K)
    known = {("b", "k"): Spread(((1, 2),), frozenset({1, 2}), nulls=True)}
    for table in ("a", "b"):
        asked = filters(only_meeting(change(joined, {"b": "any"}), known), table)
        assert set(asked) <= {f"WHERE (`{table}`.`k` IN (1, 2))"}
    assert filters(only_meeting(change(joined, {"b": "any"}), known), "a")


def test_null_meets_null_where_it_equals_null() -> None:
    joined = Join(scan("a"), scan("b"), "inner", call("<=>", Column("a_k"), Column("b_k")))
    narrowed = only_meeting(change(joined, {"a": "any"}), {("a", "k"): Spread(((1, 1),), frozenset({1}), nulls=True)})
    assert filters(narrowed, "b") == ["WHERE ((`b`.`k` IS NULL) OR (`b`.`k` IN (1)))"]


def test_nothing_is_asked_across_types_or_without_values() -> None:
    joined = Join(scan("a", "int"), scan("b"), "inner", ON_K)
    assert not filters(only_meeting(change(joined, {"a": "any"}), {("a", "k"): Spread(((1, 1),))}), "b")
    delta = change(Union((scan("a"), scan("a"))), {"a": "any"})
    assert only_meeting(delta, {}) is delta
