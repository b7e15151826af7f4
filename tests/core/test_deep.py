"""Definitions as long and as deep as programs write them."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator

import pytest
from fake_catalog import FakeCatalog
from reading import TABLES, bound

from viewkeeper.algebra import node
from viewkeeper.algebra.codec import decode, encode
from viewkeeper.changes.propagate import change
from viewkeeper.changes.stored import stored_form, why_not_maintainable
from viewkeeper.errors import SqlError
from viewkeeper.sql.bind import bind
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import evaluate

pytestmark = pytest.mark.core

MANY = 400
DEEP = {
    "or": "SELECT a FROM r WHERE " + " OR ".join(f"a BETWEEN {3 * i} AND {3 * i + 1}" for i in range(MANY)),
    "and": "SELECT a FROM r WHERE " + " AND ".join(f"a <> {i + 5}" for i in range(MANY)),
    "sum": "SELECT " + " + ".join(["a"] * MANY) + " AS a FROM r",
    "concatenation": "SELECT " + " || ".join(["s"] * MANY) + " AS a FROM r",
    "union all": " UNION ALL ".join(f"SELECT a + {i} AS a FROM r" for i in range(MANY // 2)),
    "calls": "SELECT " + "abs(" * 100 + "a" + ")" * 100 + " AS a FROM r",
}


@pytest.fixture(autouse=True)
def _limit_of_python() -> Iterator[None]:
    """As it is in a fresh process."""
    usual = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(usual)


@pytest.mark.parametrize("sql", DEEP.values(), ids=DEEP)
def test_deep_definitions(sql: str) -> None:
    definition = bound(sql, ("a",))
    form = stored_form(decode(json.loads(json.dumps(encode(definition)))), "backing")
    assert why_not_maintainable(form, {}) is None
    assert unparse(change(definition, {"r": "any"}))


def test_rows_of_deep_definitions() -> None:
    assert sum(evaluate(bound(DEEP["and"], ("a",)), TABLES).values()) == 5
    assert evaluate(bound(DEEP["sum"], ("a",)), TABLES)[(3 * MANY,)] == 1


def test_too_deep(monkeypatch: pytest.MonkeyPatch) -> None:
    """Even where Python gives up, it is a refusal with a reason."""
    monkeypatch.setattr(node, "_DEPTH", 1000)
    with pytest.raises(SqlError, match="nested too deeply"):
        parse_query(DEEP["calls"])
    reason = bind(parse_query(DEEP["concatenation"]), FakeCatalog(), ("a",))
    assert str(reason).startswith("this query: it is nested too deeply")
