"""Rows that Spark has computed and keeps, to be read more than once."""

from __future__ import annotations

from pyspark.sql import DataFrame


def checkpointed(frame: DataFrame) -> DataFrame:
    """The rows of a query, computed now.

    They are kept under other names, and read under their own. Spark keeps with them what it knew of their columns,
    also of columns that are none of theirs, and stumbles over those where the rows stand in a UNION ALL. Of renamed
    columns it takes over no more than it finds.
    """
    names = frame.columns
    return frame.toDF(*(f"__vk_kept_{i}" for i in range(len(names)))).localCheckpoint().toDF(*names)
