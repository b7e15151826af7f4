"""Warehouses with tables and views in them, as log files written by hand: no Spark."""

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
from viewkeeper.store.log import FEED
from viewkeeper.store.names import backing_name
from viewkeeper.store.registry import Registry
from viewkeeper.store.tables import FolderTables
from viewkeeper.store.views import VIEW_PROPERTY, Covered, RefreshNote, SourceUse, View

COLUMNS = ("id", "day", "price")
_PROTOCOL = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}


def make_table(folder: Path, name: str, rows: int = 1000) -> None:
    """A Delta table of three numbers."""
    _commit(folder / name, 0, _PROTOCOL, _metadata(f"id-{name}", COLUMNS, {FEED: "true"}), _add(rows))


def add_rows(folder: Path, name: str, version: int, rows: int = 2) -> None:
    _commit(folder / name, version, _add(rows))


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
    note = RefreshNote(
        view=view.id,
        sequence=1,
        refresh="first",
        covers={source.table: Covered(f"id-{source.table}", 0)},
        strategy="recompute",
        reason="created",
        base=-1,
        started=int(time.time() * 1000) - 1500,
        rows_inserted=30,
        install="create",
    )
    metadata = _metadata(f"id-{view.backing}", columns, {FEED: "true", VIEW_PROPERTY: view.to_json()})
    _commit(folder / view.backing, 0, _PROTOCOL, metadata, _add(30), note=note)
    return view


@dataclass(frozen=True)
class _Catalog:
    folder: Path

    def resolve(self, parts: tuple[str, ...]) -> Source:
        view = Registry(FolderTables(self.folder)).find(parts[-1])
        if view is not None:
            return KeptView(view.name, public_relation(view), view.columns)
        return DeltaTable(parts[-1], tuple((c, "bigint") for c in COLUMNS))


def _commit(table: Path, version: int, *actions: dict, note: RefreshNote | None = None) -> None:
    info = {"timestamp": int(time.time() * 1000), "operation": "WRITE", "operationMetrics": {}}
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


def _add(rows: int) -> dict:
    entry = {
        "path": f"part-{time.time_ns()}.parquet",
        "partitionValues": {},
        "size": 10 * rows,
        "modificationTime": 0,
        "dataChange": True,
        "stats": json.dumps({"numRecords": rows}),
    }
    return {"add": entry}
