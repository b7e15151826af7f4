"""Tables and plots of one run, and the clock."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import matplotlib

from viewkeeper.selection.choice import Budget, Choice
from viewkeeper.selection.choose import choose
from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.methods import Method

matplotlib.use("Agg")
import matplotlib.pyplot as plt


@dataclass
class Report:
    """Markdown and plots in one folder."""

    out: Path
    lines: list[str] = field(default_factory=list)

    def table(self, title: str, protocol: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
        body = ["| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows)]
        section = [f"## {title}", "", protocol, "", *body, ""]
        print("\n".join(section), flush=True)
        self.lines += section

    def plot(self, name: str, title: str, draw: Callable[[plt.Axes], None]) -> None:
        figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
        draw(axes)
        axes.set_title(title)
        figure.savefig(self.out / f"{name}.png", dpi=120)
        plt.close(figure)
        self.lines += [f"![{title}]({name}.png)", ""]

    def write(self) -> None:
        (self.out / "results.md").write_text("\n".join(["# Studies on plain graphs", "", *self.lines]), "utf-8")


def timed(graph: ViewGraph, budget: Budget, method: Method) -> tuple[Choice, float]:
    """A choice, and the seconds of one core that it took."""
    started = time.process_time()
    choice = choose(graph, budget, method)
    return choice, time.process_time() - started
