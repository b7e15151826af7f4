"""How far falling costs spread: the most that everything above a node can gain if the node becomes cheaper.

Let F(x) be by how much x falls. Taking arc a, F(x) ≤ Σ F(inputs) - slack(a), where slack(a) is what a costs more than x
does now. Nothing can fall further than D, its fall were everything kept, so with κ(a) = 1 - slack(a)/D(a)

    F(x) ≤ Σ over j of K(j,x)·F(j),   K(j,x) = max over the arcs a of x of κ(a)·(how often a uses j),

which is linear. So a fall of j by 1 is worth at most rate(j) = value(j) + Σ over x of K(j,x)·rate(x), and several falls
at once are worth at most the sum. One pass from the top down, over arrays, finds the rates of all nodes.

Rates can be found that hold for a while. Costs only fall, so as long as none falls below some `low`, no slack is less
than what a costs at its low more than x does now, and no D is more than it is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy

import numpy as np

from viewkeeper.selection.arcs import ArcTable
from viewkeeper.selection.costs import Side
from viewkeeper.selection.ragged import Places
from viewkeeper.selection.reach import Floats

Changes = Mapping[int, tuple[float, float]]


class Passed:
    """What pairs pass on, measured against what each user costs: to use, or to compute.

    level   what that is now
    low     what it is at least as long as what was found is to hold
    share   K: which share of any fall at most
    alone   how far the user falls at most if the input alone is kept
    """

    def __init__(self, nodes: int, pairs: int) -> None:
        self.level = np.zeros(nodes)
        self.low = np.zeros(nodes)
        self.share = np.zeros(pairs)
        self.alone = np.zeros(pairs)


class Falls:
    """What is passed on with what things cost now, what that is worth, and the rates; of all sides, as in `arcs`.

    per_use           what it is worth if a node gets cheaper by 1 to use
    per_computation   the same for computing it, whether or not it is kept
    most              rates that are known not to be exceeded, if any are
    rate              what it is worth at most, all that lies above included, if a node gets cheaper by 1
    """

    def __init__(
        self, arcs: ArcTable, sides: Sequence[Side], lowest: Sequence[Sequence[float]], dear: Floats, per_use: Floats
    ) -> None:
        """No cost will be below the lowest; `dear` is as much as nobody would pay, for what cannot be had at all."""
        self.arcs = arcs
        self.sides = sides
        self.dear = np.repeat(dear, [len(side.used) for side in sides])
        self.lowest = np.minimum(np.concatenate(lowest), self.dear)
        self.price = np.concatenate([side.price for side in sides])
        self.own = np.array([cost for side in sides for ways in side.arcs for cost, _ in ways])
        self.per_use = per_use
        self._start()

    def of(self, sides: Sequence[Side]) -> Falls:
        """The same arcs, for other costs."""
        other = copy(self)
        other.sides = sides
        other._start()
        return other

    def _start(self) -> None:
        nodes, pairs = len(self.lowest), len(self.arcs.pair_user)
        self.cost, self.depth = np.zeros(len(self.own)), np.zeros(len(self.own))
        self.using, self.computing = Passed(nodes, pairs), Passed(nodes, pairs)
        self.per_computation = np.zeros(nodes)
        self.most: Floats | None = None
        self.rate = np.zeros(nodes)

    def look(self) -> None:
        """Finds everything anew."""
        self.moved = [np.arange(len(self.lowest))]
        self.follow([dict(enumerate(zip(side.computed, side.used, strict=True))) for side in self.sides])
        self.expect([])

    def follow(self, changed: Sequence[Changes]) -> None:
        """These nodes of each side cost something else now."""
        rows, computed, used = self._costs(changed)
        self.computing.level[rows], self.using.level[rows] = computed, used
        self.moved.append(rows)

    def expect(self, changed: Sequence[Changes]) -> None:
        """Finds rates that hold as long as nothing costs less than these nodes then would and all others do now."""
        rows, *lows = self._costs(changed)
        moved = np.concatenate([*self.moved, rows])
        for passed, low in zip((self.computing, self.using), lows, strict=True):
            passed.low[moved] = passed.level[moved]
            passed.low[rows] = low
        self.moved = [rows]
        near = _distinct(self.arcs.near.of(moved)[0], len(self.cost))
        if len(near):
            self._pass_on(near)
        self._find_rates()

    def _costs(self, changed: Sequence[Changes]) -> tuple[Places, Floats, Floats]:
        """Which of all nodes change, and what they then cost to compute and to use."""
        nodes = len(self.lowest) // len(self.sides)
        rows = np.array([side * nodes + i for side, some in enumerate(changed) for i in some], dtype=np.intp)
        costs = np.array([cost for some in changed for cost in some.values()]).reshape(-1, 2)
        computed, used = np.minimum(costs.T, self.dear[rows])
        return rows, computed, used

    def _pass_on(self, near: Places) -> None:
        """What pairs pass on by these arcs."""
        arcs, used, low = self.arcs, self.using.level, self.using.low
        entries, starts = arcs.entries_of_arc.of(near)
        often, inputs = arcs.often[entries], arcs.input[entries]
        self.cost[near] = self.own[near] + np.add.reduceat(often * low[inputs], starts)
        self.depth[near] = np.add.reduceat(often * (used[inputs] - self.lowest[inputs]), starts)
        pairs = _distinct(arcs.pair[entries], len(arcs.pair_user))
        entries, starts = arcs.entries_of_pair.of(pairs)
        arc, often, inputs, sole = arcs.arc[entries], arcs.often[entries], arcs.input[entries], arcs.is_sole[entries]
        depth, drop = self.depth[arc], np.maximum(used[inputs] - self.price[inputs], 0.0)
        for passed in (self.using, self.computing):
            slack = np.maximum(self.cost[arc] - passed.level[arcs.user[arc]], 0.0)
            kappa = 1 - np.divide(slack, depth, out=np.ones(len(arc)), where=depth > 0)
            share = often * np.maximum(kappa, 0.0)
            alone = np.where(sole, np.maximum(often * drop - slack, 0.0), share * drop)
            passed.share[pairs] = np.maximum.reduceat(share, starts)
            passed.alone[pairs] = np.maximum.reduceat(alone, starts)

    def _find_rates(self) -> None:
        arcs, share = self.arcs, self.using.share
        rate = (self.per_use + self._beside(self.computing.share))[arcs.by_height]
        most = None if self.most is None else self.most[arcs.by_height]
        for nodes, pairs, users, starts in arcs.heights:
            gained = rate[users]
            gained *= share[pairs]
            rate[nodes] += np.add.reduceat(gained, starts)
            if most is not None:
                np.minimum(rate[nodes], most[nodes], out=rate[nodes])
        self.rate = rate[arcs.height_place]

    def _beside(self, passed: Floats) -> Floats:
        """What each node is worth by what computing its users costs, if so much of it is passed on to them."""
        pairs, _ = self.arcs.pairs_of_user.of(np.flatnonzero(self.per_computation))
        gained = self.per_computation[self.arcs.pair_user[pairs]] * passed[pairs]
        beside: Floats = np.bincount(self.arcs.pair_input[pairs], gained, len(self.lowest)).astype(float, copy=False)
        return beside

    def worth(self) -> Floats:
        """What each node alone is worth at most were it kept: exact for itself and those next above, rates beyond."""
        gained = self.rate[self.arcs.pair_user] * self.using.alone
        above = np.bincount(self.arcs.pair_input, gained, len(self.rate)) + self._beside(self.computing.alone)
        return self.per_use * self._drop() + above

    def worth_together(self) -> Floats:
        """The same at rates throughout: what several nodes are worth together is at most the sum of these."""
        return self.rate * self._drop()

    def _drop(self) -> Floats:
        drop: Floats = np.maximum(self.using.level - self.price, 0.0)
        return drop


def _distinct(places: Places, count: int) -> Places:
    is_one = np.zeros(count, dtype=bool)
    is_one[places] = True
    return np.flatnonzero(is_one)
