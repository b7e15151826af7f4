"""Whether everything is there that Viewkeeper needs; starts no Spark."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from typing import Literal as OneOf

from viewkeeper.cli.options import Run
from viewkeeper.errors import ViewkeeperError
from viewkeeper.reports import Report
from viewkeeper.runtime.spark import JAVA_AT_LEAST, cached_jars, driver_gigabytes, jar_folder, java_version
from viewkeeper.store.tables import FolderTables

_LIBRARIES = ("pyspark", "delta-spark", "deltalake", "sqlglot")
_LITTLE_SPACE = 2 * 2**30

State = OneOf["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One thing looked at."""

    what: str
    state: State
    found: str
    to_do: str = ""


@dataclass(frozen=True)
class DoctorReport(Report):
    """All checks, in order."""

    checks: tuple[Check, ...] = ()
    title = "Doctor"
    columns = ("check", "state", "found", "what to do")

    @property
    def well(self) -> bool:
        return all(c.state != "fail" for c in self.checks)

    def rows(self) -> list[list[object]]:
        return [[c.what, c.state, c.found, c.to_do] for c in self.checks]

    def to_data(self) -> dict[str, Any]:
        return {"ok": self.well, "checks": [asdict(c) for c in self.checks]}


def examine(run: Run) -> DoctorReport:
    """Look at the machine, then at the warehouse."""
    looks: tuple[Callable[[], Iterator[Check]], ...] = (
        _python,
        _java,
        _libraries,
        _jars,
        _memory,
        lambda: _project(run),
        lambda: _folder(run),
        lambda: _views(run),
    )
    return DoctorReport(tuple(check for look in looks for check in _guarded(look)))


def _guarded(look: Callable[[], Iterator[Check]]) -> Iterator[Check]:
    try:
        yield from look()
    except ViewkeeperError as error:
        yield Check("warehouse", "fail", error.message, error.hint or "")


def _python() -> Iterator[Check]:
    found = ".".join(map(str, sys.version_info[:3]))
    fits = sys.version_info >= (3, 11)
    yield Check("Python", "ok" if fits else "fail", found, "" if fits else "install Python 3.11 or newer")


def _java() -> Iterator[Check]:
    found = java_version()
    hint = f"install Java {JAVA_AT_LEAST} or newer (Debian, Ubuntu: sudo apt-get install openjdk-17-jre-headless)"
    if found is None:
        yield Check("Java", "fail", "none, by JAVA_HOME or on the PATH", hint)
    else:
        fits = found >= JAVA_AT_LEAST
        yield Check("Java", "ok" if fits else "fail", str(found), "" if fits else hint)


def _libraries() -> Iterator[Check]:
    wanted = {re.split(r"[^\w-]", r)[0]: r.split(";")[0] for r in requires("viewkeeper") or [] if "extra" not in r}
    for name in _LIBRARIES:
        install = f"pip install '{wanted.get(name, name)}'"
        try:
            found = version(name)
        except PackageNotFoundError:
            yield Check(name, "fail", "not installed", install)
            continue
        fits = meets(found, wanted.get(name, name).removeprefix(name))
        yield Check(name, "ok" if fits else "fail", found, "" if fits else install)
    if find_spec("sqlglotc") is not None:
        yield Check("sqlglot", "fail", "its compiled variant is installed", "pip uninstall sqlglotc")


def meets(found: str, wanted: str) -> bool:
    """Whether a version meets a requirement such as `==4.2.*` or `>=1.6,<2`."""
    for clause in filter(None, wanted.split(",")):
        match = re.fullmatch(r"\s*(==|>=|<)\s*([\d.]+?)(\.\*)?\s*", clause)
        if match is None:
            continue
        operator, number, star = match.groups()
        have, want = _numbers(found), _numbers(number)
        if operator == "==" and (have[: len(want)] if star else have) != want:
            return False
        if (operator == ">=" and have < want) or (operator == "<" and have >= want):
            return False
    return True


def _numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text)]


def _jars() -> Iterator[Check]:
    jars = cached_jars()
    if jars:
        yield Check("Delta's jars", "ok", f"{len(jars)} in {jar_folder()}")
    else:
        yield Check("Delta's jars", "warn", "none yet", "the first start fetches them from Maven Central, once")


def _memory() -> Iterator[Check]:
    size = driver_gigabytes()
    advice = "hundreds of tables need more; a quarter of the machine's memory is taken, up to 8 GB"
    yield Check("Spark's memory", "ok" if size > 1 else "warn", f"{size} GB", "" if size > 1 else advice)


def _project(run: Run) -> Iterator[Check]:
    if run.project is not None:
        files = len(run.project.view_files())
        yield Check("project", "ok", f"{run.project.root}: {files} SQL file{'s' * (files != 1)} with views")


def _folder(run: Run) -> Iterator[Check]:
    there = run.folder
    if not there.exists():
        above = next(p for p in there.parents if p.exists())
        writable = os.access(above, os.W_OK)
        found = f"none at {there}" + ("" if writable else f", and {above} cannot be written")
        yield Check("warehouse", "warn" if writable else "fail", found, "viewkeeper init makes one")
        yield _space(above)
        return
    if not there.is_dir():
        yield Check("warehouse", "fail", f"{there} is a file, not a folder", "name a folder: --warehouse")
        return
    writable = os.access(there, os.W_OK | os.X_OK)
    advice = "" if writable else "views can be looked at, but not refreshed: change the folder's permissions"
    found = str(there) + ("" if writable else " cannot be written")
    yield Check("warehouse", "ok" if writable else "fail", found, advice)
    yield _space(there)


def _space(folder: Path) -> Check:
    free = shutil.disk_usage(folder).free
    little = free < _LITTLE_SPACE
    return Check("disk", "warn" if little else "ok", f"{free / 2**30:.1f} GB free", "make room" if little else "")


def _views(run: Run) -> Iterator[Check]:
    if not run.folder.is_dir():
        return
    wh = run.warehouse()
    views = wh.status()
    assert isinstance(wh.tables, FolderTables)
    tables = len(wh.tables.found()) - len(views)
    yield Check("tables", "ok", f"{tables} Delta table{'s' * (tables != 1)}, {len(views)} views")
    for view in views:
        broken = view.state.startswith("broken")
        behind = sum(view.behind.values())
        found = view.state + (f", {behind} commit{'s' * (behind != 1)} behind" if behind else "")
        advice = f"create it again, or viewkeeper drop {view.view}" if broken else ""
        if view.state == "stale":
            advice = "viewkeeper refresh"
        yield Check(f"view {view.view}", "fail" if broken else "ok", found, advice)
