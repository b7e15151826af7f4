"""A Delta table's log, read without a Spark job: what each commit did, and what the table is at a version."""

from __future__ import annotations

import json
import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import unquote

import numpy as np
import pyarrow.parquet as pq
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from viewkeeper.errors import SourceError, StorageError
from viewkeeper.store.files import DataFiles, data_files, gone_rows, named_files
from viewkeeper.store.vectors import Places, Vector, places

FEED = "delta.enableChangeDataFeed"
_DIGITS = 20
_COMMIT_OR_CHECKPOINT = re.compile(r"\d{20}(\.json|\.checkpoint.*\.parquet)")
_CHECKPOINT = re.compile(r"(\d{20})\.checkpoint\.parquet")
_Stamp = tuple[int, int, int] | None


@dataclass(frozen=True)
class Metadata:
    """What a metaData action says: the table's identity, its columns and its properties."""

    id: str
    columns: Mapping[str, tuple[Any, str]]  # type, and the name in the files, which a renamed or new column changes
    properties: Mapping[str, str]

    @property
    def has_feed(self) -> bool:
        return self.properties.get(FEED, "false").lower() == "true"

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> Metadata:
        fields = json.loads(action["schemaString"])["fields"]
        return cls(action["id"], described(fields), action.get("configuration") or {})


def described(fields: list[Mapping[str, Any]]) -> dict[str, tuple[Any, str]]:
    """The columns of a table's schema, by lower-case name."""
    return {
        f["name"].lower(): (f["type"], (f.get("metadata") or {}).get("delta.columnMapping.physicalName", f["name"]))
        for f in fields
    }


@dataclass(frozen=True)
class Masked:
    """A file that stayed where it is, with the deletion vectors that it had and has."""

    path: str
    before: Vector | None
    after: Vector | None

    @property
    def rows(self) -> int:
        """About how many rows went, or came back."""
        now, then = (vector.cardinality if vector else 0 for vector in (self.after, self.before))
        return abs(now - then)


@dataclass(frozen=True)
class Commit:
    """One version of a table: what was done, by its actions."""

    version: int
    info: Mapping[str, Any]
    metadata: Metadata | None
    added: tuple[Mapping[str, Any], ...]
    removed: tuple[Mapping[str, Any], ...]
    feed: tuple[Mapping[str, Any], ...]  # files of the change data feed
    transactions: Mapping[str, int]

    @property
    def operation(self) -> str:
        return str(self.info.get("operation", "?"))

    @property
    def timestamp(self) -> int:
        """Milliseconds since 1970."""
        return int(self.info.get("timestamp", 0))

    @cached_property
    def metrics(self) -> Mapping[str, int]:
        return {k: int(v) for k, v in (self.info.get("operationMetrics") or {}).items() if str(v).isdigit()}

    @property
    def user_metadata(self) -> str | None:
        value = self.info.get("userMetadata")
        return str(value) if value is not None else None

    @property
    def changes_data(self) -> bool:
        return any(a.get("dataChange", True) for a in (*self.added, *self.removed))

    @property
    def only_adds(self) -> bool:
        return not self.feed and not any(a.get("dataChange", True) for a in self.removed)

    @property
    def masked(self) -> tuple[Masked, ...]:
        """The files that stayed, of which other rows are gone now."""
        were = {a["path"]: Vector.of(a) for a in self.removed if a.get("dataChange", True)}
        return tuple(
            Masked(a["path"], were[a["path"]], Vector.of(a))
            for a in self.added
            if a.get("dataChange", True) and a["path"] in were
        )

    @property
    def came(self) -> tuple[Mapping[str, Any], ...]:
        """The files that were not there before, of changed data."""
        return self._without(self.added)

    @property
    def went(self) -> tuple[Mapping[str, Any], ...]:
        """The files that are no longer there, of changed data."""
        return self._without(self.removed)

    def _without(self, actions: tuple[Mapping[str, Any], ...]) -> tuple[Mapping[str, Any], ...]:
        stayed = {file.path for file in self.masked}
        return tuple(a for a in actions if a.get("dataChange", True) and a["path"] not in stayed)

    @property
    def rows_added(self) -> int | None:
        counts = [_records(a) for a in self.came]
        return None if any(c is None for c in counts) else sum(c or 0 for c in counts)

    @property
    def bytes_added(self) -> int:
        return sum(int(a.get("size", 0)) for a in self.came)

    @property
    def rows_changed(self) -> int:
        """How many change rows this commit gives, as far as its metrics and statistics tell."""
        m = self.metrics
        if "numTargetRowsUpdated" in m:
            return m.get("numTargetRowsInserted", 0) + m.get("numTargetRowsDeleted", 0) + 2 * m["numTargetRowsUpdated"]
        if self.operation == "UPDATE" and "numUpdatedRows" in m:
            return 2 * m["numUpdatedRows"]
        if self.operation == "DELETE" and "numDeletedRows" in m:
            return m["numDeletedRows"]
        gone = sum(_records(a) or 0 for a in self.went) + sum(file.rows for file in self.masked)
        return (self.rows_added or m.get("numOutputRows", 0)) + gone


