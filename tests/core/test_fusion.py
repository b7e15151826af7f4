"""Aggregates over aggregates as one: the same rows, and changes that need no look at the inner groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.fusion import fused
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Item,
    Join,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    inputs,
)
from viewkeeper.algebra.scalars import Column, Literal, call
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.testing.bags import evaluate
from viewkeeper.testing.histories import SCHEMAS, History, histories
from viewkeeper.testing.strategies import relations

pytestmark = pytest.mark.core


def scan(table: str, suffix: str = "") -> Scan:
    return Scan(table, tuple(ScanColumn(c, c + suffix, t) for c, t in SCHEMAS[table]))


R, T = scan("r"), scan("t", "_2")
A, B = SCHEMAS["r"][0][0], SCHEMAS["r"][1][0]
INNER = Aggregate(
    R,
    (A,),
    (
        Measure("s", "sum", (B,), "bigint"),
        Measure("n", "count", (), "bigint"),
        Measure("m", "max", (B,), "bigint"),
        Measure("d", "count", (B,), "bigint", distinct=True),
    ),
)
JOINED = Join(INNER, T, "inner", call("<=>", Column(A), Column("a_2")))


def over(rows: Relation, *measures: Measure, by: tuple[str, ...] = ("a_2",)) -> Aggregate:
    return Aggregate(rows, by, measures)


SUM_OF_SUMS = Measure("x", "sum", ("s",), "bigint")
SUM_OF_COUNTS = Measure("y", "sum", ("n",), "bigint")
MAX_OF_MAX = Measure("z", "max", ("m",), "bigint")
FUSED = {
    "sums": over(JOINED, SUM_OF_SUMS, SUM_OF_COUNTS, MAX_OF_MAX),
    "no groups": over(INNER, SUM_OF_SUMS, MAX_OF_MAX, by=()),
    "filtered": over(Filter(JOINED, call("<", Column(A), Column("a_2"))), SUM_OF_COUNTS),
    "distinct keys": over(JOINED, Measure("k", "count", (A,), "bigint", distinct=True), SUM_OF_SUMS),
    "renamed": over(
        Project(JOINED, (Item("g", call("+", Column(A), Column(A)), "bigint"), Item("t", Column("s"), "bigint"))),
        Measure("x", "sum", ("t",), "bigint"),
        by=("g",),
    ),
}
NEEDED = {
    "rows counted": over(INNER, Measure("c", "count", (), "bigint"), by=(A,)),
    "sum of a key": over(INNER, Measure("c", "sum", (A,), "bigint"), by=()),
    "sum of the other side": over(JOINED, Measure("c", "sum", ("a_2",), "bigint"), by=()),
    "max of sums": over(INNER, Measure("c", "max", ("s",), "bigint"), by=()),
    "sum of max": over(INNER, Measure("c", "sum", ("m",), "bigint"), by=()),
    "sum of distinct counts": over(INNER, Measure("c", "sum", ("d",), "bigint"), by=()),
    "HAVING": over(Filter(INNER, call(">", Column("s"), Literal("1"))), SUM_OF_SUMS, by=()),
    "joined by a sum": over(Join(INNER, T, "inner", call("=", Column("s"), Column("a_2"))), SUM_OF_COUNTS, by=()),
    "computed": over(Project(INNER, (Item("t", call("+", Column("s"), Column("s")), "bigint"),)),
                     Measure("c", "sum", ("t",), "bigint"), by=()),
    "summed and looked at": over(Project(INNER, (Item("t", Column(A), "bigint"), Item("u", call("+", Column(A), Column(A)), "bigint"))),
                                 Measure("c", "sum", ("t",), "bigint"), by=("u",)),
    "grouped by a sum": over(INNER, SUM_OF_COUNTS, by=("s",)),
}  # fmt: skip


def aggregates(rel: Relation) -> int:
    return sum(isinstance(n, Aggregate) for n in walk(rel))


@pytest.mark.parametrize("name", FUSED)
@given(history=histories(steps=1))
def test_the_inner_groups_are_gone(name: str, history: History) -> None:
    assert aggregates(fused(FUSED[name])) == 1
    tables = history.between(0, 1)
    assert evaluate(fused(FUSED[name]), tables) == evaluate(FUSED[name], tables)


@pytest.mark.parametrize("name", NEEDED)
def test_where_they_must_be_known_they_stay(name: str) -> None:
    assert fused(NEEDED[name]) == NEEDED[name]


@given(relations(), histories(steps=1), st.sampled_from(["sum", "min", "max"]))
def test_any_relation_stays_the_same(rel: Relation, history: History, function: str) -> None:
    numbers = [f.name for f in rel.schema if f.type == "bigint"]
    measures = tuple(Measure(f"over_{n}", function, (n,), "bigint") for n in numbers)
    view = Aggregate(rel, () if measures else (rel.schema[0].name,), measures)
    assert evaluate(fused(view), history.between(0, 1)) == evaluate(view, history.between(0, 1))


# The example of the thesis: two views over a third one that nobody keeps


def table(name: str, **columns: str) -> Scan:
    return Scan(name, tuple(ScanColumn(c, f"{c}_of_{name}", t) for c, t in columns.items()))


SALES = table("sales", store="int", item="int", price="decimal(10,2)")
STORES, ITEMS = table("stores", store="int", city="string"), table("items", item="int", category="string")
BY_STORE_AND_ITEM = Aggregate(
    SALES,
    ("store_of_sales", "item_of_sales"),
    (Measure("total", "sum", ("price_of_sales",), "decimal(20,2)"), Measure("number", "count", (), "bigint")),
)
# sizes at 1/100 of those in the thesis
SIZES: dict[tuple[str, str], int] = {
    ("sales", "changes"): 100,
    ("sales", "state"): 10_000_000,
    ("stores", "state"): 10,
    ("items", "state"): 100,
}


def view(dimension: Scan, key: str, shown: str) -> Relation:
    joined = Join(
        BY_STORE_AND_ITEM,
        dimension,
        "inner",
        call("=", Column(f"{key}_of_sales"), Column(f"{key}_of_{dimension.table}")),
    )
    totals = (Measure("t", "sum", ("total",), "decimal(30,2)"), Measure("n", "sum", ("number",), "bigint"))
    return Aggregate(joined, (f"{shown}_of_{dimension.table}",), totals)


def read(rel: Relation) -> Iterator[int]:
    match rel:
        case Scan(name):
            yield SIZES[name, "state"]
        case Changes(name):
            yield SIZES[name, "changes"]
    for below in inputs(rel):
        yield from read(below)


def rows_read(definition: Relation) -> int:
    kept: Any = stored_form(definition, "v").kept
    return sum(read(maintenance(kept, {"sales": "any"}).change))


def test_new_sales_read_no_old_sales() -> None:
    """Changes, stores and items: 310 rows here, where insertions and deletions alone would read 6 230."""
    city, category = view(STORES, "store", "city"), view(ITEMS, "item", "category")
    assert rows_read(fused(city)) == 100 + 10
    assert rows_read(fused(category)) == 100 + 100
    assert rows_read(city) > 10_000_000
