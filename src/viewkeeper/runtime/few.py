"""Few rows, held by Spark's driver: queries over them start no job of their own, and know how few they are."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import from_arrow_schema

from viewkeeper.algebra.identity import is_comparable
from viewkeeper.changes.lookup import KNOWN_ROWS
from viewkeeper.runtime.checkpoints import checkpointed

FETCHED_ROWS = KNOWN_ROWS  # more rows than this are not brought to the driver
PLANNED_ROWS = 3_000  # more than this take long to plan with: Spark compares its plans, and the driver's rows with them


def given(session: SparkSession, rows: pa.Table) -> DataFrame:
    """Rows of this process."""
    whole = rows.combine_chunks()  # of several chunks Spark would read none behind an empty one
    return session.createDataFrame(whole, from_arrow_schema(whole.schema))


def set_down(frame: DataFrame, rows: int) -> DataFrame:
    """So many rows of the driver, which are no part of plans if they are many."""
    return frame if rows <= PLANNED_ROWS else checkpointed(frame)


def fetched(frame: DataFrame) -> DataFrame:
    """The rows of a query."""
    java, session = getattr(frame, "_jdf", None), frame.sparkSession
    plain = all(_is_plain(field.dataType.simpleString()) for field in frame.schema.fields)
    if java is None or not plain:  # Spark Connect keeps its driver to itself
        return checkpointed(frame)
    return DataFrame(session._jsparkSession.createDataFrame(java.collectAsList(), java.schema()), session)


def _is_plain(type_: str) -> bool:
    """Whether values of the type survive the way to the driver and back."""
    return is_comparable(type_) and "interval" not in type_ and "void" not in type_
