"""What greedy methods know of the candidates they have evaluated, while other candidates are taken."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from viewkeeper.selection.ceilings import Ceilings
from viewkeeper.selection.costs import Costs, Fall, Move


class Trials:
    """Evaluated candidates.

    moves        what each would do
    is_current   whether that is still so
    savings      per candidate, what queries save by it at most
    is_bounded   whether that is known; where falls have met since, `bound` finds it
    seen         how many falls that takes into account
    """

    def __init__(self, costs: Costs, ceilings: Ceilings, count: int) -> None:
        self.costs = costs
        self.ceilings = ceilings
        self.moves: dict[int, Move] = {}
        self.is_current = np.zeros(count, dtype=bool)
        self.savings = np.full(count, math.inf)
        self.is_bounded = np.zeros(count, dtype=bool)
        self.weight: list[float] = ceilings.weight.tolist()
        self.falls: list[tuple[Fall, Fall]] = []
        self.seen: dict[int, int] = {}
        self.watched_by: dict[int, set[int]] = {}

    def keep(self, c: int, move: Move, widest: Move) -> None:
        """Candidate c was evaluated; `widest` is the move of all its nodes, on which the outcome depends."""
        for i in (*widest.there, *widest.query_side, *widest.upkeep_side):
            self.watched_by.setdefault(i, set()).add(c)
        self.moves[c] = move
        self.is_current[c] = True
        self.savings[c] = -move.query
        self.seen[c] = len(self.falls)
        self.is_bounded[c] = True

    def bound(self, c: int) -> float:
        """What queries save by an evaluated candidate at most: no more than before, but for where falls have met.

        A node that falls further by 1 is worth its weight at most, with all that lies above it, then and later.
        """
        falls = [fall for fall, _ in self.falls[self.seen[c] :]]
        deeper = self.costs.queries.deeper(self.moves[c].query_side, falls)
        more = sum(by * self.weight[i] for i, by in deeper.items())
        self.savings[c] = (self.savings[c] + more) * (1 + 1e-12)
        self.seen[c] = len(self.falls)
        self.is_bounded[c] = True
        return float(self.savings[c])

    def take(self, move: Move) -> None:
        """Follows a move that `costs` and `ceilings` have taken."""
        falls = self.ceilings.fall(move)
        self.falls.append(falls)
        touched = self._watching(falls[0].nodes | falls[1].nodes)
        # Less is left to save of what has fallen; more can be saved only where falls meet.
        risen = self._watching(falls[0].meets)
        self.is_bounded[list(risen)] = False
        self.is_current[list(touched | risen | self._watching(falls[1].meets))] = False

    def _watching(self, nodes: Iterable[int]) -> set[int]:
        return set[int]().union(*(self.watched_by[i] for i in nodes if i in self.watched_by))
