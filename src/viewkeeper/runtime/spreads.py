"""The values that the columns of a change have, found out while it is read (`changes/meeting.py` uses them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

from viewkeeper.changes.meeting import LISTED, RUNS, Spread, can_spread
from viewkeeper.sql.render import quote


def measures(types: Mapping[str, str]) -> Iterator[Column]:
    """What is to be counted of columns with these types."""
    for n, (name, type_) in enumerate(_told(types)):
        column = f.col(quote(name))
        values = f.array_sort(f.collect_set(column))
        yield f.min(column).alias(f"least_{n}")
        yield f.max(column).alias(f"greatest_{n}")
        yield f.count_if(column.isNull()).alias(f"nulls_{n}")
        yield f.slice(values, 1, LISTED + 1).alias(f"listed_{n}")
        if type_ != "string":  # texts have no distance
            yield f.slice(f.sort_array(_gaps(values, type_), asc=False), 1, RUNS - 1).alias(f"gaps_{n}")


def spreads(types: Mapping[str, str], found: Mapping[str, Any]) -> dict[str, Spread]:
    """What was counted; a column that is always NULL has no values."""
    return {name: _spread(n, found) for n, (name, _) in enumerate(_told(types)) if found[f"least_{n}"] is not None}


def _told(types: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    return ((name, type_) for name, type_ in types.items() if can_spread(type_))


def _gaps(values: Column, type_: str) -> Column:
    """Between sorted values: how wide each gap is, and its ends."""
    steps = f.greatest(f.size(values) - 1, f.lit(0))

    def gap(below: Column, above: Column) -> Column:
        numbers = above.cast("double") - below.cast("double")
        wide = f.datediff(above, below).cast("double") if type_ == "date" else numbers
        return f.struct(wide.alias("wide"), below.alias("below"), above.alias("above"))

    return f.zip_with(f.slice(values, f.lit(1), steps), f.slice(values, f.lit(2), steps), gap)


def _spread(n: int, found: Mapping[str, Any]) -> Spread:
    listed = found[f"listed_{n}"]
    gaps = sorted((gap["below"], gap["above"]) for gap in found.get(f"gaps_{n}", ()))
    ends = [found[f"least_{n}"], *(end for gap in gaps for end in gap), found[f"greatest_{n}"]]
    runs = tuple(zip(ends[::2], ends[1::2], strict=True))
    return Spread(runs, frozenset(listed) if len(listed) <= LISTED else None, found[f"nulls_{n}"] > 0)
