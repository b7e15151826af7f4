"""Why something does not apply, as a value that plan, explain, history and errors all show."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.errors import Position


@dataclass(frozen=True)
class Reason:
    """A construct, where it stands, and why it stands in the way."""

    construct: str
    why: str
    position: Position | None = None

    def __str__(self) -> str:
        where = f" at {self.position}" if self.position else ""
        return f"{self.construct}{where}: {self.why}"
