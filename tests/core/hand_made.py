"""Delta tables whose logs are written by hand."""

from __future__ import annotations

import json
from pathlib import Path

from viewkeeper.store.log import FileLog
from viewkeeper.store.views import Covered, RefreshNote


class HandMade:
    """A Delta table whose commits are written by hand."""

    def __init__(self, folder: Path, feed: bool = True, columns: tuple[str, ...] = ("k", "x")) -> None:
        self.folder = folder
        self.log = FileLog(folder)
        self.version = -1
        (folder / "_delta_log").mkdir(parents=True)
        protocol = {"protocol": {"minReaderVersion": 1, "minWriterVersion": 2}}
        self.commit(protocol, self.metadata(feed, columns), operation="CREATE TABLE")

    def metadata(self, feed: bool, columns: tuple[str, ...], table: str = "table-1", **properties: str) -> dict:
        fields = [{"name": c, "type": "integer", "nullable": True, "metadata": {}} for c in columns]
        return {
            "metaData": {
                "id": table,
                "format": {"provider": "parquet", "options": {}},
                "schemaString": json.dumps({"type": "struct", "fields": fields}),
                "partitionColumns": [],
                "configuration": {"delta.enableChangeDataFeed": str(feed).lower(), **properties},
                "createdTime": 0,
            }
        }

    def commit(self, *actions: dict, operation: str = "WRITE", note: RefreshNote | None = None, **metrics: int) -> int:
        self.version += 1
        info = {
            "timestamp": self.version,
            "operation": operation,
            "operationMetrics": {k: str(v) for k, v in metrics.items()},
        }
        if note is not None:
            info["userMetadata"] = note.to_json()
        text = "\n".join(json.dumps(a) for a in ({"commitInfo": info}, *actions))
        (self.folder / "_delta_log" / f"{self.version:020}.json").write_text(text)
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
