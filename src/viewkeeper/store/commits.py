"""Commits of data files, made without Spark, which would load the table's state for each."""

from __future__ import annotations

import json
import os
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from viewkeeper.errors import ConflictError, StorageError
from viewkeeper.store.files import file_name
from viewkeeper.store.log import FileLog
from viewkeeper.store.statistics import statistics
from viewkeeper.store.vectors import Places, Vector, places, write_vector

CHECKPOINT_EVERY = 20  # commits; each open reads those since the last checkpoint
# What an action on a file says besides that stays as it is when rows of the file go; tags are by whom it was clustered.
_KEPT = ("path", "size", "modificationTime", "tags", "clusteringProvider")

Mode = Literal["append", "overwrite", "replace"]


@dataclass(frozen=True)
class NewFiles:
    """Parquet files in a table's folder that no commit names yet, with how many rows each has.

    They are added to the others, or overwrite them, or replace rows of them that are `gone`, by file and place.
    """

    folder: Path
    mode: Mode
    rows: Mapping[str, int]
    gone: Mapping[str, Places] = field(default_factory=dict)


def commit_files(files: NewFiles, base: int, note: str, transaction: tuple[str, int] | None = None) -> None:
    """Name the files in the log, as the one commit after version `base`, in the words of Delta's protocol."""
    try:
        _write_commit(files.folder, base + 1, list(_actions(files, base, note, transaction)))
    except FileExistsError as error:
        raise ConflictError(
            f"{files.folder.name} got another version {base + 1} at the same time; nothing was applied"
        ) from error
    except (OSError, ValueError, KeyError, pa.ArrowException) as error:
        raise StorageError(f"{files.folder.name} cannot be written: {error}") from error
    if (base + 1) % CHECKPOINT_EVERY == 0:
        with suppress(DeltaError, OSError, ValueError):  # the commit is made; without a checkpoint it is read slower
            DeltaTable(files.folder).create_checkpoint()


def _actions(files: NewFiles, base: int, note: str, transaction: tuple[str, int] | None) -> Iterator[dict[str, Any]]:
    yield {
        "commitInfo": {
            "timestamp": _now(),
            "operation": "WRITE",
            "operationParameters": {"mode": files.mode.capitalize()},
            "readVersion": base,
            "isBlindAppend": False,
            "engineInfo": f"viewkeeper {version('viewkeeper')}",
            "userMetadata": note,
        }
    }
    if transaction is not None:
        yield {"txn": {"appId": transaction[0], "version": transaction[1], "lastUpdated": _now()}}
    match files.mode:
        case "append":
            pass
        case "overwrite":
            for action in FileLog(files.folder).adds(base).values():
                yield _removed(action)
        case "replace":
            there = {unquote(path): action for path, action in FileLog(files.folder).adds(base).items()}
            for path, gone in files.gone.items():
                yield from _masked(files.folder, there[file_name(path)], gone)
    for name in files.rows:
        yield _added(files.folder / name)


def _added(path: Path) -> dict[str, Any]:
    found = path.stat()
    return {
        "add": {
            "path": path.name,
            "partitionValues": {},
            "size": found.st_size,
            "modificationTime": int(found.st_mtime * 1000),
            "dataChange": True,
            "stats": json.dumps(statistics(path)),
        }
    }


def _removed(action: Mapping[str, Any]) -> dict[str, Any]:
    vector = Vector.of(action)
    return {
        "remove": {
            "path": action["path"],
            "deletionTimestamp": _now(),
            "dataChange": True,
            "extendedFileMetadata": True,
            "partitionValues": {},
            "size": action["size"],
            **({} if vector is None else {"deletionVector": vector.action}),
        }
    }


def _masked(folder: Path, action: Mapping[str, Any], gone: Places) -> Iterator[dict[str, Any]]:
    """The file as it was goes; it comes with more of its rows gone, if any are left."""
    yield _removed(action)
    all_gone = np.union1d(places(folder, Vector.of(action)), gone)
    stats = json.loads(action["stats"])
    if len(all_gone) < stats["numRecords"]:
        kept = {name: action[name] for name in _KEPT if action.get(name) is not None}
        yield {
            "add": {
                **kept,
                "partitionValues": {},
                "dataChange": True,
                # The least and greatest values may be of rows that are gone.
                "stats": json.dumps({**stats, "tightBounds": False}),
                "deletionVector": write_vector(folder, all_gone).action,
            }
        }


def _write_commit(folder: Path, number: int, actions: list[dict[str, Any]]) -> None:
    """All of a commit or nothing, and only if there is none of this number."""
    log = folder / "_delta_log"
    partial = log / f".{uuid.uuid4().hex}.tmp"
    try:
        with partial.open("w", encoding="utf-8") as file:
            file.writelines(json.dumps(action) + "\n" for action in actions)
            file.flush()
            os.fsync(file.fileno())
        os.link(partial, log / f"{number:020}.json")
    finally:
        partial.unlink(missing_ok=True)


def _now() -> int:
    return int(time.time() * 1000)
