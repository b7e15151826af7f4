"""How far falling costs spread: the most that everything above a node can gain if the node becomes cheaper.

Let F(x) be by how much x falls. Taking arc a, F(x) ≤ Σ F(inputs) - slack(a), where slack(a) is what a costs more than x
does now. Nothing can fall further than D, its fall were everything kept, so with κ(a) = 1 - slack(a)/D(a)

    F(x) ≤ Σ over j of K(j,x)·F(j),   K(j,x) = max over the arcs a of x of κ(a)·(how often a uses j),

which is linear. So a fall of j by 1 is worth at most rate(j) = value(j) + Σ over x of K(j,x)·rate(x), and several falls
at once are worth at most the sum. One pass from the top down, over arrays, finds the rates of all nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from viewkeeper.selection.costs import Side
from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.reach import Floats

Places = NDArray[np.intp]


class Falls:
    """The arcs of one kind of cost as arrays, and the rates for the costs that were looked at last.

    An entry is an input of an arc, a pair an input and one that uses it by some arc. Pairs stand by the height of the
    input, the longest way from it to a node that nothing uses, so that a whole height is one step of the pass.
    """

    def __init__(self, graph: Numbered, side: Side, highest: Sequence[float], lowest: Sequence[float]) -> None:
        self.side = side
        height = _heights(graph)
        arcs = [(x, cost, inputs) for x, ways in enumerate(side.arcs) for cost, inputs in ways]
        entries = [(height[j], j, x, a, inputs.count(j)) for a, (x, _, inputs) in enumerate(arcs) for j in set(inputs)]
        entries.sort()
        self.own = np.array([cost for _, cost, _ in arcs])
        self.user = np.array([x for x, _, _ in arcs], dtype=np.intp)
        self.input = np.array([e[1] for e in entries], dtype=np.intp)
        self.arc = np.array([e[3] for e in entries], dtype=np.intp)
        self.often = np.array([float(e[4]) for e in entries])
        below = _below(graph)
        # Whether no other input of the arc falls when this one does, so that all its slack counts against this one.
        self.is_sole = np.array(
            [not any(below[k] >> j & 1 for k in arcs[a][2] if k != j) for _, j, _, a, _ in entries], dtype=bool
        )
        self.pairs = _starts([e[1:3] for e in entries])
        self.pair_input = self.input[self.pairs]
        self.pair_user = self.user[self.arc[self.pairs]]
        nodes = _starts(self.pair_input.tolist())
        bounds = [*_starts([height[i] for i in self.pair_input[nodes].tolist()]).tolist(), len(nodes)]
        ends = [*nodes.tolist(), len(self.pairs)]
        self.steps = [
            (self.pair_input[nodes[a:b]], slice(ends[a], ends[b]), nodes[a:b] - nodes[a]) for a, b in pairwise(bounds)
        ]
        self.lowest = np.array(lowest)
        self.price = np.array(side.price)
        # What cannot be had at all costs as much as nobody would pay, so that all numbers are finite.
        self.dear = max((cost for cost in highest if cost < np.inf), default=0.0)
        self.lowest[np.isinf(self.lowest)] = self.dear

    def of(self, side: Side) -> Falls:
        """The same arcs, for other costs."""
        other = copy(self)
        other.side = side
        return other

    def look(self, per_use: Floats, per_computation: Floats | None, most: Floats) -> None:
        """Finds the rates for what things cost now.

        per_use           what it is worth if a node gets cheaper by 1 to use
        per_computation   the same for computing it, whether or not it is kept; None for nothing
        most              rates that are known not to be exceeded
        """
        self.per_use, self.per_computation = per_use, per_computation
        self.used = np.minimum(self.side.used, self.dear)
        inputs = self.often * self.used[self.input]
        cost = self.own + _sums(self.arc, inputs, len(self.own))
        depth = _sums(self.arc, self.often * (self.used - self.lowest)[self.input], len(self.own))
        self.slack = np.maximum(cost - self.used[self.user], 0.0)
        self.depth = depth
        along = self._pass_on(self.slack)
        beside = np.zeros(len(self.pairs))
        if per_computation is not None:
            computed = np.minimum(self.side.computed, self.dear)
            self.slack_computing = np.maximum(cost - computed[self.user], 0.0)
            beside = per_computation[self.pair_user] * self._pass_on(self.slack_computing)
        rate = per_use.copy()
        for nodes, pairs, starts in self.steps:
            gained = beside[pairs] + along[pairs] * rate[self.pair_user[pairs]]
            rate[nodes] = np.minimum(per_use[nodes] + np.add.reduceat(gained, starts), most[nodes])
        self.rate: Floats = rate

    def _pass_on(self, slack: Floats) -> Floats:
        """K: which share of a fall a pair passes on at most."""
        return self._best_of_arcs(self._shares(slack))

    def _shares(self, slack: Floats) -> Floats:
        share = 1 - np.divide(slack, self.depth, out=np.ones_like(slack), where=self.depth > 0)
        shares: Floats = self.often * np.maximum(share, 0.0)[self.arc]
        return shares

    def _best_of_arcs(self, entries: Floats) -> Floats:
        best: Floats = np.maximum.reduceat(entries, self.pairs) if len(self.pairs) else entries
        return best

    def worth(self) -> Floats:
        """What each node alone is worth at most were it kept: exact for itself and those next above, rates beyond."""
        drop = np.maximum(self.used - self.price, 0.0)
        gained = self.rate[self.pair_user] * self._next_above(drop, self.slack)
        if self.per_computation is not None:
            gained += self.per_computation[self.pair_user] * self._next_above(drop, self.slack_computing)
        worth: Floats = self.per_use * drop + _sums(self.pair_input, gained, len(drop))
        return worth

    def _next_above(self, drop: Floats, slack: Floats) -> Floats:
        falls = drop[self.input]
        sole = np.maximum(self.often * falls - slack[self.arc], 0.0)
        return self._best_of_arcs(np.where(self.is_sole, sole, self._shares(slack) * falls))

    def worth_together(self) -> Floats:
        """The same at rates throughout: what several nodes are worth together is at most the sum of these."""
        together: Floats = self.rate * np.maximum(self.used - self.price, 0.0)
        return together


def _sums(places: Places, values: Floats, count: int) -> Floats:
    """Σ of the values at each place."""
    return np.bincount(places, values, count).astype(np.float64, copy=False)


def _below(graph: Numbered) -> list[int]:
    """For each node the set of those it can be computed from, as the bits of a number."""
    below: list[int] = []
    for inputs in graph.inputs:
        found = 0
        for j in inputs:
            found |= below[j] | 1 << j
        below.append(found)
    return below


def _heights(graph: Numbered) -> list[int]:
    heights = [0] * len(graph)
    for i in range(len(graph) - 1, -1, -1):
        heights[i] = max((heights[x] + 1 for x in graph.users[i]), default=0)
    return heights


def _starts(keys: Sequence[object]) -> Places:
    """Where in a sorted sequence every new key starts."""
    starts, place = [], 0
    for _, same in groupby(keys):
        starts.append(place)
        place += sum(1 for _ in same)
    return np.array(starts, dtype=np.intp)
