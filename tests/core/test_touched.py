"""Which keys a change touches, the rows that have them, and the rows that flip: right, and with little to read."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from shop import LINES, ON_ORDER, ORDERS, equal, scan

from viewkeeper.algebra.display import show
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Join,
    JoinKind,
    Measure,
    Relation,
    Scan,
    inputs,
    names,
)
from viewkeeper.algebra.scalars import Column, call
from viewkeeper.changes.groups import affected_keys, restrict
from viewkeeper.changes.propagate import change
from viewkeeper.changes.touched import touched
from viewkeeper.changes.weights import columns_without_weight
from viewkeeper.testing import references
from viewkeeper.testing.bags import evaluate, signed
from viewkeeper.testing.choices import both
from viewkeeper.testing.histories import History
from viewkeeper.testing.strategies import LENGTH, changing_relations

pytestmark = pytest.mark.core

Case = tuple[Relation, History]
CASES = st.one_of(changing_relations(), both(references.relation, references.history, LENGTH))


def some_columns(rel: Relation, data: st.DataObject) -> tuple[str, ...]:
    return tuple(data.draw(st.lists(st.sampled_from(names(rel)), min_size=1, max_size=2, unique=True)))


@given(CASES, st.data())
def test_no_key_of_a_row_that_comes_or_goes_is_left_out(case: Case, data: st.DataObject) -> None:
    rel, history = case
    columns, changed, tables = some_columns(rel, data), history.changed(0, 1), history.between(0, 1)
    delta = change(rel, changed)
    at = [columns_without_weight(delta).index(c) for c in columns]
    moved = {tuple(row[n] for n in at) for row in signed(delta, tables)}
    for small in (frozenset[str](), frozenset(tables)):
        found = touched(rel, columns, changed, lambda below: change(below, changed), small)
        assert names(found) == columns
        assert moved <= set(evaluate(found, tables)), show(found)


@given(CASES, st.data())
def test_the_rows_of_the_touched_keys_are_the_same_wherever_they_are_asked_for(case: Case, data: st.DataObject) -> None:
    rel, history = case
    keys = affected_keys(change(rel, history.changed(0, 1)), some_columns(rel, data))
    assert keys is not None
    narrowed, tables = restrict(rel, keys), history.between(0, 1)
    plain = Join(rel, keys.relation, "semi", keys.matches)
    assert evaluate(narrowed, tables) == evaluate(plain, tables), show(narrowed)


def reads(rel: Relation) -> Counter[str]:
    """How often a relation reads each table's state, and its changes."""
    match rel:
        case Scan(table, _, state):
            return Counter([table if state == "new" else f"{table} {state}"])
        case Changes(table):
            return Counter([f"δ{table}"])
        case _:
            found: Counter[str] = Counter()
            for below in inputs(rel):
                found += reads(below)
            return found


@pytest.mark.parametrize("kind", ["semi", "anti"])
def test_flips_on_equal_columns_read_each_side_once(kind: JoinKind) -> None:
    delta = change(Join(ORDERS, LINES, kind, ON_ORDER), {"lines": "any"})
    assert reads(delta) == {"orders": 1, "lines": 1, "δlines": 2}


def test_flips_on_other_conditions_read_before_and_after() -> None:
    other = call("<", Column("o_id"), Column("l_ord"))
    assert reads(change(Join(ORDERS, LINES, "semi", other), {"lines": "any"}))["lines old"] == 1


def test_groups_over_an_outer_join_are_touched_by_the_keys_of_its_right_side_alone() -> None:
    per_order = Aggregate(
        Join(ORDERS, LINES, "left", ON_ORDER), ("o_id",), (Measure("n", "count", ("l_ord",), "bigint"),)
    )
    delta = change(Filter(per_order, call(">", Column("n"), Column("o_id"))), {"lines": "any"})
    assert reads(delta) == {"orders": 2, "lines": 1, "lines old": 1, "δlines": 4}


def test_keys_that_no_chosen_row_of_a_small_table_has_are_not_touched() -> None:
    """What lines of the orders of one customer are less than most: other lines that change touch no such order."""
    chosen = Filter(ORDERS, equal("o_cust", "o_id"))
    most = Aggregate(scan("lines", "m"), ("m_ord",), (Measure("most", "max", ("m_qty",), "bigint"),))
    rel = Join(Join(LINES, chosen, "inner", ON_ORDER), most, "inner", equal("m_ord", "o_id"))

    def looked_into(small: frozenset[str]) -> int:
        found = touched(rel, ("o_id",), {"lines": "any"}, lambda below: change(below, {"lines": "any"}), small)
        return reads(found)["orders"]

    assert looked_into(frozenset()) == 0
    assert looked_into(frozenset({"orders"})) == 2, (
        "for the lines themselves, and for those that they are compared with"
    )
