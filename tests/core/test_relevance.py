"""Rows that cannot matter are left out, and only those: by brute force, and by views over narrowed tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations, product
from pathlib import Path
from typing import get_args

import pytest
from fake_catalog import FakeCatalog
from hand_made import add_rows, make_table, make_view
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper import Settings
from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.display import show, show_condition, show_scalar
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    names,
)
from viewkeeper.algebra.restriction import Conditions
from viewkeeper.algebra.scalars import TRUE, Clock, Column, Literal, Scalar, call, columns, conjunction
from viewkeeper.changes.kept import KeptBag
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.relevance import narrowed, rows_that_matter
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import before
from viewkeeper.overview import explain
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable
from viewkeeper.sql.parse import parse_query
from viewkeeper.store.registry import Registry
from viewkeeper.store.tables import FolderTables
from viewkeeper.testing.bags import Tables, TableStates, difference, evaluate, signed
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import changing_relations, changing_views
from viewkeeper.testing.values import compiled
from viewkeeper.testing.vectors import Columns, scan

pytestmark = pytest.mark.core

FEWER = settings().max_examples // 3  # where one example does the work of several


def text(conditions: tuple[Scalar, ...] | None) -> str:
    return "FALSE" if conditions is None else show_condition(conjunction(list(conditions)))


def content(rel: Relation, *, ansi: bool = True) -> Relation:
    return narrowed(KeptBag(rel), ansi=ansi).content


def matters(rel: Relation, *, ansi: bool = True) -> dict[str, str]:
    return {t: text((c,)) for t, c in rows_that_matter(KeptBag(rel), ansi=ansi).items()}


def asked(sql: str) -> dict[str, str]:
    """What matters to a query over r(a, b, s), t(a, d, s) and u(Order, f)."""
    bound = bind(parse_query(sql), FakeCatalog(), tuple(parse_query(sql).named_selects))
    assert isinstance(bound, Bound), bound
    return matters(bound.relation)


# The paper's example


R: Columns = (("A", "bigint"), ("B", "bigint"))
S: Columns = (("C", "bigint"), ("D", "bigint"))


def example() -> Relation:
    """r(A, B) and s(C, D) where A < 10, C > 5 and B = C."""
    wanted: list[Scalar] = [
        call("<", Column("A"), Literal("10")),
        call(">", Column("C"), Literal("5")),
        call("=", Column("B"), Column("C")),
    ]
    return Filter(Join(scan("r", R), scan("s", S), "inner", TRUE), conjunction(wanted))


def test_the_papers_example() -> None:
    assert matters(example()) == {"r": "A <= 9 AND B >= 6", "s": "C >= 6"}


def test_the_papers_rows() -> None:
    """(9, 10) is relevant, (11, 10) is not."""
    found = Conditions(dict((*R, *S)), ansi=True).restriction([example().predicate], ("A", "B"))  # type: ignore[union-attr]
    assert found is not None
    holds = compiled(conjunction(list(found)), ("A", "B"))
    assert holds((9, 10)) is True
    assert holds((11, 10)) is False


def test_bounds_by_constants_point_the_right_way() -> None:
    """The paper's edges for x ≤ c and x ≥ c are the wrong way round: (3, 5) would be left out, though 3 ≤ 4 ≤ 5."""
    types = dict.fromkeys("xyz", "bigint")
    wanted = [call("<=", Column("x"), Literal("4")), call(">=", Column("y"), Literal("4"))]
    assert text(Conditions(types, ansi=True).restriction(wanted, ("x", "y"))) == "x <= 4 AND y >= 4"


# The closure, by brute force

OWN, OTHERS = ("a", "b"), ("c", "d")
ROUND = range(-9, 10)  # further than three steps of 2 from -2 … 2
VALUES = (*range(-3, 4), None)


def differences(names: tuple[str, ...]) -> st.SearchStrategy[Scalar]:
    """x op y, x op c and x op y + c."""
    number = st.integers(-2, 2)
    column = st.sampled_from(names).map(Column)
    shifted = st.tuples(st.sampled_from("+-"), column, number).map(lambda t: call(t[0], t[1], Literal(str(t[2]))))
    right = st.one_of(column, number.map(lambda n: Literal(str(n))), shifted)
    return st.tuples(st.sampled_from(("=", "<", "<=", ">", ">=")), column, right).map(lambda t: call(*t))


def satisfiable(wanted: Scalar, row: tuple[int | None, ...]) -> bool:
    holds = compiled(wanted, OWN + OTHERS)
    return any(holds((*row, *others)) is True for others in product(ROUND, repeat=len(OTHERS)))


