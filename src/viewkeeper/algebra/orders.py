"""Orders without ties.

Where rows are equal in the order that a definition gives, Spark may take either first, and another time the other.
What is maintained must not depend on that: ties are broken by the other columns, which is one of the answers that
the definition allows, and always the same one.

A frame that ends at the last row equal to the current one in the order (Spark's default) must still do so:

    ω_{P, O} f = ω_{P ∪ O, rest} last(ω_{P, O then rest, rows up to this one} f)
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.distances import WHOLE, by_distance, has_parts
from viewkeeper.algebra.identity import is_comparable
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Ordering,
    Project,
    Relation,
    Schema,
    Top,
    Window,
    WindowColumn,
    inputs,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import Column, Literal
from viewkeeper.algebra.types import FLOATING

_BY_ROW = frozenset({"ROW_NUMBER", "NTILE", "LAG", "LEAD"})
# Functions whose value is the same whichever way the rows of a frame are ordered.
_OF_BAGS = frozenset(
    """ANY APPROX_COUNT_DISTINCT AVG BIT_AND BIT_OR BIT_XOR BOOL_AND BOOL_OR COUNT COUNT_IF EVERY MAX MEAN MIN SOME SUM
    TRY_AVG TRY_SUM""".split()
)
# Functions whose value is the same in every computation, floating-point or not.
_EXACT = frozenset(
    """CUME_DIST DENSE_RANK MAX MEDIAN MIN PERCENTILE PERCENTILE_CONT PERCENTILE_DISC PERCENT_RANK RANK""".split()
)
# Functions that list values, for which Spark takes no order but that of WITHIN GROUP.
_LISTS = frozenset({"LISTAGG", "STRING_AGG"})
# Functions that look at rows behind the current one, whatever the frame.
_BEHIND = frozenset({"CUME_DIST", "LEAD", "NTILE", "PERCENT_RANK"})
_UP_TO_HERE = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
_FROM_HERE = "ROWS BETWEEN CURRENT ROW AND UNBOUNDED FOLLOWING"


def without_ties(rel: Relation) -> Relation:
    """The relation with every order that picks single rows made total."""
    below = with_inputs(rel, tuple(without_ties(i) for i in inputs(rel)))
    match below:
        case Top(input, order_by, limit, offset):
            return Top(input, _total(order_by, input.schema), limit, offset)
        case Window():
            return _settled(below)
        case _:
            return below


def is_settled(column: WindowColumn) -> bool:
    """Whether a window function over a total order gives the same answer in every computation."""
    by_row = column.function in _BY_ROW or column.frame.upper().startswith("ROWS")
    of_bag = column.function in _OF_BAGS and column.type not in FLOATING
    return by_row or of_bag or column.settled or column.function in _EXACT or _by_its_values(column)


def _by_its_values(column: WindowColumn) -> bool:
    """Whether WITHIN GROUP orders by the values themselves, so that the order of the rows tells nothing more."""
    within = {o.column for o in column.within}
    return bool(within) and all(a.name in within for a in column.args[:1] if isinstance(a, Column))


def only_looks_back(rel: Window) -> bool:
    """Whether all rows are in one order, and none depends on those behind it."""
    return not rel.partition_by and bool(rel.order_by) and all(map(looks_back, rel.columns))


def looks_back(column: WindowColumn) -> bool:
    """Whether the value of a row, in some order, depends on no row behind it and those equal to it."""
    if column.function in _BEHIND or "FOLLOWING" in column.frame.upper():
        return False
    offset = column.args[1] if column.function == "LAG" and len(column.args) > 1 else Literal("1")
    return isinstance(offset, Literal) and offset.sql.isdigit()


def of_groups(rel: Relation) -> bool:
    """Whether its rows are those of groups, perhaps not all, with more columns or fewer."""
    while isinstance(rel, Project | Filter | Top | Window):
        rel = rel.input
    return isinstance(rel, Aggregate)


def _settled(rel: Window) -> Relation:
    """A window per way of computing: in the order given, or in a total one."""
    by_peers, by_row, last, first, apart = [], [], [], [], []
    for column in map(_listed_by_values, rel.columns):
        frame = column.frame.upper().removeprefix("RANGE ")
        if column.function in _BY_ROW or column.frame.upper().startswith("ROWS"):
            by_row.append(column)
        elif is_settled(column):
            by_peers.append(column)
        elif not rel.order_by or frame == WHOLE.removeprefix("ROWS "):
            by_row.append(replace(column, frame=WHOLE))
        elif frame in ("", _UP_TO_HERE.removeprefix("ROWS ")):
            last.append(column)
        elif frame == _FROM_HERE.removeprefix("ROWS "):
            first.append(column)
        elif has_parts(column):
            apart.append(column)
        else:
            by_peers.append(column)
    total = _total(rel.order_by, rel.input.schema)
    result = replace(rel, columns=tuple(by_peers)) if by_peers else rel.input
    running = [*_running(last, _UP_TO_HERE), *_running(first, _FROM_HERE)]
    if by_row or running:
        result = Window(result, rel.partition_by, total, (*by_row, *running))
    given = tuple(o.column for o in rel.order_by)
    rest = tuple(o for o in total if o.column not in given)
    if running:
        keys = tuple(dict.fromkeys((*rel.partition_by, *given)))
        result = Window(result, keys, rest, (*_ends(last, "LAST_VALUE"), *_ends(first, "FIRST_VALUE")))
    if apart:
        result = by_distance(result, rel, apart, rest)
    return Project(result, pass_through(rel.schema)) if running or apart else result


def _listed_by_values(column: WindowColumn) -> WindowColumn:
    """A list in the order given, and then in that of its values."""
    if column.function not in _LISTS or _by_its_values(column):
        return column
    return replace(
        column, within=(*column.within, *(Ordering(a.name) for a in column.args[:1] if isinstance(a, Column)))
    )


def _running(columns: list[WindowColumn], frame: str) -> tuple[WindowColumn, ...]:
    return tuple(replace(c, name=f"{c.name}_run", frame=frame) for c in columns)


def _ends(columns: list[WindowColumn], function: str) -> tuple[WindowColumn, ...]:
    """The value that the last or the first of equal rows has."""
    return tuple(WindowColumn(c.name, function, (Column(f"{c.name}_run"),), c.type, WHOLE) for c in columns)


def _total(order_by: tuple[Ordering, ...], schema: Schema) -> tuple[Ordering, ...]:
    given = {o.column for o in order_by}
    return (*order_by, *(Ordering(f.name) for f in schema if f.name not in given and is_comparable(f.type)))
