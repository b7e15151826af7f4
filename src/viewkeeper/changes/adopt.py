"""A new definition over what an old one has kept: the new content from the old one, where that is exact.

Both definitions are compared as products of the same relations, with conditions and computed columns above them.
What is kept holds the new rows if the old conditions are among the new ones, and if all that is new is made of what
is kept. Nothing but the old table is read, so that the result shows the source versions that the old table shows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.display import show_measure, show_scalar
from viewkeeper.algebra.identity import is_comparable
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Item,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Schema,
    Window,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import Cast, Column, Scalar, conjunction, own_columns, rebuild, substitute
from viewkeeper.algebra.types import FLOATING
from viewkeeper.changes.kept import Kept, KeptBag, KeptGroups, KeptTop
from viewkeeper.changes.same import Flat, flat, same_leaves, signature
from viewkeeper.changes.states import WIDE_INTEGER

# Integers of which no group has so many that their sum leaves bigint.
_SHORT = frozenset({"tinyint", "smallint", "int"})


class _CannotAdoptError(Exception):
    def __init__(self, construct: str, why: str) -> None:
        super().__init__(construct, why)
        self.reason = Reason(construct, why)


def adopt(was: Kept, wanted: Kept, backing: str) -> Relation | Reason:
    """The content of `wanted` over the table that holds `was`, or why it cannot be had from there.

    It is a plain scan if the table can stay as it is.
    """
    table = Scan(backing, tuple(ScanColumn(f.name, f.name, f.type) for f in was.content.schema))
    if was.content == wanted.content:
        return table
    try:
        match wanted:
            case KeptBag(content):
                return _rows(_kept_rows(was), content, table)
            case KeptTop(input):
                return replace(wanted, input=_rows(_kept_rows(was), input, table)).content
            case KeptGroups() if isinstance(was, KeptGroups):
                return _groups(was, wanted, table)
            case KeptGroups(input):
                return replace(wanted, input=_rows(_kept_rows(was), input, table)).content
            case _:
                assert_never(wanted)
    except _CannotAdoptError as found:
        return found.reason


def describe_adoption(adopted: Relation) -> str:
    """In a few words, what becomes of the rows of the old table."""
    match adopted:
        case Aggregate():
            return "grouped"
        case Project(Window()):
            return "the first of them"
        case Project(Filter(_, predicate)):
            return f"filtered by {show_scalar(predicate)}"
        case Project():
            return "with other columns"
        case _:
            return "unchanged"


def _kept_rows(kept: Kept) -> Relation:
    match kept:
        case KeptBag(content):
            return content
        case KeptGroups():
            raise _CannotAdoptError("its rows", "only groups of them are kept")
        case KeptTop():
            raise _CannotAdoptError("its rows", "only the first of them are kept")
        case _:
            assert_never(kept)


def _rows(was: Relation, wanted: Relation, table: Scan) -> Relation:
    """π_A σ_{q ∧ r} E = π_A σ_r (π_B σ_q E), where A and r are made of the columns B."""
    old = flat(was)
    new = _in_terms_of(old, flat(wanted))
    kept = _by_value(old.items)
    more = [_made_of(kept, term) for term in _narrowing(old, new)]
    return _taken(table, more, [_made_of(kept, new.items[n]) for n in names(wanted)], wanted.schema)


def _groups(was: KeptGroups, wanted: KeptGroups, table: Scan) -> Relation:
    """γ_G f(A) of σ_{q ∧ r} E = σ_r (γ_G f(A) of σ_q E), where r is made of the columns G."""
    old = flat(was.input)
    new = _in_terms_of(old, flat(wanted.input))
    by_value = {old.items[k]: Column(k) for k in was.key}
    keys = [by_value[new.items[k]] for k in wanted.key if new.items[k] in by_value]
    if len(keys) < len(wanted.key) or set(keys) != set(by_value.values()):
        raise _CannotAdoptError("its groups", "they are formed by other columns than the kept ones")
    more = _narrowing(old, new)
    if more and not was.key:
        raise _CannotAdoptError(f"filter {_shown(more[0])}", "the one kept group counts rows that it drops")
    types = {f.name: f.type for f in was.content.schema}
    exact = _by_value({k: old.items[k] for k in was.key if not _blurred(types[k])})
    values = [_measured(was, old, s.measure, new, wanted) for s in wanted.states]
    return _taken(table, [_made_of(exact, term) for term in more], [*keys, *values], wanted.content.schema)


def _in_terms_of(old: Flat, new: Flat) -> Flat:
    """The new definition over the old one's relations."""
    same = same_leaves(old, new)
    if same is None:
        raise _CannotAdoptError("its rows", "they come from other tables, joins or groups than the kept ones")
    by: dict[str, Scalar] = {n: Column(o) for n, o in same.items()}
    for value in (*new.terms, *new.items.values()):
        unknown = own_columns(value) - set(by)
        if unknown:
            raise _CannotAdoptError(_shown(value), f"column {_plain(min(unknown))} was not read before")
    items = {name: substitute(value, by) for name, value in new.items.items()}
    return Flat(old.leaves, tuple(substitute(t, by) for t in new.terms), items)


