"""One run: its cases one after the other, each kept as soon as it is finished, then the report."""

from __future__ import annotations

import json
import os
import platform
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol, assert_never

from viewkeeper import Warehouse
from viewkeeper.bench.cases import (
    Case,
    CommitGrowth,
    DataGrowth,
    DepthGrowth,
    SmallRefresh,
    Sweep,
    TenViews,
    Transactions,
    Writers,
    actions,
    name,
)
from viewkeeper.bench.grid import SCALES, Mode
from viewkeeper.bench.lazy import transactions, writers
from viewkeeper.bench.samples import Sample, Samples
from viewkeeper.bench.small import commit_growth, depth_growth, small_refresh
from viewkeeper.bench.stand import Bench
from viewkeeper.bench.sweep import data_growth, sweep, ten_views
from viewkeeper.errors import StorageError

_ENOUGH_TO_GUESS = 0.1  # before that, what it took is mostly the start of Spark and of views


class Watcher(Protocol):
    """Who is told how far the run is."""

    def opened(self, wh: Warehouse) -> None:
        """The warehouse is there; its Spark has not started yet."""

    def begin(self, case: str) -> None:
        """A case begins."""

    def moved(self, done: float, seconds_left: float | None) -> None:
        """So much of the whole is done, and the rest may take so long; None: it is too early to say."""

    def tell(self, text: str) -> None:
        """What happens just now."""


@dataclass(frozen=True)
class Setup:
    """What makes two runs alike: a folder keeps cases of one setup."""

    mode: Mode
    scale: float
    viewkeeper: str

    @classmethod
    def of(cls, mode: Mode, scale: float | None = None) -> Setup:
        return cls(mode, SCALES[mode] if scale is None else scale, version("viewkeeper"))


@dataclass(frozen=True)
class Done:
    """A case that was measured to its end, how long that took, and the machine's load before the run began."""

    name: str
    seconds: float
    load: float | None
    samples: tuple[Sample, ...]


@dataclass(frozen=True)
class Finished:
    """All that was measured, and where."""

    setup: Setup
    machine: dict[str, Any]
    cases: tuple[Done, ...]

    @property
    def seconds(self) -> float:
        return sum(case.seconds for case in self.cases)

    @cached_property
    def samples(self) -> Samples:
        return Samples(tuple(sample for case in self.cases for sample in case.samples))


def run_cases(cases: Sequence[Case], setup: Setup, out: Path, data: Path, watcher: Watcher) -> Finished:
    """Measure what is not in `out` yet, and give all that is there."""
    kept = Kept.open(out, setup)
    missing = [case for case in cases if not kept.has(case)]
    load = busy()
    if missing:
        with _bench(data, setup.scale, watcher) as bench:
            for case, seconds, samples in _measured(missing, bench, watcher):
                kept.add(case, Done(name(case), seconds, load, samples))
    return Finished(setup, machine(), kept.all())


def _measured(
    cases: Sequence[Case], bench: Bench, watcher: Watcher
) -> Iterator[tuple[Case, float, tuple[Sample, ...]]]:
    whole, done = sum(map(actions, cases)), 0
    started = time.monotonic()
    for case in cases:
        watcher.begin(name(case))
        begun = time.monotonic()
        samples: list[Sample] = []
        for sample in measure(case, bench):
            samples.append(sample)
            part = (done + min(len(samples), actions(case))) / whole
            left = (time.monotonic() - started) * (1 - part) / part
            watcher.moved(part, left if part > _ENOUGH_TO_GUESS else None)
        yield case, time.monotonic() - begun, tuple(samples)
        done += actions(case)


def measure(case: Case, bench: Bench) -> Iterator[Sample]:
    """The samples of one case; a view that differs from its query is an error."""
    match case:
        case Sweep():
            return sweep(case, bench)
        case SmallRefresh():
            return small_refresh(case, bench)
        case TenViews():
            return ten_views(case, bench)
        case Writers():
            return writers(case, bench)
        case Transactions():
            return transactions(case, bench)
        case DataGrowth():
            return data_growth(case, bench)
        case CommitGrowth():
            return commit_growth(case, bench)
        case DepthGrowth():
            return depth_growth(case, bench)
        case _:
            assert_never(case)


@contextmanager
def _bench(data: Path, scale: float, watcher: Watcher) -> Iterator[Bench]:
    """A warehouse beside the kept tables, so that their files can be linked; it goes with the run."""
    try:
        data.mkdir(parents=True, exist_ok=True)
        root = Path(tempfile.mkdtemp(prefix="run-", dir=data))
    except OSError as error:
        raise StorageError(f"{data} cannot be written: {error}", hint="--data names another place") from error
    try:
        with Warehouse.local(root) as wh:
            watcher.opened(wh)
            yield Bench(wh, root, data, scale, watcher.tell)
    finally:
        shutil.rmtree(root, ignore_errors=True)


@dataclass(frozen=True)
class Kept:
    """The folder of a run: a file for each finished case, so that an interrupted run goes on where it was."""

    folder: Path

    @classmethod
    def open(cls, out: Path, setup: Setup) -> Kept:
        folder, head = out / "cases", out / "setup.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not head.exists():
                head.write_text(json.dumps(asdict(setup)))
            elif (found := json.loads(head.read_text())) != asdict(setup):
                raise StorageError(f"{out} holds a run of another kind: {found}", hint="--out names another place")
        except (OSError, ValueError) as error:
            raise StorageError(f"{out} cannot be used: {error}", hint="--out names another place") from error
        return cls(folder)

    def has(self, case: Case) -> bool:
        file = self._file(case)
        return file.exists() and json.loads(file.read_text())["case"] == repr(case)

    def add(self, case: Case, done: Done) -> None:
        found = {"case": repr(case), "at": time.time(), **asdict(done)}
        partial = self._file(case).with_suffix(".partial")
        partial.write_text(json.dumps(found, indent=1))
        partial.rename(self._file(case))

    def all(self) -> tuple[Done, ...]:
        """All finished cases, in the order in which they were measured."""
        found = sorted((json.loads(file.read_text()) for file in self.folder.glob("*.json")), key=lambda f: f["at"])
        return tuple(
            Done(case["name"], case["seconds"], case["load"], tuple(Sample(**s) for s in case["samples"]))
            for case in found
        )

    def _file(self, case: Case) -> Path:
        return self.folder / f"{name(case).replace('%', '-percent')}.json"


def busy() -> float | None:
    """How many processes run or wait on average of the last minute, where the system tells."""
    try:
        return round(os.getloadavg()[0], 1)
    except (OSError, AttributeError):
        return None


def machine() -> dict[str, Any]:
    """What the figures depend on; nothing that names the machine."""
    packages = ("viewkeeper", "pyspark", "delta-spark", "deltalake", "tpchgen-cli")
    try:
        memory = round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1)
    except (ValueError, OSError, AttributeError):
        memory = None
    return {
        "cores": os.cpu_count(),
        "memory_gigabytes": memory,
        "system": platform.system(),
        "processor": platform.machine(),
        "python": platform.python_version(),
        **{package: version(package) for package in packages},
    }
