"""Tables and their changes as they stand in FROM: every read pinned to a version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

from viewkeeper.algebra.relations import WEIGHT, Join, ScanColumn, Side, State
from viewkeeper.errors import InternalError
from viewkeeper.sql.clock import moment_value
from viewkeeper.sql.render import quote, string_literal
from viewkeeper.store.changes import CAME, CHANGE_TYPE, Feed, Files, SourceChange, Unchanged, Unreadable

SIGN = f"CASE WHEN {CHANGE_TYPE} IN ({', '.join(map(string_literal, CAME))}) THEN 1L ELSE -1L END"


@dataclass(frozen=True)
class Pin:
    """The two versions of a table that a refresh sees, and how to read what lies between them."""

    old: int
    new: int
    change: SourceChange


@dataclass(frozen=True)
class PinnedLeaves:
    """Leaves of a refresh: every table at its pinned version, the clock at its two moments; the others as given."""

    pins: Mapping[str, Pin]
    moments: tuple[int, int] | None = None
    given: Mapping[str, str] = field(default_factory=dict)

    def state(self, table: str, state: State) -> str:
        if table in self.given:
            return self.given[table]
        pin = self.pins[table]
        return f"{table} VERSION AS OF {pin.old if state == 'old' else pin.new}"

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        pin = self.pins[table]
        cols = "".join(f"{quote(c.source)}, " for c in columns)
        match pin.change:
            case Feed(first, last):
                return f"SELECT {cols}{SIGN} AS {WEIGHT}\nFROM table_changes({string_literal(table)}, {first}, {last})"
            case Files(added, removed):
                came = _of_files(table, pin.new, added, cols, "1L") if added else None
                went = _of_files(table, pin.old, removed, cols, "-1L") if removed else None
                return "\nUNION ALL\n".join(part for part in (came, went) if part is not None)
            case Unchanged() | Unreadable():
                raise InternalError(f"the changes of {table} are asked for where there are none")
            case _:
                assert_never(pin.change)

    def moment(self, function: str, state: State) -> str:
        if self.moments is None:
            return f"{function}()"
        return moment_value(function, self.moments[0 if state == "old" else 1])

    def sent(self, join: Join) -> Side | None:
        return None


def _of_files(table: str, version: int, files: tuple[str, ...], cols: str, weight: str) -> str:
    listed = ", ".join(map(string_literal, files))
    return (
        f"SELECT {cols}{weight} AS {WEIGHT}\nFROM {table} VERSION AS OF {version}\n"
        f"WHERE _metadata.file_name IN ({listed})"
    )
