"""What readers of a view see, where another view reads it."""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.relations import (
    Filter,
    Item,
    Ordering,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Top,
    Window,
    WindowColumn,
    names,
)
from viewkeeper.algebra.scalars import Column, Scalar, substitute
from viewkeeper.errors import InternalError
from viewkeeper.sql.labels import Labels


def with_own_names(public: Relation, labels: Labels) -> Relation:
    """The same rows, with no name that could clash with another use of them."""
    match public:
        case Scan(table, columns, state):
            return Scan(table, tuple(ScanColumn(c.source, labels.fresh(c.name), c.type) for c in columns), state)
        case Filter(input) | Project(input) | Top(input) | Window(input):
            inner = with_own_names(input, labels)
            by = dict(zip(names(input), names(inner), strict=True))
        case _:
            raise InternalError(f"a public view of an unknown form: {type(public).__name__}")
    columns_by: dict[str, Scalar] = {old: Column(new) for old, new in by.items()}

    def order(given: tuple[Ordering, ...]) -> tuple[Ordering, ...]:
        return tuple(replace(o, column=by[o.column]) for o in given)

    def over(column: WindowColumn) -> WindowColumn:
        return replace(
            column,
            name=labels.fresh(column.name),
            args=tuple(substitute(a, columns_by) for a in column.args),
            where=substitute(column.where, columns_by) if column.where is not None else None,
            within=order(column.within),
        )

    match public:
        case Filter(_, predicate):
            return Filter(inner, substitute(predicate, columns_by))
        case Project(_, items):
            renamed = (Item(labels.fresh(i.name), substitute(i.value, columns_by), i.type) for i in items)
            return Project(inner, tuple(renamed))
        case Top(_, order_by, limit, offset):
            return Top(inner, order(order_by), limit, offset)
        case Window(_, partition_by, order_by, functions):
            return Window(inner, tuple(by[k] for k in partition_by), order(order_by), tuple(map(over, functions)))