def check_exact(wanted: Scalar) -> None:
    types = dict.fromkeys(OWN + OTHERS, "bigint")
    found = Conditions(types, ansi=True).restriction([wanted], OWN)
    kept = compiled(conjunction(list(found)), OWN) if found is not None else None
    for row in product(VALUES, repeat=len(OWN)):
        expected = satisfiable(wanted, row)
        assert (kept is not None and kept(row) is True) == expected, (text(found), row)


@settings(max_examples=FEWER // 2, deadline=None)
@given(st.lists(differences(OWN + OTHERS), min_size=1, max_size=5))
def test_conjunctions_are_decided_exactly(wanted: list[Scalar]) -> None:
    check_exact(conjunction(wanted))


@settings(max_examples=FEWER // 2, deadline=None)
@given(
    st.recursive(
        differences(OWN + OTHERS), lambda c: st.builds(call, st.sampled_from(("AND", "OR")), c, c), max_leaves=5
    )
)
def test_disjunctions_are_decided_exactly(wanted: Scalar) -> None:
    check_exact(wanted)


# Views over narrowed tables

Case = tuple[Relation, History]


@given(changing_relations(), st.booleans())
def test_a_relation_is_the_same_over_narrowed_tables(case: Case, ansi: bool) -> None:
    rel, history = case
    tables, smaller = history.between(0, 1), content(rel, ansi=ansi)
    for state in (smaller, before(smaller, dict.fromkeys(SCHEMAS, "any"))):
        whole = rel if state is smaller else before(rel, dict.fromkeys(SCHEMAS, "any"))
        assert evaluate(state, tables) == evaluate(whole, tables), show(smaller)


@settings(max_examples=FEWER)
@given(changing_relations())
def test_its_change_is_the_same(case: Case) -> None:
    rel, history = case
    tables, changed = history.between(0, 1), history.changed(0, 1)
    assert signed(change(content(rel), changed), tables) == signed(change(rel, changed), tables)


@settings(max_examples=FEWER)
@given(changing_views())
def test_a_kept_form_is_the_same(case: Case) -> None:
    definition, history = case
    kept, tables = stored_form(definition, "v").kept, history.between(0, 1)
    assert evaluate(narrowed(kept, ansi=True).content, tables) == evaluate(kept.content, tables)


# Joins of two tables under a condition, where much can be said


@st.composite
def joined(draw: st.DrawFn) -> Relation:
    """A join under a filter, and sometimes over one, all of differences."""
    left = Scan("r", tuple(ScanColumn(c, c, t) for c, t in SCHEMAS["r"][:2]))
    right: Relation = Scan("t", (ScanColumn("a", "c", "bigint"),))
    if draw(st.booleans()):
        right = Filter(right, draw(differences(("c",))))
    kind: JoinKind = draw(st.sampled_from(("inner", "left", "full", "semi", "anti")))
    rel: Relation = Join(left, right, kind, draw(differences(("a", "b", "c"))))
    shown = ("a", "b") if kind in ("semi", "anti") else ("a", "b", "c")
    if draw(st.booleans()):
        rel = Aggregate(rel, shown[:-1], (Measure("n", "count", (), "bigint"),))
        shown = (*shown[:-1], "n")
    nulls = st.builds(call, st.sampled_from(("IS NULL", "IS NOT NULL")), st.sampled_from(shown).map(Column))
    same = st.builds(call, st.just("<=>"), st.sampled_from(shown).map(Column), st.sampled_from(shown).map(Column))
    above = st.recursive(
        st.one_of(differences(shown), nulls, same),
        lambda c: st.one_of(st.builds(call, st.sampled_from(("AND", "OR")), c, c), st.builds(call, st.just("NOT"), c)),
        max_leaves=4,
    )
    return Filter(rel, draw(above))


@settings(max_examples=FEWER)
@given(joined(), changing_relations().map(lambda case: case[1]))
def test_joins_under_conditions(rel: Relation, history: History) -> None:
    tables, changed, smaller = history.between(0, 1), history.changed(0, 1), content(rel)
    assert evaluate(smaller, tables) == evaluate(rel, tables), show(smaller)
    was = before(rel, changed)
    assert signed(change(smaller, changed), tables) == difference(evaluate(rel, tables), evaluate(was, tables))


LEFT = scan("r", (("a", "bigint"), ("b", "bigint")))
RIGHT = Scan("t", (ScanColumn("a", "c", "bigint"),))
A, B, C = map(Column, "abc")
ONE, TWO = Literal("1"), Literal("2")
ON = (call("=", A, C), call("<", A, C), call("=", C, ONE), call("AND", call("=", A, C), call("=", B, ONE)))
ABOVE = (
    call("IS NULL", C),
    call("IS NULL", A),
    call("=", C, TWO),
    call("<>", A, ONE),
    call("NOT", call("=", C, ONE)),
    call("<=>", B, C),
    call("OR", call("=", C, ONE), call("IS NULL", B)),
    call("AND", call("IS NULL", C), call("=", B, ONE)),
    call("OR", call("IS NULL", C), call("<", A, C)),
    call("AND", call("<", A, B), call("=", C, B)),
)
FEW = (None, 1, 2)


def contents() -> Iterator[Tables]:
    """Every table r(a, b) of one row or none, with every t(c) of at most two."""
    rights = [(), *((c,) for c in FEW), *combinations(FEW, 2)]
    for left, right in product([(), *((row,) for row in product(FEW, FEW))], rights):
        rows = Counter((c, None, None) for c in right)
        r, t = Counter((*row, None) for row in left), TableStates(("a", "d", "s"), rows, rows)
        yield {"r": TableStates(("a", "b", "s"), r, r), "t": t}


@pytest.mark.parametrize("on", ON, ids=show_scalar)
@pytest.mark.parametrize("kind", get_args(JoinKind))
def test_every_join_under_every_condition(kind: JoinKind, on: Scalar) -> None:
    join = Join(LEFT, RIGHT, kind, on)
    views = [join, *(Filter(join, c) for c in ABOVE if columns(c) <= set(names(join)))]
    for view, smaller in zip(views, map(content, views), strict=True):
        for tables in contents():
            assert evaluate(smaller, tables) == evaluate(view, tables), show(smaller)


# Operators


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        # through names, sums and groups; not through measures
        ("SELECT x FROM (SELECT a + 1 AS x FROM r) q WHERE x > 5", {"r": "a >= 5"}),
        ("SELECT x FROM (SELECT 2 - a AS x FROM r) q WHERE x > 5", {"r": "a IS NOT NULL"}),
        (
            "SELECT r.b FROM r JOIN (SELECT a, count(*) AS n FROM t GROUP BY a) q ON q.a = r.a WHERE r.a > 1 AND n > 5",
            {"r": "a >= 2", "t": "a >= 2"},
        ),
        # what a group is made of holds for the groups, too
        (
            "SELECT r.b FROM r JOIN (SELECT a, count(*) AS n FROM t WHERE a > 1 GROUP BY a) q ON q.a = r.a",
            {"r": "a >= 2", "t": "a >= 2"},
        ),
        # one row even of nothing
        ("SELECT r.a FROM r CROSS JOIN (SELECT count(*) AS n FROM t WHERE a > 2 AND a < 2) q", {"r": "TRUE", "t": "FALSE"}),
        # partitions and branches
        (
            "SELECT a FROM (SELECT a, b, row_number() OVER (PARTITION BY a ORDER BY b) AS n FROM r) q "
            "WHERE n = 1 AND a = 2 AND b > 1",
            {"r": "a = 2"},
        ),
        ("SELECT x FROM (SELECT a AS x FROM r UNION ALL SELECT `Order` FROM u) q WHERE x < 3", {"r": "a <= 2", "u": "Order <= 2"}),
        ("SELECT a FROM (SELECT a FROM r ORDER BY a LIMIT 3) q WHERE a > 1", {"r": "TRUE"}),
        # outer joins: a condition that no padded row meets; one on the side that stays; none
        ("SELECT r.a FROM r LEFT JOIN t ON t.a = r.a WHERE t.a > 1", {"r": "a >= 2", "t": "a >= 2"}),
        ("SELECT r.a FROM r LEFT JOIN t ON t.a = r.a WHERE r.a > 1", {"r": "a >= 2", "t": "a >= 2"}),
        ("SELECT r.a FROM r LEFT JOIN t ON t.a = r.a AND r.b > 1 AND t.a < 3", {"r": "TRUE", "t": "a <= 2"}),
        ("SELECT r.a FROM r FULL JOIN t ON t.a = r.a WHERE r.b = 1", {"r": "b = 1", "t": "a IS NOT NULL"}),
        # NOT EXISTS: only rows that can take away a wanted one
        (
            "SELECT a FROM r WHERE NOT EXISTS (SELECT 1 FROM t WHERE t.a = r.a AND t.s = 'x') AND a > 1",
            {"r": "a >= 2", "t": "a >= 2 AND s = 'x'"},
        ),
        # a table twice, and alternatives
        ("SELECT x.a FROM r x JOIN r y ON x.a = y.b AND x.a > 3", {"r": "(a >= 4) OR (b >= 4)"}),
        (
            "SELECT r.a FROM r JOIN t ON r.a = t.a WHERE (r.s = 'x' AND t.s = 'y') OR (r.s = 'y' AND t.s = 'x')",
            {"r": "a IS NOT NULL AND ((s = 'x') OR (s = 'y'))", "t": "a IS NOT NULL AND ((s = 'y') OR (s = 'x'))"},
        ),
        ("SELECT r.a FROM r JOIN t ON r.a = t.a WHERE r.a > 3 OR t.a < 1", {"r": "(a >= 4) OR (a <= 0)", "t": "(a >= 4) OR (a <= 0)"}),
    ],
)  # fmt: skip
def test_what_passes_through(sql: str, expected: dict[str, str]) -> None:
    assert asked(sql) == expected


