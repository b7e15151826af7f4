"""One SELECT: what it is made of, and its text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.sql.render import quote


@dataclass(frozen=True)
class Block:
    """One SELECT under construction: what each column is, over what is in FROM."""

    source: str
    columns: Mapping[str, str]
    where: tuple[str, ...] = ()
    joined: bool = False
    group_by: tuple[str, ...] = ()
    having: tuple[str, ...] = ()
    aggregated: bool = False
    measured: frozenset[str] = frozenset()
    windowed: frozenset[str] = frozenset()  # columns over windows, which nothing else in this SELECT can read
    lateral: bool = False
    order_by: tuple[tuple[str, str], ...] = ()  # what by, and in which direction
    tail: str = ""  # LIMIT … OFFSET …
    sent: tuple[str, ...] = ()  # of what is in FROM, what Spark is told to send to the other side of a join

    @property
    def plain(self) -> bool:
        """Whether it can stand in another SELECT's FROM as it is."""
        return not (self.aggregated or self.windowed or self.lateral or self.tail) and bool(self.source)

    @property
    def ended(self) -> bool:
        """Whether what comes next must start a new SELECT."""
        return bool(self.windowed or self.tail)

    @property
    def bare(self) -> bool:
        """Whether its columns are those of FROM: anything computed must be so before an outer join pads it."""
        return all(is_reference(text) for text in self.columns.values())

    @property
    def alias(self) -> str | None:
        """What all that is in FROM is called; None if it has no one name."""
        name = self.source.rpartition(" AS ")[2]
        return name if not self.joined and is_name(name) else None

    @property
    def grouped_by_columns(self) -> bool:
        """Whether it is grouped by columns of FROM: what is computed Spark does not always know again in a window."""
        return all(is_reference(text) for text in self.group_by)

    def select(self, labels: Mapping[str, str]) -> str:
        """The text; `labels` says which columns come out, and under which name."""
        items = [_aliased(self.columns[n], label) for n, label in labels.items()] or ["1 AS __vk_nothing"]
        hint = f"/*+ BROADCAST({', '.join(self.sent)}) */ " if self.sent else ""
        text = f"SELECT {hint}{', '.join(items)}"
        if self.source:
            text += f"\nFROM {self.source}"
        if self.where:
            text += f"\nWHERE {' AND '.join(self.where)}"
        if self.group_by:
            text += f"\nGROUP BY {', '.join(self.group_by)}"
        if self.having:
            text += f"\nHAVING {' AND '.join(self.having)}"
        elif self.aggregated and not self.group_by and not self.measured.intersection(labels):
            text += "\nHAVING TRUE"  # nothing else says that this is one row for all
        if self.order_by:
            # By what is selected where possible: below LATERAL, Spark forgets an order by anything else.
            named = ((self.columns[n], label) for n, label in labels.items())
            selected = {value: quote(label) for value, label in named if _aliased(value, label) != value}
            text += f"\nORDER BY {', '.join(f'{selected.get(by, by)} {how}' for by, how in self.order_by)}"
        return text + (f"\n{self.tail}" if self.tail else "")

    def labels(self) -> dict[str, str]:
        """Names for a subquery's columns: a plain reference keeps the name it has, so that Spark sees no rename."""
        found: dict[str, str] = {}
        for name, expression in self.columns.items():
            own = expression.split("`")[3] if is_reference(expression) else name
            taken = {label.lower() for label in found.values()} | {c.lower() for c in self.columns if c != name}
            found[name] = own if own.lower() not in taken else name
        return found


def _aliased(expression: str, name: str) -> str:
    """`t`.`a` AS `a` says no more than `t`.`a`, and hides from Spark that two plans are the same."""
    return (
        expression
        if expression.endswith(f".{quote(name)}") and is_reference(expression)
        else (f"{expression} AS {quote(name)}")
    )


def is_reference(expression: str) -> bool:
    return expression.startswith("`") and expression.count("`") == 4 and "(" not in expression


def is_name(text: str) -> bool:
    return text.startswith("`") and text.endswith("`") and text.count("`") == 2


def is_constant(expression: str) -> bool:
    return "`" not in expression


def indent(text: str) -> str:
    return text.replace("\n", "\n  ")
