"""The reference interpreter itself, by cases small enough to see; DuckDB checks the rest."""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from viewkeeper.algebra.relations import Aggregate, Changes, Field, Item, Join, JoinKind, Measure, Project, Scan
from viewkeeper.algebra.relations import ScanColumn as Col
from viewkeeper.algebra.scalars import ONE, Column, Literal, Scalar, Verbatim, call
from viewkeeper.changes.states import average
from viewkeeper.testing import values
from viewkeeper.testing.bags import TableStates, evaluate, measured, signed
from viewkeeper.testing.values import Row, Value, cast, compiled, fits, literal

pytestmark = pytest.mark.core

THREE = (True, False, None)


def value_of(scalar: Scalar, **columns: Value) -> Value:
    return compiled(scalar, tuple(columns))(tuple(columns.values()))


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("1", 1),
        ("-2", -2),
        ("1.50", Decimal("1.50")),
        ("1.5D", 1.5),
        ("NULL", None),
        ("true", True),
        ("FALSE", False),
        ("'a'", "a"),
        (r"'it\'s'", "it's"),
        ("'it''s'", "it's"),
        (r"'a\\b'", r"a\b"),
        ("''", ""),
    ],
)
def test_literals(sql: str, expected: Value) -> None:
    assert literal(sql) == expected
    assert type(literal(sql)) is type(expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("AND", [True, False, None, False, False, False, None, False, None]),
        ("OR", [True, True, True, True, False, None, True, None, None]),
        ("=", [True, False, None, False, True, None, None, None, None]),
        ("<=>", [True, False, False, False, True, False, False, False, True]),
    ],
)
def test_three_valued_logic(name: str, expected: list[Value]) -> None:
    found = [value_of(call(name, Column("a"), Column("b")), a=a, b=b) for a in THREE for b in THREE]
    assert found == expected


def test_functions_and_null() -> None:
    null, one = Literal("NULL"), ONE
    expected: dict[Scalar, Value] = {
        call("NOT", null): None,
        call("IS NULL", null): True,
        call("IS NOT NULL", null): False,
        call("+", null, one): None,
        call("IF", null, one, Literal("2")): 2,
        call("COALESCE", null, one): 1,
        call("COALESCE", null, null): None,
        call("LEAST", null, Literal("2"), one): 1,
        call("GREATEST", null, null): None,
        call("NULLIF", one, one): None,
        call("NULLIF", one, null): 1,
        call("ABS", Literal("-3")): 3,
        call("-", Literal("-3")): 3,
        call("/", one, Literal("2")): 0.5,
        call("+", Literal("1.25"), one): Decimal("2.25"),
        call("<", Literal("'a'"), Literal("'b'")): True,
    }
    for scalar, value in expected.items():
        assert value_of(scalar) == value, scalar


@pytest.mark.parametrize(
    ("value", "type_", "expected"),
    [
        (Decimal("2.345"), "decimal(10,2)", Decimal("2.35")),
        (Decimal("-2.345"), "decimal(10,2)", Decimal("-2.35")),
        (Decimal("2.3449999"), "decimal(10,2)", Decimal("2.34")),
        (7, "decimal(10,2)", Decimal("7.00")),
        (0.5, "decimal(10,2)", Decimal("0.50")),
        ("1.5", "decimal(10,1)", Decimal("1.5")),
        (Decimal("-1.9"), "bigint", -1),
        (2.9, "bigint", 2),
        ("12", "int", 12),
        (True, "bigint", 1),
        (Decimal("1.50"), "double", 1.5),
        (Decimal("1.50"), "string", "1.50"),
        (True, "string", "true"),
        (0, "boolean", False),
        ("true", "boolean", True),
        (None, "bigint", None),
    ],
)
def test_casts(value: Value, type_: str, expected: Value) -> None:
    assert cast(value, type_) == expected
    assert fits(cast(value, type_), type_)


@pytest.mark.parametrize(("value", "type_"), [(Decimal(1000), "decimal(5,2)"), (2**63, "bigint"), (128, "tinyint")])
def test_what_does_not_fit_is_an_error(value: Value, type_: str) -> None:
    assert not fits(value, type_)
    with pytest.raises(OverflowError):
        cast(value, type_)


@pytest.mark.parametrize(
    ("value", "type_"),
    [
        (1.5, "bigint"),
        (True, "bigint"),
        (Decimal("1.5"), "bigint"),
        ("1", "bigint"),
        (Decimal("0.001"), "decimal(5,2)"),
        (1.5, "decimal(5,2)"),
        (1, "string"),
        (1, "boolean"),
        (Decimal(1), "double"),
    ],
)
def test_values_of_another_type_are_seen(value: Value, type_: str) -> None:
    assert not fits(value, type_)


def test_words_of_spark_are_not_guessed() -> None:
    for scalar in (Verbatim(("rand()",), ()), call("SOUNDEX", ONE)):
        with pytest.raises(NotImplementedError):
            value_of(scalar)


