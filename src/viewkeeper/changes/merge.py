"""The refresh operator ⊔: how a change is merged into what is kept."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.relations import Item, Ordering, Schema
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.algebra.types import INTEGRAL
from viewkeeper.changes.kept import COUNT
from viewkeeper.changes.meeting import can_spread

OLD, CHANGE = "old.", "change."


@dataclass(frozen=True)
class MergeGroups:
    """V ⊔ □V on a key: for each change row the new value of every column, over `old.x` and `change.x`.

    `old.x` is NULL where the view has no such row. A row whose new count is 0 goes.
    """

    key: tuple[str, ...]
    columns: tuple[Item, ...]

    @property
    def count(self) -> Scalar:
        return next(item.value for item in self.columns if item.name == COUNT)


@dataclass(frozen=True)
class MergeBag:
    """Rows of positive weight come, rows of negative weight go, each as often as its weight says.

    If there is a `key`, no two rows of the view have the same values in it.
    """

    columns: Schema
    key: tuple[str, ...] = ()


@dataclass(frozen=True)
class MergeTop:
    """The change is merged like a bag's into the kept first rows, as far as these reach.

    Where not all rows are kept, a changed row behind the last kept one is left out: the rows between are not known.
    Nor is it known how many copies there are of the last one: it goes with the first of them.
    Fewer than `wanted` left are not enough; at most `room` are kept.
    """

    columns: Schema
    order_by: tuple[Ordering, ...]
    wanted: int
    room: int


Merge = MergeGroups | MergeBag | MergeTop


def found_by(merge: Merge) -> tuple[str, ...]:
    """The columns by whose values the view's rows that a change touches can be looked up, if there are any.

    Numbers and days are looked for sooner than texts, and tell rows apart as well.
    """
    match merge:
        case MergeGroups(key, columns):
            types = {item.name: item.type for item in columns if item.name in key}
        case MergeBag(columns, key):
            types = {field.name: field.type for field in columns if not key or field.name in key}
        case MergeTop():
            types = {}
    numbers = tuple(name for name, type_ in types.items() if type_ in INTEGRAL or type_ == "date")
    return numbers or tuple(name for name, type_ in types.items() if can_spread(type_))
