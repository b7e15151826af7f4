"""How far a benchmark is, on standard error: a live line on a terminal, a line now and then elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from viewkeeper.cli.progress import Watch
from viewkeeper.warehouse import Warehouse

_SILENCE = 20.0  # seconds between two lines, where there is no terminal


@dataclass
class Meter:
    """What the benchmark reports to."""

    watch: Watch
    started: float = field(default_factory=time.monotonic)
    said: float = 0.0
    case: str = "benchmark"
    far: str = "0 % done"
    live: Progress | None = None
    line: TaskID = field(default=TaskID(0))

    @contextmanager
    def showing(self) -> Iterator[Meter]:
        """A line that moves until all is done."""
        if self.watch.quiet or not self.watch.console.is_terminal:
            yield self
            return
        columns = ("{task.description}", BarColumn(), TimeElapsedColumn(), TextColumn("{task.fields[now]}"))
        with Progress(*columns, console=self.watch.console, transient=True) as self.live:
            self.line = self.live.add_task("starting", total=1.0, now="")
            yield self
        self.live = None

    def opened(self, wh: Warehouse) -> None:
        self.tell("starting Spark…")

    def begin(self, case: str) -> None:
        self.case = case
        if self.live is not None:
            self.live.update(self.line, description=case)
        else:
            self._say("begins")

    def moved(self, done: float, seconds_left: float | None) -> None:
        self.far = f"{done * 100:.0f} % done"
        self.far += "" if seconds_left is None else f", about {_minutes(seconds_left)} left"
        if self.live is not None:
            self.live.update(self.line, description=f"{self.case}: {self.far}", completed=done)

    def tell(self, text: str) -> None:
        if self.live is not None:
            self.live.update(self.line, now=text)
        elif time.monotonic() - self.said > _SILENCE:
            self._say(text)

    def _say(self, text: str) -> None:
        self.said = time.monotonic()
        self.watch.say(f"{_minutes(self.said - self.started)}, {self.far}: {self.case}: {text}")


def _minutes(seconds: float) -> str:
    return f"{seconds / 60:.1f} min"
