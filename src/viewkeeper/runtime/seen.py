"""The net change of a table, read before its use and held under a temporary name: what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.changes.lookup import ChangedValues, Values
from viewkeeper.changes.meeting import Spread
from viewkeeper.here.conditions import fulfilling
from viewkeeper.here.merge import comes_and_goes
from viewkeeper.here.rows import RowsHere
from viewkeeper.runtime import spreads
from viewkeeper.runtime.checkpoints import checkpointed
from viewkeeper.runtime.few import fetched, given
from viewkeeper.sql.render import quote, render
from viewkeeper.store.columns import NotHereError


@dataclass(frozen=True)
class Asked:
    """What is to be known of a change with columns of these types.

    matters    the condition that a row must meet to matter
    compared   the columns whose values are wanted
    """

    name: str
    types: Mapping[str, str]
    matters: Scalar
    compared: tuple[str, ...]

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(self.types)

    @property
    def condition(self) -> Column:
        return f.expr(render(self.matters, {c: quote(c) for c in self.types}))


@dataclass(frozen=True)
class Here:
    """The rows of a change that this process has, with the types of their columns; and those that may matter.

    What else is to be known of them is found out when it is asked for: most of it never is.
    """

    rows: pa.Table
    types: Mapping[str, str]
    matter: pa.Table
    compared: tuple[str, ...]

    @cached_property
    def spreads(self) -> Mapping[str, Spread]:
        return _spreads({column: self.rows[column].to_pylist() for column in self.compared})

    def values(self, where: Sequence[Scalar]) -> ChangedValues:
        rows, left = fulfilling(self.matter, self.types, where)
        return ChangedValues({c: cache(partial(distinct, rows, c)) for c in self.compared}, not left)

    def stays(self, key: tuple[str, ...]) -> bool | None:
        if not self.types.keys() >= set(key):
            return None
        try:
            return comes_and_goes(RowsHere.of(self.rows.select([WEIGHT, *key])), key)
        except NotHereError:
            return None


@dataclass(frozen=True)
class Few:
    """Of few rows that Spark's driver has, their weights and their values in the columns that are compared."""

    weights: Sequence[int]
    compared: Mapping[str, Sequence[Any]]

    @cached_property
    def spreads(self) -> Mapping[str, Spread]:
        return _spreads(self.compared)

    def values(self, where: Sequence[Scalar]) -> ChangedValues:
        return ChangedValues({c: partial(frozenset[Any], found) for c, found in self.compared.items()}, not where)

    def stays(self, key: tuple[str, ...]) -> bool | None:
        if not self.compared.keys() >= set(key):
            return None
        signs: dict[tuple[Any, ...], set[bool]] = {}
        for weight, *value in zip(self.weights, *(self.compared[column] for column in key), strict=True):
            signs.setdefault(tuple(value), set()).add(weight > 0)
        return any(len(both) > 1 for both in signs.values())


@dataclass(frozen=True)
class Many:
    """Of rows that stay where they are, only between which values they lie."""

    spreads: Mapping[str, Spread]


@dataclass(frozen=True)
class FirstRead:
    """How many rows there are that may matter, how many rows go, whether any matters, and what was seen of them.

    name   under which Spark has the rows, unless they are here
    """

    name: str
    columns: frozenset[str]
    rows: int
    went: int
    matters: bool
    seen: Here | Few | Many

    def values(self, where: Sequence[Scalar]) -> ChangedValues:
        """The values that rows which fulfil the conditions have, in the columns that are compared."""
        return ChangedValues({}) if isinstance(self.seen, Many) else self.seen.values(where)

    def stays(self, key: tuple[str, ...]) -> bool | None:
        """Whether any value of a key both comes and goes; None where that was not seen."""
        return None if isinstance(self.seen, Many) or not key else self.seen.stays(key)


def here(session: SparkSession, rows: pa.Table, asked: Asked) -> FirstRead:
    """Of rows that this process has."""
    matter, left = fulfilling(rows, asked.types, [asked.matters])
    matters = len(matter) > 0 and (not left or not given(session, matter).where(asked.condition).isEmpty())
    went = pc.sum(pc.less(rows[WEIGHT], 0)).as_py() or 0
    seen = Here(rows, asked.types, matter, asked.compared)
    return FirstRead(asked.name, frozenset(asked.columns), len(matter), went, matters, seen)


def few(rows: DataFrame, asked: Asked) -> FirstRead:
    """Of few rows: what is asked of them is seen sooner than Spark would count it."""
    held = fetched(rows)
    held.createOrReplaceTempView(asked.name)
    found = held.select(f.col(WEIGHT), asked.condition, *map(quote, asked.compared)).collect()
    weights = [row[0] for row in found]
    seen = Few(weights, {column: [row[n] for row in found] for n, column in enumerate(asked.compared, 2)})
    went, matters = sum(weight < 0 for weight in weights), any(row[1] for row in found)
    return FirstRead(asked.name, frozenset(asked.columns), len(found), went, matters, seen)


def many(rows: DataFrame, asked: Asked) -> FirstRead:
    """Of more rows, which stay where they are."""
    counted = Observation()
    observed = rows.observe(
        counted,
        f.count(f.lit(1)).alias("rows"),
        f.count_if(f.col(WEIGHT) < 0).alias("went"),
        f.count_if(asked.condition).alias("matter"),
        *spreads.measures(asked.compared),
    )
    checkpointed(observed).createOrReplaceTempView(asked.name)
    found = counted.get
    rows_and_went = int(found["rows"]), int(found["went"])
    seen = Many(spreads.measured(asked.compared, found))
    return FirstRead(asked.name, frozenset(asked.columns), *rows_and_went, bool(found["matter"]), seen)


def distinct(rows: pa.Table, column: str) -> Values:
    """All values of a column."""
    return frozenset(rows[column].unique().to_pylist())


def _spreads(values: Mapping[str, Sequence[Any]]) -> Mapping[str, Spread]:
    found = ((column, spreads.spread_of(seen)) for column, seen in values.items())
    return {column: spread for column, spread in found if spread is not None}
