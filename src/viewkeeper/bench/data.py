"""The tables of TPC-H as Delta tables: made once for each scale, kept in a folder, and copied for each run."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path

from viewkeeper import Warehouse
from viewkeeper.tpch.generator import generating
from viewkeeper.tpch.tables import TABLES, Table

_LOADING = "loading"


def default_folder() -> Path:
    """Where tables are kept if nobody says where."""
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return base / "viewkeeper" / "bench"


def put_tables(
    wh: Warehouse, root: Path, kept: Path, *, scale: float, schema: str, tell: Callable[[str], None]
) -> None:
    """The tables at a scale, in a new schema of the warehouse in `root`."""
    # tpchgen-cli makes the same rows at each run of a version.
    source = kept / f"tpchgen-{version('tpchgen-cli')}-scale-{scale:g}"
    if not source.exists():
        tell(f"making TPC-H at scale {scale:g}")
        _make(wh, root, scale)
        staging = Path(tempfile.mkdtemp(dir=_made(kept)))
        _copy(root / f"{_LOADING}.db", staging / "tables")
        (staging / "tables").rename(source)
        staging.rmdir()
        wh.spark.sql(f"DROP SCHEMA {_LOADING} CASCADE")
    _copy(source, root / f"{schema}.db")
    wh.tables.sync()


def _made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _make(wh: Warehouse, root: Path, scale: float) -> None:
    raw = Path(tempfile.mkdtemp(dir=root, prefix=".rows-"))
    with generating(raw, scale, TABLES):
        spark = wh.spark
    spark.sql(f"CREATE SCHEMA {_LOADING}")

    def load(table: Table) -> None:
        properties = {"delta.enableChangeDataFeed": "true", **table.properties}
        listed = ", ".join(f"'{key}' = '{value}'" for key, value in properties.items())
        spark.sql(
            f"CREATE TABLE {_LOADING}.{table.name} USING DELTA TBLPROPERTIES ({listed})"
            f" AS SELECT * FROM parquet.`{raw / table.name}.parquet`"
        )

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(load, TABLES.values()))
    shutil.rmtree(raw)


def _copy(source: Path, target: Path) -> None:
    """A copy of Delta tables that may be changed: data files never are, so they are linked, if that is possible."""

    def link(file: str, to: str) -> None:
        in_log = Path(file).parent.name == "_delta_log"
        try:
            if in_log:
                raise OSError("files of the log may be written again")
            os.link(file, to)
        except OSError:
            shutil.copy2(file, to)

    shutil.copytree(source, target, copy_function=link)
