"""Plain values as tables and texts for terminals and notebooks."""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap

from rich.cells import cell_len
from rich.text import Text

Rows = Sequence[Sequence[object]]
_WIDTH = 160
_GAP = 2
_LONG = 24  # what is longer may be wrapped, or go below its row
_STYLES = {
    **dict.fromkeys(("ok", "fresh", "yes", "incremental"), "green"),
    **dict.fromkeys(("warn", "stale", "unknown", "recompute", "create", "replace"), "yellow"),
    **dict.fromkeys(("fail", "failed", "no"), "red"),
}
_READABLE = 28  # narrower columns of wrapped text are hard to read


@dataclass(frozen=True)
class Column:
    """A column's heading and cells, each a list of lines."""

    name: str
    cells: list[list[str]]
    number: bool

    @property
    def width(self) -> int:
        return max(cell_len(self.name), *(cell_len(line) for cell in self.cells for line in cell), 1)

    @property
    def long(self) -> bool:
        return not self.number and (self.width > _LONG or any(len(cell) > 1 for cell in self.cells))

    def wrapped(self, width: int) -> Column:
        cells = [
            [part for line in cell for part in wrap(line, width, break_on_hyphens=False) or [""]] for cell in self.cells
        ]
        return Column(self.name, cells, self.number)


def styled_table(
    title: str, columns: Sequence[str], rows: Rows, right: frozenset[str] = frozenset(), width: int = _WIDTH
) -> Text:
    """A table of values that fits a width; the columns in `right` hold numbers. Empty columns are left out.

    Where it is too wide, long texts are wrapped in their columns, or else stand below their rows.
    """
    found = [
        Column(name, [cell(row[i]).split("\n") for row in rows], name in right)
        for i, name in enumerate(columns)
        if not rows or any(cell(row[i]) for row in rows)
    ]
    beside, below = _arranged(found, width)
    widths = [c.width for c in beside]
    text = Text()
    if title:
        text.append(f"{title}\n", style="bold")
    heading = _line([[c.name] for c in beside], beside, widths, 0)
    heading.stylize("bold")
    text.append(heading)
    text.append("\n" + "─" * (sum(widths) + _GAP * (len(widths) - 1)), style="dim")
    for number in range(len(rows)):
        cells = [c.cells[number] for c in beside]
        for line in range(max(map(len, cells))):
            text.append("\n")
            text.append(_line(cells, beside, widths, line))
        for note in _notes(below, number, width):
            text.append("\n" + note, style="dim")
    return text


def _arranged(columns: list[Column], width: int) -> tuple[list[Column], list[Column]]:
    """The columns of the table, and those that stand below each row."""
    if _total(columns) <= width:
        return columns, []
    long = [c for c in columns if c.long]
    short = [c for c in columns if not c.long]
    room = width - _total(short) - _GAP * len(long)
    if long and room >= _READABLE * len(long):
        return [c.wrapped(_share(c, long, room)) if c.long else c for c in columns], []
    below = long
    while len(short) > 1 and _total(short) > width:
        below = [short.pop(), *below]
    return short, below


def _total(columns: list[Column]) -> int:
    return sum(c.width for c in columns) + _GAP * max(0, len(columns) - 1)


def _share(column: Column, long: list[Column], room: int) -> int:
    """How wide a column may be: what it needs, or an equal part of what the others leave."""
    modest = [c.width for c in long if c.width <= room // len(long)]
    return column.width if column.width in modest else (room - sum(modest)) // (len(long) - len(modest))


def _line(cells: list[list[str]], columns: list[Column], widths: list[int], line: int) -> Text:
    parts = []
    for cell_lines, column, width in zip(cells, columns, widths, strict=True):
        value = cell_lines[line] if line < len(cell_lines) else ""
        blank = " " * (width - cell_len(value))
        shown = Text(value, style=_STYLES.get(value, ""))
        parts.append(Text(blank) + shown if column.number else shown + Text(blank))
    joined = Text(" " * _GAP).join(parts)
    joined.rstrip()
    return joined


def _notes(columns: list[Column], number: int, width: int) -> Iterator[str]:
    for column in columns:
        value = ", ".join(column.cells[number])
        if value:
            note = f"{column.name}: {value}"
            yield from wrap(note, width, initial_indent="    ", subsequent_indent="      ", break_on_hyphens=False)


def text_table(
    title: str, columns: Sequence[str], rows: Rows, right: frozenset[str] = frozenset(), width: int = _WIDTH
) -> str:
    """The same as text, without colours."""
    return styled_table(title, columns, rows, right, width).plain


def html_table(title: str, columns: Sequence[str], rows: Rows) -> str:
    head = "".join(f"<th>{html.escape(c)}</th>" for c in columns)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{html.escape(cell(v))}</td>" for v in row) + "</tr>"
        for row in rows
    )
    return f"<table><caption><b>{html.escape(title)}</b></caption><tr>{head}</tr>{body}</table>"


def cell(value: object) -> str:
    """A value as people write it: numbers with thousands separators, seconds with two digits, nothing for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.2f}"
    return str(value)
