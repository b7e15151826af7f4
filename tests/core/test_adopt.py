"""A new definition over what an old one has kept: exact where it is done, and the reason where it is not."""

from __future__ import annotations

import re
from collections.abc import Iterator

import duck
import duckdb
import pytest
from fake_catalog import FakeCatalog
from hypothesis import event, given

from viewkeeper.algebra.normalize import collapse, prune
from viewkeeper.algebra.orders import without_ties
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    inputs,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import Clock, Column, Literal, call
from viewkeeper.changes.adopt import adopt, describe_adoption
from viewkeeper.changes.stored import stored_form
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.typing import with_types
from viewkeeper.testing.bags import TableStates, evaluate
from viewkeeper.testing.choices import Choices, both, chosen
from viewkeeper.testing.expressions import Expressions
from viewkeeper.testing.histories import History, histories, history
from viewkeeper.testing.strategies import ANY_VIEW, LENGTH, view

pytestmark = pytest.mark.core

BACKING = "__vk_v"
Pair = tuple[Relation, Relation]


def adopted(was: Relation, wanted: Relation) -> Relation | Reason:
    return adopt(stored_form(was, BACKING).kept, stored_form(wanted, BACKING).kept, BACKING)


def assert_exact(was: Relation, wanted: Relation, found: Relation, past: History) -> None:
    """What is made of the kept rows is what the new definition gives."""
    tables = past.between(0, 1)
    kept, new = stored_form(was, BACKING).kept.content, stored_form(wanted, BACKING).kept.content
    rows = evaluate(kept, tables)
    assert found.schema == new.schema
    assert evaluate(found, {BACKING: TableStates(names(kept), rows, rows)}) == evaluate(new, tables)


# Any two definitions


def changed(choices: Choices, rel: Relation) -> Relation:
    """A definition with other filters and fewer columns here and there."""
    below = with_inputs(rel, tuple(changed(choices, i) for i in inputs(rel)))
    match below:
        case Filter(input) if choices.one_in(6):
            return input
        case _ if choices.one_in(8):
            return Filter(below, Expressions(choices, below.schema).condition())
        case _:
            return below


def pair(choices: Choices) -> Pair:
    was = view(choices, ANY_VIEW)
    more = was
    if choices.one_in(2):
        more = Filter(was, Expressions(choices, was.schema).condition())
    if choices.one_in(3):
        more = changed(choices, more)
    shown = [f for f in more.schema if not choices.one_in(4)] or list(more.schema)
    return was, collapse(prune(Project(more, pass_through(tuple(shown)))))


@given(both(pair, lambda c: history(c, 1), 2 * LENGTH))
def test_what_is_adopted_is_what_the_new_definition_gives(case: tuple[Pair, History]) -> None:
    (was, wanted), past = case
    found = adopted(was, wanted)
    event(type(found).__name__)
    if not isinstance(found, Reason):
        assert_exact(was, wanted, found, past)


@given(chosen(lambda c: view(c, ANY_VIEW), LENGTH))
def test_the_same_definition_keeps_the_table_as_it_is(rel: Relation) -> None:
    found = adopted(rel, rel)
    assert isinstance(found, Scan) and describe_adoption(found) == "unchanged"


# Texts


@pytest.fixture(scope="module")
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect() as opened:
        duck.make_tables(opened)
        yield opened


def read(connection: duckdb.DuckDBPyConnection, text: str) -> Relation:
    def ask(query: str) -> tuple[str, ...]:
        described = connection.execute(f"DESCRIBE {duck.to_duckdb(query)}").fetchall()
        return tuple(spark_type(row[1]) for row in described)

    tree = parse_query(text)
    bound = bind(tree, FakeCatalog(), tuple(tree.named_selects))
    assert isinstance(bound, Bound), bound
    return without_ties(with_types(bound.relation, ask))


def spark_type(type_: str) -> str:
    known = {"HUGEINT": "bigint", "VARCHAR": "string"}
    return known.get(type_) or re.sub(r"decimal\(38,", "decimal(20,", type_.lower())


