"""Keys that are claimed hold, and changes that rely on declared keys are those of a recompute."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from shop import CUSTOMERS, LINES, ON_CUSTOMER, ON_ORDER, ORDERS, equal, scan

from viewkeeper.algebra.clock import CLOCK
from viewkeeper.algebra.display import show
from viewkeeper.algebra.keys import NOTHING, Declared, ForeignKey, keys, origins
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import sunk
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Field,
    Filter,
    Generate,
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
from viewkeeper.algebra.scalars import ONE, TRUE, ZERO, Clock, Column, Scalar, call
from viewkeeper.changes.kept import KeptGroups
from viewkeeper.changes.merge import MergeBag
from viewkeeper.changes.propagate import change
from viewkeeper.changes.references import questions
from viewkeeper.changes.refresh import Maintenance, maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import Changed, ChangeKind, before
from viewkeeper.testing.bags import Bag, Tables, apply, difference, evaluate, signed
from viewkeeper.testing.choices import Choices, both
from viewkeeper.testing.histories import History
from viewkeeper.testing.references import DECLARED, SCHEMAS, history, relation
from viewkeeper.testing.strategies import LENGTH

pytestmark = pytest.mark.core

Case = tuple[Relation, History]
KINDS: tuple[JoinKind, ...] = ("inner", "left", "semi", "anti", "full")


LARGE = call(">", Column("o_cust"), ONE)
AGES, OLD = (call("<", Column(c), Clock("CURRENT_DATE")) for c in ("l_qty", "o_cust"))


def joined(kind: JoinKind = "inner", on: Scalar = ON_ORDER) -> Join:
    return Join(LINES, ORDERS, kind, on)


def three(order: str) -> Relation:
    """Lines, orders and customers, joined in any order."""
    match order:
        case "col":
            return Join(Join(CUSTOMERS, ORDERS, "inner", ON_CUSTOMER), LINES, "inner", ON_ORDER)
        case "loc":
            return Join(Join(LINES, ORDERS, "inner", ON_ORDER), CUSTOMERS, "inner", ON_CUSTOMER)
        case "l(oc)":
            return Join(LINES, Join(ORDERS, CUSTOMERS, "inner", ON_CUSTOMER), "inner", ON_ORDER)
        case _:
            crossed = Join(Join(CUSTOMERS, ORDERS, "inner", TRUE), LINES, "inner", TRUE)
            return Filter(Filter(crossed, ON_ORDER), call("AND", ON_CUSTOMER, call(">", Column("l_qty"), ZERO)))


COUNTED = Aggregate(LINES, ("l_ord",), (Measure("n", "count", (), "bigint"),))
VIEWS: dict[str, Relation] = {
    **{kind: joined(kind) for kind in KINDS},
    **{f"parent {kind} child": Join(ORDERS, LINES, kind, ON_ORDER) for kind in KINDS},
    **{f"{kind} filtered parent": Join(LINES, Filter(ORDERS, LARGE), kind, ON_ORDER) for kind in KINDS},
    **{f"{kind} on more": joined(kind, call("AND", ON_ORDER, equal("l_qty", "o_cust"))) for kind in KINDS},
    **{f"{kind} not on the key": joined(kind, equal("l_ord", "o_cust")) for kind in KINDS},
    **{f"{kind} of groups": Join(COUNTED, ORDERS, kind, ON_ORDER) for kind in KINDS},
    **{order: three(order) for order in ("col", "loc", "l(oc)", "where")},
    "outer chain": Join(joined("left"), CUSTOMERS, "left", ON_CUSTOMER),
    "padded child": Join(Join(CUSTOMERS, LINES, "left", equal("c_id", "l_qty")), ORDERS, "inner", ON_ORDER),
    "orders of orders": Join(ORDERS, scan("orders", "p"), "inner", equal("o_prev", "p_id")),
    "semi-joined parent": Join(LINES, Join(ORDERS, CUSTOMERS, "semi", ON_CUSTOMER), "inner", ON_ORDER),
    "anti-joined parent": Join(LINES, Join(ORDERS, CUSTOMERS, "anti", ON_CUSTOMER), "inner", ON_ORDER),
    "grouped parent": Join(LINES, Aggregate(ORDERS, ("o_id",), (Measure("x", "sum", ("o_cust",), "bigint"),)), "inner", ON_ORDER),
    "projected child": Join(Project(LINES, pass_through(LINES.schema[:1])), ORDERS, "inner", ON_ORDER),
    "two kinds of lines": Join(
        Union((Project(LINES, pass_through(LINES.schema)), Project(LINES, pass_through(LINES.schema)))),
        ORDERS,
        "inner",
        ON_ORDER,
    ),
    **{f"{kind} of lines that age": Join(Filter(LINES, AGES), ORDERS, kind, ON_ORDER) for kind in KINDS},
    **{f"{kind} orders that age": Join(LINES, Filter(ORDERS, OLD), kind, ON_ORDER) for kind in KINDS},
    "pairs that age": Filter(Join(LINES, ORDERS, "inner", TRUE), call("AND", ON_ORDER, AGES)),
    "joined child": Join(
        Join(LINES, CUSTOMERS, "inner", equal("l_qty", "c_id")), ORDERS, "inner", ON_ORDER
    ),
    "lines twice": Join(
        Join(LINES, ORDERS, "inner", ON_ORDER), scan("lines", "m"), "inner", equal("m_ord", "o_id")
    ),
}  # fmt: skip


def answered(rel: Relation, history: History, tables: Tables) -> Changed:
    """What is known of the changes, once the questions have been answered."""
    changed = dict(history.changed(0, 1))
    found: dict[str, ChangeKind] = dict(changed)
    asked = questions(rel, changed, DECLARED)
    for question in asked:
        if not any(evaluate(q.against, tables) for q in asked if q.table == question.table):
            found[question.table] = "apart"
    return found


def check_change(rel: Relation, history: History) -> None:
    tables = history.between(0, 1)
    was = before(rel, dict.fromkeys((*SCHEMAS, CLOCK), "any"))
    expected = difference(evaluate(rel, tables), evaluate(was, tables))
    for changed in (history.changed(0, 1), answered(rel, history, tables)):
        delta = change(rel, {**changed, CLOCK: "any"}, DECLARED)
        assert signed(delta, tables) == expected, f"{changed}\n{show(delta)}"


@pytest.mark.parametrize("name", VIEWS)
@settings(max_examples=max(15, settings().max_examples // 6))
@given(data=st.binary(min_size=LENGTH, max_size=LENGTH))
def test_changes_of_joins_along_foreign_keys(name: str, data: bytes) -> None:
    check_change(VIEWS[name], history(Choices(data)))


def test_a_row_that_comes_and_goes_meets_nothing() -> None:
    """A new line of a new order meets a customer who goes: the change of the lower join holds it with both signs."""
    feed = {"lines": (((1, 1), 1),), "orders": (((1, None, None), 1),), "customers": (((1, 2), -1),)}
    old = {"lines": (), "orders": (), "customers": ((1, 2),)}
    new = {"lines": ((1, 1),), "orders": ((1, None, None),), "customers": ()}
    check_change(VIEWS["joined child"], History((old, new), (feed,), SCHEMAS))


@settings(max_examples=settings().max_examples // 2)
@given(both(relation, history, LENGTH))
def test_changes_of_any_relation_over_tables_with_foreign_keys(case: Case) -> None:
    check_change(*case)


def check_key(step: Maintenance, rows: Bag) -> None:
    """What merging by a key relies on: for each key at most one row comes and at most one goes."""
    if isinstance(step.merge, MergeBag) and step.merge.key:
        columns = names(step.change)
        at, weight = [columns.index(c) for c in step.merge.key], columns.index(WEIGHT)
        moved = [(tuple(row[i] for i in at), row[weight]) for row in rows.elements()]
        assert {w for _, w in moved} <= {1, -1}
        assert len(moved) == len(set(moved))


@settings(max_examples=settings().max_examples // 5)
@given(both(relation, history, LENGTH))
def test_refresh_by_declared_keys(case: Case) -> None:
    definition, past = case
    kept, tables = stored_form(definition, "v").kept, past.between(0, 1)
    step = maintenance(kept, answered(kept.content, past, tables), DECLARED)
    rows = evaluate(before(kept.content, dict.fromkeys(SCHEMAS, "any")), tables)
    if not step.nothing:
        check_key(step, evaluate(step.change, tables))
        rows = apply(step.merge, rows, evaluate(step.change, tables), names(step.change))
    assert rows == evaluate(kept.content, tables)


@given(both(relation, history, LENGTH))
def test_conditions_in_joins_mean_the_same(case: Case) -> None:
    rel, past = case
    assert evaluate(sunk(rel), past.between(0, 1)) == evaluate(rel, past.between(0, 1))


# Keys


@given(both(relation, history, LENGTH))
def test_no_claimed_key_is_violated(case: Case) -> None:
    rel, past = case
    tables = past.between(0, 1)
    for part in walk(rel):
        for key in keys(part, DECLARED) if hasattr(part, "schema") else ():  # type: ignore[arg-type]
            columns = names(part)  # type: ignore[arg-type]
            at = [columns.index(c) for c in key]
            found = [tuple(row[i] for i in at) for row in evaluate(part, tables).elements()]  # type: ignore[arg-type]
            assert len(found) == len(set(found)), f"{sorted(key)} of {show(part)}"  # type: ignore[arg-type]


def all_keys(rel: Relation, declared: Declared = DECLARED) -> set[frozenset[str]]:
    return set(keys(rel, declared))


def test_keys_of_each_operator() -> None:
    one, other = frozenset({"o_id"}), frozenset({"c_id"})
    assert all_keys(ORDERS) == {one}
    assert all_keys(ORDERS, NOTHING) == set()
    assert all_keys(Filter(ORDERS, LARGE)) == {one}
    assert all_keys(Project(ORDERS, (Item("x", Column("o_id"), "bigint"), Item("y", LARGE, "boolean")))) == {
        frozenset("x")
    }
    assert all_keys(Project(ORDERS, (Item("x", call("+", Column("o_id"), ONE), "bigint"),))) == set()
    assert all_keys(Join(ORDERS, CUSTOMERS, "inner", ON_CUSTOMER)) == {one}
    assert all_keys(Join(CUSTOMERS, ORDERS, "inner", ON_CUSTOMER)) == {one}
    assert all_keys(Join(ORDERS, CUSTOMERS, "left", ON_CUSTOMER)) == {one}
    assert all_keys(Join(CUSTOMERS, ORDERS, "left", ON_CUSTOMER)) == {one | other}
    assert all_keys(Join(ORDERS, CUSTOMERS, "inner", TRUE)) == {one | other}
    assert all_keys(Join(ORDERS, CUSTOMERS, "full", ON_CUSTOMER)) == set()
    assert all_keys(Join(ORDERS, LINES, "semi", ON_ORDER)) == {one}
    assert all_keys(joined()) == set()
    assert all_keys(COUNTED) == {frozenset({"l_ord"})}
    assert all_keys(Aggregate(LINES, (), (Measure("n", "count", (), "bigint"),))) == {frozenset()}
    assert all_keys(Aggregate(ORDERS, ("o_id", "o_cust"), ())) == {one}
    numbered = Generate(ORDERS, call("POSEXPLODE", Column("o_cust")), (Field("pos", "int"), Field("x", "bigint")))
    assert all_keys(numbered) == {one | {"pos"}}
    assert all_keys(Generate(ORDERS, call("EXPLODE", Column("o_cust")), (Field("x", "bigint"),))) == set()
    assert all_keys(Union((ORDERS, ORDERS))) == set()


def test_columns_of_one_row_come_from_one_row() -> None:
    other = scan("lines", "m")
    crossed = Join(LINES, other, "inner", TRUE)
    assert origins(crossed, ("l_ord", "l_qty")) is not None
    assert origins(crossed, ("l_ord", "m_qty")) is None


# What is read


def states(rel: Relation) -> set[tuple[str, str]]:
    return {(n.table, n.state) for n in walk(rel) if isinstance(n, Scan)}


Kinds = dict[str, ChangeKind]
INSERTED: Kinds = {"lines": "appended", "orders": "appended"}
MOVED: Kinds = {"lines": "any", "orders": "apart"}


@pytest.mark.parametrize(
    ("view", "changed", "read"),
    [
        ("inner", INSERTED, {("orders", "new")}),
        ("inner", MOVED, {("orders", "old")}),
        ("inner", {"lines": "any", "orders": "any"}, {("orders", "old"), ("lines", "new")}),
        ("parent inner child", INSERTED, {("orders", "new")}),
        ("inner filtered parent", MOVED, {("orders", "old")}),
        ("inner on more", MOVED, {("orders", "old")}),
        ("left", MOVED, {("orders", "old"), ("orders", "new")}),
        ("anti", INSERTED, {("orders", "new")}),
        ("col", INSERTED, {("orders", "new"), ("customers", "new")}),
        ("where", MOVED | {"customers": "apart"}, {("orders", "old"), ("customers", "old")}),
        ("loc", INSERTED | {"customers": "appended"}, {("orders", "new"), ("customers", "new")}),
    ],
)  # fmt: skip
def test_what_is_read(view: str, changed: Changed, read: set[tuple[str, str]]) -> None:
    assert states(change(VIEWS[view], changed, DECLARED)) == read


def test_new_parents_alone_change_nothing() -> None:
    for kind in ("inner", "left", "semi", "anti"):
        assert is_empty(change(VIEWS[kind], {"orders": "appended"}, DECLARED))


@pytest.mark.parametrize(
    "declared",
    [
        NOTHING,
        Declared(DECLARED.keys, (ForeignKey("lines", ("qty",), "orders", ("id",)),)),
        Declared(DECLARED.keys, (ForeignKey("orders", ("id",), "lines", ("ord",)),)),
    ],
    ids=["none", "another column", "the other way round"],
)
def test_nothing_relies_on_what_is_not_declared(declared: Declared) -> None:
    for rel in VIEWS.values():
        assert change(rel, MOVED, declared) == change(rel, MOVED) or declared.references
        assert states(change(VIEWS["inner"], MOVED, declared)) == states(change(VIEWS["inner"], MOVED))


def test_types_that_differ_are_not_relied_on() -> None:
    texts = Scan("lines", (ScanColumn("ord", "l_ord", "string"), ScanColumn("qty", "l_qty", "bigint")))
    found = change(Join(texts, ORDERS, "inner", ON_ORDER), MOVED, DECLARED)
    assert ("lines", "new") in states(found)


def test_reasons_and_questions() -> None:
    kept = stored_form(Aggregate(joined(), ("o_cust",), (Measure("n", "count", (), "bigint"),)), "v").kept
    assert isinstance(kept, KeptGroups)
    inserted = maintenance(kept, INSERTED, DECLARED)
    assert [str(r) for r in inserted.reasons] == [
        "lines: only its changes are read: FOREIGN KEY lines (ord) REFERENCES orders (id)"
    ]
    assert inserted.questions == ()
    anything: Callable[[ChangeKind], Changed] = lambda kind: {"lines": "any", "orders": kind}  # noqa: E731
    assert [q.table for q in maintenance(kept, anything("any"), DECLARED).questions] == ["orders"]
    assert maintenance(kept, anything("apart"), DECLARED).questions == ()
    assert maintenance(kept, anything("any")).questions == ()
