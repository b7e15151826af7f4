"""Sessions as window functions: rows belong together as long as each comes soon enough after the one before."""

from __future__ import annotations

import pytest

from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Generate,
    Item,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
)
from viewkeeper.algebra.scalars import Column, Literal, call
from viewkeeper.algebra.sessions import SESSION, has_sessions, without_sessions
from viewkeeper.sql.unparse import unparse

pytestmark = pytest.mark.core

R = Scan("r", (ScanColumn("k", "k", "int"), ScanColumn("ts", "ts", "timestamp"), ScanColumn("x", "x", "int")))
W = Field("w", "struct<start:timestamp,end:timestamp>")


def sessions(rows: Relation, gap: str = "'5 minutes'") -> Generate:
    return Generate(rows, call(SESSION, Column("ts"), Literal(gap)), (W,))


def grouped(rows: Relation, *keys: str) -> Aggregate:
    types = {f.name: f.type for f in rows.schema}
    items = tuple(Item(c, Column(c), types[c]) for c in (*keys, "x"))
    return Aggregate(Project(rows, items), keys, (Measure("n", "sum", ("x",), "bigint"),))


def test_sessions_of_a_key_become_windows() -> None:
    lowered = without_sessions(Project(grouped(sessions(R), "k", "w"), (Item("n", Column("n"), "bigint"),)))
    assert not has_sessions(lowered)
    text = unparse(lowered)
    assert "LAG(" in text and "INTERVAL '5 minutes'" in text and "SESSION_WINDOW" not in text
    assert "IS NOT NULL" in text, "rows without a time are in no session"
    assert not has_sessions(without_sessions(grouped(sessions(R), "w"))), "no other key"


def test_filters_come_before_sessions() -> None:
    over_key = Filter(sessions(R), call(">", Column("x"), Literal("1")))
    assert not has_sessions(without_sessions(grouped(over_key, "k", "w")))
    over_session = Filter(sessions(R), call("IS NOT NULL", Column("w")))
    assert has_sessions(without_sessions(grouped(over_session, "k", "w")))


def test_what_is_left_alone() -> None:
    assert has_sessions(without_sessions(sessions(R))), "not grouped"
    by_column = Generate(R, call(SESSION, Column("ts"), Column("x")), (W,))
    assert has_sessions(without_sessions(grouped(by_column, "k", "w"))), "another gap for each row"