KEPT = [
    ("SELECT a, b, s FROM r", "SELECT a, b, s FROM r WHERE TRUE", "unchanged"),
    ("SELECT a, b, s FROM r", "SELECT s, a FROM r", "other columns"),
    ("SELECT a, b, s FROM r", "SELECT a AS x, b + a AS more, s AS t FROM r", "other columns"),
    ("SELECT a, s FROM r WHERE b > 1", "SELECT a FROM r WHERE s = 'a' AND b > 1", "filtered by (s = 'a')"),
    ("SELECT a + b AS n, s FROM r", "SELECT s FROM r WHERE a + b > 2", "filtered by (n > 2)"),
    (
        "SELECT r.a, b, d FROM r JOIN t ON r.a = t.a",
        "SELECT d FROM r JOIN t ON r.a = t.a AND b > 0",
        "filtered by (b > 0)",
    ),
    ("SELECT r.a, d FROM r LEFT JOIN t ON r.a = t.a", "SELECT d FROM r LEFT JOIN t ON r.a = t.a", "other columns"),
    (
        "SELECT a, s FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = r.a)",
        "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = r.a) AND s = 'a'",
        "filtered by (s = 'a')",
    ),
    (
        "SELECT a, s FROM r UNION ALL SELECT a, s FROM t",
        "SELECT s FROM (SELECT a, s FROM r UNION ALL SELECT a, s FROM t)",
        "other columns",
    ),
    ("SELECT a, b, s FROM r", "SELECT a, s FROM r WHERE b > 0 ORDER BY a LIMIT 2", "the first of them"),
    ("SELECT a, b, s FROM r", "SELECT s, sum(a) AS n FROM r WHERE b > 0 GROUP BY s", "grouped"),
    (
        "SELECT a, sum(b) AS n FROM r GROUP BY a",
        "SELECT a, sum(b) AS n FROM r GROUP BY a HAVING sum(b) > 1",
        "unchanged",
    ),
    (
        "SELECT a, sum(b) AS n FROM r GROUP BY a",
        "SELECT a, sum(b) * 2 AS m, a + 1 AS x FROM r GROUP BY a",
        "other columns",
    ),
    ("SELECT a, sum(b) AS n, max(s) AS m FROM r GROUP BY a", "SELECT sum(b) AS n FROM r GROUP BY a", "other columns"),
    ("SELECT a, sum(b) AS n FROM r GROUP BY a", "SELECT a, sum(b) AS n FROM r WHERE a + 1 > 2 GROUP BY a", "filtered"),
    (
        "SELECT s, sum(d) AS n FROM t GROUP BY s",
        "SELECT s, sum(d) AS n, count(d) AS c FROM t GROUP BY s",
        "other columns",
    ),
    ("SELECT s, sum(d) AS n FROM t GROUP BY s", "SELECT s, avg(d) AS m FROM t GROUP BY s", "other columns"),
    (
        "SELECT s, avg(d) AS n FROM t GROUP BY s",
        "SELECT s, sum(d) AS m, count(*) AS c FROM t GROUP BY s",
        "other columns",
    ),
    ("SELECT sum(a) AS n, count(*) AS c FROM r", "SELECT count(*) AS c FROM r", "other columns"),
    ("SELECT DISTINCT a, s FROM r", "SELECT DISTINCT a, s FROM r WHERE s <> 'a'", "filtered"),
]


@pytest.mark.parametrize(("was", "wanted", "how"), KEPT)
def test_kept_from_what_is_there(connection: duckdb.DuckDBPyConnection, was: str, wanted: str, how: str) -> None:
    old, new = read(connection, was), read(connection, wanted)
    found = adopted(old, new)
    assert not isinstance(found, Reason), found
    assert how in describe_adoption(found)

    @given(histories())
    def exact(past: History) -> None:
        assert_exact(old, new, found, past)

    exact()


