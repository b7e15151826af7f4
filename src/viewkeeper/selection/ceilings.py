"""What adding something can save at most, known without trying it, so that greedy methods try little."""

from __future__ import annotations

import math
from collections.abc import Iterable
from copy import copy

import numpy as np

from viewkeeper.selection.arcs import ArcTable
from viewkeeper.selection.choice import Budget
from viewkeeper.selection.costs import Costs, Move, Side
from viewkeeper.selection.falls import Changes, Falls
from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.reach import Floats, fill, weights

_ROUNDING = 1 + 1e-12


class Ceilings:
    """Upper bounds of query savings and lower bounds of the maintenance that comes with them, given what is kept.

    savings    per node, the most that queries save if it alone is added
    own        per node, its own maintenance, were it kept
    upkeeps    per node, the least by which maintenance grows with it; it may shrink
    shared     per node, its part of the most that queries save if it is added together with others
    ahead      all of them but `own` hold until anything else than these is taken
    """

    def __init__(self, graph: ViewGraph, costs: Costs) -> None:
        self.graph = costs.graph
        self.costs = costs
        self.is_or = graph.kind == "or"
        self.falls = self._falls()
        # In an OR graph no rate exceeds what all above weigh; in others that takes long to find and hardly helps.
        self.weight = weights(self.graph) if self.is_or else None
        self.updates = np.array(self.graph.updates)
        self.maintenance = np.array(self.graph.maintenance)
        self.is_view = np.array(self.graph.layout_of) < 0
        self._start()

    def _falls(self) -> Falls:
        """Of queries, and of maintenance if there is any."""
        empty, everything = Costs(self.graph), Costs(self.graph, self.graph.candidates)
        lowest = [side.used for side in self._sides(everything)]
        dear = [max((c for c in side.used if c < math.inf), default=0.0) for side in self._sides(empty)]
        per_use = np.zeros(len(dear) * len(self.graph))
        per_use[: len(self.graph)] = self.graph.queries
        return Falls(ArcTable(self.graph, len(dear)), self._sides(self.costs), lowest, np.array(dear), per_use)

    def _sides(self, costs: Costs) -> list[Side]:
        return [costs.queries, costs.upkeeps] if self.graph.has_updates else [costs.queries]

    def of(self, costs: Costs) -> Ceilings:
        """The same graph with something else kept; what depends on the graph alone is shared."""
        other = copy(self)
        other.costs = costs
        other.falls = self.falls.of(self._sides(costs))
        other._start()
        return other

    def _start(self) -> None:
        if self.weight is not None:
            self.falls.most = np.append(self.weight, np.zeros(len(self.falls.per_use) - len(self.weight)))
        self.ahead: frozenset[int] = frozenset()
        self._help(self.costs.kept)
        self.look()

    def look(self) -> None:
        """Finds all ceilings anew, for what things cost now."""
        self._look_ahead(())
        self.falls.look()
        self._find()

    def take(self, move: Move) -> bool:
        """Follows a move that `costs` has taken, one that adds; whether the ceilings hold."""
        self._help(move.there)
        self.falls.follow(self._changed(move))
        self.own: Floats = self._own(self.falls.computing.level)
        return self.ahead.issuperset(move.there)

    def expect(self, ahead: Iterable[int]) -> None:
        """Finds ceilings that hold until anything else is taken."""
        self._look_ahead(ahead)
        self.falls.expect(self._changed(self.costs.move(self.ahead)))
        self._find()

    def _look_ahead(self, ahead: Iterable[int]) -> None:
        """What was ahead and was not taken gains nothing."""
        if self.graph.has_updates:
            self.falls.per_computation[[len(self.graph) + i for i in self.ahead - self.costs.kept]] = 0.0
        self.ahead = frozenset(ahead)
        self._help(self.ahead)

    def _changed(self, move: Move) -> list[Changes]:
        return [move.query_side, move.upkeep_side] if self.graph.has_updates else [move.query_side]

    def _help(self, kept: Iterable[int]) -> None:
        """Newly kept views gain from cheaper changes of everything they can be maintained from."""
        n = len(self.graph)
        for i in kept:
            often = self.graph.updates[i]
            if often and self.graph.layout_of[i] < 0:
                self.falls.per_computation[n + i] = often
                if self.falls.most is not None:
                    self.falls.most[[n + j for j in self.graph.descendants[i]]] += often

    def _find(self) -> None:
        n, worth = len(self.graph), self.falls.worth() * _ROUNDING
        self.savings: Floats = worth[:n]
        self.shared: Floats = self.savings if self.is_or else self.falls.worth_together()[:n] * _ROUNDING
        self.own = self._own(self.falls.computing.level)
        self.upkeeps: Floats = self._own(self.falls.computing.low)
        if self.graph.has_updates:
            self.upkeeps -= worth[n:]

    def _own(self, computed: Floats) -> Floats:
        n = len(self.graph)
        if not self.graph.has_updates:
            return np.zeros(n)
        own: Floats = self.updates * (self.maintenance + self.is_view * computed[n:])
        return own

    def bound(self, budget: Budget) -> float:
        """A lower bound of τ over all choices within the budget, from what is still to be gained when a run ends.

        What a choice O saves beyond what is kept is at most a knapsack of ceilings.
        """
        self.look()
        left = [i for i in self.graph.candidates if i not in self.costs.kept]
        values = self.shared[left]
        best = -math.inf
        if budget.space is not None:
            best = self.costs.query - fill(values, np.array(self.graph.size)[left], budget.space)
        if budget.maintenance is not None:
            everything = Costs(self.graph, self.graph.candidates)
            least = np.array([everything.own_upkeep(i) for i in left])
            best = max(best, self.costs.query - fill(values, least, budget.maintenance))
        return best
