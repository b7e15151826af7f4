"""Changes of few rows, computed by this process from rows that it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import pyarrow as pa

from viewkeeper.algebra.relations import Changes, Relation, Scan
from viewkeeper.changes.kept import WHOLE
from viewkeeper.changes.lookup import MOST_LOOKED_THROUGH
from viewkeeper.changes.merge import Merge, MergeBag, MergeGroups, MergeTop, found_by
from viewkeeper.changes.own import OWN
from viewkeeper.here.compute import Computer, can_compute
from viewkeeper.here.merge import Merged, appended, came_and_went, merged_bag, merged_groups, merged_top
from viewkeeper.here.rows import RowsHere
from viewkeeper.planner.plan import Install
from viewkeeper.runtime.look import Look
from viewkeeper.runtime.reads import MOST_READ_ALONE, ReadOnce
from viewkeeper.runtime.seen import Here
from viewkeeper.store.columns import NotHereError
from viewkeeper.store.files import DataFiles
from viewkeeper.store.rows import Among, Asked, Placed
from viewkeeper.store.vectors import Places

T = TypeVar("T")


@dataclass(frozen=True)
class HereLeaves:
    """The rows of what a change reads, at most so many, if this process has them or reads them sooner than Spark."""

    leaves: ReadOnce
    look: Look
    most: int

    def knows(self, change: Relation) -> bool:
        """Whether this process can tell the rows of a change, if it gets what that reads."""
        return self.most > 0 and can_compute(change)

    def changed(self, leaf: Changes) -> pa.Table:
        """Changed rows that may matter."""
        leaves, columns = self.leaves, tuple(dict.fromkeys(c.source for c in leaf.columns))
        first = leaves.first.get(leaf.table)
        if first is not None and isinstance(first.seen, Here) and first.columns.issuperset(columns):
            return first.seen.matter
        parts = leaves.parts(leaf.table) if leaves.pinned.pins[leaf.table].change.rows <= leaves.known else []
        return _there(leaves.net_change(parts, columns or parts[0].files.first_column) if parts else None)

    def state(self, leaf: Scan, asked: Asked | None) -> pa.Table:
        """Rows that were put here, or those of a table that meet a condition."""
        leaves, columns = self.leaves, tuple(dict.fromkeys(c.source for c in leaf.columns))
        if leaf.table in leaves.here:
            return leaves.here[leaf.table]
        if leaf.table == OWN:
            return self.own(columns)
        through = MOST_LOOKED_THROUGH if leaves.local else MOST_READ_ALONE
        pin = leaves.pinned.pins.get(leaf.table)
        if pin is None or leaves.rows[leaf.table] > (self.most if asked is None else through):
            raise NotHereError
        files = leaves.files(leaf.table, pin.old if leaf.state == "old" else pin.new)
        if files is None:
            raise NotHereError
        return _there(leaves.file_rows.rows_that(files, columns or files.first_column, asked, self.most))

    def own(self, columns: tuple[str, ...]) -> pa.Table:
        """The view's rows before the change."""
        return _there(self.leaves.file_rows.rows_of(self._own_files(), columns))

    def own_with(self, columns: Sequence[str], among: Among) -> Placed:
        """Those of them that have some values, and where they are."""
        return _there(self.leaves.file_rows.placed_with(self._own_files(), columns, among, self.most))

    def _own_files(self) -> DataFiles:
        return _there(self.leaves.files(self.look.view.backing, self.look.standing.version))


def _there(found: T | None) -> T:
    if found is None:
        raise NotHereError
    return found


def computed_here(change: Relation, here: HereLeaves) -> RowsHere | None:
    """The rows of a change, if this process can tell them."""
    try:
        return Computer(here, here.most).rows(change)
    except NotHereError:
        return None


@dataclass(frozen=True)
class Written:
    """What is to be written of a view's rows, and which rows go, by file and place; how many came and went."""

    rows: pa.Table
    came: int
    went: int
    gone: Mapping[str, Places] = field(default_factory=dict)


def merged_here(merge: Merge, change: RowsHere, way: Install, here: HereLeaves) -> Written | None:
    """What is to be written in this way; None if that is Spark's to do."""
    try:
        match way:
            case "append" if isinstance(merge, MergeBag):
                return Written(appended(change, merge).table, *came_and_went(change))
            case "replace":
                return _replaced(merge, change, here)
            case "rewrite":
                old = RowsHere.of(here.own(kept_columns(merge)))
                merged = _merged(merge, old, change)
                return Written(merged.rows(old).table, merged.came, merged.went)
            case _:
                return None
    except (NotHereError, pa.ArrowException):
        return None


def _replaced(merge: Merge, change: RowsHere, here: HereLeaves) -> Written:
    """Of the view's rows only those are read that a change row may touch."""
    among = {name: change.columns[name].unique().to_pylist() for name in found_by(merge)}
    # A row that goes is known by its key, if it has one.
    needed = merge.key if isinstance(merge, MergeBag) and merge.key else kept_columns(merge)
    placed = here.own_with(needed, among)
    merged = _merged(merge, RowsHere.of(placed.rows), change)
    return Written(merged.new.table, merged.came, merged.went, placed.at(~merged.stay))


def _merged(merge: Merge, old: RowsHere, change: RowsHere) -> Merged:
    match merge:
        case MergeBag():
            return merged_bag(old, change, merge)
        case MergeGroups():
            return merged_groups(old, change, merge)
        case MergeTop():
            return merged_top(old, change, merge)


def kept_columns(merge: Merge) -> tuple[str, ...]:
    """The columns of the table that a view is kept in."""
    match merge:
        case MergeTop(columns):
            return (*(f.name for f in columns), WHOLE)
        case MergeBag(columns) | MergeGroups(_, columns):
            return tuple(c.name for c in columns)
