"""The papers' worked examples, through our rules."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import pytest

from viewkeeper.algebra.relations import (
    WEIGHT,
    Changes,
    Item,
    Join,
    Project,
    Relation,
    Scan,
    Union,
    inputs,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import Column, Scalar, call
from viewkeeper.changes.kept import COUNT
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.testing import vectors
from viewkeeper.testing.bags import Bag, Tables, apply, evaluate, signed
from viewkeeper.testing.values import Row
from viewkeeper.testing.vectors import Columns, Tag, scan, states

pytestmark = pytest.mark.core


def leaves(rel: Relation) -> list[Relation]:
    below = inputs(rel)
    return [leaf for part in below for leaf in leaves(part)] if below else [rel]


# Counters


@pytest.mark.parametrize(
    ("gone", "left"), [((3, 20), {10: 2}), ((1, 10), {10: 1, 20: 1})], ids=["the only one", "one of two"]
)
def test_a_row_goes_when_its_counter_reaches_zero(gone: Row, left: Mapping[int, int]) -> None:
    form = stored_form(vectors.projection(), "v")
    rows = [row for row in vectors.COUNTED_ROWS if row != gone]
    tables = {"r": states(vectors.COUNTED, vectors.COUNTED_ROWS, rows)}
    kept = Counter({(10, 2): 1, (20, 1): 1})
    assert names(form.kept.content) == ("B", COUNT)
    step = maintenance(form.kept, {"r": "any"})
    merged = apply(step.merge, kept, evaluate(step.change, tables), names(step.change))
    assert merged == Counter(left.items())


# Tags


def single(tag: Tag, row: Row) -> tuple[list[Row], list[Row]]:
    """A table's old and new rows, where its one row has the tag."""
    return ([] if tag == "insert" else [row]), ([] if tag == "delete" else [row])


@pytest.mark.parametrize(("tags", "result"), vectors.TAGS.items())
def test_tags_of_joined_rows(tags: tuple[Tag, Tag], result: str) -> None:
    columns: Columns = (("k", "bigint"),)
    tables = {name: states(columns, *single(tag, (1,))) for name, tag in zip("rs", tags, strict=True)}
    joined = Join(scan("r", columns, "r_"), scan("s", columns, "s_"), "inner", call("=", Column("r_k"), Column("s_k")))
    net = {"insert": {(1, 1): 1}, "delete": {(1, 1): -1}}.get(result, {})
    assert signed(change(joined, {"r": "any", "s": "any"}), tables) == Counter(net)


# Terms


def test_truth_table() -> None:
    """Three tables, the first two changed: rows 3, 5 and 7."""
    assert sorted(vectors.truth_table((True, True, False))) == [3, 5, 7]
    assert all(len(vectors.truth_table((True,) * k)) == 2**k - 1 for k in range(7))


KEY: Columns = (("k", "bigint"), ("v", "bigint"))


def table(number: int) -> Scan:
    return scan(f"r{number}", KEY, f"r{number}_")


def chain(parts: list[Relation]) -> Relation:
    joined = parts[0]
    for number, part in enumerate(parts[1:], 1):
        joined = Join(joined, part, "inner", call("=", Column("r0_k"), Column(f"r{number}_k")))
    return joined


def term(row: tuple[bool, ...]) -> Relation:
    """One row of the truth table as algebra: changes where it says so, old states elsewhere, weights multiplied."""
    parts: list[Relation] = []
    weights: list[Scalar] = []
    for number, takes_change in enumerate(row):
        columns = table(number).columns
        if takes_change:
            changes = Changes(f"r{number}", columns)
            weight = Item(f"w{number}", Column(WEIGHT), "bigint")
            parts.append(Project(changes, (*pass_through(changes.schema[:-1]), weight)))
            weights.append(Column(weight.name))
        else:
            parts.append(Scan(f"r{number}", columns, "old"))
    total = weights[0]
    for weight_column in weights[1:]:
        total = call("*", total, weight_column)
    joined = chain(parts)
    shown = tuple(f for f in joined.schema if f.name.startswith("r"))
    return Project(joined, (*pass_through(shown), Item(WEIGHT, total, "bigint")))


