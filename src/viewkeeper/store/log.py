"""A Delta table's log, read without a Spark job: what each commit did, and what the table is at a version."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from viewkeeper.errors import SourceError, StorageError
from viewkeeper.store.files import DataFiles, data_files, named_files

FEED = "delta.enableChangeDataFeed"
_DIGITS = 20
_COMMIT_OR_CHECKPOINT = re.compile(r"\d{20}(\.json|\.checkpoint.*\.parquet)")
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
    def rows_added(self) -> int | None:
        counts = [_records(a) for a in self.added if a.get("dataChange", True)]
        return None if any(c is None for c in counts) else sum(c or 0 for c in counts)

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
        gone = sum(_records(a) or 0 for a in self.removed if a.get("dataChange", True))
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
    """A table at one version; `rows` is None where the statistics do not tell."""

    version: int
    metadata: Metadata
    rows: int | None
    size: int
    files: int


class TableLog(Protocol):
    """One table's history."""

    def version(self) -> int: ...

    def snapshot(self, version: int | None = None) -> Snapshot: ...

    def files(self, version: int) -> DataFiles | None:
        """The data files of this version; None where Delta has to read them."""

    def named(self, version: int, names: Sequence[str]) -> DataFiles | None:
        """Files in the table's folder, with the columns it has at this version; None where Delta has to read them."""

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
        rows, stamp = self.snapshot(version).rows, self._stamp(version)
        known = self._files.get(version)
        if known is None or known[0] != stamp or stamp is None:
            known = self._files[version] = (stamp, data_files(self._open(version), rows))
        return known[1]

    def named(self, version: int, names: Sequence[str]) -> DataFiles | None:
        return named_files(self._open(version), self.path, names)

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
        rows = files.column("num_records").to_pylist() if "num_records" in files.schema.names else [None]
        return Snapshot(
            table.version(),
            Metadata(str(metadata.id), described(fields), dict(metadata.configuration)),
            None if any(r is None for r in rows) else sum(rows),
            sum(files.column("size_bytes").to_pylist()),
            files.num_rows,
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
