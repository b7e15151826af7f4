"""A view's rows after a change, both of which this process has.   V ⊔ □V"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.changes.refresh import CHANGE, OLD, MergeBag, MergeGroups, MergeTop
from viewkeeper.changes.stored import COUNT, WHOLE
from viewkeeper.here.orders import in_order
from viewkeeper.here.rows import Flags, Places, RowsHere, flags, pairs, stacked
from viewkeeper.here.types import arrow_type, as_type
from viewkeeper.here.values import value
from viewkeeper.store.columns import NotHereError


@dataclass(frozen=True)
class Merged:
    """The rows to write, and how many came and went."""

    rows: RowsHere
    came: int
    went: int


def merged_groups(old: RowsHere, change: RowsHere, merge: MergeGroups) -> Merged:
    """(V ▷ □V) ⊎ (□V ⟕ V), on a key, without the groups whose count is 0."""
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
    kept = old.only([item.name for item in merge.columns])
    rows = stacked([kept.take(np.flatnonzero(untouched)), RowsHere(made, change.count).take(np.flatnonzero(stays))])
    return Merged(rows, int(stays.sum()), len(theirs))


def merged_bag(old: RowsHere, change: RowsHere, merge: MergeBag) -> Merged:
    """Old rows and change rows added up, each as often as is left of it."""
    came, went = came_and_went(change)
    names = [field.name for field in merge.columns]
    both = stacked([part.only(names) for part in (old, change)])
    firsts, which = both.alike(names)
    left = np.zeros(len(firsts), np.int64)
    np.add.at(left, which, np.concatenate([np.ones(old.count, np.int64), _weights(change)]))
    if (left < 0).any():
        raise NotHereError
    return Merged(both.take(np.repeat(firsts, left)), came, went)


def appended(change: RowsHere, merge: MergeBag) -> Merged:
    """Rows that came, each as often as it did."""
    rows = change.only([field.name for field in merge.columns])
    return Merged(rows.take(np.repeat(np.arange(change.count), _weights(change))), *came_and_went(change))


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
    return Merged(kept.beside(RowsHere({WHOLE: pa.repeat(all_of_them, kept.count)}, kept.count)), came, went)


def came_and_went(change: RowsHere) -> tuple[int, int]:
    weights = _weights(change)
    return int(weights[weights > 0].sum()), -int(weights[weights < 0].sum())


def _weights(change: RowsHere) -> Places:
    found: Places = change.columns[WEIGHT].to_numpy(zero_copy_only=False)
    return found
