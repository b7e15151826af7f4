"""Inner joins from the fewest rows on give the same rows, and carry few; Spark is told which side is small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.keys import Declared, ForeignKey
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Filter,
    Item,
    Join,
    JoinKind,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Union,
    Values,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import ONE, TRUE, Column, Scalar, call
from viewkeeper.changes.counts import FEW, RowCounts
from viewkeeper.changes.lookup import KNOWN_HERE
from viewkeeper.changes.order import connected, fewest_first
from viewkeeper.changes.propagate import change
from viewkeeper.planner.cost import FOLLOWED_HERE, FOUND_HERE, LOOKED_UP, NETTED_HERE, Sizes, reading, reading_here
from viewkeeper.sql.leaves import CurrentTables
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.bags import evaluate, signed
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import changing_relations

pytestmark = pytest.mark.core

SIZE = st.sampled_from([0, 1, 1_000, 10_000_000])


@given(changing_relations(), st.lists(SIZE, min_size=2 * len(SCHEMAS), max_size=2 * len(SCHEMAS)))
def test_in_another_order_it_is_the_same_change(case: tuple[Relation, History], rows: list[int]) -> None:
    rel, history = case
    delta, tables = change(rel, history.changed(0, 1)), history.between(0, 1)
    counts = RowCounts(dict(zip(SCHEMAS, rows, strict=False)), dict(zip(SCHEMAS, rows[len(SCHEMAS) :], strict=True)))
    ordered = fewest_first(delta, counts)
    assert names(ordered) == names(delta)
    assert signed(ordered, tables) == signed(delta, tables)


@given(changing_relations())
def test_without_products_there_are_the_same_rows(case: tuple[Relation, History]) -> None:
    rel, history = case
    tables = history.between(0, 1)
    assert names(connected(rel)) == names(rel)
    assert evaluate(connected(rel), tables) == evaluate(rel, tables)


def table(name: str, *columns: str) -> Scan:
    return Scan(name, tuple(ScanColumn(c, c, "int") for c in columns))


def same(one: str, other: str) -> Scalar:
    return call("=", Column(one), Column(other))


CUSTOMER, ORDERS = table("customer", "c_key", "c_name"), table("orders", "o_key", "o_customer")
LINES, NATIONS = table("lines", "l_order", "l_price"), table("nations", "n_key")
NEW_LINES = Changes("lines", LINES.columns)
KEYS = Declared({"customer": frozenset({frozenset({"c_key"})}), "orders": frozenset({frozenset({"o_key"})})})
COUNTS = RowCounts(
    {"customer": 150_000, "orders": 1_500_000, "lines": 6_000_000, "nations": 25}, {"lines": 3_000}, KEYS
)

TOUCHED = Filter(
    Join(LINES, Changes("customer", CUSTOMER.columns), "semi", same("l_order", "c_key")),
    call(">", Column("l_price"), ONE),
)


def test_the_change_comes_first_and_what_it_meets_next() -> None:
    old = Join(CUSTOMER, ORDERS, "inner", same("c_key", "o_customer"))
    dear = Filter(
        Join(old, NEW_LINES, "inner", same("o_key", "l_order")), call(">", Column("l_price"), Column("c_key"))
    )
    shown = Project(dear, pass_through(dear.schema))
    first = Join(NEW_LINES, ORDERS, "inner", same("o_key", "l_order"))
    both = [same("c_key", "o_customer"), call(">", Column("l_price"), Column("c_key"))]
    second = Join(first, CUSTOMER, "inner", call("AND", *both))
    assert fewest_first(shown, COUNTS) == Project(second, pass_through(shown.schema))


def test_what_nothing_connects_comes_last() -> None:
    crossed = Join(Join(NEW_LINES, NATIONS, "inner", TRUE), ORDERS, "inner", same("o_key", "l_order"))
    last = Join(Join(NEW_LINES, ORDERS, "inner", same("o_key", "l_order")), NATIONS, "inner", TRUE)
    assert fewest_first(crossed, COUNTS) == Project(last, pass_through(crossed.schema))


def test_no_product_is_made_of_what_another_table_connects() -> None:
    """FROM customer, lines, orders WHERE …"""
    product = Join(CUSTOMER, LINES, "inner", TRUE)
    both = call("AND", same("c_key", "o_customer"), same("o_key", "l_order"))
    expected = Join(
        Join(CUSTOMER, ORDERS, "inner", same("c_key", "o_customer")), LINES, "inner", same("o_key", "l_order")
    )
    for rel in (Join(product, ORDERS, "inner", both), Filter(Join(product, ORDERS, "inner", TRUE), both)):
        assert connected(rel) == Project(expected, pass_through(rel.schema))
    assert connected(expected) == expected and connected(product) == product
    other = call("<>", Column("c_key"), Column("l_price"))  # which says next to nothing
    early = Join(Join(CUSTOMER, LINES, "inner", other), ORDERS, "inner", both)
    late = replace(expected, condition=call("AND", other, same("o_key", "l_order")))
    assert connected(early) == Project(late, pass_through(early.schema))
    crossed = Join(Join(CUSTOMER, NATIONS, "inner", TRUE), ORDERS, "inner", same("c_key", "o_customer"))
    last = Join(Join(CUSTOMER, ORDERS, "inner", same("c_key", "o_customer")), NATIONS, "inner", TRUE)
    assert connected(crossed) == Project(last, pass_through(crossed.schema))


def test_two_tables_or_large_ones_stay_as_they_are() -> None:
    two = Join(CUSTOMER, NEW_LINES, "inner", same("c_key", "l_order"))
    large = RowCounts({"customer": 10**7, "orders": 10**7, "lines": 10**7}, {}, KEYS)
    old = Join(CUSTOMER, ORDERS, "inner", same("c_key", "o_customer"))
    three = Join(old, LINES, "inner", same("o_key", "l_order"))
    assert fewest_first(two, COUNTS) == two
    assert fewest_first(three, large) == three


@pytest.mark.parametrize(
    ("rel", "rows"),
    [
        (Join(NEW_LINES, ORDERS, "inner", same("o_key", "l_order")), 3_000),  # each line has one order
        (Join(Changes("customer", CUSTOMER.columns), ORDERS, "inner", same("c_key", "o_customer")), 1_500),
        (Join(ORDERS, Changes("customer", CUSTOMER.columns), "semi", same("c_key", "o_customer")), 1_500),
        (Join(NEW_LINES, ORDERS, "anti", same("o_key", "l_order")), 3_000),
        (Join(table("large", "x"), NATIONS, "inner", same("x", "n_key")), 25_000),  # a value may be there often
        (Join(NEW_LINES, NATIONS, "inner", TRUE), 75_000),
        (Aggregate(LINES, (), ()), 1),
        (Aggregate(TOUCHED, ("l_order",), ()), 150),  # of no order more than those asked for
        (Aggregate(TOUCHED, ("l_order", "l_price"), ()), 6_000),
        (Union((NATIONS, NATIONS)), 50),
        (Values(NATIONS.schema, ()), 0),
        (table("elsewhere", "x"), float("inf")),
    ],
)
def test_rows_are_counted_by_keys(rel: Relation, rows: float) -> None:
    tables = {**COUNTS.tables, "large": 1_000_000}
    assert RowCounts(tables, {"lines": 3_000, "customer": 150}, KEYS).rows(rel) == rows


def test_what_is_likely_is_less() -> None:
    some = Filter(LINES, call("AND", call(">", Column("l_price"), ONE), call("IS NOT NULL", Column("l_order"))))
    likely = RowCounts(COUNTS.tables, {}, guessing=True)
    assert COUNTS.rows(some) == 6_000_000 and likely.rows(some) == 3_000_000
    assert likely.rows(Join(LINES, NATIONS, "inner", same("l_price", "n_key"))) == 250


@pytest.mark.parametrize(
    ("kind", "left", "right", "sent"),
    [
        ("inner", NEW_LINES, ORDERS, "left"),
        ("inner", ORDERS, NEW_LINES, "right"),
        ("left", ORDERS, NEW_LINES, "right"),
        ("anti", ORDERS, NEW_LINES, "right"),
        ("left", NEW_LINES, ORDERS, None),
        ("full", ORDERS, NEW_LINES, None),
        ("inner", ORDERS, LINES, None),
    ],
)
def test_the_small_side_is_sent(kind: JoinKind, left: Relation, right: Relation, sent: str | None) -> None:
    assert COUNTS.rows(ORDERS) > FEW
    assert COUNTS.sent(Join(left, right, kind, same("o_key", "l_order"))) == sent


class Small(CurrentTables):
    """Tables of these counts."""

    def sent(self, join: Join):  # type: ignore[no-untyped-def]
        return COUNTS.sent(join)


def test_spark_is_told_by_the_name_of_what_is_sent() -> None:
    first = Join(NEW_LINES, ORDERS, "inner", same("o_key", "l_order"))
    both = Join(first, Join(CUSTOMER, NATIONS, "inner", TRUE), "inner", same("c_key", "o_customer"))
    text = unparse(Project(both, pass_through(tuple(f for f in both.schema if f.name != WEIGHT))), Small())
    assert "SELECT /*+ BROADCAST(`nations`, `q`) */ " in text and ") AS `q`\nINNER JOIN (" in text
    assert "SELECT /*+ BROADCAST(`lines_changes`) */ " in text


def test_what_can_be_looked_up_costs_less_than_what_is_read() -> None:
    """Of few new lines, their orders and those orders' customers; of many, or where Spark has to read, all of both."""
    old = Join(CUSTOMER, ORDERS, "inner", same("c_key", "o_customer"))
    new = Join(old, NEW_LINES, "inner", same("o_key", "l_order"))
    tables = {"customer": 150_000, "orders": 1_500_000, "lines": 6_000_000}

    def rows_read(here: set[str], changed: int) -> int:
        sizes = {t: Sizes(rows, changed if t == "lines" else 0, t in here) for t, rows in tables.items()}
        return reading(new, sizes, KEYS).rows_read - changed

    assert rows_read(set(), 3_000) == rows_read(set(tables), 30_000) == 1_650_000
    assert rows_read(set(tables), 3_000) == 1_650_000 // LOOKED_UP
    assert rows_read({"lines", "orders"}, 3_000) == 150_000 + 1_500_000 // LOOKED_UP
    assert rows_read({"lines", "customer"}, 3_000) == 1_650_000  # which customers, only orders could tell


