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
from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from viewkeeper.errors import ConflictError, StorageError
from viewkeeper.store.files import file_name
from viewkeeper.store.log import FileLog
from viewkeeper.store.vectors import Places, Vector, places, write_vector

CHECKPOINT_EVERY = 20  # commits; each open reads those since the last checkpoint


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
    """Name the files in the log, as the one commit after version `base`."""
    if files.mode == "replace":
        _replace(files, base, note, transaction)
    else:
        _add(files, base, note, transaction)
    if (base + 1) % CHECKPOINT_EVERY == 0:
        with suppress(DeltaError, OSError, ValueError):  # the commit is made; without a checkpoint it is read slower
            DeltaTable(files.folder).create_checkpoint()


def _add(files: NewFiles, base: int, note: str, transaction: tuple[str, int] | None) -> None:
    folder = files.folder
    added: list[AddAction | RemoveAction] = [_added(folder / name, rows) for name, rows in files.rows.items()]
    properties = CommitProperties(
        custom_metadata={"userMetadata": note},
        max_commit_retries=0,
        app_transactions=[Transaction(*transaction)] if transaction is not None else None,
    )
    hooks = PostCommitHookProperties(create_checkpoint=False, cleanup_expired_logs=False)
    try:
        table = DeltaTable(folder, version=base)
        table.create_write_transaction(
            added, files.mode, table.schema(), commit_properties=properties, post_commithook_properties=hooks
        )
    except CommitFailedError as error:
        raise _conflict(folder, base) from error
    except (DeltaError, OSError, ValueError) as error:
        raise StorageError(f"{folder.name} cannot be written: {error}") from error


def _added(path: Path, rows: int) -> AddAction:
    found = path.stat()
    return AddAction(path.name, found.st_size, {}, int(found.st_mtime * 1000), True, json.dumps({"numRecords": rows}))


def _replace(files: NewFiles, base: int, note: str, transaction: tuple[str, int] | None) -> None:
    """delta-rs writes no deletion vectors: these actions are written as the protocol has them."""
    folder, log = files.folder, FileLog(files.folder)
    try:
        info = {
            "timestamp": _now(),
            "operation": "WRITE",
            "operationParameters": {"mode": "Replace"},
            "readVersion": base,
            "isBlindAppend": False,
            "engineInfo": f"viewkeeper {version('viewkeeper')}",
            "userMetadata": note,
        }
        actions: list[dict[str, Any]] = [{"commitInfo": info}]
        if transaction is not None:
            actions.append({"txn": {"appId": transaction[0], "version": transaction[1], "lastUpdated": _now()}})
        there = {unquote(path): action for path, action in log.adds(base).items()}
        for path, gone in files.gone.items():
            actions += _masked(folder, there[file_name(path)], gone)
        for name, rows in files.rows.items():
            found = (folder / name).stat()
            actions.append({"add": _action(name, found.st_size, int(found.st_mtime * 1000), {"numRecords": rows})})
        _write_commit(folder, base + 1, actions)
    except FileExistsError as error:
        raise _conflict(folder, base) from error
    except (OSError, ValueError, KeyError) as error:
        raise StorageError(f"{folder.name} cannot be written: {error}") from error


def _masked(folder: Path, action: Mapping[str, Any], gone: Places) -> Iterator[dict[str, Any]]:
    """The file as it was goes; it comes with more of its rows gone, if any are left."""
    before = Vector.of(action)
    removed = {
        "path": action["path"],
        "deletionTimestamp": _now(),
        "dataChange": True,
        "extendedFileMetadata": True,
        "partitionValues": {},
        "size": action["size"],
    }
    yield {"remove": removed if before is None else {**removed, "deletionVector": before.action}}
    all_gone = np.union1d(places(folder, before), gone)
    stats = json.loads(action["stats"])
    if len(all_gone) < stats["numRecords"]:
        # The least and greatest values may be of rows that are gone.
        masked = _action(action["path"], action["size"], action["modificationTime"], {**stats, "tightBounds": False})
        yield {"add": {**masked, "deletionVector": write_vector(folder, all_gone).action}}


def _action(path: str, size: int, written: int, stats: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "path": path,
        "partitionValues": {},
        "size": size,
        "modificationTime": written,
        "dataChange": True,
        "stats": json.dumps(stats),
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


def _conflict(folder: Path, base: int) -> ConflictError:
    return ConflictError(f"{folder.name} got another version {base + 1} at the same time; nothing was applied")


def _now() -> int:
    return int(time.time() * 1000)
