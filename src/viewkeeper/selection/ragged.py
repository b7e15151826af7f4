"""Lists of unequal length as one array, so that many of them are read at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.intp]


class Ragged:
    """List i is `items[first[i] : first[i + 1]]`."""

    def __init__(self, keys: Sequence[int] | Places, items: Sequence[int] | Places, count: int) -> None:
        """Item k belongs to list keys[k]; its items keep their order."""
        owner = np.asarray(keys, dtype=np.intp)
        self.items: Places = np.asarray(items, dtype=np.intp)[np.argsort(owner, kind="stable")]
        self.first: Places = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=count)))).astype(np.intp)

    def of(self, lists: Places) -> tuple[Places, Places]:
        """The items of these lists, one list after the other, and where each starts."""
        first = self.first[lists]
        counts = self.first[lists + 1] - first
        starts = np.cumsum(counts) - counts
        return self.items[np.arange(counts.sum()) + np.repeat(first - starts, counts)], starts