def test_what_can_be_brought_here_is_reckoned_by_what_this_process_takes() -> None:
    """If all leaves can: tables that are looked up in or small enough, and few changes."""
    new = Join(ORDERS, NEW_LINES, "inner", same("o_key", "l_order"))
    crossed = Join(CUSTOMER, NEW_LINES, "inner", TRUE)

    def read(rel: Relation, most: int, changed: int = 3_000, here: bool = True) -> bool:
        tables = {"orders": 1_500_000_000, "lines": 6_000_000_000, "customer": 150_000}
        sizes = {t: Sizes(rows, changed if t == "lines" else 0, here) for t, rows in tables.items()}
        found = reading_here(rel, sizes, most)
        assert found is None or found.seconds < reading(rel, sizes, KEYS).seconds
        return found is not None

    assert read(new, 1_000_000) and read(crossed, 1_000_000)
    assert not read(crossed, 100_000)  # as settings have it
    assert not read(new, 1_000_000, changed=KNOWN_HERE + 1) and not read(new, 1_000_000, here=False)


REFERRING = replace(KEYS, references=(ForeignKey("orders", ("o_customer",), "customer", ("c_key",)),))


def found_rows(rel: Relation, changed: Mapping[str, int], declared: Declared = REFERRING) -> float:
    """How many rows of tables are reckoned to be looked up for a change."""
    tables = {"customer": 150_000, "orders": 1_500_000, "lines": 6_000_000}
    sizes = {t: Sizes(rows, changed.get(t, 0), here=True) for t, rows in tables.items()}
    found = reading_here(rel, sizes, 2_000_000, declared)
    assert found is not None
    followed = sum(changed[n.table] for n in walk(rel) if isinstance(n, Changes))
    return (found.rows_moved - (NETTED_HERE + FOLLOWED_HERE) * followed) / FOUND_HERE


