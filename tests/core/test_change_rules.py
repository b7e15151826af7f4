"""The change of any relation is what its tables' changes make of it, and merging it gives the view as it is now."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from viewkeeper.algebra.display import show
from viewkeeper.algebra.keys import Declared
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Filter,
    Measure,
    Ordering,
    Relation,
    Scan,
    ScanColumn,
    Top,
    inputs,
    is_empty,
    names,
)
from viewkeeper.changes.drift import STEPS
from viewkeeper.changes.kept import Kept, KeptGroups, KeptTop
from viewkeeper.changes.merge import MergeBag, MergeGroups, MergeTop
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import Maintenance, maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import Changed, before, net
from viewkeeper.testing.bags import (
    Bag,
    Tables,
    TableStates,
    apply,
    difference,
    evaluate,
    plus,
    signed,
    weigh,
    without_doubt,
)
from viewkeeper.testing.histories import SCHEMAS, History, histories
from viewkeeper.testing.strategies import Shape, changing_relations, changing_views, relations, views

pytestmark = pytest.mark.core

BACKING = "__vk_v"
FEWER = settings().max_examples // 3  # where one example does the work of several
EVERYTHING: Changed = dict.fromkeys(SCHEMAS, "any")
Case = tuple[Relation, History]


def was(rel: Relation) -> Relation:
    return before(rel, EVERYTHING)


def leaves(rel: Relation) -> Iterator[Relation]:
    """Every leaf as often as it stands in the tree."""
    below = inputs(rel)
    if not below:
        yield rel
    for part in below:
        yield from leaves(part)


# The change of a relation


@given(changing_relations())
def test_new_is_old_plus_change(case: Case) -> None:
    rel, history = case
    tables, delta = history.between(0, 1), change(rel, history.changed(0, 1))
    assert plus(evaluate(was(rel), tables), signed(delta, tables)) == evaluate(rel, tables), show(delta)


@given(changing_relations(), st.booleans())
def test_knowing_less_gives_the_same_change(case: Case, netted: bool) -> None:
    """Tables said to have changed in any way, and net differences instead of what was fed; also looked into for keys."""
    rel, history = case
    tables = history.between(0, 1, netted=netted)
    expected = difference(evaluate(rel, tables), evaluate(was(rel), tables))
    assert signed(change(rel, EVERYTHING), tables) == expected
    assert signed(change(rel, EVERYTHING, Declared(small=frozenset(SCHEMAS))), tables) == expected


@given(changing_relations(appends_only=True))
def test_appended_rows(case: Case) -> None:
    rel, history = case
    tables, changed = history.between(0, 1), history.changed(0, 1)
    assert set(changed.values()) <= {"appended"}
    assert signed(change(rel, changed), tables) == difference(evaluate(rel, tables), evaluate(was(rel), tables))


@given(relations())
def test_no_change_gives_nothing(rel: Relation) -> None:
    assert is_empty(change(rel, {}))


@given(relations(), st.sets(st.sampled_from(sorted(SCHEMAS))))
def test_unchanged_tables_add_no_term(rel: Relation, tables: set[str]) -> None:
    found = list(leaves(change(rel, dict.fromkeys(tables, "any"))))
    read_as_change_or_old = {leaf.table for leaf in found if isinstance(leaf, Changes)}
    read_as_change_or_old |= {leaf.table for leaf in found if isinstance(leaf, Scan) and leaf.state == "old"}
    assert read_as_change_or_old <= tables


@given(
    relations(Shape(joins=("inner",), aggregates=False, windows=False, leaves=6)),
    st.sets(st.sampled_from(sorted(SCHEMAS))),
)
def test_one_term_for_each_changed_table(rel: Relation, tables: set[str]) -> None:
    """Joins telescope: k mentions of changed tables give k terms, not 2^k - 1."""
    terms = [leaf for leaf in leaves(change(rel, dict.fromkeys(tables, "any"))) if isinstance(leaf, Changes)]
    mentions = [leaf for leaf in leaves(rel) if isinstance(leaf, Scan) and leaf.table in tables]
    assert sorted(t.table for t in terms) == sorted(m.table for m in mentions)


@given(histories(steps=2), st.sampled_from(sorted(SCHEMAS)), st.integers(0, 3))
def test_net_change_has_each_row_once(history: History, table: str, width: int) -> None:
    columns = tuple(ScanColumn(c, c, t) for c, t in SCHEMAS[table][:width])
    changes, tables = Changes(table, columns), history.between(0, 2)
    expected = weigh(evaluate(changes, tables), names(changes))
    assert evaluate(net(changes), tables) == Bag((*row, weight) for row, weight in expected.items())


@given(changing_relations())
def test_tables_and_groups_change_by_net_rows(case: Case) -> None:
    """Nothing that comes and goes, such as updates of columns nobody reads, is carried on."""
    rel, history = case
    tables = history.between(0, 1)
    for part in walk(rel):
        if isinstance(part, (Scan, Aggregate)):
            delta = change(part, EVERYTHING)
            net_rows = signed(delta, tables)
            assert evaluate(delta, tables) == Bag((*row, weight) for row, weight in net_rows.items())


# Kept views


def merged(step: Maintenance, kept: Bag, tables: Tables) -> Bag | None:
    """The kept rows after one refresh, None where a recompute is needed."""
    if step.nothing:
        return kept
    rows, columns = evaluate(step.change, tables), names(step.change)
    check_contract(step, rows)
    rows, _ = without_doubt(step, kept, rows, tables)
    return apply(step.merge, kept, rows, columns)


def exact(kept: Kept, rows: Bag) -> Bag:
    """Kept rows without how far a sum may be off, which depends on how it came about."""
    drifts = {s.name for s in kept.drifts} if isinstance(kept, KeptGroups) else set()
    at = [i for i, name in enumerate(names(kept.content)) if name not in drifts]
    return Bag(tuple(row[i] for i in at) for row in rows.elements())


def check_contract(step: Maintenance, rows: Bag) -> None:
    """What installing a change relies on."""
    columns = names(step.change)
    match step.merge:
        case MergeBag() | MergeTop():
            at = columns.index(WEIGHT)
            assert all(n == 1 and row[at] for row, n in rows.items()), "not netted"
            assert len({row[:at] + row[at + 1 :] for row in rows}) == len(rows), "not netted"
            assert not step.insert_only or all(row[at] > 0 for row in rows), "a row goes though only inserts are told"
        case MergeGroups(key, items):
            assert set(columns) - {STEPS} == {item.name for item in items}
            if not step.reasons and isinstance(step.change, Filter):
                states = [columns.index(item.name) for item in items if item.name not in key]
                assert all(any(row[i] for i in states) for row in rows), "a group that did not move"


def refreshed(kept: Kept, rows: Bag, history: History, start: int, end: int) -> Bag:
    after = merged(maintenance(kept, history.changed(start, end)), rows, history.between(start, end))
    return evaluate(kept.content, history.between(start, end)) if after is None else after


@given(changing_views())
def test_refresh_gives_the_view_as_it_is_now(case: Case) -> None:
    definition, history = case
    form, tables = stored_form(definition, BACKING), history.between(0, 1)
    rows = refreshed(form.kept, evaluate(was(form.kept.content), tables), history, 0, 1)
    assert exact(form.kept, rows) == exact(form.kept, evaluate(form.kept.content, tables))
    backing = {BACKING: TableStates(names(form.kept.content), rows, rows)}
    assert evaluate(form.public, backing) == evaluate(definition, tables)
    assert names(form.public) == names(definition)


@settings(max_examples=FEWER)
@given(changing_relations(steps=3), st.integers(1, 3), st.integers(0, 3))
def test_first_rows_stay_the_first_rows(case: Case, wanted: int, reserve: int) -> None:
    """However small the reserve: rows between the last kept one and the rest are never guessed."""
    rel, history = case
    order = tuple(Ordering(f.name, descending=n % 2 == 0) for n, f in enumerate(rel.schema))
    kept = KeptTop(rel, order, wanted, reserve)
    rows = evaluate(was(kept.content), history.between(0, 1))
    for step in range(3):
        rows = refreshed(kept, rows, history, step, step + 1)
        backing = {BACKING: TableStates(names(kept.content), rows, rows)}
        scan = Scan(BACKING, tuple(ScanColumn(f.name, f.name, f.type) for f in rel.schema))
        expected = evaluate(Top(rel, order, wanted), history.between(step, step + 1))
        assert evaluate(Top(scan, order, wanted), backing) == expected


@given(changing_views(appends_only=True))
def test_refresh_after_appends(case: Case) -> None:
    definition, history = case
    kept, tables = stored_form(definition, BACKING).kept, history.between(0, 1)
    rows = refreshed(kept, evaluate(was(kept.content), tables), history, 0, 1)
    assert exact(kept, rows) == exact(kept, evaluate(kept.content, tables))


@settings(max_examples=FEWER)
@given(changing_views(steps=3))
def test_one_refresh_is_as_good_as_three(case: Case) -> None:
    definition, history = case
    kept = stored_form(definition, BACKING).kept
    start = rows = evaluate(was(kept.content), history.between(0, 1))
    for step in range(3):
        rows = refreshed(kept, rows, history, step, step + 1)
    assert exact(kept, rows) == exact(kept, refreshed(kept, start, history, 0, 3))


def test_a_sum_has_a_counter_of_its_own_rows() -> None:
    """NULL where there are none: neither a count of distinct values nor one of other rows tells."""
    rows = Scan("r", (ScanColumn("a", "a", "bigint"), ScanColumn("f", "f", "boolean")))
    others = [
        Measure("distinct", "count", ("a",), "bigint", distinct=True),
        Measure("some", "count", ("a",), "bigint", where="f"),
    ]
    added = Measure("total", "sum", ("a",), "bigint")
    alone, plain = Aggregate(rows, ("f",), (*others, added)), Measure("n", "count", ("a",), "bigint")
    for view, counter in ((alone, "__vk_n_total"), (Aggregate(rows, ("f",), (plain, *others, added)), "n")):
        kept = stored_form(view, BACKING).kept
        assert isinstance(kept, KeptGroups)
        assert next(s.counted_by for s in kept.states if s.name == "total") == counter


@settings(max_examples=FEWER)
@given(views(Shape(aggregates=False, windows=False, leaves=1)))
def test_additive_views_of_one_table_read_only_its_changes(definition: Relation) -> None:
    kept = stored_form(definition, BACKING).kept
    assume(isinstance(kept, KeptGroups) and not any(s.why_fresh for s in kept.states))
    step = maintenance(kept, EVERYTHING)
    assert not step.reasons
    assert not any(isinstance(leaf, Scan) for leaf in leaves(step.change))
