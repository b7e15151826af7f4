"""Condense: of all that happened to a key in between, only the net effect is carried on.

By the first and the last action on a key: what came last stays, what was there first goes, and nothing else shows.
Partial condense, for a join, keeps both rows of an update. Full condense, for a view with a key, makes it one.
"""

from __future__ import annotations

from collections import Counter

import pytest

from viewkeeper.algebra.relations import Changes, ScanColumn, names
from viewkeeper.changes.weights import net
from viewkeeper.testing.bags import Feed, TableStates, evaluate, weigh
from viewkeeper.testing.values import Row

pytestmark = pytest.mark.core

COLUMNS = ("k", "x")
CHANGES = Changes("t", tuple(ScanColumn(c, c, "bigint") for c in COLUMNS))
A, B, C = (1, 10), (1, 20), (1, 30)

INSERT_A, INSERT_B, INSERT_C = ((A, 1),), ((B, 1),), ((C, 1),)
DELETE_A, DELETE_B = ((A, -1),), ((B, -1),)
UPDATE_A_B, UPDATE_B_C, UPDATE_B_A = DELETE_A + INSERT_B, DELETE_B + INSERT_C, DELETE_B + INSERT_A

# First and last action, and the net effect.
TRUTH: dict[tuple[str, str], tuple[Feed, Counter[Row]]] = {
    ("insert", "insert"): (INSERT_A + UPDATE_A_B, Counter({B: 1})),
    ("insert", "delete"): (INSERT_A + UPDATE_A_B + DELETE_B, Counter()),
    ("delete", "delete"): (UPDATE_A_B + DELETE_B, Counter({A: -1})),
    ("delete", "insert"): (UPDATE_A_B + UPDATE_B_C, Counter({A: -1, C: 1})),
    ("delete", "the same again"): (UPDATE_A_B + UPDATE_B_A, Counter()),
}


def condensed(feed: Feed) -> Counter[Row]:
    changes = net(CHANGES)
    tables = {"t": TableStates(COLUMNS, Counter(), Counter(), feed)}
    rows = evaluate(changes, tables)
    assert set(rows.values()) <= {1}, "a row twice"
    return weigh(rows, names(changes))


@pytest.mark.parametrize("actions", TRUTH, ids=" … ".join)
def test_the_truth_table(actions: tuple[str, str]) -> None:
    feed, expected = TRUTH[actions]
    assert condensed(feed) == expected


def test_copies_are_counted() -> None:
    """Without a key: the same row inserted three times and deleted once is there twice more."""
    assert condensed(INSERT_A * 3 + DELETE_A + DELETE_B) == Counter({A: 2, B: -1})