@pytest.mark.parametrize(("changed", "orders"), [(100, 1_000), (150_000, 1_500_000), (300_000, 1_500_000)])
def test_rows_that_refer_to_a_changed_one_are_reckoned_with(changed: int, orders: int) -> None:
    """Ten orders for each customer, at most all; the customers of orders that are spread over them."""
    same_customer = same("c_key", "o_customer")
    theirs = Join(Changes("customer", CUSTOMER.columns), ORDERS, "inner", same_customer)
    assert found_rows(theirs, {"customer": changed}) == pytest.approx(orders, rel=0.25)
    whose = Join(CUSTOMER, Changes("orders", ORDERS.columns), "inner", same_customer)
    theirs_ = 150_000 * (1 - exp(-changed / 150_000))
    assert found_rows(whose, {"orders": changed}) == pytest.approx(theirs_, rel=0.25)


def test_lines_come_and_go_with_their_orders() -> None:
    """Four lines of each order changed, if orders did, too; else so many orders have a changed line."""
    keys = replace(KEYS, keys={**KEYS.keys, "lines": frozenset({frozenset(("l_order", "l_number"))})})
    declared = replace(keys, references=(ForeignKey("lines", ("l_order",), "orders", ("o_key",)),))
    new = Join(ORDERS, NEW_LINES, "inner", same("o_key", "l_order"))
    alone = found_rows(new, {"lines": 40_000}, declared)
    assert alone == pytest.approx(40_000, rel=0.25)
    assert found_rows(new, {"lines": 40_000, "orders": 10_000}, declared) == pytest.approx(10_000, rel=0.25)


