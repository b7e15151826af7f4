"""The generated SQL means what the algebra means: both run, on DuckDB and in the reference interpreter."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from duck import Connection, DuckTables, comparable, make_tables, run
from hypothesis import given, settings

from viewkeeper.algebra.relations import Relation
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
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
