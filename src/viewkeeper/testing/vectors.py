"""Worked examples of the papers, as data."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Literal as OneOf

from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Item,
    Join,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    pass_through,
)
from viewkeeper.algebra.scalars import Column, Literal, call
from viewkeeper.testing.bags import TableStates
from viewkeeper.testing.values import Row

Columns = tuple[tuple[str, str], ...]


def scan(table: str, columns: Columns, prefix: str = "") -> Scan:
    return Scan(table, tuple(ScanColumn(name, prefix + name, type_) for name, type_ in columns))


def states(columns: Columns, old: Sequence[Row], new: Sequence[Row]) -> TableStates:
    return TableStates(tuple(name for name, _ in columns), Counter(old), Counter(new))


# Blakeley, Larson, Tompa 1986, example 5.1: a counter for each row of a projection

COUNTED: Columns = (("A", "bigint"), ("B", "bigint"))
COUNTED_ROWS: tuple[Row, ...] = ((1, 10), (2, 10), (3, 20))


def projection() -> Relation:
    """v = π_B(r), without duplicates."""
    rows = scan("r", COUNTED)
    return Aggregate(Project(rows, pass_through(rows.schema[1:])), ("B",), ())


# The same paper, section 5.3: what the tags of two joined rows say of the pair

Tag = OneOf["insert", "delete", "old"]
TAGS: Mapping[tuple[Tag, Tag], Tag | OneOf["ignore"]] = {
    ("insert", "insert"): "insert",
    ("insert", "delete"): "ignore",
    ("insert", "old"): "insert",
    ("delete", "insert"): "ignore",
    ("delete", "delete"): "delete",
    ("delete", "old"): "delete",
    ("old", "insert"): "insert",
    ("old", "delete"): "delete",
    ("old", "old"): "old",
}


def truth_table(changed: Sequence[bool]) -> dict[int, tuple[bool, ...]]:
    """The rows, by number, that say which tables of a join give their change to a term; 2^k - 1 for k changed."""
    rows = enumerate(product((False, True), repeat=len(changed)), 1)
    allowed = {n: row for n, row in rows if all(c or not r for r, c in zip(row, changed, strict=True))}
    return {n: row for n, row in allowed.items() if any(row)}


# Gupta 1999, figures 4.2 and 4.3: sales by category, over sales by store and item that are not kept

SALES: Columns = (("storeID", "string"), ("itemID", "string"), ("date", "string"), ("price", "bigint"))
ITEMS: Columns = (("itemID", "string"), ("category", "string"))
SALES_ROWS: tuple[Row, ...] = (
    ("NY1", "I1", "1995-01-03", 110),
    ("NY2", "I2", "1995-07-03", 200),
    ("NY2", "I2", "1995-03-01", 280),
    ("SJ1", "I1", "1995-01-01", 100),
)
SALES_INSERTED: tuple[Row, ...] = (
    ("NY1", "I1", "1995-01-04", 70),
    ("NY1", "I1", "1995-01-05", 50),
    ("NY2", "I2", "1995-07-03", 50),
    ("NY3", "I3", "1992-01-01", 100),
    ("MA1", "I4", "1995-07-03", 50),
)
ITEM_ROWS: tuple[Row, ...] = (("I1", "C1"), ("I1", "C2"), ("I2", "C1"), ("I2", "C3"))
CATEGORY_SALES: Mapping[str, Row] = {"C1": (690, 4), "C2": (210, 2), "C3": (480, 2)}
CATEGORY_CHANGES: Mapping[str, Row] = {"C1": (170, 3), "C2": (120, 2), "C3": (50, 1)}
CATEGORY_SALES_AFTER: Mapping[str, Row] = {"C1": (860, 7), "C2": (330, 4), "C3": (530, 3)}


def store_item_sales(comparison: str = ">=") -> Relation:
    """SISales. The thesis prints `date > '1995-01-01'`; its own numbers hold with `>=`."""
    recent = Filter(scan("sales", SALES), call(comparison, Column("date"), Literal("'1995-01-01'")))
    measures = (Measure("SumSI", "sum", ("price",), "bigint"), Measure("NumSI", "count", (), "bigint"))
    return Aggregate(recent, ("storeID", "itemID"), measures)


def category_sales(sales: Relation) -> Relation:
    """CategorySales over SISales."""
    matches = call("=", Column("itemID"), Column("i_itemID"))
    joined = Join(sales, scan("items", ITEMS, "i_"), "inner", matches)
    measures = (Measure("revenue", "sum", ("SumSI",), "bigint"), Measure("sold", "sum", ("NumSI",), "bigint"))
    shown = (Item("category", Column("i_category"), "string"), *pass_through(sales.schema[-2:]))
    return Aggregate(Project(joined, shown), ("category",), measures)
