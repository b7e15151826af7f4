"""Hypothesis strategies: small tables full of NULLs and duplicates, and what people do to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal

from hypothesis import strategies as st

from viewkeeper.changes.weights import Changed, ChangeKind
from viewkeeper.testing.bags import Feed, TableStates
from viewkeeper.testing.choices import Choices, chosen
from viewkeeper.testing.values import Row, Value

Columns = tuple[tuple[str, str], ...]

# Columns of one name in several tables, a name to be quoted, every type the rules tell apart.
SCHEMAS: dict[str, Columns] = {
    "r": (("a", "bigint"), ("b", "bigint"), ("s", "string")),
    "t": (("a", "bigint"), ("d", "decimal(10,2)"), ("s", "string")),
    "u": (("Order", "bigint"), ("f", "boolean")),
}
# Few values, some of them often: joins find partners, groups have several rows, duplicates are common.
DOMAINS: dict[str, tuple[Value, ...]] = {
    "bigint": (1, 2, 1, None, 1, 2, 0, 3, -1),
    "string": ("a", "b", "a", None, "a", ""),
    "decimal(10,2)": (*map(Decimal, ("1.00", "2.33", "-1.25", "1.00", "0.01", "0.00")), None),
    "boolean": (True, False, True, None),
}
LENGTH = 150
SIZES = (3, 5, 4, 6, 0, 2, 5, 1, 4, 6)
STATEMENTS = ("insert", "delete", "update") * 9 + ("insert", "insert", "clear")


@dataclass(frozen=True)
class History:
    """The versions of every table, and the change feed that led from each version to the next."""

    versions: tuple[Mapping[str, tuple[Row, ...]], ...]
    feeds: tuple[Mapping[str, Feed], ...]
    schemas: Mapping[str, Columns] = field(default_factory=lambda: SCHEMAS)

    def feed(self, table: str, start: int, end: int) -> Feed:
        return tuple(entry for step in self.feeds[start:end] for entry in step[table])

    def between(self, start: int, end: int, *, netted: bool = False) -> dict[str, TableStates]:
        """Each table before and after some of the steps; its change as it was fed, or only its net effect."""
        return {
            table: TableStates(
                tuple(name for name, _ in self.schemas[table]),
                Counter(self.versions[start][table]),
                Counter(self.versions[end][table]),
                None if netted else self.feed(table, start, end),
            )
            for table in self.schemas
        }

    def changed(self, start: int, end: int, *, know_appends: bool = True) -> Changed:
        """The tables that had a change, and whether rows only came."""
        kinds: dict[str, ChangeKind] = {}
        for table in self.schemas:
            if feed := self.feed(table, start, end):
                appended = know_appends and all(weight > 0 for _, weight in feed)
                kinds[table] = "appended" if appended else "any"
        return kinds


def histories(steps: int = 1, *, appends_only: bool = False) -> st.SearchStrategy[History]:
    """A first version (of empty tables, too) and some steps, each over any of the tables."""
    return chosen(lambda choices: history(choices, steps, appends_only), LENGTH)


def history(choices: Choices, steps: int = 1, appends_only: bool = False) -> History:
    tables = {table: [_row(choices, table) for _ in range(choices.pick(SIZES))] for table in SCHEMAS}
    versions = [_frozen(tables)]
    feeds = []
    for _ in range(steps):
        feeds.append({table: _statements(choices, table, rows, appends_only) for table, rows in tables.items()})
        versions.append(_frozen(tables))
    return History(tuple(versions), tuple(feeds))


def _row(choices: Choices, table: str) -> Row:
    return tuple(choices.pick(DOMAINS[type_]) for _, type_ in SCHEMAS[table])


def _statements(choices: Choices, table: str, rows: list[Row], appends_only: bool) -> Feed:
    """Some statements run on the rows in place; returns what the change feed shows of them."""
    feed: list[tuple[Row, int]] = []
    for _ in range(choices.pick((1, 2, 0, 3, 4))):
        statement = "insert" if appends_only else choices.pick(STATEMENTS)
        gone: list[Row] = []
        come: list[Row] = []
        if statement == "insert":
            come = [_row(choices, table)]
        elif statement == "clear":
            gone = list(rows)
        elif rows:
            gone = [choices.pick(rows)]
        if statement == "update":
            come = [_updated(choices, table, row) for row in gone]
        for row in gone:
            rows.remove(row)
        rows.extend(come)
        feed += [(row, -1) for row in gone] + [(row, 1) for row in come]
    return tuple(feed)


def _updated(choices: Choices, table: str, row: Row) -> Row:
    """One column set, to another value or to the one it had."""
    at = choices.below(len(row))
    return (*row[:at], choices.pick(DOMAINS[SCHEMAS[table][at][1]]), *row[at + 1 :])


def _frozen(tables: Mapping[str, list[Row]]) -> dict[str, tuple[Row, ...]]:
    return {name: tuple(rows) for name, rows in tables.items()}
