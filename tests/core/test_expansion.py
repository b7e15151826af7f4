"""Texts with views and functions spelled out, and the way back to the text as it was written."""

from __future__ import annotations

import pytest

from viewkeeper.errors import Position
from viewkeeper.sql.expansion import Expanded, FunctionCall, Piece, calls, with_arguments, without_schemas
from viewkeeper.sql.parse import parse_query

pytestmark = pytest.mark.core


def test_calls_and_their_arguments() -> None:
    text = "SELECT area(a, b * (c + 1)), x.f(1), 'f(2)', g( ) FROM t"
    assert list(calls(text)) == [
        FunctionCall("area", ("a", " b * (c + 1)"), 7, 27),
        FunctionCall("g", (), text.index("g("), text.index(" FROM")),
    ]


def test_parameters_are_replaced_by_name() -> None:
    assert with_arguments("w * W + 'w' + `w` + ww", {"w": "(1)"}) == "(1) * (1) + 'w' + `w` + ww"


def test_the_way_back() -> None:
    written = "SELECT a\nFROM v, w\nWHERE rand() > 1"
    start = written.index("v,")
    expanded = Expanded(
        written, (Piece(start, start + 1, "(SELECT x\nFROM t) AS v"), Piece(start + 3, start + 4, "(y)"))
    )
    assert expanded.text == "SELECT a\nFROM (SELECT x\nFROM t) AS v, (y)\nWHERE rand() > 1"
    assert expanded.origin(Position(1, 8)) == Position(1, 8)
    assert expanded.origin(Position(3, 2)) == Position(2, 6), "inside of the view"
    assert expanded.origin(Position(3, 16)) == Position(2, 9), "inside of the second one"
    assert expanded.origin(Position(4, 7)) == Position(3, 7)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT shop.r.a, shop.r.s.x FROM shop.r", "SELECT `r`.a, `r`.s.x FROM shop.r"),
        ("SELECT shop.r.* FROM r WHERE `main`.Shop.r.a > 0", "SELECT `r`.* FROM r WHERE `r`.a > 0"),
        (
            "SELECT (SELECT max(shop.s.a) FROM s WHERE s.b = shop.r.b) FROM r",
            "SELECT (SELECT max(`s`.a) FROM s WHERE s.b = `r`.b) FROM r",
        ),
        ("SELECT r.shop.a, shop.r FROM r", None),  # a field of a struct, a column
        ("SELECT x.r.a FROM shop.r AS x", None),
        ("WITH r AS (SELECT 1 AS a) SELECT shop.r.a FROM r, shop.r", None),  # its name would not do
        (
            "SELECT other.r.a, shop.r.b, c FROM r, other.r",
            "SELECT `r_2`.a, `r_1`.b, c FROM r AS `r_1`, other.r AS `r_2`",
        ),
        ("SELECT other.r.a, r.b FROM shop.r, other.r", None),
    ],
)
def test_a_column_is_called_by_its_table_alone(query: str, expected: str | None) -> None:
    pieces = without_schemas(parse_query(query), lambda parts: ("main", "shop")[: 3 - len(parts)] + parts)
    assert Expanded(query, tuple(sorted(pieces, key=lambda piece: piece.start))).text == (expected or query)