def _records(action: Mapping[str, Any]) -> int | None:
    stats = action.get("stats")
    if not stats:
        return None
    found = json.loads(stats).get("numRecords")
    dead = (action.get("deletionVector") or {}).get("cardinality", 0)
    return None if found is None else int(found) - int(dead)


@dataclass(frozen=True)
class Snapshot:
    """A table at one version; `rows` is None where the statistics do not tell.

    gone   rows that are in its files, but were deleted
    """

    version: int
    metadata: Metadata
    rows: int | None
    size: int
    files: int
    gone: int = 0


class TableLog(Protocol):
    """One table's history."""

    def version(self) -> int: ...

    def snapshot(self, version: int | None = None) -> Snapshot: ...

    def files(self, version: int) -> DataFiles | None:
        """The data files of this version; None where Delta has to read them."""

    def named(self, version: int, names: Sequence[str]) -> DataFiles | None:
        """Files in the table's folder, with the columns it has at this version; None where Delta has to read them."""

    def masked(self, version: int, files: Sequence[Masked], *, came: bool) -> DataFiles | None:
        """The rows of files that went by deletion vectors, or that came back."""

    def commit(self, version: int) -> Commit | None:
        """The commit of this version; None where the log no longer has it."""

    def last_transaction(self, application: str) -> int | None:
        """The highest transaction version this application has committed, which outlives the log's cleaning."""


def commits_back(log: TableLog, limit: int = 1_000) -> Iterator[Commit]:
    """Commits from the newest on, as far back as the log goes."""
    newest = log.version()
    for version in range(newest, max(-1, newest - limit), -1):
        commit = log.commit(version)
        if commit is None:
            return
        yield commit


def parse_commit(version: int, text: str) -> Commit:
    """A commit from the lines of its log file."""
    actions = [json.loads(line) for line in text.splitlines() if line.strip()]
    found = [a["metaData"] for a in actions if "metaData" in a]
    return Commit(
        version=version,
        info=next((a["commitInfo"] for a in actions if "commitInfo" in a), {}),
        metadata=Metadata.of(found[-1]) if found else None,
        added=tuple(a["add"] for a in actions if "add" in a),
        removed=tuple(a["remove"] for a in actions if "remove" in a),
        feed=tuple(a["cdc"] for a in actions if "cdc" in a),
        transactions={a["txn"]["appId"]: a["txn"]["version"] for a in actions if "txn" in a},
    )