# Conditions

TYPES = {
    **dict.fromkeys(("i", "j", "k"), "bigint"),
    **dict.fromkeys(("s", "s2"), "string"),
    **dict.fromkeys(("d", "d2"), "date"),
    **dict.fromkeys(("ts", "ts2"), "timestamp"),
    **dict.fromkeys(("x", "x2"), "double"),
    **dict.fromkeys(("p", "p2"), "decimal(10,2)"),
    "wide": "decimal(38,30)",
    "c": "char(5)",
}


def said(sql: str, own: str, *, ansi: bool = True) -> str:
    catalog = FakeCatalog()
    catalog.sources["all"] = DeltaTable("all", tuple(TYPES.items()))
    bound = bind(parse_query(f"SELECT 1 AS x FROM all WHERE {sql}"), catalog, ("x",))
    assert isinstance(bound, Bound) and isinstance(bound.relation, Project), bound
    assert isinstance(bound.relation.input, Filter)
    return text(Conditions(TYPES, ansi).restriction([bound.relation.input.predicate], own.split()))


@pytest.mark.parametrize(
    ("sql", "own", "expected"),
    [
        ("i = j AND j IN (1, 2)", "i", "i IN (1, 2)"),
        ("s = s2 AND s2 LIKE 'a%'", "s", "s LIKE 'a%'"),
        ("x = x2 AND x2 IN (0, 1)", "x", "x IS NOT NULL"),  # 0.0 is also -0.0
        ("i BETWEEN 2 AND 4 AND i = j", "j", "j >= 2 AND j <= 4"),
        ("i NOT BETWEEN 2 AND 4 AND i = j", "j", "(j <= 1) OR (j >= 5)"),
        ("i > 2.5 AND i = j", "j", "j >= 3"),
        ("p > 2.5 AND p = p2", "p2", "p2 > 2.5"),
        ("i > p AND p > 2.5", "i", "i >= 3"),
        ("i > -3 AND i = j", "j", "j >= -2"),
        ("i > 5L AND i = j", "j", "j >= 6"),
        ("i = j + 2 AND j < k AND k <= 4", "i", "i <= 5"),
        ("i <= j + 1 AND j <= k + 2", "i k", "i <= (cast(k as decimal(20,0)) + 3)"),
        ("i = j + 2 AND k = j", "i k", "k = (cast(i as decimal(20,0)) + -2)"),
        ("i < j AND j < i", "k", "FALSE"),
        ("s < 'b' AND s > s2 AND s2 > 'c'", "s", "FALSE"),
        ("s >= s2 AND s2 > 'a' AND s > 'A'", "s", "s > 'a'"),
        ("d >= DATE '2024-01-01' AND d = d2 AND d > DATE '2023-01-01'", "d2", "d2 >= cast('2024-01-01' as DATE)"),
        ("d = d2 AND d >= DATE '2024-01-01' AND d < DATE '2023-01-01'", "d2", "FALSE"),
        ("x > 0.05 AND x = x2 AND x > 0.01", "x2", "x2 > 0.05"),
        # time zones may swap timestamps, so two of them are not compared here
        ("ts > TIMESTAMP '2024-03-31 02:30:00' AND ts < TIMESTAMP '2024-03-31 02:10:00' AND ts = ts2", "i", "TRUE"),
        # compared by another order, or with digits cut off
        ("c = 'ab' AND c = s", "s", "s IS NOT NULL"),  # a CHAR is compared with constants that are padded for it
        ("s > 5 AND s = s2", "s2", "s2 IS NOT NULL"),
        ("i > x AND x > 2", "i", "i IS NOT NULL"),
        ("wide > i AND i > 2", "wide", "wide IS NOT NULL"),
        # NULL
        ("i = NULL", "k", "FALSE"),
        ("i <=> 3 AND i = j", "j", "j = 3"),
        ("i <=> j AND j > 2", "i", "i >= 3"),
        ("i <=> j", "i", "TRUE"),
        ("i IS NULL AND i < j", "k", "FALSE"),
        ("i IS NULL OR i > 2", "i", "(i IS NULL) OR (i >= 3)"),
        ("NOT (i > 2 OR i IS NULL)", "i", "i <= 2"),
        # might fail for a row that was not looked at before
        ("i / j > 2", "i j", "i IS NOT NULL AND j IS NOT NULL"),
        ("CAST(s AS INT) = 1", "s", "TRUE"),
        ("upper(s) = 'A' AND year(d) = 2024", "s d", "upper(s) = 'A' AND year(d) = 2024"),
        ("coalesce(i, 0) = 1", "i", "coalesce(i, 0) = 1"),
    ],
)  # fmt: skip
def test_what_conditions_say(sql: str, own: str, expected: str) -> None:
    assert said(sql, own) == expected


