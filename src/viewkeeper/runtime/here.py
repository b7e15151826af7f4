"""Changes of few rows, computed by this process from rows that it has."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.algebra.relations import Changes, Relation, Scan
from viewkeeper.changes.lookup import MOST_LOOKED_THROUGH
from viewkeeper.changes.own import OWN
from viewkeeper.changes.refresh import Maintenance, MergeBag, MergeGroups, MergeTop
from viewkeeper.changes.stored import WHOLE
from viewkeeper.here.compute import Computer, can_compute
from viewkeeper.here.merge import Merged, appended, merged_bag, merged_groups, merged_top
from viewkeeper.here.rows import RowsHere
from viewkeeper.planner.plan import Install
from viewkeeper.runtime.look import Look
from viewkeeper.runtime.reads import MOST_READ_ALONE, ReadOnce
from viewkeeper.store.columns import NotHereError
from viewkeeper.store.rows import Asked


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
        if first is not None and first.here is not None and first.columns.issuperset(columns):
            return first.here.matter
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
        files = self.leaves.files(self.look.view.backing, self.look.standing.version)
        return _there(self.leaves.file_rows.rows_of(files, columns) if files is not None else None)


def _there(rows: pa.Table | None) -> pa.Table:
    if rows is None:
        raise NotHereError
    return rows


def computed_here(change: Relation, here: HereLeaves) -> RowsHere | None:
    """The rows of a change, if this process can tell them."""
    try:
        return Computer(here, here.most).rows(change)
    except NotHereError:
        return None


def merged_here(found: Maintenance, change: RowsHere, way: Install, here: HereLeaves) -> Merged | None:
    """What is to be written in this way; None if that is Spark's to do."""
    try:
        match found.merge:
            case MergeBag() as bag if way == "append":
                return appended(change, bag)
            case MergeBag(columns) as bag if way == "rewrite":
                return merged_bag(_old(here, [f.name for f in columns]), change, bag)
            case MergeGroups(_, items) as groups if way == "rewrite":
                return merged_groups(_old(here, [item.name for item in items]), change, groups)
            case MergeTop(columns) as top:
                return merged_top(_old(here, [*(f.name for f in columns), WHOLE]), change, top)
            case _:
                return None
    except (NotHereError, pa.ArrowException):
        return None


def _old(here: HereLeaves, columns: list[str]) -> RowsHere:
    return RowsHere.of(here.own(tuple(columns)))