@pytest.mark.parametrize(
    ("was", "wanted", "why"),
    [
        ("SELECT a FROM r", "SELECT a FROM t", "other tables"),
        ("SELECT a FROM r", "SELECT a, s FROM r", "s: column s was not read before"),
        ("SELECT a FROM r WHERE s = 'a'", "SELECT a, s FROM r WHERE s = 'a'", "s: column s is not kept by itself"),
        ("SELECT a FROM r WHERE b > 1", "SELECT a FROM r", "filter (b > 1): the rows that it dropped are not kept"),
        ("SELECT a FROM r WHERE b > 1", "SELECT a FROM r WHERE b > 2", "the rows that it dropped"),
        ("SELECT a FROM r", "SELECT r.a FROM r JOIN t ON r.a = t.a", "other tables"),
        ("SELECT r.a FROM r LEFT JOIN t ON r.a = t.a", "SELECT r.a FROM r LEFT JOIN t ON r.b = t.a", "joins"),
        ("SELECT a FROM r ORDER BY a LIMIT 3", "SELECT a FROM r ORDER BY a LIMIT 2", "only the first of them"),
        ("SELECT a, count(*) AS n FROM r GROUP BY a", "SELECT a FROM r", "only groups of them are kept"),
        ("SELECT a, count(*) AS n FROM r GROUP BY a", "SELECT s, count(*) AS n FROM r GROUP BY s", "not read before"),
        ("SELECT a, sum(b) AS n FROM r GROUP BY a", "SELECT b, sum(b) AS n FROM r GROUP BY b", "other columns than"),
        ("SELECT a, sum(b) AS n FROM r GROUP BY a", "SELECT sum(b) AS n FROM r", "other columns than"),
        (
            "SELECT a, sum(b) AS n FROM r GROUP BY a",
            "SELECT a, sum(b) AS n, max(b) AS m FROM r GROUP BY a",
            "max(b): nothing that is kept tells it",
        ),
        (
            "SELECT a, sum(b) AS n FROM r GROUP BY a",
            "SELECT a, sum(b) AS n FROM r WHERE b > 0 GROUP BY a",
            "(b > 0): column b is not kept by itself",
        ),
        ("SELECT sum(a) AS n FROM r", "SELECT sum(a) AS n FROM r WHERE 1 > 2", "the one kept group"),
    ],
)
def test_rebuilt_with_the_reason(connection: duckdb.DuckDBPyConnection, was: str, wanted: str, why: str) -> None:
    found = adopted(read(connection, was), read(connection, wanted))
    assert isinstance(found, Reason) and why in str(found), found


# Types


def summed(function: str, type_: str, result: str, key: str = "bigint") -> Relation:
    rows = Scan("x", (ScanColumn("k", "k", key), ScanColumn("n", "n", type_)))
    return Aggregate(rows, ("k",), (Measure("m", function, ("n",), result),))


@pytest.mark.parametrize(("type_", "exact"), [("int", True), ("tinyint", True), ("bigint", False), ("double", True)])
def test_sums_serve_averages_and_the_other_way(type_: str, exact: bool) -> None:
    """Longer integers may leave bigint where their sum does not: only a session that raises errors would notice."""
    total, mean = summed("sum", type_, "double" if type_ == "double" else "bigint"), summed("avg", type_, "double")
    assert isinstance(adopted(total, mean), Reason) is not exact
    assert isinstance(adopted(mean, total), Reason) is not exact


@pytest.mark.parametrize("key", ["double", "array<float>", "string collate UTF8_LCASE"])
def test_groups_that_hold_different_values_are_not_filtered(key: str) -> None:
    """0.0 and -0.0 are one group, but a filter may tell them apart."""
    was = summed("sum", "int", "bigint", key)
    assert isinstance(was, Aggregate)
    narrowed = Aggregate(Filter(was.input, call(">", Column("k"), Literal("0"))), was.group_by, was.measures)
    assert "not kept by itself" in str(adopted(was, narrowed))
    assert isinstance(adopted(was, was), Scan)


def test_the_clock_goes_on_from_where_it_was() -> None:
    """A condition that was there holds at the moment the view covers; a new one would have to be asked then."""
    rows = Scan("x", (ScanColumn("k", "k", "date"), ScanColumn("n", "n", "int")))
    recent = Filter(rows, call(">", Column("k"), Clock("CURRENT_DATE")))
    assert "filter (k > current_date())" in str(adopted(rows, recent)).lower()
    fewer = Project(recent, pass_through(rows.schema[:1]))
    assert isinstance(adopted(recent, recent), Scan) and isinstance(adopted(recent, fewer), Project)


def test_a_column_of_another_type_is_not_the_same() -> None:
    found = adopted(summed("sum", "int", "bigint"), summed("sum", "bigint", "bigint"))
    assert isinstance(found, Reason) and "column n was not read before" in str(found)
