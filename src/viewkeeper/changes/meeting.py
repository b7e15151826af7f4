"""Only the rows that can meet a small change: what is known of its values, asked of the tables it is joined with.

Spark compares such a condition with the statistics of files and of their parts, and leaves out what cannot hold a
match. By itself it would read all of a table and then look each row up in the change.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from decimal import Decimal
from itertools import pairwise
from typing import Any, assert_never

from viewkeeper.algebra.conditions import disjunction
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Generate,
    Join,
    Pivot,
    Project,
    Relation,
    Scan,
    SetOperation,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    names,
    with_inputs,
)
from viewkeeper.algebra.scalars import Call, Cast, Column, Literal, Scalar, call, conjunction, conjuncts, text_constant
from viewkeeper.algebra.types import INTEGRAL, decimal_parts

LISTED = 100  # more values than this are told by the runs they lie in
RUNS = 4

Value = int | str | date | Decimal
Run = tuple[Any, Any]  # the least and the greatest of some values, all of one type


@dataclass(frozen=True)
class Spread:
    """The values of a column: all of them where they are few, and a few runs that hold them, in order."""

    runs: tuple[Run, ...]
    listed: frozenset[Value] | None = None
    nulls: bool = False


Spreads = Mapping[tuple[str, str], Spread]  # by table and column
_Known = dict[str, Spread]


def can_spread(type_: str) -> bool:
    """Whether values of this type are told apart in the same way by SQL, by files' statistics and here."""
    return type_ in INTEGRAL or type_ in ("string", "date") or decimal_parts(type_) is not None


def compared(nodes: Iterable[Relation]) -> frozenset[str]:
    """The names of columns whose values a join may ask for, and of those that they are made of."""
    listed = list(nodes)
    found = {name for n in listed if isinstance(n, Join) for pair in met_columns(n) for name in pair[:2]}
    renamed = [
        (i.name, i.value.name) for n in listed if isinstance(n, Project) for i in n.items if isinstance(i.value, Column)
    ]
    while more := {own for name, own in renamed if name in found} - found:
        found |= more
    return frozenset(found)


def only_meeting(change: Relation, spreads: Spreads) -> Relation:
    """The same change, of tables narrowed to what can meet the changes whose values are known."""
    return _narrowed(change, spreads)[0] if spreads else change


def _narrowed(rel: Relation, spreads: Spreads) -> tuple[Relation, _Known]:
    """The relation, and the values that its columns have."""
    match rel:
        case Changes(table, columns):
            return rel, {c.name: spreads[table, c.source] for c in columns if (table, c.source) in spreads}
        case Scan() | Values():
            return rel, {}
        case Project(input, items):
            below, known = _narrowed(input, spreads)
            shown = ((i.name, i.value.name) for i in items if isinstance(i.value, Column))
            return replace(rel, input=below), {name: known[own] for name, own in shown if own in known}
        case Filter(input) | Window(input) | Top(input) | Generate(input):
            below, known = _narrowed(input, spreads)
            return with_inputs(rel, (below,)), known
        case Aggregate(input, group_by):
            below, known = _narrowed(input, spreads)
            return replace(rel, input=below), {c: spread for c, spread in known.items() if c in group_by}
        case Union(inputs):
            parts = [_narrowed(i, spreads) for i in inputs]
            return Union(tuple(part for part, _ in parts)), _any_of([known for _, known in parts])
        case Join():
            return _joined(rel, spreads)
        case SetOperation() | Pivot() | Unpivot():
            return rel, {}
        case _:
            assert_never(rel)


def _joined(rel: Join, spreads: Spreads) -> tuple[Relation, _Known]:
    (left, of_left), (right, of_right) = _narrowed(rel.left, spreads), _narrowed(rel.right, spreads)
    for ours, theirs, null_safe in met_columns(rel):
        if ours in of_left and theirs not in of_right and rel.kind != "full":
            of_right[theirs] = replace(of_left[ours], nulls=null_safe and of_left[ours].nulls)
            right = _where(right, theirs, of_right[theirs])
        elif theirs in of_right and ours not in of_left and rel.kind in ("inner", "semi"):
            of_left[ours] = replace(of_right[theirs], nulls=null_safe and of_right[theirs].nulls)
            left = _where(left, ours, of_left[ours])
    joined = replace(rel, left=left, right=right)
    match rel.kind:
        case "inner":
            return joined, {**of_left, **of_right}
        case "semi" | "anti":
            return joined, of_left
        case "left":
            return joined, {**of_left, **_padded(of_right)}
        case "full":
            return joined, {**_padded(of_left), **_padded(of_right)}
        case _:
            assert_never(rel.kind)


