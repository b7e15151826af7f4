"""The values that the columns of a change have, found out when it is read (`changes/meeting.py` uses them)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as f

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.changes.meeting import LISTED, Spread, can_spread, few_runs
from viewkeeper.sql.render import quote

_WAYS = ("came", "went")


def told(types: Mapping[str, str]) -> list[str]:
    """The columns of these types whose values can be told."""
    return [name for name, type_ in types.items() if can_spread(type_)]


def spread_of(values: Sequence[Any]) -> Spread | None:
    """All values of a column; None if it is always NULL."""
    present = sorted({value for value in values if value is not None})
    if not present:
        return None
    # Texts have no distance, by which some of them would be taken together.
    ends = [(present[0], present[-1])] if isinstance(present[0], str) else [(value, value) for value in present]
    listed = frozenset(present) if len(present) <= LISTED else None
    return Spread(few_runs(ends), listed, len(values) > 0 and any(value is None for value in values))


def measures(columns: Sequence[str]) -> Iterator[Column]:
    """What is counted of columns with many values: only the ends of what came and of what went.

    New rows often lie together, and old ones that go do.
    """
    for n, name in enumerate(columns):
        column = f.col(quote(name))
        yield f.count_if(column.isNull()).alias(f"nulls_{n}")
        for way in _WAYS:
            there = f.when(f.col(WEIGHT) > 0 if way == "came" else f.col(WEIGHT) < 0, column)
            yield f.min(there).alias(f"least_{way}_{n}")
            yield f.max(there).alias(f"greatest_{way}_{n}")


def measured(columns: Sequence[str], found: Mapping[str, Any]) -> dict[str, Spread]:
    """What was counted; a column that is always NULL has no values."""
    spreads = {name: _measured(n, found) for n, name in enumerate(columns)}
    return {name: spread for name, spread in spreads.items() if spread.runs}


def _measured(n: int, found: Mapping[str, Any]) -> Spread:
    ends = [(found[f"least_{way}_{n}"], found[f"greatest_{way}_{n}"]) for way in _WAYS]
    return Spread(few_runs(run for run in ends if run[0] is not None), None, found[f"nulls_{n}"] > 0)
