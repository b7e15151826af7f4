"""Rows as they were, from those that are there now: the same change, and one read of each table less."""

from __future__ import annotations

import pytest
from hypothesis import given

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Aggregate, Changes, Join, Measure, Relation, Scan, ScanColumn, names
from viewkeeper.algebra.scalars import Column, same
from viewkeeper.algebra.types import BIGINT
from viewkeeper.changes.parts import mentions
from viewkeeper.changes.propagate import change
from viewkeeper.changes.restored import from_one_read
from viewkeeper.testing.bags import signed
from viewkeeper.testing.histories import History
from viewkeeper.testing.strategies import changing_relations

pytestmark = pytest.mark.core


@given(changing_relations())
def test_from_one_read_it_is_the_same_change(case: tuple[Relation, History]) -> None:
    rel, history = case
    delta, tables = change(rel, history.changed(0, 1)), history.between(0, 1)
    once = from_one_read(delta, lambda _: True)
    assert names(once) == names(delta)
    assert signed(once, tables) == signed(delta, tables)


SALES = Scan("sales", (ScanColumn("store", "store", "int"), ScanColumn("price", "price", "int")))
DEAREST = Aggregate(SALES, ("store",), (Measure("dearest", "max", ("price",), BIGINT),))


def old_reads(rel: Relation) -> int:
    return sum(isinstance(n, Scan) and n.state == "old" for n in walk(rel))


def test_the_touched_rows_of_a_table_are_read_as_they_are_alone() -> None:
    delta = change(DEAREST, {"sales": "any"})
    once = from_one_read(delta, lambda _: True)
    assert old_reads(delta) == 1 and old_reads(once) == 0
    (touched,) = {n for n in walk(once) if isinstance(n, Join) and n.kind == "semi" and isinstance(n.left, Scan)}
    assert mentions(once)[touched] == 2


def test_what_is_not_worth_it_stays_as_it_was() -> None:
    delta = change(DEAREST, {"sales": "any"})
    assert from_one_read(delta, lambda _: False) == delta


def test_rows_that_are_asked_for_as_they_were_alone_stay_so() -> None:
    """What does not stand in the change as it is now would be one more read, not one less."""
    touched = Changes("sales", (ScanColumn("store", "touched", "int"),))
    was = Join(Scan("sales", SALES.columns, "old"), touched, "semi", same(Column("store"), Column("touched")))
    assert from_one_read(was, lambda _: True) == was
