"""Rows that cannot matter are left out, and only those: by brute force, and by views over narrowed tables."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import pytest
from fake_catalog import FakeCatalog
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.algebra.display import show
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Join,
    JoinKind,
    Measure,
    Relation,
    Scan,
    ScanColumn,
    Union,
    inputs,
    is_empty,
)
from viewkeeper.algebra.restriction import Conditions
from viewkeeper.algebra.scalars import TRUE, Column, Literal, Scalar, Verbatim, call, conjunction
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.relevance import narrowed, rows_that_matter
from viewkeeper.changes.stored import KeptBag, stored_form
from viewkeeper.changes.weights import before
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.typing import with_types
from viewkeeper.testing.bags import difference, evaluate, signed
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import Shape, changing_relations, changing_views
from viewkeeper.testing.values import compiled
from viewkeeper.testing.vectors import Columns, scan

pytestmark = pytest.mark.core

FEWER = settings().max_examples // 3


def text(conditions: tuple[Scalar, ...] | None) -> str:
    from viewkeeper.algebra.display import show_condition

    return "FALSE" if conditions is None else show_condition(conjunction(list(conditions)))


def condition(sql: str) -> Scalar:
    """A condition over the columns of r, t and u, as binding reads it."""
    bound = bind(parse_query(f"SELECT 1 AS x FROM r, t, u WHERE {sql}"), FakeCatalog(), ("x",))
    assert isinstance(bound, Bound), bound
    return next(rel.predicate for rel in below(bound.relation) if isinstance(rel, Filter))


def below(rel: Relation) -> Iterator[Relation]:
    yield rel
    for part in inputs(rel):
        yield from below(part)


def content(rel: Relation, *, ansi: bool = True) -> Relation:
    kept = narrowed(KeptBag(rel), ansi=ansi)
    return kept.content


def matters(rel: Relation, *, ansi: bool = True) -> dict[str, str]:
    return {t: text((c,)) for t, c in rows_that_matter(KeptBag(rel), ansi=ansi).items()}


def query(sql: str) -> Relation:
    """A definition over r(a, b, s), t(a, d, s) and u(Order, f)."""
    bound = bind(parse_query(sql), FakeCatalog(), ("x",))
    assert isinstance(bound, Bound), bound
    return with_types(bound.relation, lambda _: ("bigint",) * 99)


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


@settings(max_examples=FEWER, deadline=None)
@given(st.lists(differences(OWN + OTHERS), min_size=1, max_size=5))
def test_conjunctions_are_decided_exactly(wanted: list[Scalar]) -> None:
    check_exact(conjunction(wanted))


@settings(max_examples=FEWER, deadline=None)
@given(st.recursive(differences(OWN + OTHERS), lambda c: st.builds(call, st.sampled_from(("AND", "OR")), c, c), max_leaves=5))
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


@given(joined(), changing_relations().map(lambda case: case[1]))
def test_joins_under_conditions(rel: Relation, history: History) -> None:
    tables, changed, smaller = history.between(0, 1), history.changed(0, 1), content(rel)
    assert evaluate(smaller, tables) == evaluate(rel, tables), show(smaller)
    was = before(rel, changed)
    assert signed(change(smaller, changed), tables) == difference(evaluate(rel, tables), evaluate(was, tables))
