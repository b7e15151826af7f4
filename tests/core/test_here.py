"""What this process computes of few rows is what the algebra means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from types import SimpleNamespace

import pyarrow as pa
import pytest
from duck import comparable
from hypothesis import given

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Filter,
    Item,
    Measure,
    Relation,
    Scan,
    ScanColumn,
    Union,
    names,
)
from viewkeeper.algebra.scalars import Column, Literal, Scalar, call
from viewkeeper.changes.merge import MergeBag, MergeGroups, MergeTop
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import before
from viewkeeper.here.compute import Computer, can_compute
from viewkeeper.here.merge import comes_and_goes, merged_bag, merged_groups, merged_top
from viewkeeper.here.rows import RowsHere
from viewkeeper.here.types import arrow_type
from viewkeeper.here.values import value
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable
from viewkeeper.sql.parse import parse_query
from viewkeeper.store.columns import NotHereError
from viewkeeper.store.rows import Asked
from viewkeeper.testing.bags import Bag, Tables, apply, evaluate
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import Shape, changing_relations, changing_views
from viewkeeper.testing.values import Row

pytestmark = pytest.mark.core

Case = tuple[Relation, History]
SIMPLE = Shape(repeats=False, spark_only=False)


def table(rows: list[Row], columns: Iterable[tuple[str, str]]) -> pa.Table:
    fields = [(name, arrow_type(type_)) for name, type_ in columns]
    return pa.table(
        [pa.array([row[n] for row in rows], type_) for n, (_, type_) in enumerate(fields)], pa.schema(fields)
    )


@dataclass
class Leaves:
    tables: Tables

    def changed(self, leaf: Changes) -> pa.Table:
        rows = [(*row, weight) for row, weight in self.tables[leaf.table].changes]
        return table(rows, (*SCHEMAS[leaf.table], (WEIGHT, "bigint")))

    def state(self, leaf: Scan, asked: Asked | None) -> pa.Table:
        states = self.tables[leaf.table]
        rows = table([*(states.old if leaf.state == "old" else states.new).elements()], SCHEMAS[leaf.table])
        return rows if asked is None else rows.filter(pa.array(asked.meet(rows.select(asked.columns))))


def rows_of(rel: Relation, tables: Tables) -> RowsHere | None:
    """The rows as this process has them; None if it leaves them to Spark."""

    try:
        return Computer(Leaves(tables), 1_000).rows(rel)
    except NotHereError:
        return None


def bag(rows: RowsHere | None, columns: tuple[str, ...]) -> Bag | None:
    if rows is None:
        return None
    values = [rows.columns[name].to_pylist() for name in columns]
    return comparable(Counter(zip(*values, strict=True) if values else [()] * rows.count))


def check(rel: Relation, tables: Tables) -> None:
    assert bag(rows_of(rel, tables), names(rel)) in (None, comparable(evaluate(rel, tables)))


@given(case=changing_relations(SIMPLE))
def test_any_relation(case: Case) -> None:
    rel, history = case
    check(rel, history.between(0, 1))


@given(case=changing_relations(SIMPLE))
def test_changes(case: Case) -> None:
    rel, history = case
    check(change(rel, history.changed(0, 1)), history.between(0, 1))


@given(case=changing_views(SIMPLE))
def test_a_view_after_its_change(case: Case) -> None:
    definition, history = case
    kept = stored_form(definition, "__vk_v").kept
    tables, step = history.between(0, 1), maintenance(kept, history.changed(0, 1))
    found = rows_of(step.change, tables)
    merge = {MergeGroups: merged_groups, MergeBag: merged_bag, MergeTop: merged_top}[type(step.merge)]
    if found is None or step.nothing:
        return
    old = evaluate(before(kept.content, history.changed(0, 1)), tables)
    try:
        held = RowsHere.of(table(list(old.elements()), [(f.name, f.type) for f in kept.content.schema]))
        merged = merge(held, found, step.merge)
    except NotHereError:
        return
    after = evaluate(kept.content, tables)
    if isinstance(step.merge, MergeTop):  # of the reserve there may be less
        after = apply(step.merge, old, evaluate(step.change, tables), names(step.change))
        assert after is not None
    rows = merged.rows(held)
    assert bag(rows, names(kept.content)) == comparable(after)
    assert rows.count - held.count == merged.came - merged.went


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ([], False),
        ([("a", 1, 1), ("a", 2, -1), (None, 1, 1)], False),
        ([("a", 1, 1), ("b", 1, -2), ("a", 1, -1)], True),
        ([("a", None, 1), ("b", None, -1)], False),
        ([("a", None, -1), (None, None, 1), ("a", None, 1)], True),
    ],
)
def test_whether_a_key_comes_and_goes(rows: list[tuple[str | None, int | None, int]], told: bool) -> None:
    k, n, weights = zip(*rows, strict=True) if rows else ((), (), ())
    columns = {"k": pa.array(k, pa.string()), "n": pa.array(n, pa.int64()), WEIGHT: pa.array(weights, pa.int64())}
    assert comes_and_goes(RowsHere(columns, len(rows)), ["k", "n"]) is told


def test_what_is_known_of_no_rows_is_known_of_some() -> None:
    every = Scan("t", (ScanColumn("a", "a", "bigint"), ScanColumn("d", "d", "decimal(10,2)")))
    total = Aggregate(every, (), (Measure("n", "count", (), "bigint"),))
    assert can_compute(Union((total, total)))
    assert can_compute(Filter(every, call(">", Column("d"), Literal("0.5"))))
    assert not can_compute(Filter(every, call(">", call("SQRT", Column("d")), Literal("0.5"))))
    assert not can_compute(Scan("t", (ScanColumn("a", "a", "double"), ScanColumn("s", "s", "map<int,int>"))))


D = Decimal
NUMBERS = {
    "p": pa.array([D("12345.67"), None, D("-0.01")], pa.decimal128(15, 2)),
    "w": pa.array([D("1.0000000001"), D("-2"), None], pa.decimal128(38, 10)),
    "i": pa.array([7, None, -3], pa.int32()),
    "l": pa.array([2**62, 5, None], pa.int64()),
    "t": pa.array(["grün", None, ""], pa.string()),
    "x": pa.array([date(1999, 12, 31), None, date(2024, 2, 29)], pa.date32()),
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("p * (1 - p) * (1 + p)", [D("-1881672289944.892263"), None, D("-0.009999")]),  # (p - p³), of 49 digits at most
        ("p * i", [D("86419.69"), None, D("0.03")]),
        ("i + l", [2**62 + 7, None, None]),
        ("i % 4", [3, None, -3]),
        ("l % i", [4611686018427387904 % 7, None, None]),
        ("i % 0", None),
        ("l + l", None),  # too large for its type
        ("w * w", None),  # Spark rounds it
        ("w > p", [False, None, None]),
        ("- p", [D("-12345.67"), None, D("0.01")]),
        ("abs(i)", [7, None, 3]),
        ("CASE WHEN i > 0 THEN p WHEN i IS NULL THEN 0.5 ELSE 1 END", [D("12345.67"), D("0.50"), D("1.00")]),
        ("CASE i WHEN 7 THEN 'a' END", ["a", None, None]),
        ("coalesce(p, 0)", [D("12345.67"), D("0.00"), D("-0.01")]),
        ("nullif(i, 7)", [None, None, -3]),
        ("greatest(i, 0)", [7, 0, 0]),
        ("least(p, i)", [D("7.00"), None, D("-3.00")]),
        ("year(x) * 100 + month(x)", [199912, None, 202402]),
        ("EXTRACT(YEAR FROM x)", [1999, None, 2024]),
        ("substring(t, 2, 2)", ["rü", None, ""]),
        ("substring(t, -2, 2)", None),
        ("t || 'x'", ["grünx", None, "x"]),
        ("CAST(i AS DECIMAL(5, 2))", [D("7.00"), None, D("-3.00")]),
        ("CAST(p AS INT)", None),  # Spark drops digits
        ("CAST(t AS INT)", None),
        ("i / 2", None),
        ("x + INTERVAL '1' DAY", None),
        ("x IN (DATE '1999-12-31', DATE '2000-01-01')", [True, None, False]),
        ("i NOT IN (7, 8)", [False, None, True]),
        ("t <=> NULL", [False, True, False]),
    ],
)
def test_expressions(text: str, expected: list[object] | None) -> None:
    try:
        found = RowsHere(NUMBERS, 3).filled(value(expression(text), NUMBERS)).to_pylist()
    except NotHereError:
        found = None
    assert found == expected


def expression(text: str) -> Scalar:
    """As it is read in a view over these columns."""
    types = dict.fromkeys(NUMBERS, "any")
    catalog = SimpleNamespace(resolve=lambda _: DeltaTable("every", tuple(types.items())), columns=lambda _: ())
    read = bind(parse_query(f"SELECT {text} AS it FROM every"), catalog, ("it",))
    assert isinstance(read, Bound), str(read)
    return next(node.value for node in walk(read.as_read) if isinstance(node, Item) and node.name == "it")