def test_what_two_terms_read_under_other_names_is_read_once() -> None:
    """As of a table that a query mentions twice."""
    once = Join(ORDERS, NEW_LINES, "inner", same("o_key", "l_order"))
    lines, orders = (tuple(replace(c, name=f"other_{c.name}") for c in scan.columns) for scan in (LINES, ORDERS))
    condition = same("other_o_key", "other_l_order")
    again: Relation = Join(replace(ORDERS, columns=orders), Changes("lines", lines), "inner", condition)
    again = Project(
        again, tuple(Item(f.name, Column(g.name), f.type) for f, g in zip(once.schema, again.schema, strict=True))
    )
    twice = Union((once, again))
    sizes = {"orders": Sizes(1_500_000, here=True), "lines": Sizes(6_000_000, 3_000, here=True)}
    assert reading_here(twice, sizes, 1_000_000, KEYS) == reading_here(once, sizes, 1_000_000, KEYS)


def test_more_rows_than_may_be_here_are_not_looked_up() -> None:
    """A nation's customers' orders are too many for this process; for Spark, far fewer are."""
    theirs = Join(Changes("customer", CUSTOMER.columns), ORDERS, "inner", same("c_key", "o_customer"))
    tables = {"customer": 150_000, "orders": 15_000_000}

    def sizes(changed: int) -> dict[str, Sizes]:
        return {t: Sizes(rows, changed if t == "customer" else 0, here=True) for t, rows in tables.items()}

    assert reading_here(theirs, sizes(5_000), 1_000_000, REFERRING) is not None
    assert reading_here(theirs, sizes(20_000), 1_000_000, REFERRING) is None
    few, many = (reading(theirs, sizes(changed), REFERRING).rows_read - changed for changed in (500, 5_000))
    assert (few, many) == (15_000_000 // LOOKED_UP, 15_000_000)


def test_what_others_changed_is_not_looked_for() -> None:
    """Ten customers' orders and these orders' lines, ten each as nobody knows better; not those of the changed lines."""
    ours = Join(Changes("customer", CUSTOMER.columns), ORDERS, "inner", same("c_key", "o_customer"))
    lines = Join(ours, LINES, "inner", same("o_key", "l_order"))
    alone = found_rows(lines, {"customer": 10})
    assert alone == pytest.approx(100 + 1_000, rel=0.4)
    assert found_rows(lines, {"customer": 10, "lines": 100_000}) == alone
    dear = Filter(lines.right, call("=", Column("l_order"), ONE))
    assert found_rows(replace(lines, right=dear), {"customer": 10}) < alone
