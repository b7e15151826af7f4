"""The data files of one version of a table, where they can be read as plain Parquet.

For every version of a table that Spark reads, Delta loads the table's state by a job or two, which takes longer than
reading a small table does. The log, read directly, names the files at once. They are read as they are only where Delta
itself would do no more than that: no partition columns, no mapped column names, no feature that we do not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from deltalake import DeltaTable

FEED_FILES = 1_000  # of a change, which are read whole
FEW_FILES = 64  # of a table: with more, what Delta leaves out by their statistics counts for more than its fixed cost
MASKED_ROWS = 2_000_000  # deletion vectors of larger tables are left to Delta
DELETED_ROWS = 5_000

_UNDERSTOOD = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
_WRITABLE = {"appendOnly", "changeDataFeed", "invariants", "timestampNtz"}  # what asks nothing of who adds whole files
_MAPPING = "delta.columnMapping.mode"
_PATTERN = re.compile(r"[\[\]{}*?\\%:]")  # what Spark or a URI would read as something else


@dataclass(frozen=True)
class DataFiles:
    """Every row of a table: those of some files, less the deleted rows of some of them by their positions."""

    schema: str  # as JSON
    whole: tuple[str, ...]
    masked: tuple[tuple[str, tuple[int, ...]], ...] = ()
    writable: bool = False  # whether whole files can be added by naming them in the log

    def only(self, names: tuple[str, ...]) -> DataFiles:
        """The rows of those of its files that have one of these names."""
        wanted = set(names)
        return DataFiles(
            self.schema,
            tuple(path for path in self.whole if file_name(path) in wanted),
            tuple((path, gone) for path, gone in self.masked if file_name(path) in wanted),
        )

    @property
    def first_column(self) -> tuple[str, ...]:
        """For rows of which nothing but their number is wanted."""
        return tuple(field["name"] for field in json.loads(self.schema)["fields"][:1])

    def with_text(self, name: str) -> DataFiles:
        """The same files, with a column of text that the table does not have."""
        schema = json.loads(self.schema)
        schema["fields"].append({"name": name, "type": "string", "nullable": True, "metadata": {}})
        return replace(self, schema=json.dumps(schema))


def local(path: str) -> str:
    """A path as Spark finds it, whatever file system is its default."""
    return f"file:{path}"


def file_name(path: str) -> str:
    return path.rsplit("/", 1)[-1]


def data_files(table: DeltaTable, rows: int | None) -> DataFiles | None:
    """The files of the version that was opened, or None if they have to be read by Delta."""
    paths = table.file_uris()
    if not _is_plain(table) or not _are_plain(paths):
        return None
    deleted: dict[str, tuple[int, ...]] = {}
    if "deletionVectors" in (table.protocol().reader_features or ()):
        if rows is None or rows > MASKED_ROWS:
            return None
        deleted = _deleted(table)
    if sum(map(len, deleted.values())) > DELETED_ROWS:
        return None
    masked = {path: gone for path in paths if (gone := deleted.get(file_name(path)))}
    whole = tuple(path for path in paths if path not in masked)
    writable = set(table.protocol().writer_features or ()) <= _WRITABLE
    return DataFiles(table.schema().to_json(), whole, tuple(masked.items()), writable)


def named_files(table: DeltaTable, folder: Path, names: Sequence[str]) -> DataFiles | None:
    """Whole files in the folder of a table, or None if they have to be read by Delta."""
    paths = tuple(str(folder / name) for name in names)
    plain = _is_plain(table) and _are_plain(paths, FEED_FILES)
    return DataFiles(table.schema().to_json(), paths) if plain else None


def _is_plain(table: DeltaTable) -> bool:
    """Whether the table's files hold its columns as they are."""
    metadata, features = table.metadata(), set(table.protocol().reader_features or ())
    mapped = metadata.configuration.get(_MAPPING, "none") != "none"
    return not metadata.partition_columns and not mapped and features <= _UNDERSTOOD


def _are_plain(paths: Sequence[str], most: int = FEW_FILES) -> bool:
    return len(paths) <= most and not any(_PATTERN.search(path) for path in paths)


def _deleted(table: DeltaTable) -> dict[str, tuple[int, ...]]:
    """By file name, the positions of the rows that its deletion vector takes out."""
    found = table.deletion_vectors().read_all()
    masks = zip(found.column("filepath").to_pylist(), found.column("selection_vector").to_pylist(), strict=True)
    return {file_name(path): tuple(_positions(mask)) for path, mask in masks}


def _positions(mask: list[bool]) -> Iterator[int]:
    at = -1
    for _ in range(mask.count(False)):
        at = mask.index(False, at + 1)
        yield at
