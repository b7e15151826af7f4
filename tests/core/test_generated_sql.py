"""The generated SQL means what the algebra means: both run, on DuckDB and in the reference interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from duck import Connection, DuckTables, comparable, fetch, make_tables, run
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.algebra.relations import Item, Relation
from viewkeeper.algebra.scalars import ZERO, Column, call
from viewkeeper.changes.kept import COUNT
from viewkeeper.changes.merge import CHANGE, OLD, MergeGroups
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.runtime.install import CHANGE_VIEW, merged_groups, merged_into
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import Tables, evaluate
from viewkeeper.testing.histories import History
from viewkeeper.testing.strategies import Shape, changing_relations, changing_views

pytestmark = pytest.mark.core

Case = tuple[Relation, History]
SHARED = Shape(repeats=False, spark_only=False)  # DuckDB has no LATERAL VIEW
SHARED_ANYTHING = Shape(repeats=False, empty_values=True, spark_only=False)
EXAMPLES = max(10, settings().max_examples // 3)  # DuckDB takes longer to plan a query than we to evaluate it


@pytest.fixture(scope="module")
def duck() -> Iterator[Connection]:
    with duckdb.connect(config={"threads": 1}) as connection:
        make_tables(connection)
        yield connection


def check(duck: Connection, tables: Tables, *rels: Relation) -> None:
    queries = [unparse(rel, DuckTables()) for rel in rels]
    for rel, query, found in zip(rels, queries, run(duck, tables, queries), strict=True):
        assert found == comparable(evaluate(rel, tables)), query


@settings(max_examples=EXAMPLES)
@given(case=changing_relations(SHARED_ANYTHING))
def test_any_relation(duck: Connection, case: Case) -> None:
    rel, history = case
    check(duck, history.between(0, 1), rel)


@settings(max_examples=EXAMPLES)
@given(case=changing_relations(SHARED))
def test_changes(duck: Connection, case: Case) -> None:
    rel, history = case
    check(duck, history.between(0, 1), change(rel, history.changed(0, 1)))


@settings(max_examples=EXAMPLES)
@given(case=changing_views(SHARED))
def test_what_a_refresh_computes(duck: Connection, case: Case) -> None:
    definition, history = case
    kept = stored_form(definition, "__vk_v").kept
    step = maintenance(kept, history.changed(0, 1))
    check(duck, history.between(0, 1), kept.content, step.change)


ROWS = st.dictionaries(st.sampled_from([None, 1, 2, 3]), st.integers(1, 3), max_size=4)
CHANGES = st.dictionaries(st.sampled_from([None, 1, 2, 3, 4]), st.integers(-1, 2).filter(bool), max_size=5)


@settings(max_examples=EXAMPLES)
@given(rows=ROWS, changes=CHANGES)
def test_groups_with_a_change_that_is_there(duck: Connection, rows: dict[int, int], changes: dict[int, int]) -> None:
    """Without the groups that it does not touch it gives the same as with all of them joined."""
    came = {key: n for key, n in changes.items() if n > 0 or key in rows}
    added = call("+", *(call("COALESCE", Column(side + COUNT), ZERO) for side in (OLD, CHANGE)))
    merge = MergeGroups(("k",), (Item("k", Column(f"{CHANGE}k"), "int"), Item(COUNT, added, "bigint")))
    duck.begin()
    try:
        for name, held in (("kept", rows), (CHANGE_VIEW, came)):
            duck.execute(f'CREATE TABLE {name} (k int, "{COUNT}" bigint)')
            for pair in held.items():
                duck.execute(f"INSERT INTO {name} VALUES (?, ?)", pair)
        joined, apart = merged_groups("kept", merge, f"SELECT * FROM {CHANGE_VIEW}"), merged_into("kept", merge)
        assert fetch(duck, apart) == fetch(duck, joined)
    finally:
        duck.rollback()
