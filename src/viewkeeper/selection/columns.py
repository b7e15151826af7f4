"""What everything costs with each of many candidates added: a column per candidate, all brought up to date together.

In a greedy run costs only fall. What a candidate leads to, U(x) for every node x, changes after something else was
taken only where the others' falls are deeper, U(x) ≤ Q(x), and where an arc uses both what the candidate and what the
others made cheaper: U(x) ≤ cost + Σ U(inputs). Following these two from level to level costs hardly more for many
candidates than for one, and so does following several candidates from where they start. What each candidate is worth
is known at every stage: Σ f·(Q - U) of queries, and of maintenance Σ g·(C - computed) over the views that are kept,
where C is what computing them costs without it. Only nodes below what is asked for or kept count for that: of
maintenance few at first, so that the first stages, which change what thousands of nodes cost, are followed in few.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set

import numpy as np
from numpy.typing import NDArray

from viewkeeper.selection.costs import Side
from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.ragged import Places, Ragged
from viewkeeper.selection.reach import Floats

Bools = NDArray[np.bool_]
_ENTRIES = 8_000_000  # of all columns: 64 MB
_WIDTH = 72  # columns at first; not a power of 2, for which all of a column would meet in a few lines of the cache
_AT_ONCE = 20_000  # entries that are computed together, though some of them may change once more


class Columns:
    """The first column is of no candidate, the others are of `candidates`.

    used         what every node costs one that uses it, a row per node; one row more for inputs that are none
    least        the least of each row, or less
    computed     what computing it costs, a row per node that is `watched`: what counts of it is the arc, not its price
    total        Σ per_use·used, and Σ per_computation·computed over the watched
    counts       whether a node, or one above it, is asked for or watched; rows of others are not brought up to date
    """

    def __init__(self, graph: Numbered, side: Side, per_use: Sequence[float]) -> None:
        self.graph = graph
        self.side = side
        self.per_use = np.array(per_use)
        self.price = np.array(side.price)
        level = [0] * len(graph)
        for x, inputs in enumerate(graph.inputs):
            level[x] = max((level[j] + 1 for j in inputs), default=0)
        arcs = sorted((level[x], x, cost, inputs) for x, ways in enumerate(side.arcs) for cost, inputs in ways)
        most = max((len(inputs) for *_, inputs in arcs), default=0)
        padded = [(*inputs, *[len(graph)] * (most - len(inputs))) for *_, inputs in arcs]
        self.inputs = np.array(padded, dtype=np.intp).reshape(len(arcs), most)
        self.own = np.array([cost for _, _, cost, _ in arcs])
        self.user = np.array([x for _, x, _, _ in arcs], dtype=np.intp)
        self.level = np.array([at for at, *_ in arcs], dtype=np.intp)
        self.is_shared = np.array([len(set(inputs)) > 1 for *_, inputs in arcs], dtype=bool)
        users = [(j, a) for a, (*_, inputs) in enumerate(arcs) for j in set(inputs)]
        self.arcs_of = Ragged([j for j, _ in users], [a for _, a in users], len(graph))
        self.arcs_to = Ragged(self.user, np.arange(len(arcs)), len(graph))
        self.waits = np.zeros(len(arcs), dtype=bool)
        self.most = max(_WIDTH, _ENTRIES // (len(graph) + 1))
        self.candidates: list[int] = []
        self.nodes: dict[int, Sequence[int]] = {}
        self.used = np.zeros((len(graph) + 1, _WIDTH))
        self.used[:-1, 0] = side.used
        self.least = self.used[:, 0].copy()
        self.plain_computed = np.array(side.computed)
        self.computed = np.zeros((0, _WIDTH))
        self.per_computation = np.zeros(0)
        self.watched = np.full(len(graph), -1, dtype=np.intp)
        self.total = np.zeros(_WIDTH)
        self.total[0] = sum(often * cost for often, cost in zip(per_use, side.used, strict=True) if often)
        self.counts = np.zeros(len(graph), dtype=bool)
        self._count(i for i, often in enumerate(per_use) if often)

    @property
    def count(self) -> int:
        return len(self.candidates) + 1

    @property
    def room(self) -> int:
        return self.most - self.count

    def worth(self) -> Floats:
        """What each candidate is worth."""
        found: Floats = self.total[0] - self.total[1 : self.count]
        return found

    def watch(self, node: int, per_computation: float) -> None:
        """From now on it is worth so much if computing this node becomes cheaper by 1."""
        row = int(self.watched.max(initial=-1)) + 1
        if row == len(self.computed):
            self.computed = np.vstack((self.computed, np.zeros((64, len(self.total)))))
            self.per_computation = np.append(self.per_computation, np.zeros(64))
        self.watched[node] = row
        self.computed[row] = self.used[node] if self.counts[node] else self.side.computed[node]
        self.computed[row, 0] = self.side.computed[node]
        self.per_computation[row] = per_computation
        self.total += per_computation * self.computed[row]
        self._begin(self._count([node]))

    def _count(self, nodes: Iterable[int]) -> Places:
        """From now on these count, and so does all below; which did not before."""
        waiting, found = list(nodes), []
        while waiting:
            i = waiting.pop()
            if not self.counts[i]:
                self.counts[i] = True
                found.append(i)
                waiting += self.graph.inputs[i]
        return np.array(sorted(found), dtype=np.intp)

    def _begin(self, rows: Places) -> None:
        """These did not count until now."""
        used = np.array([self.side.used[i] for i in rows.tolist()])
        self.least[rows] = used
        self.used[rows] = used[:, None]
        if self.candidates and len(rows):
            every = slice(1, self.count)
            self._keep(rows, every)
            self.waits[self.arcs_to.of(rows)[0]] = True
            self._spread(every)

    def add(self, candidates: Mapping[int, Sequence[int]]) -> None:
        """A column for each candidate, with the nodes that it consists of."""
        first = self.count
        self.candidates += candidates
        self.nodes |= candidates
        while self.count > len(self.total):
            self.used, self.computed, self.total = _twice(self.used), _twice(self.computed), _twice(self.total)
        new = slice(first, self.count)
        for array in (self.used, self.computed, self.total):
            array[..., new] = array[..., :1]
        self._keep(np.array(sorted({i for nodes in candidates.values() for i in nodes}), dtype=np.intp), new)
        self._spread(new)

    def _keep(self, rows: Places, some: slice) -> None:
        """Those of these nodes that count become as cheap as in the columns of candidates that consist of them."""
        rows = rows[self.counts[rows]]
        place = {i: at for at, i in enumerate(rows.tolist())}
        lower = self.used[rows, some]
        for k, c in enumerate(self.candidates[some.start - 1 : some.stop - 1]):
            for i in self.nodes[c]:
                if i in place:
                    lower[place[i], k] = min(lower[place[i], k], self.price[i])
        self._wake(self._lower(rows, lower, some))

    def drop(self, gone: Set[int]) -> None:
        """Forgets the columns of these candidates; the last ones come into their places."""
        stay = len(self.candidates) - len(gone)
        free = [k for k, c in enumerate(self.candidates[:stay]) if c in gone]
        last = [k for k, c in enumerate(self.candidates[stay:], stay) if c not in gone]
        for k, other in zip(free, last, strict=True):
            self.candidates[k] = self.candidates[other]
        del self.candidates[stay:]
        for c in gone:
            del self.nodes[c]
        for array in (self.used, self.computed, self.total):
            array[..., [k + 1 for k in free]] = array[..., [k + 1 for k in last]]

    def take(self, fallen: Iterable[int]) -> None:
        """These have become cheaper without any candidate."""
        rows, every = np.array(sorted(fallen), dtype=np.intp), slice(0, self.count)
        self.plain_computed[rows] = [self.side.computed[i] for i in rows.tolist()]
        rows = rows[self.counts[rows]]
        self._lower(rows, np.array([self.side.used[i] for i in rows.tolist()])[:, None], every)
        self._lower_computed(rows, self.plain_computed[rows, None], every)
        self._wake(rows)
        # What only passes on what has fallen has fallen itself.
        self.waits &= self.is_shared
        while len(arcs := self._next_arcs(self.count)):
            self._pass_on(arcs[self._may_help(arcs)], every)

    def _wake(self, rows: Places) -> None:
        """What these are used for waits to be looked at, as far as it counts."""
        arcs, _ = self.arcs_of.of(rows)
        self.waits[arcs[self.counts[self.user[arcs]]]] = True

    def _spread(self, some: slice) -> None:
        while len(arcs := self._next_arcs(some.stop - some.start)):
            self._pass_on(arcs, some)

    def _next_arcs(self, columns: int) -> Places:
        """Arcs that wait, of the lowest levels; they wait no longer.

        What waits on more than one level is looked at together where it is little: an arc whose inputs change once more
        waits once more, and that costs less than going level by level.
        """
        arcs = np.flatnonzero(self.waits)
        if len(arcs):
            at_once = min(_AT_ONCE // columns, len(arcs) - 1)
            arcs = arcs[: np.searchsorted(self.level[arcs], self.level[arcs[at_once]], side="right")]
            self.waits[arcs] = False
        return arcs

    def _may_help(self, arcs: Places) -> Bools:
        """Whether an arc could be the cheapest in any column: not where its inputs at their best do not make it so."""
        users = self.user[arcs]
        now = np.where(self.watched[users] >= 0, self.plain_computed[users], self.used[users, 0])
        may: Bools = self.own[arcs] + self.least[self.inputs[arcs]].sum(axis=1) < now
        return may

    def _pass_on(self, arcs: Places, some: slice) -> None:
        """Takes these arcs where they are cheaper, in all of some columns."""
        if not len(arcs):
            return
        used, (first, *others) = self.used[:, some], self.inputs[arcs].T
        cost = used[first]
        cost += self.own[arcs, None]
        for inputs in others:
            cost += used[inputs]
        users, least = _least(self.user[arcs], cost)
        self._lower_computed(users, least, some)
        self._wake(self._lower(users, least, some))

    def _lower(self, rows: Places, costs: Floats, some: slice) -> Places:
        """Lowers nodes to these costs, where they cost more; which of them that were."""
        used = self.used[:, some]
        before = used[rows]
        after = np.minimum(before, costs)
        has_fallen = (after < before).any(axis=1)
        if not has_fallen.all():
            rows, before, after = rows[has_fallen], before[has_fallen], after[has_fallen]
        used[rows] = after
        self.least[rows] = np.minimum(self.least[rows], after.min(axis=1, initial=math.inf))
        asked = self.per_use[rows] > 0
        if not asked.all():
            before, after = before[asked], after[asked]
        self.total[some] -= _weighted(self.per_use[rows[asked]], np.subtract(before, after, out=before))
        return rows

    def _lower_computed(self, rows: Places, costs: Floats, some: slice) -> None:
        """The same of computing them, for those that are watched."""
        at = self.watched[rows]
        is_watched = at >= 0
        if not is_watched.any():
            return
        at, costs = at[is_watched], costs[is_watched]
        before = self.computed[at, some]
        after = np.minimum(before, costs)
        self.computed[at, some] = after
        self.total[some] -= _weighted(self.per_computation[at], before - after)


def _least(keys: Places, rows: Floats) -> tuple[Places, Floats]:
    """The distinct of these sorted keys, and for each the least of its rows, entry by entry.

    Few keys have several rows; `minimum.reduceat` along the first axis takes many times longer.
    """
    starts = np.flatnonzero(np.diff(keys, prepend=-1))
    if len(starts) == len(keys):
        return keys, rows
    counts = np.diff(starts, append=len(keys))
    least = rows[starts]
    for k in range(1, int(counts.max())):
        more = np.flatnonzero(counts > k)
        least[more] = np.minimum(least[more], rows[starts[more] + k])
    return keys[starts], least


def _weighted(weights: Floats, rows: Floats) -> Floats:
    """weights @ rows, by one thread: two of them wait for each other many times longer than they work."""
    found: Floats = np.einsum("i,ij->j", weights, rows)
    return found


def _twice(array: Floats) -> Floats:
    """Twice as many columns, the new ones 0."""
    wide = np.zeros((*array.shape[:-1], 2 * array.shape[-1]))
    wide[..., : array.shape[-1]] = array
    return wide
