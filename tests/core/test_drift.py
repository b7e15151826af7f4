"""Sums of floating-point numbers, kept by adding changes: never further from their rows than 1e-9."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Aggregate, Measure, Scan, ScanColumn, names
from viewkeeper.changes.kept import KeptGroups
from viewkeeper.changes.refresh import Maintenance, maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.testing.bags import Bag, TableStates, apply, evaluate, without_doubt

pytestmark = pytest.mark.core

R = Scan("r", (ScanColumn("g", "g", "bigint"), ScanColumn("x", "x", "double"), ScanColumn("f", "f", "boolean")))
SUMS = (
    Measure("s", "sum", ("x",), "double"),
    Measure("some", "sum", ("x",), "double", where="f"),
    Measure("mean", "avg", ("x",), "double"),
)
Rows = list[tuple[int, float | None, bool]]


def kept_by(*key: str) -> tuple[KeptGroups, Aggregate]:
    view = Aggregate(R, key, SUMS)
    kept = stored_form(view, "v").kept
    assert isinstance(kept, KeptGroups)
    return kept, view


def refreshed(step: Maintenance, kept: Bag, tables: dict[str, TableStates]) -> tuple[Bag, Bag]:
    """The kept rows after a refresh, and the keys that were computed afresh."""
    rows, keys = without_doubt(step, kept, evaluate(step.change, tables), tables)
    after = apply(step.merge, kept, rows, names(step.change))
    assert after is not None
    return after, keys


def states(old: Rows, new: Rows) -> dict[str, TableStates]:
    return {"r": TableStates(names(R), Bag(old), Bag(new))}


def shown(kept: KeptGroups, rows: Bag) -> dict[object, tuple[float | None, ...]]:
    """By group, the kept sums."""
    columns = names(kept.content)
    at = [columns.index(c) for c in ("s", "some", "__vk_sum_mean")]
    return {row[: len(kept.key)]: tuple(row[i] for i in at) for row in rows}


def test_what_was_added_beside_a_huge_number_is_there_when_that_goes() -> None:
    kept, _ = kept_by("g")
    step = maintenance(kept, {"r": "any"})
    one, huge, other = (1, 1.0, True), (1, 1e20, True), (2, 5.0, True)
    history: list[Rows] = [[one, other], [one, huge, other], [one, other], [one, other, other]]
    rows = evaluate(kept.content, states([], history[0]))
    again: list[set[tuple[object, ...]]] = []
    for old, new in pairwise(history):
        rows, keys = refreshed(step, rows, states(old, new))
        again.append(set(keys))
        assert shown(kept, rows) == shown(kept, evaluate(kept.content, states(old, new)))
    # The huge number drowns what comes beside it, and is gone with all that it drowned; nobody else is disturbed.
    assert again == [set(), {(1,)}, set()]


@pytest.mark.parametrize("odd", [math.inf, -math.inf, math.nan])
def test_what_is_no_number_is_not_added_up(odd: float) -> None:
    kept, _ = kept_by("g")
    step = maintenance(kept, {"r": "any"})
    before: Rows = [(1, 2.0, True), (2, 3.0, False)]
    during: Rows = [*before, (1, odd, True)]
    rows = evaluate(kept.content, states([], before))
    rows, keys = refreshed(step, rows, states(before, during))
    assert set(keys) == {(1,)}
    rows, keys = refreshed(step, rows, states(during, before))
    assert set(keys) == {(1,)} and shown(kept, rows)[1,] == (2.0, 2.0, 2.0)


VALUES = st.sampled_from([1.0, 0.1, -0.1, 1e20, -1e20, 1e-20, 3e15, 0.0, None])
ROWS = st.lists(st.tuples(st.sampled_from([1, 2]), VALUES, st.booleans()), max_size=6)


@settings(max_examples=80)
@given(st.lists(ROWS, min_size=2, max_size=6), st.booleans())
def test_no_sum_drifts_however_long_it_lives(history: list[Rows], grouped: bool) -> None:
    kept, _ = kept_by(*(("g",) if grouped else ()))
    step = maintenance(kept, {"r": "any"})
    rows = evaluate(kept.content, states([], history[0]))
    for old, new in pairwise(history):
        tables = states(old, new)
        if evaluate(step.change, tables):
            rows, _ = refreshed(step, rows, tables)
        found = shown(kept, rows)
        for key in found:
            mine = [(x, f) for g, x, f in new if x is not None and key in ((g,), ())]
            for value, wanted in zip(found[key], (mine, [m for m in mine if m[1]], mine), strict=True):
                exact = math.fsum(x for x, _ in wanted)
                size = sum(abs(x) for x, _ in wanted)
                assert (value is None) == (not wanted)
                # A computation from the rows themselves may be off by its own last digits.
                allowed = 1e-9 * max(abs(exact), abs(value or 0)) + len(wanted) * 2.3e-16 * size
                assert value is None or abs(value - exact) <= allowed
        assert found.keys() == shown(kept, evaluate(kept.content, tables)).keys()


def test_sums_that_did_not_drift_read_only_changes() -> None:
    kept, _ = kept_by("g")
    step = maintenance(kept, {"r": "any"})
    assert not step.reasons and not any(isinstance(n, Scan) for n in walk(step.change))
    assert Counter(s.merge for s in kept.states) == {"add": 6, "drift": 3}
