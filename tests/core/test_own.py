"""Changes that look into the view as it was are those of a recompute, and leave tables unread."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shop import CUSTOMERS, LINES, ON_CUSTOMER, ON_ORDER, ORDERS, equal, scan

from viewkeeper.algebra.display import show
from viewkeeper.algebra.keys import Declared
from viewkeeper.algebra.matching import looked_at
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import prune
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Item,
    Join,
    JoinKind,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Union,
    is_empty,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import ONE, TRUE, Column, Scalar, call
from viewkeeper.changes.kept import KeptBag
from viewkeeper.changes.own import OWN
from viewkeeper.changes.propagate import change
from viewkeeper.changes.refresh import Maintenance, maintenance, tables_read
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import Changed, ChangeKind, before
from viewkeeper.planner.build import Situation, choose_reading
from viewkeeper.planner.cost import Sizes
from viewkeeper.settings import Settings
from viewkeeper.testing import references
from viewkeeper.testing.bags import Bag, Tables, TableStates, apply, evaluate
from viewkeeper.testing.choices import Choices, both
from viewkeeper.testing.histories import History, histories
from viewkeeper.testing.strategies import LENGTH, Shape, changing_relations

pytestmark = pytest.mark.core

Case = tuple[Relation, History]
KEYS = Declared(references.DECLARED.keys)
OUTER = Shape(joins=("left", "full", "full"), aggregates=False, windows=False)


def refreshed(step: Maintenance, rows: Bag, content: Relation, tables: Tables) -> Bag | None:
    """The kept rows after a refresh that may look into them."""
    if step.nothing:
        return rows
    seen = {**tables, OWN: TableStates(names(content), rows, rows)}
    return apply(step.merge, rows, evaluate(step.change, seen), names(step.change))


# Rows without a match


@given(changing_relations(OUTER, appends_only=True))
def test_outer_joins_seen_in_the_view(case: Case) -> None:
    content, history = case
    tables, changed = history.between(0, 1), history.changed(0, 1)
    step = maintenance(KeptBag(content), changed, own=True)
    was = evaluate(before(content, changed), tables)
    assert refreshed(step, was, content, tables) == evaluate(content, tables), show(step.change)


@pytest.mark.parametrize("kind", ["left", "full"])
@given(history=histories(appends_only=True), netted=st.booleans())
def test_which_rows_had_no_match(kind: JoinKind, history: History, netted: bool) -> None:
    r, t = (Scan(n, tuple(ScanColumn(c, f"{n}_{c}", ty) for c, ty in history.schemas[n])) for n in ("r", "t"))
    content = Join(r, t, kind, equal(r.schema[0].name, t.schema[0].name))
    tables, changed = history.between(0, 1, netted=netted), history.changed(0, 1)
    step = maintenance(KeptBag(content), changed, own=True)
    assert "t" not in changed or OWN in tables_read(step.change)
    was = evaluate(before(content, changed), tables)
    assert refreshed(step, was, content, tables) == evaluate(content, tables), show(step.change)


@pytest.mark.parametrize(
    "hidden",
    {
        "the marker": Project(
            Join(ORDERS, LINES, "left", ON_ORDER),
            pass_through(tuple(f for f in (*ORDERS.schema, *LINES.schema) if f.name != "l_ord")),
        ),
        "what is compared": Project(
            Join(ORDERS, LINES, "left", ON_ORDER),
            pass_through(tuple(f for f in (*ORDERS.schema, *LINES.schema) if f.name != "o_id")),
        ),
        "some rows": Filter(Join(ORDERS, LINES, "left", ON_ORDER), call(">", Column("o_cust"), ONE)),
        "which is padded": Join(ORDERS, LINES, "left", call("<=>", Column("l_ord"), Column("o_id"))),
    }.items(),
    ids=lambda pair: pair[0],
)
def test_what_the_view_does_not_show_is_read_from_the_tables(hidden: tuple[str, Relation]) -> None:
    step = maintenance(KeptBag(hidden[1]), {"lines": "appended"}, own=True)
    assert OWN not in tables_read(step.change)
    assert "lines" in tables_read(step.change)


# What a match looks at


@pytest.mark.parametrize(
    ("right", "part"),
    [
        (Join(ORDERS, LINES, "left", ON_ORDER), ORDERS),
        (Join(LINES, ORDERS, "full", ON_ORDER), ORDERS),
        (Join(ORDERS, LINES, "full", ON_ORDER), ORDERS),
        (Aggregate(ORDERS, ("o_id",), (Measure("n", "count", (), "bigint"),)), ORDERS),
        (Aggregate(ORDERS, ("o_id",), ()), ORDERS),
    ],
)
def test_a_match_looks_at_one_side(right: Relation, part: Relation) -> None:
    read = prune(part, frozenset({"o_id"}))
    assert looked_at(right, equal("c_id", "o_id")) == Project(read, pass_through(read.schema))
    renamed = Project(right, (Item("x", Column("o_id"), "bigint"),))
    assert tables_read(looked_at(renamed, equal("c_id", "x"))) == {"orders"}


@pytest.mark.parametrize(
    ("right", "condition"),
    [
        (Join(ORDERS, LINES, "left", ON_ORDER), equal("c_id", "l_ord")),
        (Join(ORDERS, LINES, "full", ON_ORDER), call("<=>", Column("c_id"), Column("o_id"))),
        (Join(ORDERS, LINES, "full", ON_ORDER), call("AND", equal("c_id", "o_id"), equal("c_zone", "l_qty"))),
        (Join(ORDERS, LINES, "inner", ON_ORDER), equal("c_id", "o_id")),
        (Aggregate(ORDERS, ("o_id",), (Measure("o_cust", "count", (), "bigint"),)), equal("c_id", "o_cust")),
        (Aggregate(ORDERS, (), (Measure("n", "count", (), "bigint"),)), equal("c_id", "n")),
        (Join(ORDERS, LINES, "left", ON_ORDER), call("IS NULL", Column("c_id"))),
    ],
)
def test_a_match_looks_at_all_of_it(right: Relation, condition: Scalar) -> None:
    assert tables_read(looked_at(right, condition)) == tables_read(right)
    assert any(isinstance(n, type(right)) for n in walk(looked_at(right, condition)))


def test_rows_of_constants_keep_a_column() -> None:
    """Else nobody could tell that nothing of them changed."""
    constants = Project(Join(ORDERS, LINES, "full", TRUE), (Item("x", ONE, "bigint"),))
    right = Union((Project(CUSTOMERS, (Item("x", Column("c_id"), "bigint"),)), constants))
    outer = Join(scan("orders", "left"), right, "left", equal("left_id", "x"))
    assert is_empty(change(outer, {}))


@given(both(references.relation, references.history, LENGTH), st.sampled_from(["=", "<=>", "<"]))
def test_matches_are_the_same_in_the_part(case: Case, compared: str) -> None:
    right, history = case
    tables, left = history.between(0, 1), scan("orders", "left")
    for column in names(right):
        condition = call(compared, Column("left_cust"), Column(column))
        part = looked_at(right, condition)
        for kind in ("semi", "anti"):
            expected = evaluate(Join(left, right, kind, condition), tables)
            assert evaluate(Join(left, part, kind, condition), tables) == expected


# Rows by the key of a table


def only(table: str, history: History) -> History:
    """The history in which only this table changed."""
    old, new = history.versions
    feed = {t: fed if t == table else () for t, fed in history.feeds[0].items()}
    return replace(history, versions=(old, {**old, table: new[table]}), feeds=(feed,))


def answered(step: Maintenance, changed: Changed, tables: Tables) -> Changed:
    kinds: dict[str, ChangeKind] = {q.table: q.kind for q in step.questions if not evaluate(q.against, tables)}
    return {**changed, **kinds}


def check_by_key(definition: Relation, history: History, table: str) -> bool:
    """Whether the change was one by key; it is right in any case."""
    past = only(table, history)
    kept, tables, changed = stored_form(definition, "v").kept, past.between(0, 1), past.changed(0, 1)
    asked = maintenance(kept, changed, KEYS, own=True)
    found = answered(asked, changed, tables)
    step = maintenance(kept, found, KEYS, own=True)
    was = evaluate(before(kept.content, changed), tables)
    assert refreshed(step, was, kept.content, tables) == evaluate(kept.content, tables), show(step.change)
    by_key = "in place" in found.values()
    assert not by_key or tables_read(step.change) == {OWN}
    return by_key


BY_KEY: dict[str, Relation] = {
    "orders": Filter(ORDERS, call(">", Column("o_cust"), ONE)),
    "joined": Join(LINES, ORDERS, "inner", ON_ORDER),
    "three": Join(Join(LINES, ORDERS, "inner", ON_ORDER), CUSTOMERS, "left", ON_CUSTOMER),
    "computed": Project(
        Join(ORDERS, CUSTOMERS, "inner", ON_CUSTOMER),
        (
            Item("order", Column("o_id"), "bigint"),
            Item("customer", Column("c_id"), "bigint"),
            Item("own", call("+", Column("c_zone"), ONE), "bigint"),
            Item("mixed", call("+", Column("c_zone"), Column("o_prev")), "bigint"),
        ),
    ),
    "with customers": Join(ORDERS, CUSTOMERS, "semi", ON_CUSTOMER),
    "groups": Aggregate(Join(LINES, ORDERS, "inner", ON_ORDER), ("o_id",), (Measure("n", "sum", ("l_qty",), "bigint"),)),
}  # fmt: skip


@pytest.mark.parametrize("name", BY_KEY)
@pytest.mark.parametrize("table", ["orders", "customers"])
@settings(max_examples=max(20, settings().max_examples // 4))
@given(data=st.binary(min_size=LENGTH, max_size=LENGTH))
def test_changes_by_key(name: str, table: str, data: bytes) -> None:
    check_by_key(BY_KEY[name], references.history(Choices(data)), table)


@settings(max_examples=settings().max_examples // 2)
@given(both(references.relation, references.history, LENGTH), st.sampled_from(["orders", "customers"]))
def test_changes_by_key_of_any_relation(case: Case, table: str) -> None:
    check_by_key(*case, table)


def statements(*fed: tuple[str, tuple[int | None, ...], int]) -> History:
    """A small shop, and what some statements do to it."""
    old: dict[str, tuple[tuple[int | None, ...], ...]] = {
        "lines": ((1, 5), (1, 6), (2, 7)),
        "orders": ((1, 1, None), (2, 1, None), (3, 2, 1)),
        "customers": ((1, 10), (2, 20)),
    }
    new = {t: tuple(row for row in rows if (t, row, -1) not in fed) for t, rows in old.items()}
    for table, row, weight in fed:
        new[table] += (row,) if weight > 0 else ()
    feed = {t: tuple((row, weight) for name, row, weight in fed if name == t) for t in old}
    return History((old, new), (feed,), references.SCHEMAS)


DELETED = statements(("orders", (1, 1, None), -1))
UPDATED = statements(("customers", (1, 10), -1), ("customers", (1, 11), 1))
MOVED = statements(("orders", (1, 1, None), -1), ("orders", (1, 2, None), 1))
CAME = statements(("orders", (1, 1, None), -1), ("orders", (4, 1, None), 1))


@pytest.mark.parametrize(
    ("name", "history", "table", "by_key"),
    [
        ("joined", DELETED, "orders", True),
        ("three", DELETED, "orders", True),
        ("groups", DELETED, "orders", True),
        ("with customers", DELETED, "orders", True),
        ("computed", DELETED, "orders", True),
        ("orders", CAME, "orders", False),
        ("computed", UPDATED, "customers", False),  # one of its columns depends on both tables
        ("joined", MOVED, "orders", True),
        ("three", MOVED, "orders", False),
        ("groups", MOVED, "orders", False),  # groups go by key, but do not change in place
        ("three", UPDATED, "customers", False),  # an order without a customer shows no key of one
        ("with customers", UPDATED, "customers", False),
    ],
)
def test_where_the_key_is_enough(name: str, history: History, table: str, by_key: bool) -> None:
    assert check_by_key(BY_KEY[name], history, table) == by_key


# Which way reads less


def situation(rows: int, changed: Changed, declared: Declared = KEYS) -> Situation:
    sizes = {t: Sizes(10_000_000, 10) for t in references.SCHEMAS}
    return Situation("v", "AUTO", None, rows, sizes, changed, moved=True, declared=declared)


@pytest.mark.parametrize("rows", [1_000, 100_000_000])
def test_a_view_is_looked_into_if_it_is_small(rows: int) -> None:
    outer, inner = Join(ORDERS, LINES, "left", ON_ORDER), BY_KEY["joined"]
    small = rows == 1_000
    assert choose_reading(KeptBag(outer), situation(rows, {"lines": "appended"}), Settings()).own == small
    asked = choose_reading(KeptBag(inner), situation(rows, {"orders": "any"}), Settings())
    assert [q.kind for q in asked.questions] == (["in place"] if small else [])


# The example of the thesis: new sales reach two outer joins, at 1/100 of its sizes

READ = {"sales": 10_000_000, "changes of sales": 10_000, "stores": 1_000, "infos": 100, OWN: 20}  # padded rows alone


def rows_read(rel: Relation) -> int:
    """Each leaf is read once, however often it is mentioned; of the view only what its filter leaves."""
    changes = {f"changes of {n.table}" for n in walk(rel) if isinstance(n, Changes)}
    return sum(READ[name] for name in tables_read(rel) | changes)


def test_new_sales_reach_outer_joins_without_the_old_sales() -> None:
    """11 120 rows, and 10 000 that come: the thesis has 31 100, against 10 031 110 where old sales are joined again."""
    sales = Scan("sales", (ScanColumn("store", "sale_store", "int"), ScanColumn("price", "price", "int")))
    stores = Scan("stores", (ScanColumn("store", "store", "int"), ScanColumn("state", "state", "string")))
    infos = Scan("infos", (ScanColumn("state", "info_state", "string"), ScanColumn("info", "info", "string")))
    with_stores = Join(sales, stores, "full", equal("sale_store", "store"))
    content = Join(with_stores, infos, "full", equal("state", "info_state"))
    alone, own = (maintenance(KeptBag(content), {"sales": "appended"}, own=look) for look in (False, True))
    assert rows_read(alone.change) > 10_000_000
    assert rows_read(own.change) == 11_120
