"""Tables that refer to each other: lines to orders, orders to customers, and orders to orders.

Histories of which every version keeps the declared keys, and views that join along them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.algebra.keys import Declared, ForeignKey, origins
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
    Union,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import Column, Literal, Scalar, call
from viewkeeper.testing.bags import Feed
from viewkeeper.testing.choices import Choices
from viewkeeper.testing.histories import Columns, History
from viewkeeper.testing.values import Row, Value

SCHEMAS: dict[str, Columns] = {
    "lines": (("ord", "bigint"), ("qty", "bigint")),
    "orders": (("id", "bigint"), ("cust", "bigint"), ("prev", "bigint")),
    "customers": (("id", "bigint"), ("zone", "bigint")),
}
DECLARED = Declared(
    {"orders": frozenset({frozenset({"id"})}), "customers": frozenset({frozenset({"id"})})},
    (
        ForeignKey("lines", ("ord",), "orders", ("id",)),
        ForeignKey("orders", ("cust",), "customers", ("id",)),
        ForeignKey("orders", ("prev",), "orders", ("id",)),
    ),
)
_IDS = (1, 2, 3, 4)
_VALUES = (1, 2, None, 1)


@dataclass
class _Tables:
    """The rows of each table, and what a change feed shows of the statements run on them."""

    choices: Choices
    rows: dict[str, list[Row]]
    feed: dict[str, list[tuple[Row, int]]]

    def insert(self, table: str, row: Row) -> None:
        self.rows[table].append(row)
        self.feed[table].append((row, 1))

    def delete(self, table: str, row: Row) -> None:
        self.rows[table].remove(row)
        self.feed[table].append((row, -1))

    def ids(self, table: str) -> list[Value]:
        return [row[0] for row in self.rows[table]]

    def reference(self, table: str) -> Value:
        """A row that is there, or NULL."""
        return self.choices.pick((*self.ids(table), None))

    def insert_customer(self) -> None:
        free = [i for i in _IDS if i not in self.ids("customers")]
        if free:
            self.insert("customers", (self.choices.pick(free), self.choices.pick(_VALUES)))

    def insert_order(self) -> None:
        free = [i for i in _IDS if i not in self.ids("orders")]
        if free:
            order = self.choices.pick(free)
            self.insert("orders", (order, self.reference("customers"), self.reference("orders")))
            for _ in range(self.choices.pick((1, 2, 0))):
                self.insert("lines", (order, self.choices.pick(_VALUES)))

    def insert_line(self) -> None:
        self.insert("lines", (self.reference("orders"), self.choices.pick(_VALUES)))

    def delete_line(self) -> None:
        if self.rows["lines"]:
            self.delete("lines", self.choices.pick(self.rows["lines"]))

    def delete_order(self) -> None:
        if self.rows["orders"]:
            self.remove_order(self.choices.pick(self.rows["orders"]))

    def remove_order(self, order: Row) -> None:
        """The order with its lines; those that refer to it refer to nothing."""
        for line in [row for row in self.rows["lines"] if row[0] == order[0]]:
            self.delete("lines", line)
        self.delete("orders", order)
        for other in [row for row in self.rows["orders"] if row[2] == order[0]]:
            self.delete("orders", other)
            self.insert("orders", (*other[:2], None))

    def delete_customer(self) -> None:
        if self.rows["customers"]:
            customer = self.choices.pick(self.rows["customers"])
            while found := [row for row in self.rows["orders"] if row[1] == customer[0]]:
                self.remove_order(found[0])
            self.delete("customers", customer)

    def update_order(self) -> None:
        if self.rows["orders"]:
            order = self.choices.pick(self.rows["orders"])
            self.delete("orders", order)
            self.insert("orders", (order[0], self.reference("customers"), order[2]))

    def update_customer(self) -> None:
        if self.rows["customers"]:
            customer = self.choices.pick(self.rows["customers"])
            self.delete("customers", customer)
            self.insert("customers", (customer[0], self.choices.pick(_VALUES)))

    def update_line(self) -> None:
        if self.rows["lines"]:
            self.delete_line()
            self.insert_line()


def history(choices: Choices, steps: int = 1) -> History:
    """A first version and some steps: of inserts, of inserts and deletes of whole keys, or of anything."""
    tables = _Tables(choices, {t: [] for t in SCHEMAS}, {t: [] for t in SCHEMAS})
    for _ in range(choices.pick((4, 6, 2, 8))):
        choices.pick((tables.insert_order, tables.insert_customer, tables.insert_line))()
    versions, feeds = [_frozen(tables.rows)], []
    for _ in range(steps):
        tables.feed = {t: [] for t in SCHEMAS}
        inserts = (tables.insert_order, tables.insert_customer, tables.insert_line)
        whole = (*inserts, tables.delete_order, tables.delete_line, tables.delete_customer, tables.update_line)
        ways = choices.pick((whole, inserts, (*whole, tables.update_order, tables.update_customer)))
        for _ in range(choices.pick((2, 3, 1, 5))):
            choices.pick(ways)()
        versions.append(_frozen(tables.rows))
        feeds.append(_fed(tables.feed))
    return History(tuple(versions), tuple(feeds), SCHEMAS)


def _frozen(rows: Mapping[str, list[Row]]) -> dict[str, tuple[Row, ...]]:
    return {table: tuple(found) for table, found in rows.items()}


def _fed(feed: Mapping[str, list[tuple[Row, int]]]) -> dict[str, Feed]:
    return {table: tuple(found) for table, found in feed.items()}


# Views

_KINDS: tuple[JoinKind, ...] = ("inner", "left", "inner", "semi", "anti", "inner", "full")


def relation(choices: Choices, depth: int = 3, prefix: str = "") -> Relation:
    """Tables joined mostly along foreign keys, with filters, projections, groups and unions in between."""
    if depth <= 0 or choices.one_in(6):
        table = choices.pick(tuple(SCHEMAS))
        return Scan(table, tuple(ScanColumn(c, f"{prefix}{table[0]}_{c}", t) for c, t in SCHEMAS[table]))
    left = relation(choices, depth - 1, prefix + "x")
    if choices.one_in(3):
        return _over(choices, left)
    right = relation(choices, depth - 1, prefix + "y")
    return Join(left, right, choices.pick(_KINDS), _condition(choices, left, right))


def _over(choices: Choices, rel: Relation) -> Relation:
    column = choices.pick(names(rel))
    match choices.below(4):
        case 0:
            return Filter(rel, call(choices.pick((">", "<", "=")), Column(column), Literal("2")))
        case 1:
            return Project(rel, pass_through(tuple(f for f in rel.schema if not choices.one_in(4)) or rel.schema))
        case 2:
            return Aggregate(rel, (column,), (Measure(f"{column}_n", "count", (), "bigint"),))
        case _:
            return Union((rel, Filter(rel, call(">", Column(column), Literal("1")))))


def _condition(choices: Choices, left: Relation, right: Relation) -> Scalar:
    """An equality of a reference with what it refers to, where there is one, and sometimes a filter."""
    along = [
        (a, b) for a in names(left) for b in names(right) if _refer(left, a, right, b) or _refer(right, b, left, a)
    ]
    anything = [(a, b) for a in names(left) for b in names(right)]
    ours, theirs = choices.pick(anything if not along or choices.one_in(6) else along)
    equal = call("=", Column(ours), Column(theirs))
    if choices.one_in(4):
        return call("AND", equal, call(">", Column(choices.pick(names(right))), Literal("1")))
    return equal


def _refer(child: Relation, column: str, parent: Relation, key: str) -> bool:
    ours, theirs = origins(child, (column,)) or (), origins(parent, (key,)) or ()
    found = {(a.leaf.table, a.columns, b.leaf.table, b.columns) for a in ours for b in theirs}
    return any((r.child, r.columns, r.parent, r.key) in found for r in DECLARED.references)
