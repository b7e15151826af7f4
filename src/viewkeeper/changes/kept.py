"""What is kept of a view: groups with the state of their aggregates, rows as they are, or the first of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from viewkeeper.algebra.normalize import constants
from viewkeeper.algebra.relations import (
    Aggregate,
    Item,
    Measure,
    Ordering,
    Project,
    Relation,
    Top,
    Window,
    WindowColumn,
    pass_through,
)
from viewkeeper.algebra.scalars import Column, Literal, Scalar, call
from viewkeeper.algebra.types import BIGINT, BOOLEAN

COUNT = "__vk_count"
WHOLE = "__vk_whole"

How = OneOf["add", "least", "greatest", "sketch", "fresh", "drift"]


@dataclass(frozen=True)
class StateColumn:
    """One maintained column of a kept aggregate: its measure, and how a change is merged into it.

    `counted_by` names the column that counts the values behind a sum, which is NULL where that is 0, and `drift_of`
    the sum of floating-point numbers of which this column bounds the error.
    """

    measure: Measure
    merge: How
    why_fresh: str | None = None
    counted_by: str | None = None
    drift_of: str | None = None

    @property
    def name(self) -> str:
        return self.measure.name


@dataclass(frozen=True)
class KeptGroups:
    """An aggregate kept as one row per group, found by its `key`."""

    input: Relation
    key: tuple[str, ...]
    states: tuple[StateColumn, ...]

    @property
    def content(self) -> Relation:
        return Aggregate(self.input, self.key, tuple(s.measure for s in self.states))

    @property
    def constants(self) -> Mapping[str, Scalar]:
        """The columns of the input that are the same in all rows, such as the settings of an aggregate."""
        return constants(self.input)

    @property
    def drifts(self) -> tuple[StateColumn, ...]:
        """The bounds on the error of sums of floating-point numbers."""
        return tuple(s for s in self.states if s.drift_of is not None)


@dataclass(frozen=True)
class KeptBag:
    """Rows kept as they are, duplicates as so many rows."""

    content: Relation


@dataclass(frozen=True)
class KeptTop:
    """The first rows of `input`, more than the `wanted` ones, so that deleted rows are made up for by the next.

    `__vk_whole` says in every row whether there are no others than those kept; if none are kept, there are none.
    """

    input: Relation
    order_by: tuple[Ordering, ...]
    wanted: int
    reserve: int

    @property
    def room(self) -> int:
        return self.wanted + self.reserve

    @property
    def content(self) -> Relation:
        first = Top(self.input, self.order_by, self.room)
        counted = Window(first, (), (), (WindowColumn(COUNT, "COUNT", (), BIGINT),))
        whole = Item(WHOLE, call("<", Column(COUNT), Literal(str(self.room))), BOOLEAN)
        return Project(counted, (*pass_through(self.input.schema), whole))


Kept = KeptGroups | KeptBag | KeptTop
