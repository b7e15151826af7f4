"""A change of rows that were looked up is the same change."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.algebra.display import show
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Aggregate, Changes, Filter, Join, Measure, Relation, Scan, ScanColumn
from viewkeeper.algebra.scalars import Column, Literal, call, conjunction
from viewkeeper.changes.lookup import Changed, ChangedValues, Conditions, Found, Told, Values, looked_up
from viewkeeper.changes.parts import replaced
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import net
from viewkeeper.testing import references
from viewkeeper.testing.bags import TableStates, evaluate, signed
from viewkeeper.testing.choices import both
from viewkeeper.testing.histories import History
from viewkeeper.testing.strategies import LENGTH, changing_relations, changing_views
from viewkeeper.testing.values import Row

pytestmark = pytest.mark.core

Case = tuple[Relation, History]


class Tables:
    """The tables of a history, which answer what is asked of them: all but some, and of some columns no values.

    They understand conditions, or leave it to others to drop the rows that do not fulfil them.
    """

    def __init__(
        self,
        history: History,
        silent: frozenset[str] = frozenset(),
        unsaid: frozenset[str] = frozenset(),
        *,
        fulfil: bool = True,
    ) -> None:
        self.states = history.between(0, 1)
        self.silent, self.unsaid, self.fulfil = silent, unsaid, fulfil

    def __call__(self, scan: Scan, asked: Mapping[str, Values], where: Conditions) -> Found | None:
        if scan.table in self.silent:
            return None
        state = self.states[scan.table]
        at = {column: state.columns.index(column) for column in state.columns}
        every = Scan(scan.table, tuple(ScanColumn(c, c, "") for c in state.columns), scan.state)
        meant, rows = (
            Counter({row: n for row, n in found.items() if all(row[at[c]] in values for c, values in asked.items())})
            for found in (evaluate(Filter(every, conjunction(list(where))), self.states), evaluate(every, self.states))
        )
        name, kept = f"found_{len(self.states)}", meant if self.fulfil else rows
        self.states[name] = TableStates(state.columns, kept, kept)
        told = {c: frozenset(row[n] for row in meant) for c, n in at.items() if c not in self.unsaid}
        return Found(name, {c: lambda c=c: told[c] for c in told}, self.fulfil)


def values(history: History, *, exact: bool = True) -> Changed:
    """Of changed rows that fulfil some conditions."""

    def of(table: str, where: Conditions) -> ChangedValues:
        columns = history.schemas[table]
        feed = Counter[Row]()
        for row, times in history.feed(table, 0, 1):
            feed[row] += abs(times)
        every = Filter(Scan(table, tuple(ScanColumn(c, c, "") for c, _ in columns)), conjunction(list(where)))
        rows = evaluate(every, {table: TableStates(tuple(c for c, _ in columns), feed, feed)})
        told: dict[str, Told] = {c: partial(frozenset, [row[at] for row in rows]) for at, (c, _) in enumerate(columns)}
        return ChangedValues(told, exact)

    return of


some_tables = st.frozensets(st.sampled_from(["r", "t", "u"]), max_size=1)
some_columns = st.frozensets(st.sampled_from(["a", "s"]), max_size=1)


@given(changing_relations(), some_tables, some_columns, st.booleans(), st.booleans())
def test_looked_up_it_is_the_same_change(
    case: Case, silent: frozenset[str], unsaid: frozenset[str], fulfil: bool, exact: bool
) -> None:
    rel, history = case
    delta, tables = change(rel, history.changed(0, 1)), Tables(history, silent, unsaid, fulfil=fulfil)
    found = looked_up(delta, values(history, exact=exact), tables)
    assert signed(found, tables.states) == signed(delta, tables.states), show(found)


@given(both(references.relation, references.history, LENGTH))
def test_joins_of_what_was_looked_up_are_the_same(case: Case) -> None:
    rel, history = case
    delta, tables = change(rel, history.changed(0, 1)), Tables(history)
    found = looked_up(delta, values(history), tables)
    assert signed(found, tables.states) == signed(delta, tables.states), show(found)


@settings(max_examples=settings().max_examples // 2)
@given(changing_views())
def test_changes_of_views_are_the_same(case: Case) -> None:
    definition, history = case
    step, tables = maintenance(stored_form(definition, "v").kept, history.changed(0, 1)), Tables(history)
    found = looked_up(step.change, values(history), tables)
    assert evaluate(found, tables.states) == evaluate(step.change, tables.states), show(found)


def test_what_was_found_by_all_values_of_a_change_is_not_compared_with_them_again() -> None:
    """Of groups that a change touches, the rows are there: no condition and no semijoin is left of what led to them."""
    r = Scan("r", (ScanColumn("a", "a", "bigint"), ScanColumn("b", "b", "bigint")))
    some = Filter(r, call(">", Column("b"), Literal("0")))
    highest = Aggregate(some, ("a",), (Measure("top", "MAX", ("b",), "bigint"),))
    unread = change(highest, {"r": "any"})
    leaf = next(n for n in walk(unread) if isinstance(n, Changes))
    delta = replaced(unread, net(leaf), leaf)  # as it is once it was read
    assert [n.kind for n in walk(delta) if isinstance(n, Join)] == ["semi", "semi"]

    def changed(table: str, where: Conditions, *, exact: bool = True) -> ChangedValues:
        return ChangedValues({"a": lambda: frozenset((1, 2))}, exact)

    def found(scan: Scan, asked: Mapping[str, Values], where: Conditions, *, of: int = 2) -> Found:
        assert asked == {"a": frozenset((1, 2))} and where == (call(">", Column("b"), Literal("0")),)
        return Found(f"found_{scan.state}", {"a": lambda: frozenset(range(1, 1 + of))}, fulfil=True)

    here = looked_up(delta, changed, found)
    assert not [n for n in walk(here) if isinstance(n, Join)]
    assert {n.table for n in walk(here) if isinstance(n, Scan)} == {"found_old", "found_new"}
    assert not [n for n in walk(here) if isinstance(n, Filter) and isinstance(n.input, Scan)]
    for unsure in (
        looked_up(delta, partial(changed, exact=False), found),
        looked_up(delta, changed, partial(found, of=3)),
    ):
        assert [n.kind for n in walk(unsure) if isinstance(n, Join)] == ["semi", "semi"]
