"""What steps cost, in named parts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Changes, Relation, Scan


@dataclass(frozen=True)
class Rates:
    """What the parts of a cost take: a multiple of the fixed seconds, and seconds for each of the others."""

    fixed: float = 1.0
    per_read: float = 0.06
    per_row_read: float = 4.5e-7
    per_row_written: float = 1.0e-6


MEASURED_ONCE = Rates()  # on two cores and a local disk


@dataclass(frozen=True)
class Cost:
    """Rows and queries, and the seconds they are predicted to take at some rates."""

    rows_read: int = 0
    rows_written: int = 0
    reads: int = 0
    fixed: float = 0.0
    rates: Rates = MEASURED_ONCE

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.rows_read + other.rows_read,
            self.rows_written + other.rows_written,
            self.reads + other.reads,
            self.fixed + other.fixed,
            self.rates,
        )

    def at(self, rates: Rates) -> Cost:
        return replace(self, rates=rates)

    @property
    def seconds(self) -> float:
        return (
            self.fixed * self.rates.fixed
            + self.reads * self.rates.per_read
            + self.rows_read * self.rates.per_row_read
            + self.rows_written * self.rates.per_row_written
        )


QUERY = Cost(fixed=0.15)
ASK = Cost(fixed=0.15)
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
