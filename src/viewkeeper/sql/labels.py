"""Names of our own for the columns of a definition, and where in its text they come from."""

from __future__ import annotations

from dataclasses import dataclass, field

from sqlglot import exp

from viewkeeper.errors import Position
from viewkeeper.sql.parse import position


@dataclass
class Labels:
    """The names that are taken, and the places of those that stand for something in the text."""

    taken: set[str] = field(default_factory=set)
    places: dict[str, Position] = field(default_factory=dict)

    def fresh(self, base: str, of: exp.Expr | None = None) -> str:
        """A column name that nothing else in this view has."""
        name, count = base, 1
        while name.lower() in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name.lower())
        if of is not None:
            self.place(name, of)
        return name

    def place(self, name: str, of: exp.Expr) -> None:
        """The column is first asked for there."""
        if (found := position(of)) is not None:
            self.places.setdefault(name, found)
