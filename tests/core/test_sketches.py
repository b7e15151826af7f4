"""Sketches take in the rows that come; a group that lost one is computed afresh."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.relations import Aggregate, Item, Measure, Project, Scan, ScanColumn, names, pass_through
from viewkeeper.algebra.scalars import Literal
from viewkeeper.changes.kept import KeptGroups
from viewkeeper.changes.merge import MergeGroups
from viewkeeper.changes.refresh import maintenance, tables_read
from viewkeeper.changes.stored import stored_form, why_not_maintainable
from viewkeeper.changes.weights import ChangeKind
from viewkeeper.sql.render import render
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import Bag, TableStates, apply, evaluate

pytestmark = pytest.mark.core

R = Scan("r", (ScanColumn("g", "g", "bigint"), ScanColumn("x", "x", "bigint"), ScanColumn("f", "f", "boolean")))
SIZED = Project(R, (*pass_through(R.schema), Item("size", Literal("10"), "int")))
DISTINCT = Measure("d", "theta_sketch_agg", ("x", "size"), "binary", where="f")
UNITED = Measure("u", "hll_union_agg", ("x",), "binary")
RANKED = Measure("q", "kll_sketch_agg_bigint", ("x",), "binary")
TOTAL = Measure("s", "sum", ("x",), "bigint")

Rows = list[tuple[int, int | None, bool]]
ROWS = st.lists(
    st.tuples(st.sampled_from([1, 2]), st.sampled_from([1, 2, 3, None]), st.sampled_from([True, False])), max_size=6
)


def kept_by(*measures: Measure, key: tuple[str, ...] = ("g",)) -> KeptGroups:
    kept = stored_form(Aggregate(SIZED, key, measures), "v").kept
    assert isinstance(kept, KeptGroups)
    return kept


def states(old: Rows, new: Rows) -> dict[str, TableStates]:
    return {"r": TableStates(names(R), Bag(old), Bag(new))}


@given(st.lists(ROWS, min_size=2, max_size=4), st.booleans(), st.booleans())
def test_sketches_hold_what_their_rows_hold(history: list[Rows], grouped: bool, grows: bool) -> None:
    kept = kept_by(DISTINCT, UNITED, RANKED, TOTAL, key=("g",) if grouped else ())
    kind: ChangeKind = "appended" if grows else "any"
    step = maintenance(kept, {"r": kind})
    now: Rows = list(history[0])
    kept_rows = evaluate(kept.content, states([], now))
    for _, more in pairwise(history):
        new = now + more if grows else more
        tables = states(now, new)
        change = evaluate(step.change, tables)
        merged = apply(step.merge, kept_rows, change, names(step.change)) if change else kept_rows
        assert merged == evaluate(kept.content, tables)
        kept_rows, now = merged, new


def test_rows_that_come_are_merged_without_a_look_at_the_others() -> None:
    kept = kept_by(DISTINCT, TOTAL)
    step = maintenance(kept, {"r": "appended"})
    assert tables_read(step.change) == set() and step.reasons == ()
    assert "THETA_SKETCH_AGG(`r_changes`.`x`, 10) FILTER (WHERE" in unparse(step.change)
    assert isinstance(step.merge, MergeGroups)
    (sketch,) = (
        render(i.value, {f"{s}.d": f"{s}.d" for s in ("old", "change")}) for i in step.merge.columns if i.name == "d"
    )
    assert "THETA_UNION(old.d, change.d, 10)" in sketch


def test_rows_that_go_have_their_groups_computed_afresh() -> None:
    step = maintenance(kept_by(DISTINCT, TOTAL), {"r": "any"})
    assert tables_read(step.change) == {"r"}
    assert [str(r) for r in step.reasons] == [
        "d: its groups are computed afresh: theta_sketch_agg cannot be undone by a deleted row"
    ]


def test_a_sketch_of_random_draws_is_only_the_last_of_a_view() -> None:
    def over(measure: Measure) -> Aggregate:
        return Aggregate(Aggregate(SIZED, ("g",), (measure,)), (), (Measure("m", "max", (measure.name,), "binary"),))

    assert why_not_maintainable(stored_form(over(DISTINCT), "v"), {}) is None
    why = why_not_maintainable(stored_form(over(RANKED), "v"), {})
    assert why is not None and "draws at random" in str(why)
