"""The net change of a table, read before its use and held under a temporary name: what was seen of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.changes.meeting import Spread
from viewkeeper.here.conditions import fulfilling
from viewkeeper.runtime import spreads
from viewkeeper.runtime.checkpoints import checkpointed
from viewkeeper.runtime.few import fetched, given
from viewkeeper.sql.render import quote, render


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
    """The rows of a change that this process has, with the types of their columns; and those that may matter."""

    rows: pa.Table
    types: Mapping[str, str]
    matter: pa.Table

    def fulfilling(self, where: Sequence[Scalar]) -> tuple[pa.Table, tuple[Scalar, ...]]:
        return fulfilling(self.matter, self.types, where)


@dataclass(frozen=True)
class FirstRead:
    """How many rows there are that may matter, how many rows go, whether any matters, and which values they have.

    name   under which Spark has the rows, unless they are here
    seen   of few rows, the columns that are compared
    """

    name: str
    columns: frozenset[str]
    rows: int
    went: int
    matters: bool
    spreads: Mapping[str, Spread]
    seen: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    here: Here | None = None

    @property
    def compared(self) -> list[str]:
        return [column for column in self.seen if column != WEIGHT]

    def values(self, where: Sequence[Scalar]) -> dict[str, frozenset[Any]]:
        """The values that rows which fulfil the conditions have at most, in the columns that are compared."""
        if self.here is None:
            return {column: frozenset(self.seen[column]) for column in self.compared}
        rows, _ = self.here.fulfilling(where)
        return {column: frozenset(rows[column].unique().to_pylist()) for column in self.compared}

    def tells(self, where: Sequence[Scalar]) -> bool:
        """Whether these are just the values of such rows."""
        return not where if self.here is None else not self.here.fulfilling(where)[1]

    def stays(self, key: tuple[str, ...]) -> bool | None:
        """Whether any value of a key both comes and goes; None where that was not seen."""
        if not key or not self.seen.keys() >= {WEIGHT, *key}:
            return None
        signs: dict[tuple[Any, ...], set[bool]] = {}
        for weight, *value in zip(self.seen[WEIGHT], *(self.seen[column] for column in key), strict=True):
            signs.setdefault(tuple(value), set()).add(weight > 0)
        return any(len(both) > 1 for both in signs.values())


def here(session: SparkSession, rows: pa.Table, asked: Asked) -> FirstRead:
    """Of rows that this process has."""
    seen = {column: rows[column].to_pylist() for column in (WEIGHT, *asked.compared)}
    matter, left = fulfilling(rows, asked.types, [asked.matters])
    matters = len(matter) > 0 and (not left or not given(session, matter).where(asked.condition).isEmpty())
    return replace(_seen(asked, seen, matters=matters), rows=len(matter), here=Here(rows, asked.types, matter))


def few(rows: DataFrame, asked: Asked) -> FirstRead:
    """Of few rows: what is asked of them is seen sooner than Spark would count it."""
    held = fetched(rows)
    held.createOrReplaceTempView(asked.name)
    found = held.select(f.col(WEIGHT), asked.condition, *map(quote, asked.compared)).collect()
    values = {column: [row[n] for row in found] for n, column in enumerate((WEIGHT, "", *asked.compared))}
    return _seen(asked, values, matters=any(values.pop("")))


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
    values = spreads.measured(asked.compared, found)
    return FirstRead(asked.name, frozenset(asked.columns), *rows_and_went, bool(found["matter"]), values)


def _seen(asked: Asked, seen: Mapping[str, Sequence[Any]], *, matters: bool) -> FirstRead:
    rows, went = len(seen[WEIGHT]), sum(weight < 0 for weight in seen[WEIGHT])
    found = ((column, spreads.spread_of(seen[column])) for column in asked.compared)
    values = {column: spread for column, spread in found if spread is not None}
    return FirstRead(asked.name, frozenset(asked.columns), rows, went, matters and rows > 0, values, seen)