@pytest.mark.parametrize("changed", [(True,), (True, True), (True, False, True), (True,) * 3, (True,) * 4])
def test_two_to_the_k_terms_or_k(changed: tuple[bool, ...]) -> None:
    """Both expansions give the same change; ours has one term for each changed table."""
    old: list[Row] = [(1, 1), (1, 2), (2, 1), (3, 0)]
    new: list[Row] = [(1, 1), (2, 1), (2, 2), (2, 2), (4, 0)]
    tables = {f"r{i}": states(KEY, old, new if c else old) for i, c in enumerate(changed)}
    full = Union(tuple(term(row) for row in vectors.truth_table(changed).values()))
    ours = change(chain([table(i) for i in range(len(changed))]), {f"r{i}": "any" for i, c in enumerate(changed) if c})
    assert signed(full, tables) == signed(ours, tables)
    assert len(full.inputs) == 2 ** sum(changed) - 1
    assert sum(isinstance(leaf, Changes) for leaf in leaves(ours)) == sum(changed)


# Change tables


def sales(old: tuple[Row, ...], new: tuple[Row, ...]) -> Tables:
    return {
        "sales": states(vectors.SALES, old, new),
        "items": states(vectors.ITEMS, vectors.ITEM_ROWS, vectors.ITEM_ROWS),
    }


def by_category(bag: Bag) -> dict[object, Row]:
    return {row[0]: row[1:] for row in bag}


def test_category_sales_before_and_after() -> None:
    view = vectors.category_sales(vectors.store_item_sales())
    after = vectors.SALES_ROWS + vectors.SALES_INSERTED
    assert by_category(evaluate(view, sales((), vectors.SALES_ROWS))) == vectors.CATEGORY_SALES
    assert by_category(evaluate(view, sales((), after))) == vectors.CATEGORY_SALES_AFTER


def test_the_printed_condition_gives_other_numbers() -> None:
    view = vectors.category_sales(vectors.store_item_sales(">"))
    assert by_category(evaluate(view, sales((), vectors.SALES_ROWS)))["C1"] == (590, 3)


@pytest.mark.parametrize("kind", ["any", "appended"])
def test_category_sales_refreshed_by_its_change_table(kind: str) -> None:
    form = stored_form(vectors.category_sales(vectors.store_item_sales()), "v")
    tables = sales(vectors.SALES_ROWS, vectors.SALES_ROWS + vectors.SALES_INSERTED)
    step = maintenance(form.kept, {"sales": "appended" if kind == "appended" else "any"})
    columns, rows = names(step.change), evaluate(step.change, tables)
    revenue, sold = columns.index("revenue"), columns.index("sold")
    assert {row[0]: (row[revenue], row[sold]) for row in rows} == vectors.CATEGORY_CHANGES
    kept = evaluate(form.kept.content, sales((), vectors.SALES_ROWS))
    merged = apply(step.merge, kept, rows, columns)
    stored = names(form.kept.content)
    found = {row[0]: (row[stored.index("revenue")], row[stored.index("sold")]) for row in merged}
    assert found == vectors.CATEGORY_SALES_AFTER


def test_a_category_without_sales_goes() -> None:
    """(C2, 210, 2) ⊔ (C2, -210, -2): all sales of item I1 are deleted."""
    form = stored_form(vectors.category_sales(vectors.store_item_sales()), "v")
    left = tuple(row for row in vectors.SALES_ROWS if row[1] != "I1")
    tables = sales(vectors.SALES_ROWS, left)
    step = maintenance(form.kept, {"sales": "any"})
    columns, rows = names(step.change), evaluate(step.change, tables)
    c2 = next(dict(zip(columns, row, strict=True)) for row in rows if row[0] == "C2")
    assert (c2["revenue"], c2["sold"]) == (-210, -2)
    kept = evaluate(form.kept.content, sales((), vectors.SALES_ROWS))
    merged = apply(step.merge, kept, rows, columns)
    assert {row[0] for row in merged} == {"C1", "C3"}
    assert merged == evaluate(form.kept.content, tables)


def test_refresh_refuses_what_cannot_be() -> None:
    """A change that takes more than there is, or twice the same group, is a bug and not a result."""
    step = maintenance(stored_form(vectors.projection(), "v").kept, {"r": "any"})
    columns = names(step.change)
    with pytest.raises(AssertionError, match="negative count"):
        apply(step.merge, Counter({(10, 1): 1}), Counter({(10, -2): 1}), columns)
    with pytest.raises(AssertionError, match="two rows for one key"):
        apply(step.merge, Counter({(10, 1): 1}), Counter({(10, 1): 1, (10, 2): 1}), columns)
    bag = maintenance(stored_form(scan("r", vectors.COUNTED), "v").kept, {"r": "any"})
    with pytest.raises(AssertionError, match="removed rows that are not there"):
        apply(bag.merge, Counter({(1, 10): 1}), Counter({(2, 10, -1): 1}), names(bag.change))
