"""One report of a run: all samples as JSON, tables as Markdown, plots as PNG."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path

from viewkeeper.bench import lazy, small
from viewkeeper.bench.findings import (
    WAYS,
    Bar,
    Choice,
    bars,
    choices,
    compared,
    condensed,
    mean_ratio,
    prediction_error,
    right_share,
    sweeps,
)
from viewkeeper.bench.grid import SCALES
from viewkeeper.bench.run import Finished
from viewkeeper.bench.samples import RECOMPUTE, REFRESH, Samples
from viewkeeper.bench.sweep import HAND, ONE_BY_ONE, TOGETHER
from viewkeeper.bench.views import BY_HAND
from viewkeeper.reports import Report

JSON, MARKDOWN = "report.json", "report.md"


@dataclass(frozen=True)
class Written(Report):
    """The bars, and where the rest is."""

    finished: Finished
    files: tuple[Path, ...]
    title = "Bars"
    columns = ("", "measured", "bar", "holds", "of")
    numbers = frozenset({"measured", "bar"})

    def rows(self) -> list[list[object]]:
        return [list(_bar(bar)) for bar in bars(self.finished.samples, self.finished.setup.mode)]

    def to_data(self) -> dict[str, object]:
        return to_data(self.finished)

    def __str__(self) -> str:
        return "\n".join([super().__str__(), "", *(f"Written: {file}" for file in self.files)])


def write_report(finished: Finished, out: Path) -> list[Path]:
    """The files of the report; without matplotlib there are no plots, and the Markdown says so."""
    files = [out / JSON, out / MARKDOWN]
    drawn: list[Path] = []
    if find_spec("matplotlib") is not None:
        from viewkeeper.bench.plots import draw  # noqa: PLC0415 - the rest of the report needs no matplotlib

        drawn = draw(finished, out)
    files[0].write_text(json.dumps(to_data(finished), indent=1, ensure_ascii=False), "utf-8")
    files[1].write_text(markdown(finished, [file.name for file in drawn]), "utf-8")
    return [*files, *drawn]


def to_data(finished: Finished) -> dict[str, object]:
    """Everything, as plain data."""
    return {
        "setup": asdict(finished.setup),
        "machine": finished.machine,
        "seconds": finished.seconds,
        "cases": [{"name": case.name, "seconds": case.seconds, "load": case.load} for case in finished.cases],
        "bars": [{**asdict(bar), "holds": bar.holds} for bar in bars(finished.samples, finished.setup.mode)],
        "samples": [asdict(sample) for sample in finished.samples.all],
    }


def markdown(finished: Finished, plots: Sequence[str] = ()) -> str:
    """The tables; sections of what was not measured are left out."""
    samples = finished.samples
    setup, machine = finished.setup, finished.machine
    parts = [
        "# Benchmark",
        f"{setup.mode}, TPC-H scale {setup.scale:g}, {machine['cores']} cores, {machine['memory_gigabytes']} GB,"
        f" Spark {machine['pyspark']}, Delta {machine['delta-spark']}, Viewkeeper {machine['viewkeeper']};"
        f" {len(samples.all)} samples in {finished.seconds / 60:.1f} min. Seconds are medians."
        " A ratio is that of medians, with the least and the largest ratio of a single round."
        " Derived from TPC-H, not comparable to published TPC results.",
        *_warnings(finished),
        "## Bars",
        _table(("", "measured", "bar", "holds", "of"), (_bar(bar, no="**no**") for bar in bars(samples, setup.mode))),
        *_changes(samples),
        *_auto(samples),
        *_by_hand(samples),
        *_small(samples),
        *_ten(samples),
        *_writers(samples),
        *_transactions(samples),
        *_growth(samples),
        "## Plots",
        "\n\n".join(f"![{Path(plot).stem}]({plot})" for plot in plots) or "matplotlib is missing, so there are none.",
        "## Time of the run",
        _table(("case", "min"), ((case.name, f"{case.seconds / 60:.1f}") for case in finished.cases)),
    ]
    return "\n\n".join(parts) + "\n"


def _warnings(finished: Finished) -> Iterator[str]:
    setup, cores = finished.setup, finished.machine["cores"]
    if setup.mode == "quick" or setup.scale != SCALES[setup.mode]:
        yield "**The bars are those of a full run at scale 1, or of a large one at scale 10. This was another one.**"
    load = max((case.load for case in finished.cases if case.load is not None), default=0)
    if load > cores / 2:
        yield f"**The machine was busy before the run began: load {load} on {cores} cores. Trust no figure of it.**"


def _bar(bar: Bar, no: str = "no") -> tuple[str, ...]:
    measured = "–" if bar.value is None else f"{bar.value:.2f}"
    holds = {True: "yes", False: no, None: "–"}[bar.holds]
    return bar.what, measured, f"{'≥' if bar.at_least else '≤'} {bar.limit:g}", holds, bar.of


def _changes(samples: Samples) -> Iterator[str]:
    cases = sweeps(samples)
    if not cases:
        return
    yield "## Refresh ÷ recompute"
    head = ("changed", "views", "geometric mean", "best", "worst")
    yield _table(head, (_overall(samples, case) for case in cases))
    for case in cases:
        yield f"### {case}"
        rows = (
            (c.view, c.strategy, _told(c.predicted), f"{c.refresh:.2f}", f"{c.recompute:.2f}", str(c.ratio))
            for c in compared(samples, case)
        )
        yield _table(("view", "AUTO took", "predicted s", "refresh s", "recompute s", "ratio"), rows)


def _overall(samples: Samples, case: str) -> tuple[str, ...]:
    found = sorted(compared(samples, case), key=lambda c: c.ratio.value)
    ends = [f"{c.ratio.value:.2f} ({c.view})" for c in (found[0], found[-1])]
    return case, str(len(found)), f"{mean_ratio(samples, case):.2f}", *ends


def _auto(samples: Samples) -> Iterator[str]:
    found = choices(samples)
    if not found:
        return
    yield "## Was AUTO right?"
    different = [c for c in found if c.different]
    of_these = f"{len(different)} differ by over 20 %{_right(found)}"
    yield f"Of {len(found)} cases measured both ways, {of_these}. It was wrong in:"
    wrong = [(c.case, c.view, c.strategy, _all(c.chosen), _all(c.other)) for c in different if not c.right]
    yield _table(("changed", "view", "AUTO took", "s", "the other way s"), wrong) if wrong else "none."
    firsts = [c.first for c in found]
    yield f"In their first rounds {sum(c.different for c in firsts)} cases differ by over 20 %{_right(firsts)}."
    errors = ((way, prediction_error(samples, way)) for way in WAYS)
    rows = ((way, f"{error[0]:.2f}", f"{error[1]:.2f}×") for way, error in errors if error is not None)
    yield _table(("way", "actual ÷ predicted, median", "off by, median"), rows)


def _right(found: Iterable[Choice]) -> str:
    share = right_share(found)
    return "" if share is None else f": right in {share * 100:.0f} % of those"


def _all(seconds: Iterable[float]) -> str:
    return ", ".join(f"{s:.2f}" for s in seconds)


def _by_hand(samples: Samples) -> Iterator[str]:
    found = [(case, view) for case in sweeps(samples) for view in BY_HAND]
    rows = [
        (case, view, _seconds(of_view, REFRESH), _seconds(of_view, HAND), str(ratio))
        for case, view in found
        if (ratio := (of_view := samples.where(case=case, subject=view)).ratio(REFRESH, HAND)) is not None
    ]
    if rows:
        yield "## Refresh ÷ hand-written MERGE job"
        yield _table(("changed", "view", "refresh s", "by hand s", "ratio"), rows)


def _small(samples: Samples) -> Iterator[str]:
    groups = samples.where(case="small-refresh")
    base = groups.where(action=small.APPEND).median
    if base is None:
        return
    yield "## Small refreshes"
    rows = []
    for action in dict.fromkeys(s.action for s in groups.all):
        found = groups.where(action=action)
        spread = f"{min(found.seconds) * 1000:.0f}–{max(found.seconds) * 1000:.0f}"
        jobs = max(s.jobs for s in found.all)
        way, median = found.all[0].strategy or "", found.median or 0
        rows.append((action, way, f"{median * 1000:.0f}", spread, jobs, f"{median / base:.2f}"))
    yield _table(("", "way", "ms", "spread", "jobs", "÷ append"), rows)


def _ten(samples: Samples) -> Iterator[str]:
    found = samples.where(case="ten-views")
    if not found.all:
        return
    yield "## Ten views that overlap"
    rows = [
        (way, _seconds(found, way), str(found.ratio(way, RECOMPUTE) or "")) for way in (TOGETHER, ONE_BY_ONE, RECOMPUTE)
    ]
    yield _table(("", "s", "÷ recompute"), rows)


def _writers(samples: Samples) -> Iterator[str]:
    found = samples.where(case="writers")
    if not found.all:
        return
    yield "## What writers pay for views"
    yield (
        "An update of customers that 0, 1 and 10 views read. Eager: the update, and a refresh of V1 in the same breath."
    )
    rows = []
    for size in found.places:
        at = found.where(at=size)
        none, one, ten = (at.where(subject=s, action=lazy.UPDATE).median for s in ("0 views", "1 view", "10 views"))
        refresh = at.where(action=REFRESH).median
        if none and one and ten and refresh:
            eager = (one + refresh) / one
            rows.append((f"{size:g}", f"{none:.2f}", f"{one / none:.2f}", f"{ten / none:.2f}", f"{eager:.1f}"))
    yield _table(("customers", "0 views s", "1 view ÷ 0", "10 views ÷ 0", "eager ÷ lazy"), rows)


def _transactions(samples: Samples) -> Iterator[str]:
    found, ratio = samples.where(case="transactions"), condensed(samples)
    if ratio is None:
        return
    eager = found.where(action=lazy.EAGER)
    yield "## Small transactions, combined"
    yield (
        f"{len(eager.all)} updates of 1 to 10 customers among the first hundred. V1 refreshed after each:"
        f" {sum(eager.seconds):.1f} s in all; once after the last: {_seconds(found, lazy.COMBINED)} s;"
        f" ratio {ratio:.1f}."
    )


def _growth(samples: Samples) -> Iterator[str]:
    for case, axis, what in (
        ("growth-data", "scale", "Against the size of the data, with the same change"),
        ("growth-commits", "commits", "Against pending commits"),
        ("growth-depth", "depth", "Against depth"),
    ):
        found = samples.where(case=case)
        if not found.all:
            continue
        yield f"## {what}"
        rows = []
        for subject in found.subjects:
            for place in found.places:
                at = found.where(subject=subject, at=place)
                rows.append((subject, f"{place:g}", _seconds(at, REFRESH), _seconds(at, RECOMPUTE)))
        yield _table(("view", axis, "refresh s", "recompute s"), rows)


def _seconds(samples: Samples, action: str) -> str:
    return _told(samples.where(action=action).median)


def _told(seconds: float | None) -> str:
    return "" if seconds is None else f"{seconds:.2f}"


def _table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    return "\n".join("| " + " | ".join(map(str, row)) + " |" for row in (head, ["---"] * len(head), *rows))
