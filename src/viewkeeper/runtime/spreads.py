"""The values that the columns of a change have, found out while it is read (`changes/meeting.py` uses them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.changes.meeting import LISTED, RUNS, Spread, can_spread, few_runs
from viewkeeper.sql.render import quote

_WAYS = ("came", "went")


def measures(types: Mapping[str, str], few: bool) -> Iterator[Column]:
    """What is to be counted of columns with these types.

    Of many rows only the ends of what came and of what went: new rows often lie together, and old ones that go do.
    """
    for n, (name, type_) in enumerate(_told(types)):
        column = f.col(quote(name))
        yield f.count_if(column.isNull()).alias(f"nulls_{n}")
        for way in _WAYS:
            there = f.when(f.col(WEIGHT) > 0 if way == "came" else f.col(WEIGHT) < 0, column)
            yield f.min(there).alias(f"least_{way}_{n}")
            yield f.max(there).alias(f"greatest_{way}_{n}")
        if few:
            values = f.array_sort(f.collect_set(column))
            yield f.slice(values, 1, LISTED + 1).alias(f"listed_{n}")
            if type_ != "string":  # texts have no distance
                yield f.slice(f.sort_array(_gaps(values, type_), asc=False), 1, RUNS - 1).alias(f"gaps_{n}")


def spreads(types: Mapping[str, str], found: Mapping[str, Any]) -> dict[str, Spread]:
    """What was counted; a column that is always NULL has no values."""
    told = {name: _spread(n, found) for n, (name, _) in enumerate(_told(types))}
    return {name: spread for name, spread in told.items() if spread.runs}


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
    ends = [(found[f"least_{way}_{n}"], found[f"greatest_{way}_{n}"]) for way in _WAYS]
    runs = few_runs(run for run in ends if run[0] is not None)
    gaps = sorted((gap["below"], gap["above"]) for gap in found.get(f"gaps_{n}", ()))
    if gaps:
        apart = [runs[0][0], *(end for gap in gaps for end in gap), runs[-1][1]]
        runs = tuple(zip(apart[::2], apart[1::2], strict=True))
    listed = found.get(f"listed_{n}")
    return Spread(runs, frozenset(listed) if listed and len(listed) <= LISTED else None, found[f"nulls_{n}"] > 0)
