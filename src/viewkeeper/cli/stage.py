"""Where the demo plays: its words and tables on standard output, its progress on standard error."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.text import Text

from viewkeeper.cli.output import Answer, Output
from viewkeeper.cli.progress import Watch
from viewkeeper.reports import Progress
from viewkeeper.warehouse import Warehouse


@dataclass
class Stage:
    """The terminal, as the demo sees it; with --json it shows nothing."""

    watch: Watch
    out: Output

    def say(self, text: str = "", *, heading: bool = False) -> None:
        if not self.out.json:
            Console(highlight=False, soft_wrap=True).print(Text(text, style="bold cyan" if heading else ""))

    def show(self, value: Answer) -> None:
        if not self.out.json:
            self.out.show(value)

    def opened(self, wh: Warehouse) -> None:
        wh.starting = lambda: self.watch.busy("starting Spark…")

    def farewell(self, commands: Iterable[tuple[str, str]], seconds: float) -> None:
        """How long it took, and what to type next."""
        self.say(f"Done in {seconds:.0f} s. To look around:", heading=True)
        listed = [(f"{program()} {command}", what) for command, what in commands]
        width = max(len(command) for command, _ in listed)
        for command, what in listed:
            self.say(f"   {command:{width}}   # {what}")

    def busy(self, text: str) -> AbstractContextManager[None]:
        return self.watch.busy(text, plain=False)

    def showing(self, names: Iterable[str]) -> AbstractContextManager[Progress]:
        return self.watch.showing(names)


def program() -> str:
    """The command as it can be typed here."""
    if shutil.which("viewkeeper"):
        return "viewkeeper"
    called = Path(sys.argv[0]).absolute()
    if called.name != "viewkeeper":
        return f"{sys.executable} -m viewkeeper"
    return str(called.relative_to(Path.cwd()) if called.is_relative_to(Path.cwd()) else called)
