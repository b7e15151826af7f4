"""A view's rows after a change, both of which this process has.   V ⊔ □V"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.changes.kept import COUNT, WHOLE
from viewkeeper.changes.merge import CHANGE, OLD, MergeBag, MergeGroups, MergeTop
from viewkeeper.here.orders import in_order
from viewkeeper.here.rows import Flags, Places, RowsHere, flags, pairs, stacked
from viewkeeper.here.types import arrow_type, as_type
from viewkeeper.here.values import value
from viewkeeper.store.columns import NotHereError


@dataclass(frozen=True)
class Merged:
    """Which of a view's old rows stay, the rows that come to them, and how many came and went."""

    stay: Flags
    new: RowsHere
    came: int
    went: int

    def rows(self, old: RowsHere) -> RowsHere:
        """All rows of the view."""
        return stacked([old.only(list(self.new.columns)).take(np.flatnonzero(self.stay)), self.new])


def merged_groups(old: RowsHere, change: RowsHere, merge: MergeGroups) -> Merged:
    """(V ▷ □V) ⊎ (□V ⟕ V), on a key, without the groups whose count is 0.

    Of the old rows only those of touched groups need be there.
    """
    keys = [(old.columns[key], change.columns[key], True) for key in merge.key]
    theirs, ours = pairs(old, change, keys, change.count)
    found = np.full(change.count, -1, np.int64)
    found[ours] = theirs
    if len(np.unique(ours)) < len(ours) or len(np.unique(theirs)) < len(theirs):
        raise NotHereError  # the key is none
    was = old.take(pa.array(found, mask=found < 0))
    beside = {OLD + name: column for name, column in was.columns.items()}
    beside |= {CHANGE + name: column for name, column in change.columns.items()}
    made = {
        item.name: change.filled(as_type(value(item.value, beside), arrow_type(item.type))) for item in merge.columns
    }
    counts = pc.fill_null(made[COUNT], 0).to_numpy(zero_copy_only=False)
    if (counts < 0).any():
        raise NotHereError  # what cannot be is Spark's to say
    stays: Flags = counts > 0 if merge.key else np.ones(change.count, bool)
    untouched = np.ones(old.count, bool)
    untouched[theirs] = False
    new = RowsHere(made, change.count).take(np.flatnonzero(stays))
    return Merged(untouched, new, int(stays.sum()), len(theirs))


def merged_bag(old: RowsHere, change: RowsHere, merge: MergeBag) -> Merged:
    """Old rows less those that go, each as often as it does; and the rows that come, as often as they do.

    Old rows need only be there if they are like a row that goes: by the key, if there is one, else by all columns.
    """
    compared = list(merge.key) or [field.name for field in merge.columns]
    firsts, which = stacked([part.only(compared) for part in (old, change)]).alike(compared)
    ours, theirs, weights = which[: old.count], which[old.count :], _weights(change)
    come, go = (np.zeros(len(firsts), np.int64) for _ in range(2))
    np.add.at(come, theirs, np.maximum(weights, 0))
    np.add.at(go, theirs, np.maximum(-weights, 0))
    gone = _number_among_alike(ours) < go[ours]
    if gone.sum() < go.sum() or (merge.key and (~gone & (come[ours] > 0)).any()):
        raise NotHereError  # rows that are not there, or are there already: what cannot be is Spark's to say
    return Merged(~gone, appended(change, merge), *came_and_went(change))


def _number_among_alike(which: Places) -> Places:
    """For each row how many rows before it are like it."""
    order = np.argsort(which, kind="stable")
    ordered = which[order]
    begins = np.flatnonzero(np.diff(ordered, prepend=-1))
    numbers = np.empty(len(which), np.int64)
    numbers[order] = np.arange(len(which)) - np.repeat(begins, np.diff(begins, append=len(which)))
    return numbers


def appended(change: RowsHere, merge: MergeBag) -> RowsHere:
    """Rows that came, each as often as it did."""
    rows = change.only([field.name for field in merge.columns])
    return rows.take(np.repeat(np.arange(change.count), np.maximum(_weights(change), 0)))


def merged_top(old: RowsHere, change: RowsHere, merge: MergeTop) -> Merged:
    """The kept rows and the changed ones that can be placed among them (`MergeTop` says which), if there is room.

    Too few of them are not enough, and for Spark to tell.
    """
    names = [field.name for field in merge.columns]
    both = stacked([part.only(names) for part in (old, change)])
    firsts, which = both.alike(names)
    rows = both.take(firsts)
    order = in_order(rows, merge.order_by)
    was = np.bincount(which[: old.count], minlength=len(firsts))[order]
    weights = np.zeros(len(firsts), np.int64)
    np.add.at(weights, which[old.count :], _weights(change))
    weights = weights[order]
    whole = bool(flags(old.columns[WHOLE]).all())
    behind = was.sum() - np.cumsum(was)
    placed = (behind > 0) | (was > 0) | whole
    now = np.where((behind > 0) | (weights >= 0) | whole, was + weights, 0)[placed]
    if (now < 0).any():
        raise NotHereError
    was = was[placed]
    keep = np.clip(np.minimum(now, merge.room - (np.cumsum(now) - now)), 0, None)
    all_of_them = whole and int(now.sum()) < merge.room
    came, went = int(np.maximum(keep - was, 0).sum()), int(np.maximum(was - keep, 0).sum())
    if (came or went) and not all_of_them and keep.sum() < merge.wanted:
        raise NotHereError
    kept = rows.take(np.repeat(order[placed], keep))
    whole_too = RowsHere({WHOLE: pa.repeat(all_of_them, kept.count)}, kept.count)
    return Merged(np.zeros(old.count, bool), kept.beside(whole_too), came, went)


def came_and_went(change: RowsHere) -> tuple[int, int]:
    weights = _weights(change)
    return int(weights[weights > 0].sum()), -int(weights[weights < 0].sum())


def comes_and_goes(change: RowsHere, key: Sequence[str]) -> bool:
    """Whether any value of a key both comes and goes."""
    firsts, which = change.alike(key)
    came = _weights(change) > 0
    both = (np.bincount(which[way], minlength=len(firsts)) > 0 for way in (came, ~came))
    return bool(np.logical_and(*both).any())


def _weights(change: RowsHere) -> Places:
    found: Places = change.columns[WEIGHT].to_numpy(zero_copy_only=False)
    return found
