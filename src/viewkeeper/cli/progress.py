"""What happens just now, on standard error: live lines on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

FINAL = frozenset({"none", "incremental", "recompute", "failed", "created", "replaced", "equal", "different", "done"})
_SHOWN = {"none": "nothing to do"}
_STYLES = {"failed": "red", "different": "red", "none": "dim"}


def stderr_console() -> Console:
    """A console that still reaches the terminal while Spark's start-up noise on file descriptor 2 is kept away."""
    if sys.stderr.isatty():
        return Console(file=os.fdopen(os.dup(sys.stderr.fileno()), "w", encoding="utf-8"), highlight=False)
    return Console(stderr=True, highlight=False, soft_wrap=True)


@dataclass
class Line:
    """One view, and what happens to it."""

    state: str = "waiting"
    started: float | None = None
    seconds: float | None = None

    def tell(self, event: str) -> None:
        now = time.monotonic()
        self.started = self.started or now
        self.state = event
        if event in FINAL:
            self.seconds = now - self.started


@dataclass
class Watch:
    """Shows progress. Called with a view and an event, it is what `Warehouse.refresh` reports to."""

    quiet: bool = False
    console: Console = field(default_factory=stderr_console)
    lines: dict[str, Line] = field(default_factory=dict)
    busy_with: list[tuple[str, float]] = field(default_factory=list)
    live: Live | None = None

    def __call__(self, name: str, event: str) -> None:
        self.lines.setdefault(name, Line()).tell(event)
        if not self.console.is_terminal:
            took = self.lines[name].seconds
            seconds = f", {took:.1f} s" if took is not None else ""
            self.say(f"{name}: {_SHOWN.get(event, event)}{seconds}")

    @contextmanager
    def busy(self, text: str, *, plain: bool = True) -> Iterator[None]:
        """A spinner while something without views of its own takes its time; `plain`: a line elsewhere too."""
        if plain and not self.console.is_terminal:
            self.say(text)
        self.busy_with.append((text, time.monotonic()))
        try:
            with self._alive():
                yield
        finally:
            self.busy_with.pop()

    @contextmanager
    def showing(self, names: Iterable[str]) -> Iterator[Watch]:
        """A line per view until all is done."""
        self.lines = {name: Line() for name in names}
        try:
            with self._alive():
                yield self
        finally:
            self.lines = {}

    @contextmanager
    def _alive(self) -> Iterator[None]:
        if self.live is not None or self.quiet or not self.console.is_terminal:
            yield
            return
        self.live = Live(console=self.console, get_renderable=self._render, refresh_per_second=8, transient=True)
        try:
            with self.live:
                yield
        finally:
            self.live = None

    def say(self, text: str) -> None:
        if not self.quiet:
            self.console.print(text, markup=False)

    def _render(self) -> RenderableType:
        now = time.monotonic()
        table = Table.grid(padding=(0, 2))
        for name, line in self._fitting():
            running = line.started is not None and line.seconds is None
            took = line.seconds if line.seconds is not None else (now - line.started if line.started else None)
            mark: RenderableType = _SPINNER if running else _mark(line)
            style = _STYLES.get(line.state, "" if line.started else "dim")
            seconds = f"{took:.1f} s" if took is not None else ""
            table.add_row(mark, Text(name, style="bold" if running else style), Text(line.state, style=style), seconds)
        parts: list[RenderableType] = [table] if self.lines else []
        if self.busy_with:
            text, since = self.busy_with[-1]
            busy = Table.grid(padding=(0, 2))
            busy.add_row(_SPINNER, Text(text), Text(f"{now - since:.0f} s", style="dim"))
            parts.append(busy)
        return Group(*parts)

    def _fitting(self) -> list[tuple[str, Line]]:
        """All lines, or those of views that are not done yet, as many as the terminal shows."""
        room = max(4, self.console.height - 4)
        lines = [(name, line) for name, line in self.lines.items()]
        if len(lines) > room:
            lines = [(n, li) for n, li in lines if li.seconds is None or li.state == "failed"]
        return lines[:room]


_SPINNER = Spinner("dots", style="cyan")


def _mark(line: Line) -> Text:
    if line.seconds is None:
        return Text("·", style="dim")
    return Text("✗", style="red") if line.state in ("failed", "different") else Text("✓", style="green")