def _narrowing(old: Flat, new: Flat) -> list[Scalar]:
    """The conditions that only the new definition has."""
    for term in old.terms:
        if term not in new.terms:
            raise _CannotAdoptError(f"filter {_shown(term)}", "the rows that it dropped are not kept")
    more = [t for t in dict.fromkeys(new.terms) if t not in old.terms]
    for term in more:
        if reads_clock(term):
            raise _CannotAdoptError(f"filter {_shown(term)}", "the moment that the kept rows show is not that of now")
    return more


def _by_value(items: Mapping[str, Scalar]) -> dict[Scalar, Column]:
    """Kept columns by what they hold. Constants are written again: Spark has rules of its own for literals."""
    return {value: Column(name) for name, value in items.items() if own_columns(value)}


def _made_of(kept: Mapping[Scalar, Column], value: Scalar) -> Scalar:
    """An expression over kept columns."""
    made = rebuild(value, kept.get)
    missing = own_columns(made) - {c.name for c in kept.values()}
    if missing:
        raise _CannotAdoptError(_shown(value), f"column {_plain(min(missing))} is not kept by itself")
    return made


def _blurred(type_: str) -> bool:
    """Whether rows of one group can differ in a key of this type: 0.0 and -0.0, strings of a collation."""
    return any(t in type_ for t in FLOATING) or not is_comparable(type_)


def _measured(was: KeptGroups, old: Flat, measure: Measure, new: Flat, wanted: KeptGroups) -> Scalar:
    """The kept column that is this measure, or a sum of the same integers in another type."""
    sought = signature(measure, new.items)
    types = [{f.name: f.type for f in groups.input.schema} for groups in (was, wanted)]
    for state in was.states:
        kept = signature(state.measure, old.items)
        if kept == sought and state.measure.type == measure.type:
            return Column(state.name)
        if measure.function == "sum" and replace(kept, args=sought.args) == sought:
            here, there = (kept.args[0], types[0][state.measure.args[0]]), (sought.args[0], types[1][measure.args[0]])
            if _widened(*here, there[0]) or _widened(*there, here[0]):
                return Cast(Column(state.name), measure.type)
    args = tuple(_shown(new.items[a]) for a in measure.args)
    where = _shown(new.items[measure.where]) if measure.where else None
    shown = show_measure(replace(measure, args=args, where=where)).partition(" = ")[2]
    raise _CannotAdoptError(shown, "nothing that is kept tells it")


def _widened(integers: Scalar, type_: str, wide: Scalar) -> bool:
    """Whether `wide` holds the same integers as an average adds them up."""
    return type_ in _SHORT and wide == Cast(integers, WIDE_INTEGER)


def _taken(table: Scan, more: list[Scalar], values: Iterable[Scalar], schema: Schema) -> Relation:
    """π_values σ_more of the old table."""
    types = {c.name: c.type for c in table.columns}
    items = tuple(Item(f.name, value, f.type) for f, value in zip(schema, values, strict=True))
    for item in items:
        if isinstance(item.value, Column) and types[item.value.name] != item.type:
            raise _CannotAdoptError(f"column {item.name}", f"its type was {types[item.value.name]}, now {item.type}")
    if not more and items == pass_through(table.schema):
        return table
    return Project(Filter(table, conjunction(more)) if more else table, items)


def _shown(value: Scalar) -> str:
    return show_scalar(substitute(value, {n: Column(_plain(n)) for n in own_columns(value)}))


def _plain(column: str) -> str:
    return column.partition(".")[2]
