"""Rows of tables that a small change meets, read by this process instead of by a join of Spark's.

Arrow looks for values in one column of a file in less time than Spark needs to read and join it, and starts no job
(`changes/lookup.py` says what is asked for).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial

import pyarrow as pa

from viewkeeper.algebra.normalize import drop_empty, prune
from viewkeeper.algebra.relations import Relation, Scan
from viewkeeper.algebra.scalars import conjunction
from viewkeeper.changes.lookup import ChangedValues, Conditions, Found, Told, Values, looked_up
from viewkeeper.here.conditions import fulfilling
from viewkeeper.runtime.few import given
from viewkeeper.runtime.reads import MOST_READ_ALONE, ReadOnce
from viewkeeper.runtime.seen import Many, distinct
from viewkeeper.sql.render import quote, render

_Asked = tuple[str, int, frozenset[tuple[str, Values]]]  # table, version, values by column


def _changed(leaves: ReadOnce, table: str, where: Conditions) -> ChangedValues:
    """The values of a change that was read first, of those columns that are compared."""
    first = leaves.first.get(table)
    if first is None or not leaves.reads_only(first, table):
        return ChangedValues({})
    return first.values(where)


class Tables:
    """The tables that a change reads, by their files."""

    def __init__(self, leaves: ReadOnce) -> None:
        self.leaves = leaves
        self.most = float("inf") if leaves.local else MOST_READ_ALONE
        self.read: dict[_Asked, pa.Table | None] = {}
        self.found: dict[tuple[_Asked, Conditions], Found] = {}

    def look_up(self, change: Relation) -> Relation:
        """The same change, of rows that were looked up where the values of its sources' changes are known."""
        leaves = self.leaves
        if all(isinstance(first.seen, Many) for first in leaves.first.values()):
            return change
        leaves.mention([change])
        found = prune(drop_empty(looked_up(change, partial(_changed, leaves), self)))
        leaves.mention([found])
        return found

    def __call__(self, scan: Scan, asked: Mapping[str, Values], where: Conditions) -> Found | None:
        pin = self.leaves.pinned.pins.get(scan.table)
        if pin is None or self.leaves.rows[scan.table] > self.most or self._too_many(asked):
            return None
        what = scan.table, pin.old if scan.state == "old" else pin.new, frozenset(asked.items())
        if what not in self.read:
            self.read[what] = self._read(*what)
        rows = self.read[what]
        if rows is None:
            return None
        if (what, where) not in self.found:
            self.found[what, where] = self._found(scan, rows, where)
        return self.found[what, where]

    def _too_many(self, asked: Mapping[str, Values]) -> bool:
        return sum(map(len, asked.values())) > self.leaves.most_found

    def _read(self, table: str, version: int, asked: frozenset[tuple[str, Values]]) -> pa.Table | None:
        files = self.leaves.files(table, version)
        if files is None:
            return None
        among = {column: list(values) for column, values in asked}
        return self.leaves.file_rows.rows_with(files, self.leaves.columns(table), among, self.leaves.most_found)

    def _found(self, scan: Scan, rows: pa.Table, where: Conditions) -> Found:
        """Of rows that were read, those that can fulfil the conditions; of their values, those of rows that do."""
        columns = self.leaves.compared_of(scan.table)
        some, left = fulfilling(rows, {c.source: c.type for c in scan.columns}, where)

        @cache
        def by_spark() -> dict[str, Values]:
            condition = render(conjunction(list(left)), {c.source: quote(c.source) for c in scan.columns})
            # Of what Spark's driver has, that takes no job.
            of_them = given(self.leaves.session, some).where(condition).select(*map(quote, columns)).collect()
            return {column: frozenset(row[n] for row in of_them) for n, column in enumerate(columns)}

        def values(column: str) -> Values:
            return by_spark()[column] if left else distinct(some, column)

        told: dict[str, Told] = {column: cache(partial(values, column)) for column in columns}
        return Found(self.leaves.put_here(some), told, fulfil=not left)
