"""Where tables are found, and the folder of Delta tables that is a local warehouse."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from viewkeeper.errors import SourceError, StorageError
from viewkeeper.store.log import FileLog, TableLog
from viewkeeper.store.names import BACKING_PREFIX, canonical, split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_NAME = re.compile(r"\w+", re.ASCII)  # what Spark's own catalog takes for a name


class Tables(Protocol):
    """The tables of a warehouse by canonical name."""

    def canonical(self, parts: tuple[str, ...]) -> str:
        """The one name of the table that these parts mean."""

    def has_delta(self, name: str) -> bool: ...

    def log(self, name: str) -> TableLog: ...

    def backing_tables(self) -> list[str]:
        """Every table that may hold a view's rows."""

    def sync(self) -> None:
        """Notice what others, or plain Spark statements, made or dropped."""

    def folder(self, name: str) -> Path | None:
        """The table's folder, where it is in the local file system."""


class FolderTables:
    """Each Delta table in a folder by its name; a folder `x.db` in it is the schema x."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.spark: SparkSession | None = None
        self._logs: dict[str, FileLog] = {}
        self._registered: set[str] = set()
        self._external: dict[str, Path] = {}

    def canonical(self, parts: tuple[str, ...]) -> str:
        lowered = tuple(p.lower() for p in parts)
        if len(lowered) == 3 and lowered[0] == "spark_catalog":
            lowered = lowered[1:]
        if len(lowered) == 1 and self.spark is not None:
            lowered = (self.spark.catalog.currentDatabase(), *lowered)
        if len(lowered) == 2 and lowered[0] == "default":
            lowered = lowered[1:]
        return canonical(lowered)

    def path(self, name: str) -> Path:
        *schema, table = split(name)
        return self.root.joinpath(*(f"{s}.db" for s in schema), table)

    def folder(self, name: str) -> Path | None:
        return self.place(name) or self.path(name)

    def has_delta(self, name: str) -> bool:
        return self.place(name) is not None

    def place(self, name: str) -> Path | None:
        """The folder that holds the table now: nearly always the one of its name, else all are looked through."""
        usual = self.path(name)
        return usual if _is_table(usual) else self.found().get(name)

    def log(self, name: str) -> TableLog:
        found = self.place(name)
        if found is None:
            raise SourceError(f"table {name} is not in {self.root}", hint="it may have been dropped under a view")
        known = self._logs.get(name)
        if known is None or known.path != found:
            known = self._logs[name] = FileLog(found)
        return known

    def backing_tables(self) -> list[str]:
        return sorted(n for n in self.found() if split(n)[-1].startswith(BACKING_PREFIX))

    def found(self) -> dict[str, Path]:
        """Every Delta table in the folder now, but for those whose folder has a name that no table can have.

        Spark leaves such a folder behind when it refuses to create the table.
        """
        try:
            schemas = [((), self.root)] + [
                ((p.stem,), p) for p in self.root.glob("*.db") if p.is_dir() and _NAME.fullmatch(p.stem)
            ]
            return {
                canonical((*schema, table.name)): table
                for schema, folder in schemas
                for table in folder.iterdir()
                if _NAME.fullmatch(table.name) and _is_table(table)
            }
        except FileNotFoundError:
            raise StorageError(
                f"there is no warehouse at {self.root}", hint=f"viewkeeper init --warehouse {self.root}"
            ) from None
        except OSError as error:
            raise StorageError(f"the warehouse {self.root} cannot be read: {error}") from error

    # Spark's catalog, which lives no longer than the process

    def attach(self, spark: SparkSession) -> None:
        self.spark = spark
        self.sync()

    def sync(self) -> None:
        """Tell Spark of tables it does not know."""
        if self.spark is None:
            return
        for name, path in self.found().items():
            if name not in self._registered:
                self._register(self.spark, name, path)
                self._registered.add(name)

    def remove_dropped(self) -> None:
        """Delete the folders of tables that a plain DROP TABLE of this session has dropped.

        A table that was there on opening is an external one to Spark, which leaves its folder when it is dropped.
        """
        if self.spark is None:
            return
        for name, path in list(self._external.items()):
            if not self.spark.catalog.tableExists(name):
                delete_folder(path)
                del self._external[name]
                self._registered.discard(name)

    def _register(self, spark: SparkSession, name: str, path: Path) -> None:
        schema = split(name)[:-1]
        if schema:
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {canonical(schema)}")
        if not spark.catalog.tableExists(name):
            location = str(path).replace("\\", "\\\\").replace("'", "\\'")
            spark.sql(f"CREATE TABLE IF NOT EXISTS {_full(name)} USING DELTA LOCATION '{location}'")
            self._external[name] = path


def _full(name: str) -> str:
    return name if len(split(name)) > 1 else f"default.{name}"


def _is_table(path: Path) -> bool:
    log = path / "_delta_log"
    return log.is_dir() and any(log.glob("*.json"))


def delete_folder(path: Path) -> None:
    """Delete a table's folder so that no reader ever sees half of it: the log goes first, in one step."""
    log = path / "_delta_log"
    if log.exists():
        log.rename(path / ".deleted_log")
    shutil.rmtree(path, ignore_errors=True)
