"""What window functions mean, over plain rows."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from viewkeeper.algebra.relations import Ordering, Window, WindowColumn, names
from viewkeeper.testing.values import Row, Value, compiled

_FRAME = re.compile(r"ROWS BETWEEN (UNBOUNDED|\d+) PRECEDING AND (CURRENT ROW|UNBOUNDED FOLLOWING|(\d+) FOLLOWING)")
_EDGE = r"(CURRENT ROW|(?:UNBOUNDED|\d+) (?:PRECEDING|FOLLOWING))"
_DISTANCE = re.compile(f"RANGE BETWEEN {_EDGE} AND {_EDGE}")


def in_order(rows: list[Row], columns: tuple[str, ...], order_by: tuple[Ordering, ...]) -> list[Row]:
    """The rows sorted; equal ones stay as they were."""
    for order in reversed(order_by):
        at = columns.index(order.column)
        present = [r for r in rows if r[at] is not None]
        missing = [r for r in rows if r[at] is None]
        present.sort(key=lambda r: r[at], reverse=order.descending)  # type: ignore[arg-type, return-value]
        rows = missing + present if order.nulls_first else present + missing
    return rows


@dataclass(frozen=True)
class _Partition:
    """The rows of a partition in their order, and what each of them is ordered by."""

    columns: tuple[str, ...]
    rows: list[Row]
    keys: list[Row]
    descending: bool


def windowed(window: Window, bag: Counter[Row]) -> Counter[Row]:
    """Each row with the values of its window."""
    columns = names(window.input)
    at = [columns.index(c) for c in window.partition_by]
    partitions: dict[Row, list[Row]] = {}
    for row in bag.elements():
        partitions.setdefault(tuple(row[i] for i in at), []).append(row)
    result: Counter[Row] = Counter()
    for rows in partitions.values():
        ordered = in_order(rows, columns, window.order_by)
        keys = [tuple(r[columns.index(o.column)] for o in window.order_by) for r in ordered]
        descending = bool(window.order_by) and window.order_by[0].descending
        partition = _Partition(columns, ordered, keys, descending)
        added = [_values(column, partition) for column in window.columns]
        result.update((*row, *values) for row, *values in zip(ordered, *added, strict=True))
    return result


def _values(column: WindowColumn, over: _Partition) -> list[Value]:
    args = [compiled(a, over.columns) for a in column.args]
    rows, keys, positions = over.rows, over.keys, range(len(over.rows))
    match column.function:
        case "ROW_NUMBER":
            return [i + 1 for i in positions]
        case "RANK":
            return [keys.index(keys[i]) + 1 for i in positions]
        case "DENSE_RANK":
            return [len(dict.fromkeys(keys[: keys.index(keys[i])])) + 1 for i in positions]
        case "LAG":
            return [args[0](rows[i - 1]) if i else None for i in positions]
        case "LEAD":
            return [args[0](rows[i + 1]) if i + 1 < len(rows) else None for i in positions]
        case "COUNT" if not args:
            return [len(_frame(column, over, i)) for i in positions]
        case function:
            return [_AGGREGATES[function]([a(r) for r in _frame(column, over, i) for a in args]) for i in positions]


def _frame(column: WindowColumn, over: _Partition, i: int) -> list[Row]:
    """The rows of the frame that count."""
    where = compiled(column.where, over.columns) if column.where else None
    return [row for row in _around(column.frame, over, i) if where is None or where(row) is True]


def _around(frame: str, over: _Partition, i: int) -> list[Row]:
    rows, keys = over.rows, over.keys
    if not frame:  # up to the last row that is equal in order; all of them without an order
        return rows[: len(keys) - keys[::-1].index(keys[i])]
    if (near := _DISTANCE.fullmatch(frame)) is not None:
        return _near(near[1], near[2], over, i)
    found = _FRAME.fullmatch(frame)
    if found is None:
        raise NotImplementedError(f"the frame {frame}")
    start = 0 if found[1] == "UNBOUNDED" else max(0, i - int(found[1]))
    end = len(rows) if found[2].startswith("UNBOUNDED") else i + 1 + int(found[3] or 0)
    return rows[start:end]


def _near(first: str, last: str, over: _Partition, i: int) -> list[Row]:
    """The rows at a distance from this one; those without a place in the order are near each other alone."""
    here: Any = over.keys[i][0]

    def bound(edge: str) -> int:
        if here is None or edge == "CURRENT ROW":
            return 0
        distance, side = edge.split()
        return int(distance) * (-1 if side == "PRECEDING" else 1)

    def behind(there: Any) -> Any:
        return 0 if here is None else here - there if over.descending else there - here

    placed = [(j, behind(key)) for j, (key,) in enumerate(over.keys) if (key is None) == (here is None)]
    end = len(over.rows)
    start = 0 if "UNBOUNDED" in first else min((j for j, at in placed if at >= bound(first)), default=end)
    if "UNBOUNDED" not in last:
        end = max((j + 1 for j, at in placed if at <= bound(last)), default=0)
    return over.rows[start:end]


def _present(function: Callable[[list[Any]], Value]) -> Callable[[list[Any]], Value]:
    def measured(values: list[Any]) -> Value:
        present = [v for v in values if v is not None]
        return function(present) if present else None

    return measured


_AGGREGATES: dict[str, Callable[[list[Any]], Value]] = {
    "COUNT": lambda values: sum(v is not None for v in values),
    "SUM": _present(sum),
    "AVG": _present(lambda values: float(sum(values)) / len(values)),
    "MIN": _present(min),
    "MAX": _present(max),
    "FIRST_VALUE": lambda values: values[0] if values else None,
    "LAST_VALUE": lambda values: values[-1] if values else None,
}
