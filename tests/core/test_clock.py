"""The clock as a source: rows enter and leave a filter as time moves, and texts are answered at a moment."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from viewkeeper.algebra.clock import CLOCK, in_filters, misplaced
from viewkeeper.algebra.relations import Aggregate, Filter, Item, Join, Measure, Project, Relation, Scan, ScanColumn
from viewkeeper.algebra.scalars import Clock, Column, Scalar, call
from viewkeeper.changes.kept import KeptBag
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import before
from viewkeeper.sql.clock import at_moment, clock_functions
from viewkeeper.testing.bags import difference, evaluate, signed
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import changing_relations

pytestmark = pytest.mark.core

NOW = Clock("CURRENT_DATE")
EVERYTHING = dict.fromkeys((*SCHEMAS, CLOCK), "any")
R = Scan("r", tuple(ScanColumn(c, c, t) for c, t in SCHEMAS["r"]))


def conditions(column: str) -> tuple[Scalar, ...]:
    value = Column(column)
    return (
        call("<=", value, NOW),
        call(">", call("+", value, value), NOW),
        call("AND", call("<", call("-", NOW, call("ABS", value)), value), call("<", value, NOW)),
        call("OR", call("IS NULL", value), call("=", value, NOW)),
    )


@given(changing_relations(), st.integers(0, 3), st.sampled_from(["any", "still"]), st.booleans())
def test_new_is_old_plus_change(case: tuple[Relation, History], which: int, tables: str, above: bool) -> None:
    rel, history = case
    number = next((f.name for f in rel.schema if f.type == "bigint"), None)
    assume(number is not None)
    view: Relation = Filter(rel, conditions(str(number))[which])
    if above:
        view = Aggregate(view, (rel.schema[0].name,), (Measure("n", "count", (), "bigint"),))
    changed = EVERYTHING if tables == "any" else {CLOCK: "any"}
    states = history.between(0, 1) if tables == "any" else history.between(1, 1)
    now, then = evaluate(view, states), evaluate(before(view, changed), states)
    assert signed(change(view, changed), states) == difference(now, then)


def test_a_still_clock_costs_nothing() -> None:
    view = Filter(R, call("<", Column("a"), NOW))
    assert change(view, {"r": "any"}) == change(Filter(R, call("<", Column("a"), NOW)), {"r": "any"})
    assert maintenance(stored_form(view, "v").kept, {"r": "appended"}).insert_only
    assert not maintenance(stored_form(view, "v").kept, {"r": "appended", CLOCK: "any"}).insert_only


def test_a_filter_by_the_clock_is_not_left_to_readers() -> None:
    groups = Aggregate(R, ("a",), (Measure("n", "count", (), "bigint"),))
    assert isinstance(stored_form(Filter(groups, call("<", Column("n"), NOW)), "v").kept, KeptBag)


def test_where_the_clock_may_stand() -> None:
    other = Scan("t", (ScanColumn("a", "x", "bigint"),))
    equal, bound = call("=", Column("a"), Column("x")), call("<", Column("x"), NOW)
    joined = in_filters(Join(R, other, "inner", call("AND", equal, bound)))
    assert joined == Filter(Join(R, other, "inner", equal), bound)
    assert misplaced(joined) is None
    assert misplaced(Join(R, other, "left", bound)) == NOW
    assert misplaced(Filter(Project(R, (Item("now", NOW, "date"),)), call("=", Column("now"), NOW))) == NOW


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a > current_date", "a > CAST(TIMESTAMP_MICROS(5) AS DATE)"),
        ("a > Current_Date( ) AND b < now()", "a > CAST(TIMESTAMP_MICROS(5) AS DATE) AND b < TIMESTAMP_MICROS(5)"),
        ("a > 'now()' AND `now` > t.now", "a > 'now()' AND `now` > t.now"),
        ("now AS current_date /* now() */", "now AS current_date /* now() */"),
        (
            "localtimestamp() - curdate()",
            "CAST(TIMESTAMP_MICROS(5) AS TIMESTAMP_NTZ) - CAST(TIMESTAMP_MICROS(5) AS DATE)",
        ),
    ],
)
def test_texts_at_a_moment(text: str, expected: str) -> None:
    assert at_moment(f"SELECT {text}", 5) == f"SELECT {expected}"
    assert bool(clock_functions(f"SELECT {text}")) == (text != expected)
