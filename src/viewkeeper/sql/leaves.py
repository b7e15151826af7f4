"""What stands in FROM for the tables of a relation, as they are, as they were, and their changes."""

from __future__ import annotations

from typing import Protocol

from viewkeeper.algebra.relations import WEIGHT, Join, ScanColumn, Side, State
from viewkeeper.sql.render import quote


class Leaves(Protocol):
    """What stands in FROM for a table's states and changes."""

    def state(self, table: str, state: State) -> str:
        """A table reference without alias, such as `t VERSION AS OF 3`."""

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        """A query with the source columns, under their own names, and `__vk_weight`."""

    def moment(self, function: str, state: State) -> str:
        """What a function of the clock gives."""

    def sent(self, join: Join) -> Side | None:
        """The side of so few rows that Spark is told to send them to the other, if there is one."""


class CurrentTables:
    """Leaves for a definition: every table as it is now."""

    def state(self, table: str, state: State) -> str:
        return table

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        cols = "".join(f"{quote(c.source)}, " for c in columns)
        return f"SELECT {cols}{WEIGHT} FROM changes_of({table})"

    def moment(self, function: str, state: State) -> str:
        return f"{function}()"

    def sent(self, join: Join) -> Side | None:
        return None
