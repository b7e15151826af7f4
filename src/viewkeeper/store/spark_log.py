"""A Delta table's log through Spark, for storage that cannot be read directly."""

from __future__ import annotations

from collections.abc import Sequence

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Row, SparkSession

from viewkeeper.errors import SourceError
from viewkeeper.store.files import DataFiles
from viewkeeper.store.log import Commit, Masked, Metadata, Snapshot, described, parse_commit


class SparkLog:
    """The same answers as a log read directly, at the price of a small Spark job each."""

    def __init__(self, spark: SparkSession, name: str, location: str) -> None:
        self.spark = spark
        self.name = name
        self.location = location
        self._commits: dict[int, Commit] = {}

    def version(self) -> int:
        return int(self._one(f"DESCRIBE HISTORY {self.name} LIMIT 1")["version"])

    def snapshot(self, version: int | None = None) -> Snapshot:
        detail = self._one(f"DESCRIBE DETAIL {self.name}")
        pinned = self.name if version is None else f"{self.name} VERSION AS OF {version}"
        schema = self.spark.sql(f"SELECT * FROM {pinned}").schema
        return Snapshot(
            self.version() if version is None else version,
            Metadata(
                str(detail["id"]),
                described(schema.jsonValue()["fields"]),
                dict(detail["properties"] or {}),
            ),
            None,
            int(detail["sizeInBytes"] or 0),
            int(detail["numFiles"] or 0),
        )

    def files(self, version: int) -> DataFiles | None:
        """Not named without a job; Delta reads them itself."""
        return None

    def named(self, version: int, names: Sequence[str]) -> DataFiles | None:
        return None

    def masked(self, version: int, files: Sequence[Masked], *, came: bool) -> DataFiles | None:
        return None

    def commit(self, version: int) -> Commit | None:
        if version not in self._commits:
            path = f"{self.location.rstrip('/')}/_delta_log/{version:020}.json"
            try:
                lines = [row[0] for row in self.spark.read.text(path).collect()]
            except (PySparkException, Py4JJavaError):
                return None
            self._commits[version] = parse_commit(version, "\n".join(lines))
        return self._commits[version]

    def last_transaction(self, application: str) -> int | None:
        """Not to be had through SQL; without it, what outlived the log's cleaning cannot be trusted."""
        return 2**62

    def _one(self, query: str) -> Row:
        try:
            row = self.spark.sql(query).first()
        except PySparkException as error:
            raise SourceError(f"table {self.name} cannot be read: {error}") from error
        if row is None:
            raise SourceError(f"table {self.name} has no history")
        return row
