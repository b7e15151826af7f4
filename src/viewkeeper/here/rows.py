"""RowsHere that this process has, and how they meet: pairs and groups by numbers that stand for values."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from viewkeeper.here.types import Value, alike
from viewkeeper.store.columns import NotHereError

_ROOM = 1 << 62
_WIDE = 1 << 40
_CLOSE = 8  # numbers of which so many could lie between the least and the greatest, for each that does

Places = NDArray[np.int64]  # of rows
Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class RowsHere:
    """So many rows, by their columns, of which there may be none."""

    columns: Mapping[str, pa.Array]
    count: int

    @classmethod
    def of(cls, table: pa.Table) -> RowsHere:
        return cls({name: one_array(table[name]) for name in table.column_names}, len(table))

    @property
    def table(self) -> pa.Table:
        return pa.table(dict(self.columns))

    def only(self, names: Sequence[str]) -> RowsHere:
        return RowsHere({name: self.columns[name] for name in names}, self.count)

    def alike(self, names: Sequence[str]) -> tuple[Places, Places]:
        """The first place of each different row in these columns; and for each row, which of them it is like."""
        numbers = numbered([(self.columns[name], True) for name in names], self.count)
        _, firsts, which = np.unique(numbers, return_index=True, return_inverse=True)
        return firsts, which

    def take(self, places: Places | pa.Array) -> RowsHere:
        """The rows at these places; one of NULLs for a place that is NULL."""
        at = places if isinstance(places, pa.Array) else pa.array(places)
        return RowsHere(_Taken(self.columns, at), len(at))

    def where(self, met: Value) -> RowsHere:
        """The rows for which it is true."""
        if isinstance(met, pa.Scalar):
            return self if met.as_py() else self.take(np.empty(0, np.int64))
        return self.take(np.flatnonzero(flags(met)))

    def beside(self, other: RowsHere) -> RowsHere:
        return RowsHere(ChainMap(other.columns, self.columns), self.count)  # type: ignore[arg-type]

    def filled(self, value: Value) -> pa.Array:
        """A value for each row."""
        return pa.repeat(value, self.count) if isinstance(value, pa.Scalar) else one_array(value)


class _Taken(Mapping[str, pa.Array]):
    """Columns at some places, each of them taken when it is first asked for: many never are."""

    def __init__(self, columns: Mapping[str, pa.Array], at: pa.Array) -> None:
        self.columns = columns
        self.at = at
        self.taken: dict[str, pa.Array] = {}

    def __getitem__(self, name: str) -> pa.Array:
        if name not in self.taken:
            self.taken[name] = self.columns[name].take(self.at)
        return self.taken[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


def stacked(parts: Sequence[RowsHere]) -> RowsHere:
    """All rows of the parts, which have the same columns."""
    names = parts[0].columns
    columns = {name: pa.concat_arrays([part.columns[name] for part in parts]) for name in names}
    return RowsHere(columns, sum(part.count for part in parts))


def one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    found = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found


def flags(met: pa.Array) -> Flags:
    found: Flags = pc.fill_null(met, False).to_numpy(zero_copy_only=False)
    return found


def numbered(columns: Sequence[tuple[pa.Array, bool]], count: int) -> Places:
    """A number for each row, the same for rows with the same values, and −1 for one that is like none.

    With each column comes whether NULL is the same as NULL in it.
    """
    numbers: Places = np.zeros(count, np.int64)
    size = 1
    for values, null_too in columns:
        codes, sorts = _codes(values, null_too=null_too)
        alone = (codes < 0) | (numbers < 0)
        if size * sorts > _ROOM:
            _, numbers = np.unique(numbers, return_inverse=True)
            size = count + 1
        numbers = np.where(alone, -1, numbers * sorts + codes) if size > 1 or alone.any() else codes
        size *= sorts
    return numbers


def _codes(values: pa.Array, *, null_too: bool) -> tuple[Places, int]:
    """A number for each value, and how many numbers there are; −1 for a NULL that is like no other."""
    if pa.types.is_floating(values.type):
        raise NotHereError
    if pa.types.is_date32(values.type):
        values = values.cast(pa.int32())
    if pa.types.is_integer(values.type) and len(values) and not values.null_count:  # they are numbers already
        whole = values.to_numpy().astype(np.int64, copy=False)
        least, most = int(whole.min()), int(whole.max())
        if most - least < _WIDE:
            return whole - least, most - least + 1
    coded = values.dictionary_encode("encode" if null_too else "mask")
    codes = pc.fill_null(coded.indices, -1).to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), len(coded.dictionary) + 1


def pairs(
    left: RowsHere, right: RowsHere, keys: Sequence[tuple[Value, Value, bool]], most: int
) -> tuple[Places, Places]:
    """The places of all pairs of rows that have the same values for these keys, at most so many.

    With each key comes whether NULL is the same as NULL.
    """
    both = []
    for mine, yours, null_too in keys:
        a, b = alike(left.filled(mine), right.filled(yours))
        both.append((pa.concat_arrays([a, b]), null_too))
    numbers = numbered(both, left.count + right.count)
    mine_, yours_ = numbers[: left.count], numbers[left.count :]
    if left.count > right.count:
        return _met(mine_, yours_, most)
    theirs, ours = _met(yours_, mine_, most)
    return ours, theirs


def _met(many: Places, few: Places, most: int) -> tuple[Places, Places]:
    """The places of all pairs of equal numbers; the fewer ones are put in order."""
    if not len(few):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order = np.argsort(few, kind="stable")
    ordered = few[order]
    hit = np.flatnonzero((many >= max(ordered[0], 0)) & (many <= ordered[-1]))
    if ordered[-1] <= _CLOSE * len(many):  # most of them have no partner, as a list of all numbers tells at once
        listed = np.zeros(ordered[-1] + 1, bool)
        listed[ordered[ordered >= 0]] = True
        hit = hit[listed[many[hit]]]
    first = np.searchsorted(ordered, many[hit], "left")
    times = np.searchsorted(ordered, many[hit], "right") - first
    total = int(times.sum())
    if total > most:
        raise NotHereError
    begins = np.cumsum(times) - times
    at = np.repeat(first - begins, times) + np.arange(total)
    return np.repeat(hit, times), order[at]
