"""The tables of a Spark session's own catalog."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlparse

from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import SourceError
from viewkeeper.store.log import FileLog, TableLog
from viewkeeper.store.names import BACKING_PREFIX, canonical, split
from viewkeeper.store.spark_log import SparkLog


class SessionTables:
    """Tables by the catalog of a session, always under their full names."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self._logs: dict[str, TableLog] = {}

    def canonical(self, parts: tuple[str, ...]) -> str:
        catalog = self.spark.catalog
        if len(parts) == 1:
            return canonical((catalog.currentCatalog(), catalog.currentDatabase(), *parts))
        if len(parts) == 2:
            return canonical((catalog.currentCatalog(), *parts))
        return canonical(parts)

    def has_delta(self, name: str) -> bool:
        if not self.spark.catalog.tableExists(name):
            return False
        table = self.spark.catalog.getTable(name)
        return table.tableType not in ("VIEW", "TEMPORARY") and self._detail(name) is not None

    def log(self, name: str) -> TableLog:
        if name not in self._logs:
            location = self._detail(name)
            if location is None:
                raise SourceError(f"table {name} is gone, or is no Delta table")
            parsed = urlparse(location)
            local = parsed.scheme in ("", "file")
            self._logs[name] = FileLog(Path(unquote(parsed.path))) if local else SparkLog(self.spark, name, location)
        return self._logs[name]

    def folder(self, name: str) -> Path | None:
        log = self._logs.get(name)
        return log.path if isinstance(log, FileLog) else None

    def backing_tables(self) -> list[str]:
        catalog = canonical((self.spark.catalog.currentCatalog(),))
        names = []
        for (schema,) in self.spark.sql(f"SHOW SCHEMAS IN {catalog}").collect():
            rows = self.spark.sql(f"SHOW TABLES IN {catalog}.{canonical((schema,))} LIKE '{BACKING_PREFIX}*'").collect()
            names += [canonical((*split(catalog), schema, row["tableName"])) for row in rows if not row["isTemporary"]]
        return sorted(names)

    def sync(self) -> None:
        self._logs.clear()

    def _detail(self, name: str) -> str | None:
        try:
            row = self.spark.sql(f"DESCRIBE DETAIL {name}").first()
        except PySparkException:
            return None
        return str(row["location"]) if row is not None and row["format"] == "delta" else None