def test_integers_that_wrap_around_are_not_added() -> None:
    """Without ANSI mode the largest bigint plus 1 is the smallest, which is less than anything."""
    assert said("i + 1 < j AND j < 5", "i") == "i <= 2"
    assert said("i + 1 < j AND j < 5", "i", ansi=False) == "i IS NOT NULL"


def test_alternatives_beyond_the_limit_stay_as_they_are() -> None:
    many = " AND ".join(f"(i > {n} OR j < {n})" for n in range(6))
    assert said(f"i = k AND {many}", "k") == "k IS NOT NULL"
    assert "OR" in said(many, "i j")


def test_filters_that_are_there_are_not_added_again() -> None:
    """Nor is what they say already; what is new comes after them."""
    filtered = Filter(LEFT, call("<", A, Literal("5")))
    assert content(filtered) == filtered
    joined = content(Join(filtered, RIGHT, "inner", call("AND", call("=", A, C), call("=", B, ONE))))
    assert isinstance(joined, Join)
    assert joined.left == Filter(filtered, call("=", B, ONE))
    assert joined.right == Filter(RIGHT, call("<=", C, Literal("4")))


def test_what_the_clock_keeps_out_may_come_in_later() -> None:
    """Only what holds at any time counts, and no filter that looks at the clock is added."""
    join = Join(LEFT, RIGHT, "inner", call("=", A, C))
    waiting = Filter(join, call("AND", call("<", A, Clock("CURRENT_DATE")), call("=", B, ONE)))
    assert matters(waiting) == {"r": "b = 1 AND a IS NOT NULL", "t": "a IS NOT NULL"}
    added = [n.predicate for n in walk(content(waiting)) if isinstance(n, Filter) and isinstance(n.input, Scan)]
    assert len(added) == 2 and not any(map(reads_clock, added))


