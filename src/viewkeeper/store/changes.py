"""How the changes of a source between two versions can be read, decided from its log alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from viewkeeper.store.log import Commit, TableLog


@dataclass(frozen=True)
class Unchanged:
    """No commit in between changed any data."""

    rows: int = 0


@dataclass(frozen=True)
class Feed:
    """The change data feed has every change of the range."""

    first: int
    last: int
    appended: bool
    rows: int


@dataclass(frozen=True)
class Files:
    """No feed: both states of the touched files tell, by the files' names."""

    added: tuple[str, ...]
    removed: tuple[str, ...]
    appended: bool
    rows: int


@dataclass(frozen=True)
class Unreadable:
    """The changes cannot be had."""

    why: str
    rows: int = 0


SourceChange = Unchanged | Feed | Files | Unreadable


def changes_between(log: TableLog, covered_id: str, old: int, new: int, columns: frozenset[str]) -> SourceChange:
    """How to read what happened to a table after version `old`, up to and with `new`."""
    now = log.snapshot(new)
    if now.metadata.id != covered_id:
        return Unreadable("the table was replaced by another one")
    if new < old:
        return Unreadable(f"the table is back at version {new}, but version {old} was covered")
    commits: list[Commit] = []
    for version in range(old + 1, new + 1):
        commit = log.commit(version)
        if commit is None:
            return Unreadable(f"version {version} is no longer in the log")
        commits.append(commit)
    if not any(c.changes_data for c in commits) and not any(c.metadata for c in commits):
        return Unchanged()
    if any(c.metadata for c in commits):
        why = _schema_change(log, old, commits, columns)
        if why is not None:
            return Unreadable(why)
    if not any(c.changes_data for c in commits):
        return Unchanged()
    rows = sum(c.rows_changed for c in commits if c.changes_data)
    appended = all(c.only_adds for c in commits)
    if now.metadata.has_feed and _feed_all_along(log, old, commits):
        first = next(c.version for c in commits if c.changes_data)
        return Feed(first, new, appended, rows)
    return _files(log, old, commits, appended=appended, rows=rows)


def _schema_change(log: TableLog, old: int, commits: list[Commit], columns: frozenset[str]) -> str | None:
    """Why old and new rows cannot be compared, if columns went or changed in between."""
    seen: list[tuple[int, Mapping[str, Any]]] = [(old, log.snapshot(old).metadata.columns)]
    seen += [(c.version, c.metadata.columns) for c in commits if c.metadata]
    for (_, before), (version, after) in pairwise(seen):
        for name, type_ in before.items():
            if name not in after:
                return f"column {name} was dropped or renamed in version {version}"
            if after[name] != type_ and name in columns:
                return f"column {name} changed its type in version {version}"
    return None


def _feed_all_along(log: TableLog, old: int, commits: list[Commit]) -> bool:
    described = [c.metadata for c in commits if c.metadata]
    if not described:
        return True
    return log.snapshot(old).metadata.has_feed and all(m.has_feed for m in described)


def _files(log: TableLog, old: int, commits: list[Commit], *, appended: bool, rows: int) -> SourceChange:
    """All files that any commit of the range touched, compactions included: those may hold changed rows too."""
    if log.commit(old) is None and not appended and not _version_readable(log, old):
        return Unreadable(f"version {old} can no longer be read, and the change data feed is off")
    added = tuple(sorted({_file_name(a) for c in commits for a in c.added}))
    removed = tuple(sorted({_file_name(a) for c in commits for a in c.removed}))
    return Files(added, () if appended else removed, appended, rows)


def _version_readable(log: TableLog, version: int) -> bool:
    try:
        log.snapshot(version)
    except Exception:
        return False
    return True


def _file_name(action: Mapping[str, Any]) -> str:
    return unquote(str(action["path"])).rsplit("/", 1)[-1]