class FileLog:
    """The log of a table in the local file system, read directly."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._commits: dict[int, tuple[_Stamp, Commit]] = {}
        self._snapshots: dict[int, tuple[_Stamp, Snapshot]] = {}
        self._files: dict[int, tuple[_Stamp, DataFiles | None]] = {}

    def version(self) -> int:
        try:
            names = os.listdir(self.path / "_delta_log")
        except FileNotFoundError as error:
            raise SourceError(f"there is no Delta table at {self.path}") from error
        except OSError as error:
            raise self._unreadable(error) from error
        versions = [int(n[:_DIGITS]) for n in names if _COMMIT_OR_CHECKPOINT.fullmatch(n)]
        if not versions:
            raise SourceError(f"there is no Delta table at {self.path}")
        return max(versions)

    def snapshot(self, version: int | None = None) -> Snapshot:
        number = self.version() if version is None else version
        stamp = self._stamp(number)
        known = self._snapshots.get(number)
        if known is None or known[0] != stamp or stamp is None:
            known = self._snapshots[number] = (stamp, self._load(number))
        return known[1]

    def files(self, version: int) -> DataFiles | None:
        stamp = self._stamp(version)
        known = self._files.get(version)
        if known is None or known[0] != stamp or stamp is None:
            known = self._files[version] = (stamp, data_files(self._open(version)))
        return known[1]

    def named(self, version: int, names: Sequence[str]) -> DataFiles | None:
        return named_files(self._open(version), self.path, names)

    def masked(self, version: int, files: Sequence[Masked], *, came: bool) -> DataFiles | None:
        some: dict[str, list[Places]] = {}
        for file in files:
            then, now = (self._places(vector) for vector in (file.before, file.after))
            at = np.setdiff1d(then, now) if came else np.setdiff1d(now, then)
            some.setdefault(unquote(file.path), []).append(at)
        each = [(path, np.sort(np.concatenate(at))) for path, at in some.items()]
        return named_files(self._open(version), self.path, (), [(path, at) for path, at in each if len(at)])

    def _places(self, vector: Vector | None) -> Places:
        try:
            return places(self.path, vector)
        except (OSError, ValueError, struct.error) as error:
            raise self._unreadable(error) from error

    def adds(self, version: int) -> dict[str, dict[str, Any]]:
        """The actions that name the files of a version, by their paths."""
        checkpoint = max((n for n in self._checkpoints() if n <= version), default=None)
        found: dict[str, dict[str, Any]] = {}
        if checkpoint is not None:
            for row in pq.read_table(self._checkpoint(checkpoint), columns=["add"])["add"].to_pylist():
                if row is not None:
                    found[row["path"]] = {**row, "partitionValues": dict(row["partitionValues"])}
        for number in range(0 if checkpoint is None else checkpoint + 1, version + 1):
            commit = self.commit(number)
            if commit is None:
                raise self._unreadable(FileNotFoundError(f"version {number} is no longer in the log"))
            for action in commit.removed:
                found.pop(action["path"], None)
            found |= {action["path"]: dict(action) for action in commit.added}
        return found

    def commit(self, version: int) -> Commit | None:
        stamp = self._stamp(version)
        if stamp is None:
            return None
        known = self._commits.get(version)
        if known is None or known[0] != stamp:
            try:
                known = (stamp, parse_commit(version, self._file(version).read_text("utf-8")))
            except FileNotFoundError:
                return None
            except (OSError, ValueError, KeyError) as error:
                raise self._unreadable(error) from error
            self._commits[version] = known
        return known[1]

    def last_transaction(self, application: str) -> int | None:
        return self._open(None).transaction_version(application)

    def _checkpoints(self) -> list[int]:
        """The versions of which all files are told at one place; of other kinds of checkpoints nothing is known."""
        found = map(_CHECKPOINT.fullmatch, os.listdir(self.path / "_delta_log"))
        return [int(match[1]) for match in found if match is not None]

    def _checkpoint(self, version: int) -> Path:
        return self.path / "_delta_log" / f"{version:020}.checkpoint.parquet"

    def _file(self, version: int) -> Path:
        return self.path / "_delta_log" / f"{version:020}.json"

    def _stamp(self, version: int) -> _Stamp:
        """What tells a log file from another one of the same name, after a table was dropped and made again."""
        try:
            found = self._file(version).stat()
        except OSError:
            return None
        return (found.st_ino, found.st_mtime_ns, found.st_size)

    def _load(self, version: int) -> Snapshot:
        table = self._open(version)
        metadata = table.metadata()
        fields = json.loads(table.schema().to_json())["fields"]
        files = table.get_add_actions(flatten=True)
        gone = sum(map(len, gone_rows(table).values()))
        rows = files.column("num_records").to_pylist() if "num_records" in files.schema.names else [None]
        return Snapshot(
            table.version(),
            Metadata(str(metadata.id), described(fields), dict(metadata.configuration)),
            None if any(r is None for r in rows) else sum(rows) - gone,
            sum(files.column("size_bytes").to_pylist()),
            files.num_rows,
            gone,
        )

    def _open(self, version: int | None) -> DeltaTable:
        try:
            return DeltaTable(self.path, version=version)
        except TableNotFoundError as error:
            raise SourceError(f"there is no Delta table at {self.path}") from error
        except (DeltaError, OSError, ValueError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> StorageError:
        return StorageError(
            f"the Delta table {self.path.name} cannot be read: {error}",
            hint="restore its folder, or drop the table and the views on it",
        )
