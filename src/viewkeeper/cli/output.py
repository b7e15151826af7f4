"""Answers as tables or as JSON on standard output, errors on standard error."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.text import Text

from viewkeeper.display import styled_table, text_table
from viewkeeper.errors import ViewkeeperError
from viewkeeper.reports import Explanation, Report

_SQL_SECTIONS = ("Query", "Readers see", "SQL")


class Answer(Protocol):
    """Anything that prints, and has a form as plain data."""

    def to_data(self) -> Any: ...


@dataclass
class Output:
    """Where answers go."""

    json: bool = False

    def data(self, value: Any) -> None:
        """JSON, if asked for."""
        if self.json:
            print(json.dumps(value, indent=2, ensure_ascii=False, default=str))

    def text(self, text: str) -> None:
        """Words for people; with --json there are none."""
        if not self.json:
            print(text)

    def answer(self, value: Answer) -> None:
        """One answer, as a table or text, or as JSON."""
        self.data(value.to_data())
        if not self.json:
            self.show(value)

    def show(self, value: Answer) -> None:
        """An answer for people: coloured and as wide as the terminal, if it goes to one."""
        console = Console()
        if not console.is_terminal or not isinstance(value, Report | Explanation):
            print(value)
        elif isinstance(value, Explanation):
            _show_explanation(console, value)
        elif str(value).count("\n") > 1:
            table = styled_table(value.title, value.columns, value.rows(), value.numbers, console.width)
            console.print(table, highlight=False)
        else:
            print(value)  # what is better said in a sentence

    def change_sql(self, explanation: Explanation) -> None:
        """Only the SQL of a view's change, as it can be piped elsewhere."""
        found = {h: t for h, t in explanation.sections.items() if h.startswith("SQL")}
        if not found:
            reason = explanation.sections.get("Not incremental", "it is recomputed")
            raise ViewkeeperError(f"{explanation.view} has no SQL of a change: {reason}")
        self.data(Explanation(explanation.view, found).to_data())
        self.text("\n".join(found.values()))


def _show_explanation(console: Console, explanation: Explanation) -> None:
    from rich.syntax import Syntax  # slow to import

    for number, (heading, text) in enumerate(explanation.sections.items()):
        console.print(Text(("\n" if number else "") + heading, style="bold"))
        if heading.startswith(_SQL_SECTIONS):
            console.print(Syntax(text, "sql", theme="ansi_dark", background_color="default", word_wrap=True))
        else:
            console.print(text, markup=False, highlight=False)


@dataclass(frozen=True)
class Rows:
    """The first rows of a query's result."""

    columns: Sequence[str]
    rows: Sequence[tuple[object, ...]]
    more: bool

    def to_data(self) -> list[dict[str, Any]]:
        names = [c if c not in self.columns[:i] else f"{c}_{i + 1}" for i, c in enumerate(self.columns)]
        return [dict(zip(names, map(plain, row), strict=True)) for row in self.rows]

    def __str__(self) -> str:
        if not self.columns:
            return "Done."
        cells = [[_cell(v) for v in row] for row in self.rows]
        numbers = frozenset(c for i, c in enumerate(self.columns) if all(_is_number(row[i]) for row in self.rows))
        table = text_table("", self.columns, cells, numbers, width=sys.maxsize)
        count = f"{len(self.rows):,} row" + "s" * (len(self.rows) != 1)
        return f"{table}\n{count} shown; there are more (--limit shows more)" if self.more else f"{table}\n{count}"


@dataclass(frozen=True)
class Started:
    """What `init` made."""

    folder: Path
    written: tuple[Path, ...]
    warehouse: Path
    statements: int

    def to_data(self) -> dict[str, Any]:
        return {
            "project": str(self.folder.absolute()),
            "warehouse": str(self.warehouse),
            "written": [str(f) for f in self.written],
            "statements": self.statements,
        }

    def __str__(self) -> str:
        lines = [f"wrote {f.relative_to(self.folder.absolute())}" for f in self.written]
        lines = lines or ["The project was there already; nothing was written."]
        if self.statements:
            lines.append(f"ran {self.statements} setup statements in {self.warehouse}")
        there = "" if self.folder.absolute() == Path.cwd() else f"cd {self.folder} and "
        return "\n".join([*lines, f"Next: {there}viewkeeper plan, viewkeeper refresh, viewkeeper status"])


def plain(value: object) -> Any:
    """A value of a row as JSON has it: decimals, dates and what JSON lacks as strings."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if isinstance(value, bytes | bytearray):
        return value.hex()
    if isinstance(value, date | datetime | time):
        return value.isoformat()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if hasattr(value, "asDict"):
        return {k: plain(v) for k, v in value.asDict().items()}
    if isinstance(value, list | tuple):
        return [plain(v) for v in value]
    return str(value)


def _cell(value: object) -> str:
    if value is None:
        return "NULL"
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def _is_number(value: object) -> bool:
    return value is None or (hasattr(value, "__float__") and not isinstance(value, bool))


def complain(message: str, hint: str | None, kind: str, *, as_json: bool) -> None:
    """An error in one line, and what to do about it in another."""
    if as_json:
        print(json.dumps({"error": message, "hint": hint, "kind": kind}, ensure_ascii=False), file=sys.stderr)
        return
    console = Console(stderr=True, soft_wrap=True, highlight=False)
    console.print(Text("error: ", style="bold red") + Text(" ".join(message.split()), style="default"))
    if hint:
        console.print(Text("hint: ", style="bold") + Text(" ".join(hint.split()), style="default"))
