"""Changes of few rows, computed by this process from rows that it has."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from viewkeeper.algebra.relations import Changes, Relation, Scan
from viewkeeper.changes.own import OWN
from viewkeeper.changes.refresh import Maintenance, MergeBag, MergeGroups
from viewkeeper.here.compute import Computer
from viewkeeper.here.merge import Merged, appended, merged_bag, merged_groups
from viewkeeper.here.rows import RowsHere
from viewkeeper.planner.plan import Install
from viewkeeper.runtime.look import Look
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.store.columns import NotHereError


@dataclass(frozen=True)
class HereLeaves:
    """The rows of what a change reads, as far as this process has them or reads them sooner than Spark."""

    leaves: ReadOnce
    look: Look

    def __call__(self, leaf: Scan | Changes) -> pa.Table:
        if isinstance(leaf, Changes):
            found = self.leaves.changed_here(leaf)
        elif leaf.table == OWN:
            found = self.own(tuple(c.source for c in leaf.columns))
        else:
            found = self.leaves.state_here(leaf)
        if found is None:
            raise NotHereError
        return found

    def own(self, columns: tuple[str, ...]) -> pa.Table | None:
        """The view's rows before the change."""
        files = self.leaves.files(self.look.view.backing, self.look.standing.version)
        return self.leaves.file_rows.rows_of(files, columns) if files is not None else None


def computed_here(change: Relation, here: HereLeaves, most: int) -> RowsHere | None:
    """The rows of a change, if this process can tell them, at no time of more than so many rows."""
    try:
        return Computer(here, most).rows(change) if most > 0 else None
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
            case _:
                return None
    except (NotHereError, pa.ArrowException):
        return None


def _old(here: HereLeaves, columns: list[str]) -> RowsHere:
    rows = here.own(tuple(columns))
    if rows is None:
        raise NotHereError
    return RowsHere.of(rows)
