"""Rows that are asked for several times by the same keys: the same change, and the table is read once."""

from __future__ import annotations

import pytest
from hypothesis import given
from shop import LINES, equal, scan

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Filter, Join, Relation, Scan, names
from viewkeeper.algebra.scalars import Column, Literal, call, conjunction
from viewkeeper.changes.parts import mentions
from viewkeeper.changes.propagate import change
from viewkeeper.changes.restored import from_one_read
from viewkeeper.changes.together import read_together
from viewkeeper.testing.bags import signed
from viewkeeper.testing.histories import History
from viewkeeper.testing.strategies import changing_relations

pytestmark = pytest.mark.core


@given(changing_relations())
def test_read_together_it_is_the_same_change(case: tuple[Relation, History]) -> None:
    rel, history = case
    delta, tables = change(rel, history.changed(0, 1)), history.between(0, 1)
    once = read_together(from_one_read(delta, lambda _: True), lambda _: True)
    assert names(once) == names(delta)
    assert signed(once, tables) == signed(delta, tables)


def reads(rel: Relation) -> set[Scan]:
    return {n for n in walk(rel) if isinstance(n, Scan)}


def test_a_table_that_is_mentioned_three_times_is_read_once() -> None:
    """Orders of several lines, but not of several dear ones: all lines of the orders that any change touches."""
    other, dear = scan("lines", "m"), scan("lines", "n")
    apart = [call("<>", Column(f"{short}_qty"), Column("l_qty")) for short in "mn"]
    several = Join(LINES, other, "semi", conjunction([equal("m_ord", "l_ord"), apart[0]]))
    dear_ones = Filter(dear, call(">", Column("n_qty"), Literal("5")))
    alone = Join(several, dear_ones, "anti", conjunction([equal("n_ord", "l_ord"), apart[1]]))
    delta = from_one_read(change(alone, {"lines": "any"}), lambda _: True)
    once = read_together(delta, lambda _: True)
    assert len(reads(delta)) == 3 and len(reads(once)) == 1
    (rows,) = {n for n in walk(once) if isinstance(n, Join) and isinstance(n.left, Scan)}
    assert mentions(once)[rows] == 6, "as they are, and to know what they were"
    assert read_together(delta, lambda _: False) == delta
