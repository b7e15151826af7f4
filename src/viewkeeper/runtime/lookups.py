"""Rows of tables that a small change meets, read by this process instead of by a join of Spark's.

Arrow looks for values in one column of a file in less time than Spark needs to read and join it, and starts no job
(`changes/lookup.py` says what is asked for).
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from viewkeeper.algebra.normalize import drop_empty, prune
from viewkeeper.algebra.relations import WEIGHT, Relation, Scan
from viewkeeper.algebra.scalars import conjunction
from viewkeeper.changes.lookup import Conditions, Found, Values, looked_up
from viewkeeper.runtime.few import given
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.sql.render import quote, render
from viewkeeper.store.rows import rows_with

MOST_FOUND = 100_000  # rows, or values that are looked for: what this process hands to Spark in a tenth of a second

_Asked = tuple[str, int, frozenset[tuple[str, Values]]]  # table, version, values by column


def look_up(change: Relation, leaves: ReadOnce) -> Relation:
    """The same change, of rows that were looked up where the values of its sources' changes are known."""
    seen = ((table, column, values) for table, first in leaves.first.items() for column, values in first.seen.items())
    known = {(table, column): frozenset(values) for table, column, values in seen if column != WEIGHT}
    if not known:
        return change
    leaves.mention([change])
    found = prune(drop_empty(looked_up(change, known, _Tables(leaves))))
    leaves.mention([found])
    return found


class _Tables:
    """The tables that a change reads, by their files."""

    def __init__(self, leaves: ReadOnce) -> None:
        self.leaves = leaves
        self.read: dict[_Asked, tuple[pa.Table, DataFrame] | None] = {}
        self.found: dict[tuple[_Asked, str], Found] = {}

    def __call__(self, scan: Scan, asked: Mapping[str, Values], where: Conditions) -> Found | None:
        pin = self.leaves.pinned.pins.get(scan.table)
        if pin is None or sum(map(len, asked.values())) > MOST_FOUND:
            return None
        what = scan.table, pin.old if scan.state == "old" else pin.new, frozenset(asked.items())
        if what not in self.read:
            self.read[what] = self._read(*what)
        read = self.read[what]
        if read is None:
            return None
        condition = render(conjunction(list(where)), {c.name: quote(c.source) for c in scan.columns}) if where else ""
        if (what, condition) not in self.found:
            columns = self.leaves.compared_of(scan.table)
            self.found[what, condition] = (
                self._chosen(read[1], columns, condition) if where else self._all(*read, columns)
            )
        return self.found[what, condition]

    def _read(
        self, table: str, version: int, asked: frozenset[tuple[str, Values]]
    ) -> tuple[pa.Table, DataFrame] | None:
        files = self.leaves.files(table, version)
        if files is None:
            return None
        among = {column: list(values) for column, values in asked}
        rows = rows_with(files, self.leaves.columns(table), among, MOST_FOUND)
        return (rows, given(self.leaves.session, rows)) if rows is not None else None

    def _all(self, rows: pa.Table, held: DataFrame, columns: tuple[str, ...]) -> Found:
        values = {column: frozenset(rows[column].unique().to_pylist()) for column in columns}
        return Found(self.leaves.put(held, len(rows)), values)

    def _chosen(self, held: DataFrame, columns: tuple[str, ...], condition: str) -> Found:
        """Those that fulfil a condition: of rows that Spark's driver has, it is asked without a job."""
        chosen = held.where(condition)
        seen = chosen.select(*map(quote, columns)).collect()
        values = {column: frozenset(row[n] for row in seen) for n, column in enumerate(columns)}
        return Found(self.leaves.put(chosen, len(seen)), values)
