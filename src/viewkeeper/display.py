"""Plain values as tables and texts for terminals and notebooks."""

from __future__ import annotations

import html
import io
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

Rows = Sequence[Sequence[object]]
_WIDTH = 160


def rich_table(title: str, columns: Sequence[str], rows: Rows, right: frozenset[str] = frozenset()) -> Table:
    """A table of values; the columns in `right` hold numbers."""
    table = Table(title=title, title_justify="left", title_style="bold", header_style="bold", expand=False)
    for column in columns:
        table.add_column(Text(column), justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell(value)) for value in row))
    return table


def text_table(
    title: str, columns: Sequence[str], rows: Rows, right: frozenset[str] = frozenset(), width: int = _WIDTH
) -> str:
    """The same as text, without colours."""
    out = io.StringIO()
    Console(file=out, width=width, no_color=True, highlight=False).print(rich_table(title, columns, rows, right))
    return out.getvalue().rstrip()


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