def _padded(known: _Known) -> _Known:
    return {c: replace(spread, nulls=True) for c, spread in known.items()}


def met_columns(rel: Join) -> Iterator[tuple[str, str, bool]]:
    """The columns of the left and of the right side that must be equal, and whether NULL equals NULL."""
    left, right = ({f.name: f.type for f in side.schema} for side in (rel.left, rel.right))
    for term in conjuncts(rel.condition):
        match term:
            case Call("=" | "<=>" as name, (Column(a), Column(b))):
                ours, theirs = (a, b) if a in left else (b, a)
                if ours in left and theirs in right and left[ours] == right[theirs]:
                    yield ours, theirs, name == "<=>"
            case _:
                pass


def _any_of(parts: list[_Known]) -> _Known:
    """What is known of a column in every part."""
    shared = set(parts[0]).intersection(*parts[1:])
    return {column: _together([known[column] for known in parts]) for column in shared}


def _together(spreads: list[Spread]) -> Spread:
    listed = [s.listed for s in spreads if s.listed is not None]
    values = frozenset[Value]().union(*listed)
    return Spread(
        few_runs(run for s in spreads for run in s.runs),
        values if len(listed) == len(spreads) and len(values) <= LISTED else None,
        any(s.nulls for s in spreads),
    )


def few_runs(runs: Iterable[Run]) -> tuple[Run, ...]:
    """At most RUNS of them that hold all that these do, with the widest gaps between them."""
    apart: list[Run] = []
    for least, greatest in sorted(runs):
        if apart and least <= apart[-1][1]:
            apart[-1] = (apart[-1][0], max(apart[-1][1], greatest))
        else:
            apart.append((least, greatest))
    gaps: Sequence[int] = range(1, len(apart))
    if apart and not isinstance(apart[0][0], str):  # texts have no distance
        gaps = sorted(gaps, key=lambda n: apart[n][0] - apart[n - 1][1], reverse=True)
    ends = [0, *sorted(gaps[: RUNS - 1]), len(apart)]
    return tuple((apart[a][0], apart[b - 1][1]) for a, b in pairwise(ends) if a < b)


def _where(rel: Relation, column: str, spread: Spread) -> Relation:
    """σ_{column among these values} E, if E reads a table at all."""
    if not any(isinstance(n, Scan) for n in walk(rel)) or column not in names(rel):
        return rel
    type_ = next(f.type for f in rel.schema if f.name == column)
    tested: Scalar = Column(column)
    if spread.listed is not None:
        among: Scalar = call("IN", tested, *(_constant(v, type_) for v in sorted(spread.listed)))
    else:
        among = disjunction(_between(tested, run, type_) for run in spread.runs)
    return _asked_first(rel, call("OR", call("IS NULL", tested), among) if spread.nulls else among)


def _asked_first(rel: Relation, condition: Scalar) -> Relation:
    """σ_c σ_p E as σ_{c ∧ p} E: of the rows that cannot meet the change, nothing else is asked, be it dear."""
    if isinstance(rel, Filter):
        return Filter(rel.input, conjunction([condition, *conjuncts(rel.predicate)]))
    return Filter(rel, condition)


def _between(tested: Scalar, run: Run, type_: str) -> Scalar:
    least, greatest = (_constant(end, type_) for end in run)
    return call("AND", call(">=", tested, least), call("<=", tested, greatest))


def _constant(value: Value, type_: str) -> Scalar:
    match value:
        case str():
            return text_constant(value)
        case int():
            return Literal(str(value))
        case date():
            return Cast(text_constant(value.isoformat()), type_)
        case Decimal():
            return Cast(Literal(f"{value:f}"), type_)
        case _:
            assert_never(value)
