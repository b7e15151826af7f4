"""The plots of a report."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import matplotlib as mpl

from viewkeeper.bench.findings import WAYS, change_sizes, compared, mean_ratio, predictions, sweeps
from viewkeeper.bench.mixes import percent
from viewkeeper.bench.run import Finished
from viewkeeper.bench.samples import RECOMPUTE, REFRESH, Samples

mpl.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.axes import Axes

_SEVERAL = "not the same in each round"
_COLOURS = {"incremental": "tab:blue", "recompute": "tab:orange", "none": "tab:green", _SEVERAL: "tab:gray"}
_DOTS = 130
_RATIOS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)  # where a logarithmic axis of ratios has ticks


def draw(finished: Finished, out: Path) -> list[Path]:
    """Every plot that there are samples for."""
    samples, setup = finished.samples, finished.setup
    files = []
    for case in sweeps(samples):
        if len(list(compared(samples, case))) > 4:
            file = out / f"ratios-{case.replace('%', '-percent')}.png"
            files.append(_drawn(file, lambda axes, case=case: _ratios(axes, samples, case), (7, 6)))  # type: ignore[misc]
    sizes = change_sizes(samples, setup.mode, setup.scale)
    if len(sizes) > 1:
        files.append(_drawn(out / "growth-change.png", lambda axes: _change_growth(axes, samples, sizes)))
    for case, axis, log in (
        ("growth-data", "TPC-H scale", True),
        ("growth-commits", "pending commits", True),
        ("growth-depth", "depth (views one over the other)", False),
    ):
        found = samples.where(case=case)
        if len(found.places) > 1:
            plot = _growth_plot(found, axis, log)
            files.append(_drawn(out / f"{case}.png", plot))
    if any(predictions(samples, way) for way in WAYS):
        files.append(_drawn(out / "predictions.png", lambda axes: _predictions(axes, samples), (6, 6)))
    return files


def _drawn(file: Path, plot: Callable[[Axes], None], size: tuple[float, float] = (7, 4.5)) -> Path:
    figure, axes = plt.subplots(figsize=size, layout="constrained")
    plot(axes)
    figure.savefig(file, dpi=_DOTS)
    plt.close(figure)
    return file


def _ratios(axes: Axes, samples: Samples, case: str) -> None:
    """A bar for each view, the best on top, with the spread of its rounds."""
    found = sorted(compared(samples, case), key=lambda c: c.ratio.value, reverse=True)
    ways = [c.strategy if c.strategy in _COLOURS else _SEVERAL for c in found]
    for place, (c, way) in enumerate(zip(found, ways, strict=True)):
        axes.barh(place, c.ratio.value, color=_COLOURS[way], height=0.7)
        axes.plot([c.ratio.low, c.ratio.high], [place, place], color="black", linewidth=1)
    for way, colour in _COLOURS.items():
        if way in ways:
            axes.barh(0, 0, color=colour, label=f"AUTO took: {way}")
    mean = mean_ratio(samples, case)
    if mean is not None:
        axes.axvline(mean, color="tab:red", linestyle="--", label=f"geometric mean {mean:.2f}")
    axes.axvline(1, color="grey", linewidth=1)
    axes.set_yticks(range(len(found)), [c.view for c in found])
    axes.set_xlabel("seconds of a refresh ÷ seconds of a plain recompute (line: spread of rounds)")
    axes.set_ylabel("view")
    axes.set_title(f"Refresh ÷ recompute: {case.replace('-', ' ')}")
    axes.legend(loc="upper right")


def _change_growth(axes: Axes, samples: Samples, sizes: list[tuple[float, str]]) -> None:
    """A line for each view that was measured at every size."""
    views = [{c.view: c.ratio.value for c in compared(samples, case)} for _, case in sizes]
    common = [view for view in views[0] if all(view in at for at in views)]
    for number, view in enumerate(common):
        style = ("-", "--", ":")[number // 10 % 3]
        axes.plot(
            [share for share, _ in sizes], [at[view] for at in views], style, marker="o", markersize=4, label=view
        )
    axes.axhline(1, color="grey", linewidth=1)
    axes.set(xscale="log", yscale="log")
    axes.set_xticks([share for share, _ in sizes], [_size(share, case) for share, case in sizes])
    low, high = axes.get_ylim()
    axes.set_yticks(ticks := [tick for tick in _RATIOS if low <= tick <= high], [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.grid(alpha=0.3)
    axes.set_xlabel("share of all tables that changed")
    axes.set_ylabel("refresh ÷ recompute")
    axes.set_title("Cost against the size of the change")
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5))


def _size(share: float, case: str) -> str:
    return case.replace("-", "\n") if "orders" in case else percent(share)


def _growth_plot(found: Samples, axis: str, log: bool) -> Callable[[Axes], None]:
    def plot(axes: Axes) -> None:
        for number, subject in enumerate(found.subjects):
            for action, style in ((REFRESH, "-"), (RECOMPUTE, "--")):
                line = found.where(subject=subject, action=action)
                if line.all:
                    seconds = [line.where(at=place).median or 0 for place in line.places]
                    axes.plot(line.places, seconds, style, marker="o", color=f"C{number}", label=f"{subject}: {action}")
        if log:
            axes.set(xscale="log")
        axes.set_xticks(found.places, [f"{place:g}" for place in found.places])
        axes.minorticks_off()
        axes.set_ylim(bottom=0)
        axes.set_xlabel(axis)
        axes.set_ylabel("seconds (median)")
        axes.set_title(f"Cost against {axis}")
        axes.legend()

    return plot


def _predictions(axes: Axes, samples: Samples) -> None:
    """A dot for each refresh; on the line it took as long as predicted."""
    for way in WAYS:
        dots = predictions(samples, way)
        axes.scatter([x for x, _ in dots], [y for _, y in dots], s=14, alpha=0.6, color=_COLOURS[way], label=way)
    all_seconds = [seconds for way in WAYS for dot in predictions(samples, way) for seconds in dot]
    ends = [min(all_seconds), max(all_seconds)]
    axes.plot(ends, ends, color="grey", linewidth=1, label="as predicted")
    axes.set(xscale="log", yscale="log")
    axes.set_xlabel("predicted seconds")
    axes.set_ylabel("actual seconds")
    axes.set_title("Predicted and actual seconds of refreshes")
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.grid(alpha=0.3)
    axes.legend(loc="lower right")
