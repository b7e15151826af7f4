"""Orders without ties.

Where rows are equal in the order that a definition gives, Spark may take either first, and another time the other.
What is maintained must not depend on that: ties are broken by the other columns, which is one of the answers that
the definition allows, and always the same one.
"""

from __future__ import annotations

from viewkeeper.algebra.relations import Ordering, Relation, Schema, Top, Window, WindowColumn, inputs, with_inputs
from viewkeeper.algebra.types import not_comparable

_BY_ROW = frozenset({"ROW_NUMBER", "NTILE", "LAG", "LEAD"})


def without_ties(rel: Relation) -> Relation:
    """The relation with every order that picks single rows made total."""
    below = with_inputs(rel, tuple(without_ties(i) for i in inputs(rel)))
    match below:
        case Top(input, order_by, limit, offset):
            return Top(input, _total(order_by, input.schema), limit, offset)
        case Window(input, partition_by, order_by, columns):
            by_row = tuple(c for c in columns if _picks_rows(c))
            by_peers = tuple(c for c in columns if not _picks_rows(c))
            result = Window(input, partition_by, order_by, by_peers) if by_peers else input
            if by_row:
                result = Window(result, partition_by, _total(order_by, input.schema), by_row)
            return result
        case _:
            return below


def _picks_rows(column: WindowColumn) -> bool:
    return column.function in _BY_ROW or column.frame.upper().startswith("ROWS")


def _total(order_by: tuple[Ordering, ...], schema: Schema) -> tuple[Ordering, ...]:
    given = {o.column for o in order_by}
    return (*order_by, *(Ordering(f.name) for f in schema if f.name not in given and not not_comparable(f.type)))
