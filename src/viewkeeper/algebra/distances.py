"""Frames by distance (RANGE BETWEEN 5 PRECEDING AND …), with one answer.

Spark takes one column to measure a distance by, so ties in it cannot be broken there. But such a frame holds all rows
that are equal in the order or none of them. So they are put together first, in an order of their own:

    ω_{P, o, by distance} sum(x)   = ω_{P, o, by distance} sum(y),   y = ω_{P ∪ o, rest} sum(x) in one of equal rows
    ω_{P, o, by distance} avg(x)   = ω_{P, o, by distance} sum(y) / count(x)
    ω_{P, o, by distance} first(x) = ω_{P, o, by distance} first(ω_{P ∪ o, rest} first(x))
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.relations import Item, Ordering, Project, Relation, Window, WindowColumn, pass_through
from viewkeeper.algebra.scalars import NULL, ONE, Column, call
from viewkeeper.algebra.types import BIGINT

_SUMS = frozenset({"SUM", "TRY_SUM"})
_AVERAGES = frozenset({"AVG", "MEAN", "TRY_AVG"})
_PICKS = frozenset({"ANY_VALUE", "FIRST", "FIRST_VALUE", "LAST", "LAST_VALUE"})
WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def has_parts(column: WindowColumn) -> bool:
    """Whether the function over a frame follows from its values over equal rows."""
    return column.function in _SUMS | _AVERAGES or (column.function in _PICKS and column.where is None)


def by_distance(below: Relation, window: Window, columns: list[WindowColumn], rest: tuple[Ordering, ...]) -> Relation:
    """The rows with these columns of the window, once the others are there; `rest` orders equal rows."""
    keys = tuple(dict.fromkeys((*window.partition_by, *(o.column for o in window.order_by))))
    number = f"{columns[0].name}_at"
    numbered = WindowColumn(number, "ROW_NUMBER", (), "int")
    peers = Window(below, keys, rest or window.order_by, (numbered, *map(_over_peers, columns)))
    once = call("=", Column(number), ONE)
    parts = tuple(
        Item(_part(c), Column(_peers(c)) if c.function in _PICKS else call("IF", once, Column(_peers(c)), NULL), c.type)
        for c in columns
    )
    rows = Project(peers, (*pass_through(below.schema), *parts))
    made = Window(rows, window.partition_by, window.order_by, tuple(f for c in columns for f in _over_parts(c)))
    averages = {c.name: call("/", Column(_sum(c)), Column(_count(c))) for c in columns if c.function in _AVERAGES}
    shown = (Item(c.name, averages.get(c.name, Column(c.name)), c.type) for c in columns)
    return Project(made, (*pass_through(below.schema), *shown))


def _over_peers(column: WindowColumn) -> WindowColumn:
    function = column.function if column.function in _PICKS else "SUM"
    return replace(column, name=_peers(column), function=function, frame=WHOLE)


def _over_parts(column: WindowColumn) -> tuple[WindowColumn, ...]:
    part = Column(_part(column))
    if column.function in _PICKS:
        return (replace(column, args=(part, *column.args[1:]), settled=True),)
    total = replace(column, function="SUM", args=(part,), where=None, settled=True)
    if column.function in _SUMS:
        return (total,)
    return replace(total, name=_sum(column)), replace(column, name=_count(column), function="COUNT", type=BIGINT)


def _peers(column: WindowColumn) -> str:
    return f"{column.name}_peers"


def _part(column: WindowColumn) -> str:
    return f"{column.name}_part"


def _sum(column: WindowColumn) -> str:
    return f"{column.name}_sum"


def _count(column: WindowColumn) -> str:
    return f"{column.name}_count"