@pytest.mark.parametrize(
    ("function", "type_", "expected", "distinct", "of_nothing"),
    [
        ("count", "bigint", 3, 2, 0),
        ("sum", "bigint", 5, 3, None),
        ("avg", "double", 5 / 3, 1.5, None),
        ("min", "bigint", 1, 1, None),
        ("max", "bigint", 2, 2, None),
        ("bit_and", "bigint", 0, 0, None),
        ("bit_or", "bigint", 3, 3, None),
        ("bit_xor", "bigint", 1, 3, None),
    ],
)
def test_aggregates(function: str, type_: str, expected: Value, distinct: Value, of_nothing: Value) -> None:
    rows: Counter[Row] = Counter([(2,), (2,), (1,), (None,)])
    measure = Measure("m", function, ("x",), type_)
    assert measured(measure, ("x",), rows) == expected
    assert measured(Measure("m", function, ("x",), type_, distinct=True), ("x",), rows) == distinct
    assert measured(measure, ("x",), Counter([(None,)])) == of_nothing


@pytest.mark.parametrize("function", ["bool_and", "every", "bool_or", "any", "some", "count_if"])
def test_aggregates_of_booleans(function: str) -> None:
    expected = {"count_if": 1}.get(function, function in ("bool_or", "any", "some"))
    measure = Measure("m", function, ("x",), "bigint" if function == "count_if" else "boolean")
    assert measured(measure, ("x",), Counter([(True,), (False,), (None,)])) == expected


def test_aggregate_arguments() -> None:
    rows: Counter[Row] = Counter([(1, 2, True), (1, None, True), (1, 2, None), (3, 4, False)])
    columns = ("x", "y", "w")
    assert measured(Measure("m", "count", (), "bigint"), columns, rows) == 4
    assert measured(Measure("m", "count", (), "bigint", where="w"), columns, rows) == 2
    assert measured(Measure("m", "count", ("x", "y"), "bigint"), columns, rows) == 3
    assert measured(Measure("m", "count", ("x", "y"), "bigint", distinct=True), columns, rows) == 2
    assert measured(Measure("m", "sum", ("x",), "bigint", where="w"), columns, rows) == 2


TABLES = {
    "l": TableStates(("k",), Counter(), Counter([(1,), (1,), (2,), (None,)])),
    "r": TableStates(("k",), Counter([(1,), (9,)]), Counter([(1,), (1,), (3,)])),
}
L, R = Scan("l", (Col("k", "x", "bigint"),)), Scan("r", (Col("k", "y", "bigint"),))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("inner", {(1, 1): 4}),
        ("left", {(1, 1): 4, (2, None): 1, (None, None): 1}),
        ("full", {(1, 1): 4, (2, None): 1, (None, None): 1, (None, 3): 1}),
        ("semi", {(1,): 2}),
        ("anti", {(2,): 1, (None,): 1}),
    ],
)
def test_joins(kind: JoinKind, expected: dict[Row, int]) -> None:
    assert evaluate(Join(L, R, kind, call("=", Column("x"), Column("y"))), TABLES) == expected


def test_states_and_changes() -> None:
    old = Scan("r", R.columns, "old")
    assert evaluate(old, TABLES) == {(1,): 1, (9,): 1}
    assert evaluate(Changes("r", R.columns), TABLES) == {(1, 1): 1, (3, 1): 1, (9, -1): 1}
    fed = TableStates(("k",), Counter(), Counter([(1,)]), (((1,), 1), ((2,), 1), ((2,), -1)))
    assert evaluate(Changes("r", R.columns), {"r": fed}) == {(1, 1): 1, (2, 1): 1, (2, -1): 1}
    assert signed(Changes("r", R.columns), {"r": fed}) == {(1,): 1}


def test_groups() -> None:
    count = Measure("n", "count", (), "bigint")
    assert evaluate(Aggregate(L, ("x",), (count,)), TABLES) == {(1, 2): 1, (2, 1): 1, (None, 1): 1}
    assert evaluate(Aggregate(L, (), (count,)), TABLES) == {(4,): 1}
    nothing = {"l": TableStates(("k",), Counter(), Counter())}
    assert evaluate(Aggregate(L, (), (count,)), nothing) == {(0,): 1}
    assert evaluate(Aggregate(L, ("x",), (count,)), nothing) == {}


def test_a_wrong_type_is_seen() -> None:
    with pytest.raises(AssertionError, match="h is no string: 1"):
        evaluate(Project(L, (Item("h", ONE, "string"),)), TABLES)
    assert Field("h", "string").type == "string"


# An average is exact even where division is not


@given(st.integers(-(10**8), 10**8), st.integers(0, 10**4))
@example(1, 20_000)  # 0.00005, half of the last place
@example(-1, 20_000)
@example(249_999, 5)
def test_average_is_rounded_once(cents: int, count: int) -> None:
    """Of decimal(10,2), so to six places, with a division that rounds to seven first."""
    total, exact = Decimal(cents).scaleb(-2), Fraction(cents, 100 * max(count, 1))
    scalar = average(Column("total"), Column("n"), "decimal(10,2)", "decimal(14,6)")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(values, "divide", _to_seven_places)
        found = value_of(scalar, total=total if count else None, n=count)
    if count == 0:
        assert found is None
        return
    sign = -1 if exact < 0 else 1
    micro = int(abs(exact) * 10**6 + Fraction(1, 2))  # half away from zero
    assert found == sign * Decimal(micro).scaleb(-6)


def _to_seven_places(left: Decimal, right: Decimal) -> Decimal:
    return values.EXACT.divide(left, right).quantize(Decimal("1e-7"), context=values.EXACT)


def test_average_of_integers_is_a_double() -> None:
    found = value_of(average(Column("t"), Column("n"), "bigint", "double"), t=Decimal(5), n=3)
    assert found == 5 / 3
    assert value_of(average(Column("t"), Column("n"), "bigint", "double"), t=None, n=0) is None
