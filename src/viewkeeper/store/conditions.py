"""Conditions on rows that this process has, as far as they mean here just what they mean to Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import partial, reduce
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.conditions import NULL_TEST, between, in_list, like
from viewkeeper.algebra.kinds import Constant, Kind, kind_of, literal, number
from viewkeeper.algebra.scalars import TRUE, Call, Column, Scalar, Verbatim, conjuncts

Truth: TypeAlias = pa.ChunkedArray  # of each row, NULL where it is neither true nor false

_COMPARISONS: dict[str, Callable[[Any, Any], Truth]] = {
    "=": pc.equal,
    "<>": pc.not_equal,
    "<": pc.less,
    "<=": pc.less_equal,
    ">": pc.greater,
    ">=": pc.greater_equal,
}
_COMPARED: frozenset[Kind] = frozenset(("number", "string", "date"))  # NaN has another place here, a time another zone


def fulfilling(
    rows: pa.Table, types: Mapping[str, str], conditions: Sequence[Scalar]
) -> tuple[pa.Table, tuple[Scalar, ...]]:
    """Rows with columns of these types, without some that do not fulfil the conditions; and those left to ask."""
    left = []
    for term in (term for condition in conditions for term in conjuncts(condition) if term != TRUE):
        truth = _Rows(rows, types).truth(term)
        if truth is None:
            left.append(term)
        else:
            rows = rows.filter(truth)
    return rows, tuple(left)


@dataclass(frozen=True)
class _Rows:
    rows: pa.Table
    types: Mapping[str, str]

    def truth(self, condition: Scalar) -> Truth | None:
        try:
            return self._truth(condition)
        except pa.ArrowException:  # numbers of more digits than it has
            return None

    def _truth(self, condition: Scalar) -> Truth | None:
        match condition:
            case Call("AND", (left, right)):
                return _of(pc.and_kleene, self._truth(left), self._truth(right))
            case Call("OR", (left, right)):
                return _of(pc.or_kleene, self._truth(left), self._truth(right))
            case Call("NOT", (arg,)):
                return _of(pc.invert, self._truth(arg))
            case Call(name, (Column(column),)) if name in NULL_TEST and column in self.types:
                return (pc.is_null if name == "IS NULL" else pc.is_valid)(self.rows[column])
            case Call(name, (left, right)) if name in _COMPARISONS:
                kind = self.kind(left) or self.kind(right)
                return _of(_COMPARISONS[name], self.value(left, kind), self.value(right, kind)) if kind else None
            case Verbatim() if (ends := between(condition)) is not None:
                return self._truth(ends)
            case Verbatim(args=(Column() as tested,)) if constants := in_list(condition):
                return self.among(tested, constants)
            case Verbatim(args=(Column() as tested,)) if (found := like(condition)) and self.kind(tested) == "string":
                if found.any_case or "_" in found.pattern:
                    return None
                met = pc.match_like(self.rows[tested.name], found.pattern)
                return pc.invert(met) if found.negated else met
            case _:
                return None

    def kind(self, scalar: Scalar) -> Kind | None:
        """The kind of a column whose values are in the same order here."""
        kind = kind_of(self.types[scalar.name]) if isinstance(scalar, Column) and scalar.name in self.types else None
        return kind if kind in _COMPARED else None

    def value(self, scalar: Scalar, kind: Kind) -> pa.ChunkedArray | pa.Scalar | None:
        """A column of this kind, or a constant."""
        if isinstance(scalar, Column):
            return self.rows[scalar.name] if self.kind(scalar) == kind else None
        if kind == "number":
            value = number(scalar)
            return pa.scalar(Decimal(literal(value).sql)) if value is not None else None
        rank = Constant(kind, scalar).rank
        return pa.scalar(rank.decode() if isinstance(rank, bytes) else rank) if rank is not None else None

    def among(self, tested: Column, constants: Sequence[Scalar]) -> Truth | None:
        kind = self.kind(tested)
        if kind is None:
            return None
        met = (_of(pc.equal, self.rows[tested.name], self.value(one, kind)) for one in constants)
        return reduce(partial(_of, pc.or_), met)


def _of(function: Callable[..., Truth], *args: Any) -> Truth | None:
    """What it makes of arguments that are all known."""
    return None if any(arg is None for arg in args) else function(*args)
