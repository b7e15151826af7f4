"""Where tables are found, and the folder of Delta tables that is a local warehouse."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from viewkeeper.errors import SourceError, StorageError
from viewkeeper.store.log import FileLog, TableLog
from viewkeeper.store.names import BACKING_PREFIX, canonical, split

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
        self._registered: dict[str, Path] = {}

    def canonical(self, parts: tuple[str, ...]) -> str:
        lowered = tuple(p.lower() for p in parts)
        if len(lowered) == 3 and lowered[0] == "spark_catalog":
            lowered = lowered[1:]
        if len(lowered) == 2 and lowered[0] == "default":
            lowered = lowered[1:]
        return canonical(lowered)

    def path(self, name: str) -> Path:
        *schema, table = split(name)
        return self.root.joinpath(*(f"{s}.db" for s in schema), table)

    def folder(self, name: str) -> Path | None:
        return self.found().get(name, self.path(name))

    def has_delta(self, name: str) -> bool:
        return name in self.found()

    def log(self, name: str) -> TableLog:
        found = self.found().get(name)
        if found is None:
            raise SourceError(f"table {name} is not in {self.root}", hint="it may have been dropped under a view")
        known = self._logs.get(name)
        if known is None or known.path != found:
            known = self._logs[name] = FileLog(found)
        return known

    def backing_tables(self) -> list[str]:
        return sorted(n for n in self.found() if split(n)[-1].startswith(BACKING_PREFIX))

    def found(self) -> dict[str, Path]:
        """Every Delta table in the folder now."""
        try:
            schemas = [((), self.root)] + [
                ((p.name.removesuffix(".db"),), p) for p in self.root.glob("*.db") if p.is_dir()
            ]
            return {
                canonical((*schema, table.name)): table
                for schema, folder in schemas
                for table in folder.iterdir()
                if _is_table(table)
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

    def detach(self) -> None:
        """Take every table out of Spark's catalog; their folders stay."""
        if self.spark is not None:
            for name in self._registered:
                self.spark.sql(f"DROP TABLE IF EXISTS {name}")
        self.spark = None
        self._registered.clear()

    def sync(self) -> None:
        """Tell Spark of tables it does not know, and forget those whose folder is gone."""
        if self.spark is None:
            return
        found = self.found()
        for name, path in found.items():
            if name not in self._registered:
                self._register(self.spark, name, path)
        for name in set(self._registered) - set(found):
            del self._registered[name]
            self._logs.pop(name, None)
            self.spark.sql(f"DROP TABLE IF EXISTS {name}")

    def remove_dropped(self) -> None:
        """Delete the folders of tables that were dropped in this session by a plain Spark statement.

        A table that was there on opening is an external one to Spark, which leaves its folder when it is dropped.
        """
        if self.spark is None:
            return
        for name, path in list(self._registered.items()):
            if path.exists() and not self.spark.catalog.tableExists(name):
                delete_folder(path)
                del self._registered[name]
                self._logs.pop(name, None)

    def _register(self, spark: SparkSession, name: str, path: Path) -> None:
        schema = split(name)[:-1]
        if schema:
            spark.sql(f"CREATE SCHEMA IF NOT EXISTS {canonical(schema)}")
        if not spark.catalog.tableExists(name):
            location = str(path.absolute()).replace("\\", "\\\\").replace("'", "\\'")
            spark.sql(f"CREATE TABLE IF NOT EXISTS {name} USING DELTA LOCATION '{location}'")
        self._registered[name] = path


def _is_table(path: Path) -> bool:
    log = path / "_delta_log"
    return log.is_dir() and any(log.glob("*.json"))


def delete_folder(path: Path) -> None:
    """Delete a table's folder so that no reader ever sees half of it: the log goes first, in one step."""
    log = path / "_delta_log"
    if log.exists():
        log.rename(path / ".deleted_log")
    shutil.rmtree(path, ignore_errors=True)
