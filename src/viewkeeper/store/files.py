"""The data files of one version of a table, where they can be read as plain Parquet.

For every version of a table that Spark reads, Delta loads the table's state by a job or two, which takes longer than
reading a small table does. The log, read directly, names the files at once. They are read as they are only where Delta
itself would do no more than that: no partition columns, no mapped column names, no feature that we do not know.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
from deltalake import DeltaTable

from viewkeeper.store.vectors import Places

MOST_FILES = 1_000  # of a table or of a change
FEW_FILES = 64  # of a table: with more, what Delta leaves out by their statistics counts for more than its fixed cost
FEW_PLACES = 5_000  # in files whose rows are there in part: more are too many for the text of a query

_UNDERSTOOD = {"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"}
# What asks nothing of who adds whole files, or takes out rows by deletion vectors.
_WRITABLE = {
    "appendOnly",
    "changeDataFeed",
    "clustering",
    "deletionVectors",
    "domainMetadata",
    "invariants",
    "timestampNtz",
}
_VECTORS = "deletionVectors"
_MAPPING = "delta.columnMapping.mode"
_PATTERN = re.compile(r"[\[\]{}*?\\%:]")  # what Spark or a URI would read as something else


@dataclass(frozen=True, eq=False)
class DataFiles:
    """Rows of a table: all of some files; of others those that are not gone; of others again only some, by place.

    writable   whether whole files can be added by naming them in the log
    vectors    whether rows can be taken out by deletion vectors
    """

    schema: str  # as JSON
    whole: tuple[str, ...]
    masked: tuple[tuple[str, Places], ...] = ()
    only_at: tuple[tuple[str, Places], ...] = ()
    writable: bool = False
    vectors: bool = False

    def only(self, names: tuple[str, ...]) -> DataFiles:
        """The rows of those of its files that have one of these names."""
        wanted = set(names)
        return DataFiles(
            self.schema,
            tuple(path for path in self.whole if file_name(path) in wanted),
            tuple((path, gone) for path, gone in self.masked if file_name(path) in wanted),
        )

    @property
    def none(self) -> bool:
        return not (self.whole or self.masked or self.only_at)

    @property
    def few_places(self) -> bool:
        """Whether the places of rows can stand in the text of a query."""
        return sum(len(at) for _, at in (*self.masked, *self.only_at)) <= FEW_PLACES

    @property
    def few(self) -> bool:
        """Whether Spark reads them by their names sooner than by Delta."""
        return len(self.whole) + len(self.masked) <= FEW_FILES and self.few_places

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


def data_files(table: DeltaTable) -> DataFiles | None:
    """The files of the version that was opened, or None if they have to be read by Delta."""
    paths = table.file_uris()
    if not _is_plain(table) or not _are_plain(paths):
        return None
    gone = gone_rows(table)
    masked = {path: gone[file_name(path)] for path in paths if file_name(path) in gone}
    whole = tuple(path for path in paths if path not in masked)
    protocol, properties = table.protocol(), table.metadata().configuration
    return DataFiles(
        table.schema().to_json(),
        whole,
        tuple(masked.items()),
        writable=set(protocol.writer_features or ()) <= _WRITABLE,
        vectors=properties.get("delta.enableDeletionVectors", "false").lower() == "true",
    )


def named_files(
    table: DeltaTable, folder: Path, names: Sequence[str], only_at: Sequence[tuple[str, Places]] = ()
) -> DataFiles | None:
    """Whole files in the folder of a table and some rows of others, or None if Delta has to read them."""
    paths = tuple(str(folder / name) for name in names)
    some = tuple((str(folder / name), at) for name, at in only_at)
    plain = _is_plain(table) and _are_plain((*paths, *(path for path, _ in some)))
    return DataFiles(table.schema().to_json(), paths, only_at=some) if plain else None


def _is_plain(table: DeltaTable) -> bool:
    """Whether the table's files hold its columns as they are."""
    metadata, features = table.metadata(), set(table.protocol().reader_features or ())
    mapped = metadata.configuration.get(_MAPPING, "none") != "none"
    return not metadata.partition_columns and not mapped and features <= _UNDERSTOOD


def _are_plain(paths: Sequence[str]) -> bool:
    return len(paths) <= MOST_FILES and not any(_PATTERN.search(path) for path in paths)


def gone_rows(table: DeltaTable) -> dict[str, Places]:
    """By file name, the places of the rows that its deletion vector takes out."""
    if _VECTORS not in (table.protocol().reader_features or ()):
        return {}
    found = pa.table(table.deletion_vectors().read_all())
    masks = zip(found["filepath"].to_pylist(), found["selection_vector"], strict=True)
    return {file_name(path): np.flatnonzero(~mask.values.to_numpy(zero_copy_only=False)) for path, mask in masks}
