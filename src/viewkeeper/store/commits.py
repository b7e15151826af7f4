"""Commits of whole data files, made without Spark, which would load the table's state for each."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from deltalake import CommitProperties, DeltaTable, PostCommitHookProperties, Transaction
from deltalake.exceptions import CommitFailedError, DeltaError
from deltalake.transaction import AddAction, RemoveAction

from viewkeeper.errors import ConflictError, StorageError

CHECKPOINT_EVERY = 20  # commits; each open reads those since the last checkpoint


Mode = Literal["append", "overwrite"]


@dataclass(frozen=True)
class NewFiles:
    """Parquet files in a table's folder that no commit names yet, with how many rows each has."""

    folder: Path
    mode: Mode
    rows: Mapping[str, int]


def commit_files(files: NewFiles, base: int, note: str, transaction: tuple[str, int] | None = None) -> None:
    """Add the files, in the place of all others if the mode says so, as the one commit after version `base`."""
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
        raise ConflictError(
            f"{folder.name} got another version {base + 1} at the same time; nothing was applied"
        ) from error
    except (DeltaError, OSError, ValueError) as error:
        raise StorageError(f"{folder.name} cannot be written: {error}") from error
    if (base + 1) % CHECKPOINT_EVERY == 0:
        with suppress(DeltaError, OSError, ValueError):  # the commit is made; without a checkpoint it is read slower
            DeltaTable(folder).create_checkpoint()


def _added(path: Path, rows: int) -> AddAction:
    found = path.stat()
    return AddAction(path.name, found.st_size, {}, int(found.st_mtime * 1000), True, json.dumps({"numRecords": rows}))
