"""What this process computes of few rows is what the algebra means."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from duck import comparable
from hypothesis import given

from viewkeeper.algebra.relations import WEIGHT, Changes, Relation, Scan, names
from viewkeeper.changes.propagate import change
from viewkeeper.here.compute import Computer
from viewkeeper.here.types import arrow_type
from viewkeeper.store.columns import NotHereError
from viewkeeper.testing.bags import Bag, Tables, evaluate
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import Shape, changing_relations

pytestmark = pytest.mark.core

Case = tuple[Relation, History]
SIMPLE = Shape(repeats=False, spark_only=False)


def computed(rel: Relation, tables: Tables) -> Bag | None:
    """The rows as this process has them; None if it leaves them to Spark."""

    def leaf(node: Scan | Changes) -> pa.Table:
        schema = [(name, arrow_type(type_)) for name, type_ in SCHEMAS[node.table]]
        states = tables[node.table]
        if isinstance(node, Changes):
            rows = [(*row, weight) for row, weight in states.changes]
            schema.append((WEIGHT, pa.int64()))
        else:
            rows = list((states.old if node.state == "old" else states.new).elements())
        return pa.table([pa.array([row[n] for row in rows], type_) for n, (_, type_) in enumerate(schema)],
                        pa.schema(schema))  # fmt: skip

    try:
        found = Computer(leaf).rows(rel)
    except NotHereError:
        return None
    columns = [found.columns[name].to_pylist() for name in names(rel)]
    rows = zip(*columns, strict=True) if columns else [()] * found.count
    return comparable(Counter(rows))


@given(case=changing_relations(SIMPLE))
def test_any_relation(case: Case) -> None:
    rel, history = case
    tables = history.between(0, 1)
    found = computed(rel, tables)
    assert found in (None, comparable(evaluate(rel, tables)))


@given(case=changing_relations(SIMPLE))
def test_changes(case: Case) -> None:
    rel, history = case
    tables = history.between(0, 1)
    delta = change(rel, history.changed(0, 1))
    found = computed(delta, tables)
    assert found in (None, comparable(evaluate(delta, tables)))
