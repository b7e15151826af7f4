"""Conditions on rows of this process mean what they mean in SQL."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pyarrow as pa
import pytest

from viewkeeper.algebra.conditions import terms
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Filter
from viewkeeper.algebra.scalars import Scalar, call, conjunction
from viewkeeper.here.conditions import fulfilling
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable, Source
from viewkeeper.sql.parse import parse_query

pytestmark = pytest.mark.core

TYPES = {"n": "int", "i": "int", "m": "decimal(15,2)", "s": "string", "x": "date", "y": "date", "f": "double"}
COLUMNS = {
    "n": pa.array([0, 1, 2, 3], pa.int32()),
    "i": pa.array([1, 2, None, -3], pa.int32()),
    "m": pa.array([Decimal("0.05"), Decimal("24.00"), None, Decimal("-7.25")], pa.decimal128(15, 2)),
    "s": pa.array(["green tea", "a%b", None, ""], pa.string()),
    "x": pa.array([date(1994, 1, 1), date(1994, 12, 31), None, date(1996, 2, 29)], pa.date32()),
    "y": pa.array([date(1995, 1, 1), date(1994, 12, 31), date(1990, 1, 1), None], pa.date32()),
    "f": pa.array([float("nan"), 1.0, None, -0.0], pa.float64()),
}
ROWS = pa.table(COLUMNS)


class _Catalog:
    def resolve(self, parts: tuple[str, ...]) -> Source:
        return DeltaTable("every", tuple(TYPES.items()))

    def columns(self, query: str) -> tuple[str, ...]:
        return tuple(TYPES)


def condition(text: str) -> Scalar:
    read = bind(parse_query(f"SELECT n FROM every WHERE {text}"), _Catalog(), ("n",))
    assert isinstance(read, Bound), str(read)
    return next(node.predicate for node in walk(read.as_read) if isinstance(node, Filter))


@pytest.mark.parametrize(
    ("text", "met", "not_met"),
    [
        ("i = 1", [0], [1, 3]),
        ("i <> 1.5", [0, 1, 3], []),
        ("m < 24", [0, 3], [1]),
        ("m >= 0.05", [0, 1], [3]),
        ("m > i", [1], [0, 3]),
        ("s = 'a%b'", [1], [0, 3]),
        ("s < 'b'", [1, 3], [0]),
        ("s LIKE '%green%'", [0], [1, 3]),
        ("s NOT LIKE 'green%'", [1, 3], [0]),
        ("s LIKE '%n%t%'", [0], [1, 3]),
        ("x < y", [0], [1]),
        ("x <= DATE '1994-12-31'", [0, 1], [3]),
        ("x < DATE '1994-01-01' + INTERVAL '1' YEAR", [0, 1], [3]),
        ("x = DATE '1996-03-31' - INTERVAL 1 MONTH", [3], [0, 1]),
        ("x > CAST('1994-04-01' AS DATE) - INTERVAL '90' DAY", [1, 3], [0]),
        ("x BETWEEN DATE '1994-01-01' AND DATE '1994-06-30'", [0], [1, 3]),
        ("i IN (1, 2, 7)", [0, 1], [3]),
        ("s IN ('', 'x')", [3], [0, 1]),
        ("i IS NULL", [2], [0, 1, 3]),
        ("f IS NOT NULL", [0, 1, 3], [2]),
        ("i = 1 OR s = ''", [0, 3], [1]),
        ("i = 1 AND m < 24", [0], [1, 3]),
        ("i > 0 OR y < DATE '1991-01-01'", [0, 1, 2], []),
        ("NOT (i = 1 AND x < y)", [1, 3], [0]),
    ],
)
def test_what_is_known_here_is_as_in_sql(text: str, met: list[int], not_met: list[int]) -> None:
    for asked, expected in ((text, met), (f"NOT ({text})", not_met)):
        rows, left = fulfilling(ROWS, TYPES, [condition(asked)])
        assert not left
        assert rows["n"].to_pylist() == expected, asked


@pytest.mark.parametrize(
    "text", ["f = 1.0", "f < i", "s ILIKE 'G%'", "s LIKE 'a_b'", "i = '1'", "length(s) = 3", "x = '1994-13-01'"]
)
def test_what_may_mean_something_else_is_left_to_spark(text: str) -> None:
    known, unknown = condition("i > 0"), condition(text)
    rows, left = fulfilling(ROWS, TYPES, [unknown, known])
    assert left == (unknown,)
    assert rows["n"].to_pylist() == [0, 1]


def test_numbers_of_too_many_digits_are_left_to_spark() -> None:
    rows = pa.table({"n": pa.array([Decimal(10) ** 37], pa.decimal128(38, 0))})
    asked = condition("n > 0.5")
    assert fulfilling(rows, {"n": "decimal(38,0)"}, [asked]) == (rows, (asked,))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("(i = 1 AND m > 2) OR (i = 1 AND s = 'a')", ["i = 1", "m > 2 OR s = 'a'"]),
        ("(i = 1 AND m > 2 AND n = 0) OR (n = 0 AND i = 1)", ["i = 1", "n = 0"]),
        ("(i = 1 AND m > 2) OR s = 'a'", ["(i = 1 AND m > 2) OR s = 'a'"]),
        ("n = 0 AND ((i = 1 AND m > 2) OR (i = 1 AND m < 1) OR (s = 'a' AND i = 1))",
         ["n = 0", "i = 1", "m > 2 OR m < 1 OR s = 'a'"]),
    ],
)  # fmt: skip
def test_what_all_alternatives_ask_for_is_a_term(text: str, expected: list[str]) -> None:
    found = terms(condition(text))
    assert found == [condition(term) for term in expected]
    for asked in (text, f"NOT ({text})"):
        whole, _ = fulfilling(ROWS, TYPES, [condition(asked)])
        by_terms, _ = fulfilling(ROWS, TYPES, found if asked == text else [call("NOT", conjunction(found))])
        assert whole["n"] == by_terms["n"]
