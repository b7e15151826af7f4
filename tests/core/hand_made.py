"""Delta tables, and warehouses with tables and views in them, as log files written by hand: no Spark."""

from __future__ import annotations

import itertools
import json
import time
from dataclasses import dataclass
from pathlib import Path

from viewkeeper.runtime.forms import public_relation
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable, KeptView, Source
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.statements import CreateView, parse_statement
from viewkeeper.sql.typing import with_types
from viewkeeper.store.log import FEED, FileLog
from viewkeeper.store.names import backing_name
from viewkeeper.store.registry import Registry
from viewkeeper.store.tables import FolderTables
from viewkeeper.store.views import VIEW_PROPERTY, Covered, RefreshNote, SourceUse, View

COLUMNS = ("id", "day", "price")
_PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


class HandMade:
    """A Delta table whose commits are written by hand; its clock is its version."""

    def __init__(self, folder: Path, feed: bool = True, columns: tuple[str, ...] = ("k", "x")) -> None:
        self.folder = folder
        self.log = FileLog(folder)
        self.version = -1
        (folder / "_delta_log").mkdir(parents=True)
        self.commit(_PROTOCOL, self.metadata(feed, columns), operation="CREATE TABLE")

    def metadata(self, feed: bool, columns: tuple[str, ...], table: str = "table-1", **properties: str) -> dict:
        return _metadata(table, columns, {FEED: str(feed).lower(), **properties})

    def commit(self, *actions: dict, operation: str = "WRITE", note: RefreshNote | None = None, **metrics: int) -> int:
        self.version += 1
        _commit(self.folder, self.version, self.version, *actions, operation=operation, note=note, **metrics)
        return self.version


def add(name: str, rows: int = 1, data: bool = True) -> dict:
    stats = json.dumps({"numRecords": rows})
    entry = {
        "path": name,
        "partitionValues": {},
        "size": 10 * rows,
        "modificationTime": 0,
        "dataChange": data,
        "stats": stats,
    }
    return {"add": entry}


def remove(name: str, data: bool = True) -> dict:
    return {
        "remove": {"path": name, "dataChange": data, "deletionTimestamp": 0, "stats": json.dumps({"numRecords": 1})}
    }


def note(sequence: int, covered: int, base: int, moves: bool = False, view: str = "v") -> RefreshNote:
    covers = {"t": Covered("table-1", covered)}
    return RefreshNote(view, sequence, f"r{sequence}{moves}", covers, "incremental", "why", base, moves)


def make_table(folder: Path, name: str, rows: int = 1000) -> None:
    """A Delta table of three numbers."""
    metadata = _metadata(f"id-{name}", COLUMNS, {FEED: "true"})
    _commit(folder / name, 0, _now(), _PROTOCOL, metadata, add(_part(), rows))


def add_rows(folder: Path, name: str, version: int, rows: int = 2) -> None:
    _commit(folder / name, version, _now(), add(_part(), rows))


def make_view(folder: Path, text: str, *, reads: str = "sales") -> View:
    """A view as CREATE would leave it, and up to date."""
    statement = parse_statement(text)
    assert isinstance(statement, CreateView)
    name = ".".join(statement.name)
    source = SourceUse(reads, "delta", reads, ())
    if (folder / backing_name(reads)).exists():
        source = SourceUse(reads, "view", backing_name(reads), ())
    tree = parse_query(statement.query)
    columns = statement.columns or tuple(tree.named_selects)
    bound = bind(tree, _Catalog(folder), columns)
    assert isinstance(bound, Bound)
    view = View(
        id=f"id-{name}",
        name=name,
        backing=backing_name(name),
        query=statement.query,
        columns=tuple((c, "bigint") for c in columns),
        query_columns=tuple(tree.named_selects),
        policy=statement.policy,
        sources=(source,),
        definition=with_types(bound.relation, lambda _: itertools.repeat("bigint")),  # type: ignore[arg-type]
        reason=None,
        comment=statement.comment,
        column_comments=statement.column_comments,
        cluster_by=statement.cluster_by,
        properties=statement.properties,
    )
    covered = RefreshNote(
        view=view.id,
        sequence=1,
        refresh="first",
        covers={source.table: Covered(f"id-{source.table}", 0)},
        strategy="recompute",
        reason="created",
        base=-1,
        started=_now() - 1500,
        predicted=2.0,
        rows_inserted=30,
        install="create",
    )
    metadata = _metadata(f"id-{view.backing}", columns, {FEED: "true", VIEW_PROPERTY: view.to_json()})
    _commit(folder / view.backing, 0, _now(), _PROTOCOL, metadata, add(_part(), 30), note=covered)
    return view


@dataclass(frozen=True)
class _Catalog:
    folder: Path

    def columns(self, query: str) -> tuple[str, ...]:
        return ()

    def resolve(self, parts: tuple[str, ...]) -> Source:
        view = Registry(FolderTables(self.folder)).find(parts[-1])
        if view is not None:
            return KeptView(view.name, public_relation(view), view.columns)
        return DeltaTable(parts[-1], tuple((c, "bigint") for c in COLUMNS))


def _commit(
    table: Path,
    version: int,
    at: int,
    *actions: dict,
    operation: str = "WRITE",
    note: RefreshNote | None = None,
    **metrics: int,
) -> None:
    info = {"timestamp": at, "operation": operation, "operationMetrics": {k: str(v) for k, v in metrics.items()}}
    if note is not None:
        info["userMetadata"] = note.to_json()
    log = table / "_delta_log"
    log.mkdir(parents=True, exist_ok=True)
    text = "\n".join(json.dumps(a) for a in ({"commitInfo": info}, *actions))
    (log / f"{version:020}.json").write_text(text)


def _metadata(table: str, columns: tuple[str, ...], properties: dict[str, str]) -> dict:
    fields = [{"name": c, "type": "long", "nullable": True, "metadata": {}} for c in columns]
    return {
        "metaData": {
            "id": table,
            "format": {"provider": "parquet", "options": {}},
            "schemaString": json.dumps({"type": "struct", "fields": fields}),
            "partitionColumns": [],
            "configuration": properties,
            "createdTime": 0,
        },
    }


def _now() -> int:
    return int(time.time() * 1000)


def _part() -> str:
    """A name for a data file that no other has."""
    return f"part-{time.time_ns()}.parquet"
