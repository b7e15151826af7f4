"""How the changes of a source between two versions can be read, decided from its log alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from urllib.parse import unquote

from viewkeeper.errors import ViewkeeperError
from viewkeeper.store.files import file_name
from viewkeeper.store.log import Commit, Masked, Metadata, TableLog
from viewkeeper.store.vectors import Vector

CHANGE_TYPE = "_change_type"  # the column of a change data feed that says what happened to a row
CAME = ("insert", "update_postimage")  # of its values, those of rows that are there now


@dataclass(frozen=True)
class Unchanged:
    """No commit in between changed any data."""

    rows: int = 0


@dataclass(frozen=True)
class FeedFiles:
    """What a feed is made of, by paths in the table's folder: files of its own, data files that came or went whole,
    and those that stayed, of which rows went."""

    own: tuple[str, ...] = ()
    came: tuple[str, ...] = ()
    went: tuple[str, ...] = ()
    masked: tuple[Masked, ...] = ()

    @property
    def count(self) -> int:
        return len(self.own) + len(self.came) + len(self.went) + len(self.masked)


@dataclass(frozen=True)
class Feed:
    """The change data feed has every change of the range; its files where they can be read as they are."""

    first: int
    last: int
    appended: bool
    rows: int
    files: FeedFiles | None = None


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
    described = any(c.metadata for c in commits)
    if described and not _version_readable(log, old):
        return Unreadable(f"version {old} can no longer be read")
    schemas = [log.snapshot(old).metadata, *(c.metadata for c in commits if c.metadata)] if described else []
    why = _column_change(schemas, columns)
    if why is not None:
        return Unreadable(why)
    if not any(c.changes_data for c in commits):
        return Unchanged()
    rows = sum(c.rows_changed for c in commits if c.changes_data)
    appended = all(c.only_adds for c in commits)
    if now.metadata.has_feed and all(m.has_feed for m in schemas) and _only_grew(schemas):
        first = next(c.version for c in commits if c.changes_data)
        return Feed(first, new, appended, rows, None if schemas else _feed_files(commits))
    # The files that a compaction writes hold old rows too, which those it removes tell apart.
    return _files(log, old, commits, appended=appended and not any(c.removed for c in commits), rows=rows)


def _column_change(schemas: list[Metadata], columns: frozenset[str]) -> str | None:
    """Why old and new rows cannot be compared, if a column that is read went or changed, even if one came back.

    One that only had another name for a while is the same in all files. Where it is not known which columns are read,
    any may be.
    """
    if not columns and not _only_grew(schemas):
        return "its columns were changed"
    first, last = (schemas[0].columns, schemas[-1].columns) if schemas else ({}, {})
    for name in sorted(columns & set(first)):
        lost = next((s.columns for s in schemas if first[name] not in s.columns.values()), None)
        if lost is not None or last.get(name) != first[name]:
            gone = name not in (last if lost is None else lost)
            return f"column {name} was {'dropped or renamed' if gone else 'changed'}"
    return None


def _only_grew(schemas: list[Metadata]) -> bool:
    """Whether columns were only added, which is all that the feed can read across."""
    return all(
        name in after.columns and after.columns[name] == type_
        for before, after in pairwise(schemas)
        for name, type_ in before.columns.items()
    )


def _files(log: TableLog, old: int, commits: list[Commit], *, appended: bool, rows: int) -> SourceChange:
    """All files that any commit of the range touched, compactions included: those may hold changed rows too."""
    if not appended and not _version_readable(log, old):
        return Unreadable(f"version {old} can no longer be read, and its change data feed does not cover it")
    added, removed = _touched(commits)
    return Files(added, () if appended else removed, appended, rows)


def _feed_files(commits: list[Commit]) -> FeedFiles | None:
    """The files of a feed; None if it tells of a file's rows in another way, or of the same file more than once.

    Where a commit wrote a file of the feed, that tells all it did.
    """
    own: list[str] = []
    masked: list[Masked] = []
    moved: Counter[str] = Counter()
    for commit in commits:
        if commit.feed:
            own += map(_path, commit.feed)
            continue
        if any(a.get("partitionValues") for a in (*commit.added, *commit.removed)):
            return None
        masked += commit.masked
        for action, weight in (*((a, 1) for a in commit.came), *((a, -1) for a in commit.went)):
            path = _path(action)
            moved[path] += weight
            if vector := Vector.of(action):  # all of its rows, less those
                gone = Masked(action["path"], None, vector)
                masked.append(gone if weight > 0 else replace(gone, before=vector, after=None))
    if any(abs(times) > 1 for times in moved.values()):
        return None
    came, went = (tuple(sorted(p for p, times in moved.items() if times == sign)) for sign in (1, -1))
    return FeedFiles(tuple(own), came, went, tuple(masked))


def _touched(commits: list[Commit]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of the files that came and of those that went."""
    added = tuple(sorted({_file_name(a) for c in commits for a in c.added}))
    removed = tuple(sorted({_file_name(a) for c in commits for a in c.removed}))
    return added, removed


def _version_readable(log: TableLog, version: int) -> bool:
    try:
        log.snapshot(version)
    except ViewkeeperError:
        return False
    return True


def _file_name(action: Mapping[str, Any]) -> str:
    return file_name(_path(action))


def _path(action: Mapping[str, Any]) -> str:
    return unquote(str(action["path"]))
