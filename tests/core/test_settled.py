"""What may come out in several ways comes out in one, which the definition allows."""

from __future__ import annotations

import re
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.aggregates import why_not_additive
from viewkeeper.algebra.identity import identity, is_comparable, why_no_identity
from viewkeeper.algebra.orders import is_settled, without_ties
from viewkeeper.algebra.relations import (
    Aggregate,
    Item,
    Measure,
    Ordering,
    Project,
    Scan,
    ScanColumn,
    Window,
    WindowColumn,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import Cast, Column, Literal
from viewkeeper.algebra.settled import in_order, settled, why_not_settled
from viewkeeper.changes.kept import KeptBag
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form, why_not_maintainable
from viewkeeper.changes.weights import net, weighted
from viewkeeper.errors import Position
from viewkeeper.sql.render import render
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import TableStates, evaluate

pytestmark = pytest.mark.core

R = Scan("r", (ScanColumn("g", "g", "bigint"), ScanColumn("x", "x", "double"), ScanColumn("f", "f", "boolean")))
ROWS = st.lists(
    st.tuples(
        st.sampled_from([1, 2, None]), st.sampled_from([1e20, 1.0, -1e20, 0.1, None]), st.sampled_from([True, False])
    ),
    max_size=8,
)


def grouped(*measures: Measure) -> Aggregate:
    rel = settled(Aggregate(R, ("g",), measures))
    assert isinstance(rel, Aggregate)
    return rel


@given(ROWS, st.randoms())
def test_sums_do_not_depend_on_the_order_of_rows(rows: list[tuple[object, ...]], order: object) -> None:
    rel = grouped(Measure("s", "sum", ("x",), "double"), Measure("m", "avg", ("x",), "double", where="f"))
    mixed = list(rows)
    order.shuffle(mixed)  # type: ignore[attr-defined]
    first, second = (evaluate(rel, {"r": TableStates(names(R), Counter(), Counter(some))}) for some in (rows, mixed))
    assert first == second


def test_a_constant_is_added_up_only_where_the_filter_holds() -> None:
    half = Project(R, (*pass_through(R.schema), Item("half", Cast(Literal("0.5"), "double"), "double")))
    rel = settled(Aggregate(half, ("g",), (Measure("s", "sum", ("half",), "double", where="f"),)))
    rows = Counter([(1, None, True), (1, None, False), (2, None, False)])
    assert evaluate(rel, {"r": TableStates(names(R), Counter(), rows)}) == Counter([(1, 0.5), (2, None)])
    assert "SUM(IF(" in unparse(rel)


def test_how_settled_measures_are_written() -> None:
    text = unparse(grouped(Measure("s", "sum", ("x",), "double", where="f")))
    assert "SUM(" in text and "OVER (PARTITION BY" in text and "MAX(" in text
    assert "SORT_ARRAY(COLLECT_LIST(" in unparse(grouped(Measure("l", "collect_list", ("x",), "array<double>")))
    assert "MIN(`r`.`x`)" in unparse(grouped(Measure("l", "first", ("x",), "double")))
    plain = Measure("n", "count", ("x",), "bigint")
    assert in_order(grouped(plain)) == Aggregate(R, ("g",), (plain,))


def test_a_constant_argument_stays_one_beside_a_sum_over_a_window() -> None:
    listed = Project(R, (*pass_through(R.schema), Item("by", Literal("'-'"), "string")))
    measures = (
        Measure("m", "mode", ("x",), "double"),
        Measure("s", "sum", ("x",), "double"),
        Measure("l", "string_agg", ("g", "by"), "string"),
    )
    text = unparse(settled(Aggregate(listed, ("g",), measures)))
    assert re.search(r"MODE\(`\w+`\.`x`, TRUE\)", text) and "OVER (" in text
    assert re.search(r"STRING_AGG\(`\w+`\.`g`, '-'\)", text)


def test_a_histogram_of_few_rows_depends_on_their_order_and_is_settled_wherever_it_stands() -> None:
    counted = Project(R, (*pass_through(R.schema), Item("n", Literal("3"), "int")))
    for distinct in (False, True):
        drawn = Measure("h", "histogram_numeric", ("x", "n"), "array<struct<x:double,y:double>>", distinct=distinct)
        text = unparse(stored_form(Aggregate(counted, ("g",), (drawn,)), "v").kept.content)
        assert ("OVER (PARTITION BY" in text) is not distinct  # over windows Spark knows no DISTINCT


def test_a_constant_argument_stays_one_where_only_touched_groups_are_computed() -> None:
    """The window that a histogram needs stands between a percentile and its constant, and touched keys below it."""
    counted = Project(
        R, (*pass_through(R.schema), *(Item(n, Literal(v), "int") for n, v in (("n", "3"), ("p", "0.5"))))
    )
    measures = (
        Measure("h", "histogram_numeric", ("x", "n"), "array<struct<x:double,y:double>>"),
        Measure("m", "approx_percentile", ("x", "p"), "double"),
    )
    kept = stored_form(Aggregate(counted, ("g",), measures), "v").kept
    text = unparse(maintenance(kept, {"r": "any"}).change)
    assert "OVER (" in text and re.search(r"APPROX_PERCENTILE\(`\w+`\.`x`, 0.5\)", text), text


def test_what_cannot_be_settled_says_why() -> None:
    maps = Scan("r", (ScanColumn("m", "m", "map<string,int>"), ScanColumn("x", "x", "double")))
    assert why_not_settled(Aggregate(maps, (), (Measure("l", "collect_list", ("m",), "array<map<string,int>>"),)))
    assert why_not_settled(Aggregate(maps, (), (Measure("s", "sum", ("x",), "double", distinct=True),)))
    assert why_not_settled(Aggregate(maps, (), (Measure("s", "sum", ("x",), "double"),))) is None


def window(function: str, frame: str = "", ordered: bool = True) -> Window:
    order = (Ordering("g"),) if ordered else ()
    return Window(R, ("f",), order, (WindowColumn("w", function, (Column("x"),), "double", frame),))


@given(ROWS, st.sampled_from(["LAST_VALUE", "FIRST_VALUE", "SUM"]), st.booleans())
def test_windows_over_equal_rows_take_them_all_in(rows: list[tuple[object, ...]], function: str, ordered: bool) -> None:
    """As the default frame says: up to the last row that is equal in the order."""
    rel = without_ties(window(function, ordered=ordered))
    tables = {"r": TableStates(names(R), Counter(), Counter(rows))}
    found = evaluate(rel, tables)
    assert names(rel) == names(window(function))
    for row, _ in found.items():
        peers = {other[3] for other in found if other[2] == row[2] and (not ordered or other[0] == row[0])}
        assert len(peers) == 1, "equal rows have equal frames"
    assert all(is_settled(c) for w in _windows(rel) for c in w.columns)


def _windows(rel: object) -> list[Window]:
    found = []
    while not isinstance(rel, Scan):
        if isinstance(rel, Window):
            found.append(rel)
        assert isinstance(rel, Window | Project)
        rel = rel.input
    return found


@given(
    rows=ROWS,
    order=st.randoms(),
    function=st.sampled_from(["SUM", "AVG", "FIRST_VALUE", "LAST_VALUE"]),
    edges=st.sampled_from(
        [("1 PRECEDING", "CURRENT ROW"), ("UNBOUNDED PRECEDING", "1 FOLLOWING"), ("1 FOLLOWING", "2 FOLLOWING")]
    ),
    descending=st.booleans(),
)
def test_frames_by_distance_do_not_depend_on_the_order_of_rows(
    rows: list[tuple[object, ...]], order: object, function: str, edges: tuple[str, str], descending: bool
) -> None:
    frame = f"RANGE BETWEEN {edges[0]} AND {edges[1]}"
    by = (Ordering("g", descending),)
    given_ = Window(R, ("f",), by, (WindowColumn("w", function, (Column("x"),), "double", frame),))
    rel = without_ties(given_)
    assert names(rel) == names(given_) and all(is_settled(c) for w in _windows(rel) for c in w.columns)
    mixed = list(rows)
    order.shuffle(mixed)  # type: ignore[attr-defined]
    first, second = (evaluate(rel, {"r": TableStates(names(R), Counter(), Counter(some))}) for some in (rows, mixed))
    assert first == second


@given(
    rows=st.lists(
        st.tuples(st.sampled_from([1, 2, 3, 5, None]), st.sampled_from([1.0, 2.0, 0.5, None]), st.booleans())
    ),
    function=st.sampled_from(["SUM", "AVG"]),
    where=st.sampled_from([None, Column("f")]),
    frame=st.sampled_from(
        ["2 PRECEDING AND CURRENT ROW", "1 PRECEDING AND 1 FOLLOWING", "1 FOLLOWING AND 3 FOLLOWING"]
    ),
)
def test_sums_by_distance_are_those_of_the_frame(
    rows: list[tuple[object, ...]], function: str, where: Column | None, frame: str
) -> None:
    """Of numbers whose sums are exact in any order."""
    column = WindowColumn("w", function, (Column("x"),), "double", f"RANGE BETWEEN {frame}", where=where)
    rel = Window(R, (), (Ordering("g"),), (column,))
    tables = {"r": TableStates(names(R), Counter(), Counter(rows))}
    assert evaluate(without_ties(rel), tables) == evaluate(rel, tables)


def test_another_function_over_a_frame_by_distance_is_left_alone() -> None:
    rel = window("STDDEV", "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW")
    assert without_ties(rel) == rel and not is_settled(rel.columns[0])


def test_what_has_no_order_stays_as_it_is() -> None:
    rel = Scan("v", (ScanColumn("g", "g", "int"), ScanColumn("x", "x", "variant")))
    picked = Aggregate(
        rel, ("g",), (Measure("l", "collect_list", ("x",), "array<variant>"), Measure("f", "first", ("g",), "int"))
    )
    (listed, first) = settled(picked).measures  # type: ignore[attr-defined]
    assert not listed.settled and first.settled


def test_groups_of_which_a_table_could_not_hold_all_are_kept_as_rows() -> None:
    rel = Scan("t", (ScanColumn("g", "g", "int"), ScanColumn("x", "x", "interval day to second")))
    lasted = Aggregate(rel, ("g",), (Measure("s", "sum", ("x",), "interval day to second"),))
    shown = Project(lasted, (Item("g", Column("g"), "int"), Item("s", Cast(Column("s"), "string"), "string")))
    assert isinstance(stored_form(shown, "v").kept, KeptBag)


def test_a_refusal_says_where() -> None:
    place = Position(3, 14)
    over = window("STDDEV", "RANGE BETWEEN 3 PRECEDING AND CURRENT ROW")
    listed = Aggregate(R, ("g",), (Measure("s", "sum", ("x",), "double", distinct=True),))
    most = Aggregate(listed, (), (Measure("most", "max", ("s",), "double"),))
    by_map = Aggregate(Scan("r", (ScanColumn("m", "__vk_m", "map<string,int>"),)), ("__vk_m",), ())
    hidden = Project(by_map, (Item("x", Literal("1"), "int"),))
    for rel, name, construct in (
        (over, "w", "stddev() OVER"),
        (most, "s", "sum() inside"),
        (hidden, "__vk_m", "column m of type map"),
    ):
        reason = why_not_maintainable(stored_form(rel, "backing"), {name: place})
        assert reason is not None and reason.construct.startswith(construct) and reason.position == place


@pytest.mark.parametrize(
    ("type_", "text"),
    [
        ("bigint", "x"),
        ("interval day to second", "x"),
        (
            "map<string,int>",
            "SORT_ARRAY(TRANSFORM(MAP_ENTRIES(x), __vk_each_0 -> STRUCT(__vk_each_0.key, __vk_each_0.value)))",
        ),
        ("string collate UNICODE_CI", "(x COLLATE UTF8_BINARY)"),
        ("variant", "IF(x IS NULL, NULL, STRUCT(TO_JSON(x), SCHEMA_OF_VARIANT(x)))"),
        (
            "struct<a:int,b:array<variant>>",
            "IF(x IS NULL, NULL, STRUCT(x.`a`, TRANSFORM(x.`b`, __vk_each_1 -> IF(__vk_each_1 IS NULL, NULL, "
            "STRUCT(TO_JSON(__vk_each_1), SCHEMA_OF_VARIANT(__vk_each_1))))))",
        ),
    ],
)
def test_identities(type_: str, text: str) -> None:
    assert render(identity(Column("x"), type_), {"x": "x"}) == text
    assert is_comparable(type_) == (text == "x")


def test_rows_with_values_that_cannot_be_compared_are_netted_by_identity() -> None:
    rows = Scan("r", (ScanColumn("m", "m", "map<string,int>"), ScanColumn("a", "a", "int")))
    text = unparse(net(weighted(rows, 1)))
    assert "ANY_VALUE(" in text and "SORT_ARRAY(TRANSFORM(MAP_ENTRIES(" in text
    assert why_no_identity("geometry") and not why_no_identity("map<string,int>")


@pytest.mark.parametrize(
    ("function", "type_", "added"),
    [
        ("sum", "decimal(27,20)", True),
        ("sum", "decimal(32,4)", True),  # l_extendedprice * (1 - l_discount)
        ("sum", "decimal(38,6)", True),
        ("sum", "decimal(28,7)", False),
        ("avg", "decimal(18,2)", True),
        ("avg", "decimal(19,2)", False),
        ("sum", "double", True),
    ],
)
def test_what_is_added_up(function: str, type_: str, added: bool) -> None:
    assert (why_not_additive(function, type_, False) is None) == added
