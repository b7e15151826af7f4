"""Every error Viewkeeper raises on purpose: one base, kinds by whose fault it is, a hint where there is one."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Position:
    """A place in a SQL text, counted from 1."""

    line: int
    column: int

    def __str__(self) -> str:
        return f"line {self.line}, column {self.column}"


class ViewkeeperError(Exception):
    """Base of all our errors: what happened, where, and what to do about it."""

    def __init__(self, message: str, *, hint: str | None = None, position: Position | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.position = position

    def __str__(self) -> str:
        where = f" ({self.position})" if self.position else ""
        hint = f"\nHint: {self.hint}" if self.hint else ""
        return f"{self.message}{where}{hint}"


class SqlError(ViewkeeperError):
    """The statement or the query cannot be read, or Spark rejects it."""


class NotIncrementalError(ViewkeeperError):
    """REFRESH POLICY INCREMENTAL [STRICT] asks for what cannot be had."""


class NameTakenError(ViewkeeperError):
    """A table or view of this name is there already."""


class UnknownViewError(ViewkeeperError):
    """No materialized view of this name."""


class DependentsError(ViewkeeperError):
    """Other views read this one."""


class SourceError(ViewkeeperError):
    """A source of a view is gone, is unreadable, or has lost the history a refresh needs."""


class ConflictError(ViewkeeperError):
    """Somebody else changed the same view at the same time; nothing was applied twice."""


class StorageError(ViewkeeperError):
    """The warehouse cannot be read or written."""


class SetupError(ViewkeeperError):
    """Java, Spark or Delta is missing or does not fit."""


class ProjectError(ViewkeeperError):
    """A project's files cannot be read, or do not fit together."""


class GraphError(ViewkeeperError):
    """A graph of views or a budget that the algorithms cannot work on."""


class InternalError(ViewkeeperError):
    """A bug in Viewkeeper: please report it, with the statement that led to it."""
