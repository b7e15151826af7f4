"""Rows of tables that a small change meets, read by this process instead of by a join of Spark's.

Arrow looks for values in one column of a file in less time than Spark needs to read and join it, and starts no job
(`changes/lookup.py` says what is asked for).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

import pyarrow as pa
from pyspark.sql import DataFrame

from viewkeeper.algebra.normalize import drop_empty, prune
from viewkeeper.algebra.relations import WEIGHT, Relation, Scan
from viewkeeper.algebra.scalars import conjunction
from viewkeeper.changes.lookup import Conditions, Found, Values, looked_up
from viewkeeper.runtime.few import given, set_down
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.sql.render import quote, render

MOST_FOUND = 100_000  # rows, or values that are looked for: what this process hands to Spark in a tenth of a second
MOST_READ_ALONE = 5_000_000  # rows of a table: where Spark has other machines, they read a larger one sooner

_Asked = tuple[str, int, frozenset[tuple[str, Values]]]  # table, version, values by column


def look_up(change: Relation, leaves: ReadOnce) -> Relation:
    """The same change, of rows that were looked up where the values of its sources' changes are known."""
    seen = ((table, column, values) for table, first in leaves.first.items() for column, values in first.seen.items())
    known = {(table, column): frozenset(values) for table, column, values in seen if column != WEIGHT}
    if not known:
        return change
    leaves.mention([change])
    found = prune(drop_empty(looked_up(change, known, Tables(leaves))))
    leaves.mention([found])
    return found


@dataclass(frozen=True)
class _Rows:
    """Rows that were looked up: here, held by Spark's driver, and as they stand in plans."""

    here: pa.Table
    held: DataFrame
    planned: DataFrame

    def values(self, columns: Sequence[str], condition: str) -> dict[str, Values]:
        """The values of columns in rows that fulfil a condition: of what Spark's driver has, that takes no job."""
        if not condition:
            return {column: frozenset(self.here[column].unique().to_pylist()) for column in columns}
        rows = self.held.where(condition).select(*map(quote, columns)).collect()
        return {column: frozenset(row[n] for row in rows) for n, column in enumerate(columns)}


class Tables:
    """The tables that a change reads, by their files."""

    def __init__(self, leaves: ReadOnce) -> None:
        self.leaves = leaves
        local = (leaves.session.conf.get("spark.master", "") or "").startswith("local")
        self.most = float("inf") if local else MOST_READ_ALONE
        self.read: dict[_Asked, _Rows | None] = {}
        self.found: dict[tuple[_Asked, str], Found] = {}

    def __call__(self, scan: Scan, asked: Mapping[str, Values], where: Conditions) -> Found | None:
        pin = self.leaves.pinned.pins.get(scan.table)
        if pin is None or self.leaves.rows[scan.table] > self.most or sum(map(len, asked.values())) > MOST_FOUND:
            return None
        what = scan.table, pin.old if scan.state == "old" else pin.new, frozenset(asked.items())
        if what not in self.read:
            self.read[what] = self._read(*what)
        rows = self.read[what]
        if rows is None:
            return None
        condition = render(conjunction(list(where)), {c.name: quote(c.source) for c in scan.columns}) if where else ""
        if (what, condition) not in self.found:
            self.found[what, condition] = self._found(scan.table, rows, condition)
        return self.found[what, condition]

    def _read(self, table: str, version: int, asked: frozenset[tuple[str, Values]]) -> _Rows | None:
        files = self.leaves.files(table, version)
        if files is None:
            return None
        among = {column: list(values) for column, values in asked}
        rows = self.leaves.file_rows.rows_with(files, self.leaves.columns(table), among, MOST_FOUND)
        if rows is None:
            return None
        held = given(self.leaves.session, rows)
        return _Rows(rows, held, set_down(held, len(rows)))

    def _found(self, table: str, rows: _Rows, condition: str) -> Found:
        columns, name = self.leaves.compared_of(table), self.leaves.put(rows.planned, len(rows.here))
        told = cache(lambda: rows.values(columns, condition))
        return Found(name, {column: partial(_of, told, column) for column in columns})


def _of(told: Callable[[], Mapping[str, Values]], column: str) -> Values:
    return told()[column]
