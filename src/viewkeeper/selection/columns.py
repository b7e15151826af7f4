"""What everything costs with each of many candidates added: a column per candidate, all brought up to date together.

In a greedy run costs only fall. What a candidate leads to, U(x) for every node x, changes after something else was
taken only where the others' falls are deeper, U(x) ≤ Q(x), and where an arc uses both what the candidate and what the
others made cheaper: U(x) ≤ cost + Σ U(inputs). Following these two from level to level costs hardly more for many
candidates than for one, so that what each still saves, Σ f·(Q - U), is known at every stage.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from viewkeeper.selection.costs import Side
from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.ragged import Places, Ragged
from viewkeeper.selection.reach import Floats

_ENTRIES = 8_000_000  # of all columns: 64 MB


class Columns:
    """Candidates that have a column, and the arcs of the graph as arrays, by level: the longest way down from its view.

    Inputs are padded with one more node, which costs nothing, so that all arcs have as many.
    """

    def __init__(self, graph: Numbered, side: Side) -> None:
        self.side = side
        self.worth = np.array(graph.queries)
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
        self.waits = np.zeros(len(arcs), dtype=bool)
        self.most = max(64, _ENTRIES // (len(graph) + 1))
        self.plain = np.array(side.used)
        self.used = np.zeros((len(graph) + 1, 64))
        self.total = np.zeros(64)
        self.candidates: list[int] = []

    def add(self, c: int, found: dict[int, tuple[float, float]], total: float) -> None:
        """A column for candidate c: what was found to change by it, and the cost of all queries with it."""
        k = len(self.candidates)
        if k == self.used.shape[1]:
            self.used = np.hstack((self.used, np.zeros_like(self.used)))[:, : self.most]
            self.total = np.hstack((self.total, np.zeros_like(self.total)))[: self.most]
        self.used[:-1, k] = self.plain
        self.used[list(found), k] = [used for _, used in found.values()]
        self.total[k] = total
        self.candidates.append(c)

    @property
    def is_full(self) -> bool:
        return len(self.candidates) == self.most

    def drop(self, c: int) -> None:
        """Forgets the column of candidate c; the last one comes into its place."""
        k = self.candidates.index(c)
        self.candidates[k] = self.candidates[-1]
        self.candidates.pop()
        self.used[:, k] = self.used[:, len(self.candidates)]
        self.total[k] = self.total[len(self.candidates)]

    def take(self, fallen: Iterable[int]) -> None:
        """These have become cheaper without any candidate."""
        rows = np.array(sorted(fallen), dtype=np.intp)
        self.plain[rows] = [self.side.used[i] for i in rows.tolist()]
        self._lower(rows, np.broadcast_to(self.plain[rows, None], (len(rows), len(self.candidates))))
        self.waits[self.arcs_of.of(rows)[0]] = True
        # What only passes on what has fallen has fallen itself.
        self.waits &= self.is_shared
        while len(arcs := np.flatnonzero(self.waits)):
            lowest = arcs[self.level[arcs] == self.level[arcs[0]]]
            self.waits[lowest] = False
            self._pass_on(lowest)

    def _pass_on(self, arcs: Places) -> None:
        """Takes these arcs, all of one level, where they are cheaper."""
        count = len(self.candidates)
        cost = np.repeat(self.own[arcs][:, None], count, axis=1)
        for position in range(self.inputs.shape[1]):
            cost += self.used[self.inputs[arcs, position], :count]
        users = self.user[arcs]
        starts = np.flatnonzero(np.diff(users, prepend=-1))
        fell = self._lower(users[starts], np.minimum.reduceat(cost, starts, axis=0))
        self.waits[self.arcs_of.of(fell)[0]] = True

    def _lower(self, rows: Places, costs: Floats) -> Places:
        """Lowers nodes to these costs, where they cost more; which of them that were."""
        count = len(self.candidates)
        before = self.used[rows, :count]
        is_less = (costs < before).any(axis=1)
        rows, costs, before = rows[is_less], costs[is_less], before[is_less]
        after = np.minimum(before, costs)
        self.used[rows, :count] = after
        asked = self.worth[rows] > 0
        self.total[:count] -= self.worth[rows][asked] @ (before[asked] - after[asked])
        return rows
