"""What steps cost, in named parts; the constants were measured on two cores and a local disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Changes, Relation, Scan


@dataclass(frozen=True)
class Cost:
    """Rows and queries, and the seconds they are predicted to take."""

    rows_read: int = 0
    rows_written: int = 0
    reads: int = 0
    fixed: float = 0.0

    SECONDS_PER_ROW_READ = 4.5e-7
    SECONDS_PER_ROW_WRITTEN = 1.0e-6
    SECONDS_PER_READ = 0.06

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.rows_read + other.rows_read,
            self.rows_written + other.rows_written,
            self.reads + other.reads,
            self.fixed + other.fixed,
        )

    @property
    def seconds(self) -> float:
        return (
            self.fixed
            + self.reads * self.SECONDS_PER_READ
            + self.rows_read * self.SECONDS_PER_ROW_READ
            + self.rows_written * self.SECONDS_PER_ROW_WRITTEN
        )


QUERY = Cost(fixed=0.15)
APPEND = Cost(fixed=0.15)
REWRITE = Cost(fixed=0.45)
MERGE = Cost(fixed=0.75)
OVERWRITE = Cost(fixed=0.45)
# MERGE reads all of a view but rewrites only the touched files; with keys spread over it, about half.
MERGE_SHARE_WRITTEN = 0.5


@dataclass(frozen=True)
class Sizes:
    """What is known of a table: its rows, and how many change rows are pending."""

    rows: int
    change_rows: int = 0


def reading(rel: Relation, sizes: Mapping[str, Sizes]) -> Cost:
    """Every leaf read once: whole tables and changes."""
    total = Cost()
    for node in walk(rel):
        match node:
            case Scan(table):
                total += Cost(rows_read=_of(sizes, table, lambda s: s.rows), reads=1)
            case Changes(table):
                total += Cost(rows_read=_of(sizes, table, lambda s: s.change_rows), reads=1)
            case _:
                pass
    return total


def _of(sizes: Mapping[str, Sizes], table: str, part: Callable[[Sizes], int]) -> int:
    found = sizes.get(table)
    return part(found) if found is not None else 0
