"""What greedy methods know of the candidates they have evaluated, while other candidates are taken."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from viewkeeper.selection.columns import Columns
from viewkeeper.selection.costs import Costs, Move

_DRIFT = 1e-12  # of τ(∅): rounding of sums that follow many small changes


class Trials:
    """Evaluated candidates.

    moves        what each would do
    is_current   whether that is still so
    savings      per candidate, what queries save by it at most; inf where nothing is known
    """

    def __init__(self, costs: Costs, count: int, *, is_or: bool) -> None:
        self.costs = costs
        self.moves: dict[int, Move] = {}
        self.is_current = np.zeros(count, dtype=bool)
        self.savings = np.full(count, math.inf)
        self.watched_by: dict[int, set[int]] = {}
        # In an OR graph nothing saves more because of others that were taken.
        self.columns = None if is_or else Columns(costs.graph, costs.queries)
        self.drift = _DRIFT * costs.query

    def keep(self, c: int, move: Move, widest: Move) -> None:
        """Candidate c was evaluated; `widest` is the move of all its nodes, on which the outcome depends."""
        for i in (*widest.there, *widest.query_side, *widest.upkeep_side):
            self.watched_by.setdefault(i, set()).add(c)
        if self.columns and math.isinf(self.savings[c]):
            if self.columns.is_full:
                self._forget(self.columns)
            self.columns.add(c, widest.query_side, self.costs.query + widest.query)
        self.moves[c] = move
        self.is_current[c] = True
        self.savings[c] = self.drift - widest.query

    def _forget(self, columns: Columns) -> None:
        """Forgets the half that saves least."""
        by_savings = sorted(columns.candidates, key=lambda c: self.savings[c])
        for c in by_savings[: len(by_savings) // 2]:
            self.close(c)

    def close(self, c: int) -> None:
        """Candidate c is of no interest any more."""
        if self.columns and not math.isinf(self.savings[c]):
            self.columns.drop(c)
            self.savings[c] = math.inf

    def take(self, move: Move) -> None:
        """Follows a move that `costs` has taken."""
        touched = self._watching(self.costs.queries.near((*move.query_side, *move.there)))
        if self.costs.graph.has_updates:
            touched |= self._watching(self.costs.upkeeps.near((*move.upkeep_side, *move.there)))
        self.is_current[list(touched)] = False
        if self.columns:
            self.columns.take(move.query_side)
            left = self.costs.query - self.columns.total[: len(self.columns.candidates)]
            self.savings[self.columns.candidates] = left + self.drift

    def _watching(self, nodes: Iterable[int]) -> set[int]:
        return set[int]().union(*(self.watched_by.pop(i) for i in nodes if i in self.watched_by))
