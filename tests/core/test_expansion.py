"""Texts with views and functions spelled out, and the way back to the text as it was written."""

from __future__ import annotations

import pytest

from viewkeeper.errors import Position
from viewkeeper.sql.expansion import Expanded, FunctionCall, Piece, calls, with_arguments

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
