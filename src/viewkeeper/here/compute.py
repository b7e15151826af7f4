"""Relations of few rows, computed by this process, each part once.

What it cannot compute just as Spark does raises NotHereError.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Protocol

import numpy as np
import pyarrow as pa

from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Field,
    Filter,
    Generate,
    Join,
    Project,
    Relation,
    Scan,
    Top,
    Union,
    Values,
    Window,
    names,
)
from viewkeeper.algebra.scalars import ONE, Call, Scalar, conjunction, conjuncts, own_columns
from viewkeeper.algebra.types import BIGINT
from viewkeeper.here.groups import grouped
from viewkeeper.here.orders import first_rows, windowed
from viewkeeper.here.rows import Flags, Places, RowsHere, flags, one_array, pairs, stacked
from viewkeeper.here.types import Value, arrow_type, as_type, is_here
from viewkeeper.here.values import truth, value
from viewkeeper.store.columns import NotHereError
from viewkeeper.store.rows import Asked


class Leaves(Protocol):
    """Where rows come from: at least the columns of a leaf, by the names that its table has."""

    def changed(self, leaf: Changes) -> pa.Table: ...

    def state(self, leaf: Scan, asked: Asked | None) -> pa.Table:
        """All rows of a table, or at least those that meet a condition."""


class Computer:
    """Computes relations over the same leaves, of at most so many rows each."""

    def __init__(self, leaves: Leaves, most: int) -> None:
        self.leaves = leaves
        self.most = most
        self.known: dict[Relation, RowsHere | None] = {}

    def rows(self, rel: Relation) -> RowsHere:
        if rel not in self.known:
            try:
                self.known[rel] = self._rows(rel)
            except (NotHereError, pa.ArrowException):
                self.known[rel] = None
        found = self.known[rel]
        if found is None or found.count > self.most:
            raise NotHereError
        return found

    def _rows(self, rel: Relation) -> RowsHere:
        match rel:
            case Scan():
                return self._read(rel, self.leaves.state(rel, None))
            case Changes():
                return self._read(rel, self.leaves.changed(rel))
            case Values(fields, rows):
                return RowsHere({f.name: _cells(f, [row[n] for row in rows]) for n, f in enumerate(fields)}, len(rows))
            case Filter(input, predicate):
                below = self.rows(input) if not isinstance(input, Scan) else self._read_where(input, predicate)
                return below.where(truth(predicate, below.columns))
            case Project(input, items):
                below = self.rows(input)
                made = {i.name: as_type(value(i.value, below.columns), arrow_type(i.type)) for i in items}
                return RowsHere({name: below.filled(found) for name, found in made.items()}, below.count)
            case Join(lateral=False):
                return self._joined(rel)
            case Union(inputs):
                parts = [self._typed(self.rows(part), rel) for part in inputs]
                return stacked(parts)
            case Aggregate(input):
                return grouped(rel, self.rows(input))
            case Window(input):
                return windowed(rel, self.rows(input))
            case Top(input):
                return first_rows(rel, self.rows(input))
            case Generate(input, Call("EXPLODE", (Call("SEQUENCE", (first, last)),)), (made,), outer=False):
                below = self.rows(input)
                if first != ONE or made.type != BIGINT:
                    raise NotHereError
                return _copies(below, below.filled(value(last, below.columns)), made.name, self.most)
            case _:
                raise NotHereError

    def _read_where(self, scan: Scan, predicate: Scalar) -> RowsHere:
        """At least those rows of a table that fulfil a condition."""
        read = own_columns(predicate)
        tested = tuple(c for c in scan.columns if c.name in read)

        def meet(table: pa.Table) -> Flags:
            found = truth(predicate, {c.name: self._stored(table[c.source], c.type) for c in tested})
            return _met(found, len(table))

        asked = Asked(tuple(dict.fromkeys(c.source for c in tested)), meet) if tested else None
        return self._read(scan, self.leaves.state(scan, asked))

    def _read(self, leaf: Scan | Changes, table: pa.Table) -> RowsHere:
        found = {c.name: self._stored(table[c.source], c.type) for c in leaf.columns}
        weight = {WEIGHT: one_array(table[WEIGHT])} if isinstance(leaf, Changes) else {}
        return RowsHere({**found, **weight}, len(table))

    def _stored(self, column: pa.ChunkedArray, type_: str) -> pa.Array:
        found = one_array(column)
        if not is_here(found.type, type_):
            raise NotHereError
        return found

    def _typed(self, rows: RowsHere, rel: Relation) -> RowsHere:
        columns = {f.name: as_type(rows.columns[f.name], arrow_type(f.type)) for f in rel.schema}
        return RowsHere(columns, rows.count)

    def _joined(self, rel: Join) -> RowsHere:
        left, right = self.rows(rel.left), self.rows(rel.right)
        keys, others = _keys(rel)
        if keys:
            sides = [(value(a, left.columns), value(b, right.columns), null_too) for a, b, null_too in keys]
            mine, yours = pairs(left, right, sides, self.most)
        else:
            if left.count * right.count > self.most:
                raise NotHereError
            mine, yours = (
                np.repeat(np.arange(left.count), right.count),
                np.tile(np.arange(right.count), left.count),
            )
        if others:
            asked = conjunction(others)
            read = own_columns(asked)
            columns = {
                name: column.take(pa.array(places))
                for rows, places in ((left, mine), (right, yours))
                for name, column in rows.columns.items()
                if name in read
            }
            met = _met(truth(asked, columns), len(mine))
            mine, yours = mine[met], yours[met]
        return _put_together(rel, left, right, mine, yours)


@lru_cache(maxsize=1_000)
def can_compute(rel: Relation) -> bool:
    """Whether this process knows what the relation means, were all its rows here: it knows it of no rows at all."""
    try:
        Computer(_NoRows(), _FEW).rows(rel)
    except NotHereError:
        return False
    return True


_FEW = 1_000  # groups of everything are rows, too


class _NoRows:
    """Leaves without rows."""

    def changed(self, leaf: Changes) -> pa.Table:
        return _empty(leaf)

    def state(self, leaf: Scan, asked: Asked | None) -> pa.Table:
        found = _empty(leaf)
        if asked is not None:
            asked.meet(found)
        return found


def _empty(leaf: Scan | Changes) -> pa.Table:
    weight = [(WEIGHT, pa.int64())] if isinstance(leaf, Changes) else []
    return pa.schema([*({c.source: arrow_type(c.type) for c in leaf.columns}.items()), *weight]).empty_table()


def _cells(field: Field, cells: list[Scalar]) -> pa.Array:
    type_ = arrow_type(field.type)
    return pa.array([as_type(value(cell, {}), type_).as_py() for cell in cells], type_)


def _copies(rows: RowsHere, times: pa.Array, name: str, most: int) -> RowsHere:
    """Each row as often as it says, at least once, and the number of each copy."""
    if times.null_count or not pa.types.is_integer(times.type):
        raise NotHereError
    counts = times.to_numpy().astype(np.int64)
    if (counts < 1).any() or counts.sum() > most:
        raise NotHereError
    copies = rows.take(np.repeat(np.arange(rows.count), counts))
    begins = np.repeat(np.cumsum(counts) - counts, counts)
    return RowsHere({**copies.columns, name: pa.array(np.arange(copies.count) - begins + 1)}, copies.count)


def _met(found: Value, count: int) -> Flags:
    return np.full(count, bool(found.as_py())) if isinstance(found, pa.Scalar) else flags(found)


def _keys(rel: Join) -> tuple[list[tuple[Scalar, Scalar, bool]], list[Scalar]]:
    """The equations between the two sides, left side first, and all other conditions."""
    left, right = (frozenset(names(side)) for side in (rel.left, rel.right))
    keys: list[tuple[Scalar, Scalar, bool]] = []
    others: list[Scalar] = []
    for term in conjuncts(rel.condition):
        match term:
            case Call("=" | "<=>" as name, (a, b)) if own_columns(a) and own_columns(b):
                if own_columns(a) <= left and own_columns(b) <= right:
                    keys.append((a, b, name == "<=>"))
                    continue
                if own_columns(a) <= right and own_columns(b) <= left:
                    keys.append((b, a, name == "<=>"))
                    continue
            case _:
                pass
        others.append(term)
    return keys, others


def _put_together(rel: Join, left: RowsHere, right: RowsHere, mine: Places, yours: Places) -> RowsHere:
    """What becomes of the pairs that met, and of the rows that met none."""
    alone = np.ones(left.count, bool)
    alone[mine] = False
    match rel.kind:
        case "semi":
            return left.take(np.flatnonzero(~alone))
        case "anti":
            return left.take(np.flatnonzero(alone))
        case "inner":
            return left.take(mine).beside(right.take(yours))
        case "left" | "full":
            others = np.ones(right.count, bool)
            others[yours] = False
            more = np.flatnonzero(others) if rel.kind == "full" else np.empty(0, np.int64)
            missed = np.flatnonzero(alone)
            return left.take(_with_none(mine, missed, len(more), first=True)).beside(
                right.take(_with_none(yours, more, len(missed), first=False))
            )


def _with_none(met: Places, alone: Places, none: int, *, first: bool) -> pa.Array:
    """The places of pairs, then those of left rows alone, then those of right ones, NULL on the other side."""
    nothing = np.zeros(none, np.int64)
    places = np.concatenate([met, alone, nothing] if first else [met, nothing, alone])
    missing = np.zeros(len(places), bool)
    start = len(met) + len(alone) if first else len(met)
    missing[start : start + none] = True
    return pa.array(places, mask=missing)
