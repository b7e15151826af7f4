"""Spark sessions: a local one tuned for one machine, and private ones for each refresh."""

from __future__ import annotations

import logging
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

from viewkeeper.errors import SetupError
from viewkeeper.runtime.guard import only_installer
from viewkeeper.settings import Settings, memory

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

__all__ = ["SparkSession", "cached_jars", "check_java", "java_version", "local_session", "private_session"]

JAVA_AT_LEAST = 17
DELTA_COORDINATE = "io.delta:delta-spark_4.2_2.13:4.4.0"
_OWN_JARS = ("io.delta_", "io.unitycatalog_")

SMALL_STEP = {
    # A handful of rows: planning, code generation and shuffles cost more than the rows do.
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.shuffle.partitions": "1",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


_SHUFFLE_PARTITIONS = "spark.sql.shuffle.partitions"
_ROWS_A_PARTITION = 200_000
_COMPILED_FROM = 5_000  # rows; fewer are through before the code for them is compiled


def known_step(spark: SparkSession, rows: float | None) -> dict[str, str]:
    """Settings for a step of which it is known how many rows it shuffles at most; None: nobody knows.

    Then Spark need not find out in between, which breaks a query into many small jobs.
    """
    if rows is None:
        return {}
    usual, wanted = spark.conf.get(_SHUFFLE_PARTITIONS) or "", int(1 + rows // _ROWS_A_PARTITION)
    partitions = min(int(usual), wanted) if usual.isdigit() else wanted  # some platforms have a word for it
    return {"spark.sql.adaptive.enabled": "false", _SHUFFLE_PARTITIONS: str(partitions)}


def few_rows_step(spark: SparkSession, rows: int) -> dict[str, str]:
    """Settings for a step over so few rows that one task can do it, compiled only if that pays."""
    return SMALL_STEP if rows <= _COMPILED_FROM else known_step(spark, rows)


def fitting(settings: Settings, rows: int | None) -> Mapping[str, str]:
    """Settings for a step over so many rows; None: nobody knows."""
    return SMALL_STEP if rows is not None and rows <= settings.small_rows else {}


def settle(session: SparkSession, spark: SparkSession, confs: Mapping[str, str] | None = None) -> None:
    """Settings for the next step of a private session; what is not among them is as the engine has it."""
    for key in SMALL_STEP:
        usual = spark.conf.get(key)
        session.conf.set(key, (confs or {}).get(key, usual))  # type: ignore[arg-type]


# A file that is gone is an error, never fewer rows.
_ALL_FILES = {"spark.sql.files.ignoreMissingFiles": "false", "spark.sql.files.ignoreCorruptFiles": "false"}
# The files of a table that is read by their names are few: to look at them takes less time than a job that does so.
_NO_LISTING_JOB = {"spark.sql.sources.parallelPartitionDiscovery.threshold": "100"}


def private_session(spark: SparkSession, confs: Mapping[str, str]) -> SparkSession:
    """A session of one's own on the same engine and catalog, so that settings reach nobody else's commits."""
    clone = getattr(spark, "cloneSession", None)  # Spark Connect's word for it
    session: SparkSession = clone() if clone is not None else spark.newSession()
    for key, value in {**_ALL_FILES, **_NO_LISTING_JOB, **confs}.items():
        session.conf.set(key, value)
    return session


def local_session(warehouse: str) -> SparkSession:
    """A new local session with Delta, its tables under the location `warehouse`."""
    check_java()
    if cached_jars():
        return _started(warehouse)
    # The first start on a machine resolves the jars; others that start meanwhile wait for them.
    folder = jar_folder().parent
    folder.mkdir(parents=True, exist_ok=True)
    with only_installer(folder):
        session = _started(warehouse)
        if not cached_jars():
            _keep_jars(session)
    return session


def _started(warehouse: str) -> SparkSession:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - `doctor` looks at all else without it

    jars = cached_jars()
    source = ("spark.jars", ",".join(map(str, jars))) if jars else ("spark.jars.packages", DELTA_COORDINATE)
    builder = SparkSession.builder.master("local[*]").appName("viewkeeper").config(*source)
    for key, value in _local_confs(warehouse).items():
        builder = builder.config(key, value)
    with _quiet():
        return builder.getOrCreate()


def _local_confs(warehouse: str) -> dict[str, str]:
    log_config = _log_config()
    return {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": warehouse,
        "spark.driver.memory": f"{driver_gigabytes()}g",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={log_config.as_uri()} -XX:+UseParallelGC",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": str(max(2, os.cpu_count() or 2)),
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.codegen.cache.maxEntries": "2000",  # by default 100, which the queries of ten views exceed
        "spark.log.structuredLogging.enabled": "false",
    }


def driver_gigabytes() -> int:
    """A quarter of the machine's memory, at least 1 and at most 8: hundreds of small tables need over 1."""
    return min(8, max(1, memory() // 2**30 // 4))


def java_version() -> int | None:
    """The major version of the Java that Spark would use, or None without one."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home) / "bin" / "java") if home else shutil.which("java")
    if not java:
        return None
    try:
        shown = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False).stderr
    except OSError:
        return None
    quoted = shown.split('"')
    number = quoted[1].split(".")[0] if len(quoted) > 1 else ""
    return int(number) if number.isdigit() else None


def check_java() -> None:
    found = java_version()
    if found is None or found < JAVA_AT_LEAST:
        problem = "no Java found" if found is None else f"Java {found} found"
        raise SetupError(
            f"Spark needs Java {JAVA_AT_LEAST} or newer; {problem}",
            hint="on Debian or Ubuntu: sudo apt-get install openjdk-17-jre-headless; then run `viewkeeper doctor`",
        )


def jar_folder() -> Path:
    """Where Delta's jars are kept once they have been resolved."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "viewkeeper" / f"delta-{version('delta-spark')}-spark-{version('pyspark')}"


def cached_jars() -> list[Path]:
    return sorted(jar_folder().glob("*.jar"))


def _keep_jars(session: SparkSession) -> None:
    """Copy the jars that were resolved for this session, so that later starts need no resolution."""
    resolved = [Path(j.removeprefix("file://").removeprefix("file:")) for j in _jar_conf(session)]
    own = [j for j in resolved if j.name.startswith(_OWN_JARS) and j.exists()]
    folder = jar_folder()
    staging = Path(tempfile.mkdtemp(dir=folder.parent))
    for jar in own:
        shutil.copy2(jar, staging / jar.name)
    try:
        staging.rename(folder)
    except OSError:  # another process was first
        shutil.rmtree(staging, ignore_errors=True)


def _jar_conf(session: SparkSession) -> list[str]:
    return [j for j in (session.conf.get("spark.jars", "") or "").split(",") if j]


def _log_config() -> Path:
    path = Path(tempfile.gettempdir()) / f"viewkeeper-log4j2-{os.getuid() if hasattr(os, 'getuid') else 0}.properties"
    text = "rootLogger.level=off\n"
    if not path.exists() or path.read_text() != text:
        path.write_text(text)
    return path


class _quiet:
    """Keeps the JVM's start-up lines off the console, and PySpark's own log of errors we report ourselves."""

    def __enter__(self) -> None:
        logging.getLogger("SQLQueryContextLogger").setLevel(logging.CRITICAL + 1)
        self._saved = os.dup(2)
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, 2)
        os.close(null)

    def __exit__(self, *_: object) -> None:
        os.dup2(self._saved, 2)
        os.close(self._saved)
