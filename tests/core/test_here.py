"""What this process computes of few rows is what the algebra means."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa
import pytest
from duck import comparable
from hypothesis import given

from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Filter,
    Measure,
    Relation,
    Scan,
    ScanColumn,
    Union,
    names,
)
from viewkeeper.algebra.scalars import Column, Literal, call
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import MergeBag, MergeGroups, MergeTop, maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import before
from viewkeeper.here.compute import Computer, can_compute
from viewkeeper.here.merge import merged_bag, merged_groups, merged_top
from viewkeeper.here.rows import RowsHere
from viewkeeper.here.types import arrow_type
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
    assert bag(merged.rows, names(kept.content)) == comparable(after)
    assert merged.rows.count - held.count == merged.came - merged.went


def test_what_is_known_of_no_rows_is_known_of_some() -> None:
    every = Scan("t", (ScanColumn("a", "a", "bigint"), ScanColumn("d", "d", "decimal(10,2)")))
    total = Aggregate(every, (), (Measure("n", "count", (), "bigint"),))
    assert can_compute(Union((total, total)))
    assert can_compute(Filter(every, call(">", Column("d"), Literal("0.5"))))
    assert not can_compute(Filter(every, call(">", call("SQRT", Column("d")), Literal("0.5"))))
    assert not can_compute(Scan("t", (ScanColumn("a", "a", "double"), ScanColumn("s", "s", "map<int,int>"))))