def test_a_view_that_is_always_empty_never_changes() -> None:
    never = Filter(LEFT, call("AND", call("<", A, B), call("<", B, A)))
    kept = narrowed(stored_form(never, "v").kept, ansi=True)
    assert maintenance(kept, {"r": "any"}).nothing


def test_groups_are_kept_even_if_readers_do_not_see_them() -> None:
    """HAVING on a key is for readers; all groups are kept."""
    grouped = Filter(Aggregate(LEFT, ("a",), (Measure("n", "count", (), "bigint"),)), call("=", A, ONE))
    kept = stored_form(grouped, "v").kept
    assert narrowed(kept, ansi=True) == kept
    assert rows_that_matter(kept, ansi=True) == {"r": TRUE}


def test_explain_shows_them_for_each_source(tmp_path: Path) -> None:
    make_table(tmp_path, "sales")
    view = make_view(
        tmp_path, "CREATE MATERIALIZED VIEW v AS SELECT id FROM sales WHERE day BETWEEN 3 AND 5 AND price < 9"
    )
    always = make_view(tmp_path, "CREATE MATERIALIZED VIEW w AS SELECT id FROM sales")
    never = make_view(tmp_path, "CREATE MATERIALIZED VIEW x AS SELECT id FROM sales WHERE day < 1 AND day > 1")
    registry = Registry(FolderTables(tmp_path))
    shown = [explain(v, registry, Settings()).sections["Rows that matter"] for v in (view, always, never)]
    assert shown == [
        "sales: day >= 3 AND day <= 5 AND price <= 8",
        "sales: all",
        "sales: none, its conditions contradict each other",
    ]
    add_rows(tmp_path, "sales", 1)
    assert "the changes do not reach it" in explain(never, registry, Settings()).sections["Now"]
