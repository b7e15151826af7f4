"""Session windows as window functions, once their types are known.

Rows of a key form a session as long as each comes less than the gap after the one before it:

    n = how many rows of the key, up to this one, come the gap or more after the one before them (or are the first)
    session_window = (min(ts), max(ts) + gap) over the rows of the key with the same n

So a change touches the sessions of its keys, and those of no other; without a key, those from its first row on.
"""

from __future__ import annotations

from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Generate,
    Item,
    Ordering,
    Project,
    Relation,
    Schema,
    Window,
    WindowColumn,
    inputs,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import ONE, ZERO, Call, Column, Literal, Scalar, Verbatim, call, own_columns
from viewkeeper.algebra.types import BIGINT

SESSION = "SESSION_WINDOW"


def without_sessions(rel: Relation) -> Relation:
    """The relation with plain operators for every group of session windows."""
    below = with_inputs(rel, tuple(without_sessions(i) for i in inputs(rel)))
    match below:
        case Aggregate(Project(rows, items), group_by):
            sessions = _below_filters(rows)
            if sessions is not None:
                return with_inputs(below, (_numbered(sessions, items, group_by),))
    return below


def has_sessions(rel: Relation) -> bool:
    """Whether there are session windows that are not made of plain operators."""
    own = isinstance(rel, Generate) and isinstance(rel.generator, Call) and rel.generator.name == SESSION
    return own or any(has_sessions(i) for i in inputs(rel))


def _below_filters(rel: Relation) -> Generate | None:
    """The sessions of filtered rows as those of the rows that the filters let through."""
    match rel:
        case Generate(generator=Call(name)) if name == SESSION:
            return rel
        case Filter(input, predicate):
            found = _below_filters(input)
            if found is not None and not own_columns(predicate) & {f.name for f in found.fields}:
                return Generate(Filter(found.input, predicate), found.generator, found.fields)
    return None


def _numbered(sessions: Generate, items: tuple[Item, ...], group_by: tuple[str, ...]) -> Relation:
    """The items over rows that know when their session starts and ends."""
    assert isinstance(sessions.generator, Call)
    at, gap = sessions.generator.args
    (window,) = sessions.fields
    keys = tuple(i for i in items if i.name in group_by and window.name not in own_columns(i.value))
    if not isinstance(gap, Literal):
        return Project(sessions, items)
    base = f"__vk_{window.name.removeprefix('__vk_')}"
    key_names = tuple(f"{base}_key_{n}" for n in range(len(keys)))
    time, before, first, number = (f"{base}_{part}" for part in ("at", "before", "first", "number"))
    type_ = _start(window)
    rows = Project(
        Filter(sessions.input, call("IS NOT NULL", at)),
        (
            *pass_through(_read(sessions.input.schema, items)),
            *(Item(n, i.value, i.type) for n, i in zip(key_names, keys, strict=True)),
            Item(time, at, type_),
        ),
    )
    order = (Ordering(time),)
    lagged = Window(rows, key_names, order, (WindowColumn(before, "LAG", (Column(time),), type_),))
    apart = call("OR", call("IS NULL", Column(before)), call(">", Column(time), _later(Column(before), gap)))
    starts = Project(lagged, (*pass_through(rows.schema), Item(first, call("IF", apart, ONE, ZERO), "int")))
    counted = Window(starts, key_names, order, (WindowColumn(number, "SUM", (Column(first),), BIGINT),))
    ends = (
        WindowColumn(f"{base}_start", "MIN", (Column(time),), type_),
        WindowColumn(f"{base}_end", "MAX", (Column(time),), type_),
    )
    spans = Window(counted, (*key_names, number), (), ends)
    start, end = Column(ends[0].name), _later(Column(ends[1].name), gap)
    span = call("NAMED_STRUCT", Literal("'start'"), start, Literal("'end'"), end)
    known = Project(spans, (*pass_through(_read(sessions.input.schema, items)), Item(window.name, span, window.type)))
    return Project(known, items)


def _read(schema: Schema, items: tuple[Item, ...]) -> Schema:
    used = frozenset[str]().union(*(own_columns(i.value) for i in items))
    return tuple(f for f in schema if f.name in used)


def _start(window: Field) -> str:
    """The type of a time in it: struct<start:timestamp,end:timestamp>."""
    return window.type.removeprefix("struct<start:").partition(",")[0]


def _later(time: Scalar, gap: Literal) -> Scalar:
    return Verbatim(("(", f" + INTERVAL {gap.sql})"), (time,))
