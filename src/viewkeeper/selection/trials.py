"""What greedy methods know of the candidates they have looked at, while other candidates are taken."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from viewkeeper.selection.columns import Columns
from viewkeeper.selection.costs import Costs, Move

_DRIFT = 1e-12  # of the cost: rounding of sums that follow many small changes


class Trials:
    """What was found of candidates, and what is still so.

    moves        what each of those that were evaluated would do
    is_current   whether that is still so
    savings      per candidate, what queries save by it at most; inf where nothing is known
    carried      per candidate, by how much the maintenance of what is kept shrinks with it at most; the same
    """

    def __init__(self, costs: Costs, count: int) -> None:
        self.costs = costs
        self.moves: dict[int, Move] = {}
        self.is_current = np.zeros(count, dtype=bool)
        self.savings = np.full(count, math.inf)
        self.carried = np.full(count, math.inf)

    def keep(self, c: int, move: Move, widest: Move) -> None:
        """Candidate c was evaluated; `widest` is the move of all its nodes, on which the outcome depends."""
        self.moves[c] = move
        self.is_current[c] = True

    def close(self, c: int) -> None:
        """Candidate c is of no interest any more."""

    def take(self, move: Move) -> None:
        """Follows a move that `costs` has taken."""


class Watched(Trials):
    """Where nothing saves more because of others that were taken, as in OR graphs, or where sets grow.

    What was found of a candidate is so until something near one of the nodes is taken that it would change.
    """

    def __init__(self, costs: Costs, count: int, *, is_or: bool) -> None:
        super().__init__(costs, count)
        self.is_or = is_or
        self.watched_by: dict[int, set[int]] = {}

    def keep(self, c: int, move: Move, widest: Move) -> None:
        super().keep(c, move, widest)
        for i in (*widest.there, *widest.query_side, *widest.upkeep_side):
            self.watched_by.setdefault(i, set()).add(c)
        if self.is_or:
            self.savings[c] = -widest.query

    def take(self, move: Move) -> None:
        touched = self._watching(self.costs.queries.near((*move.query_side, *move.there)))
        if self.costs.graph.has_updates:
            touched |= self._watching(self.costs.upkeeps.near((*move.upkeep_side, *move.there)))
        self.is_current[list(touched)] = False

    def _watching(self, nodes: Iterable[int]) -> set[int]:
        return set[int]().union(*(self.watched_by.pop(i) for i in nodes if i in self.watched_by))


class Followed(Trials):
    """Where candidates can gain by others: what each leads to is followed, from the first look at it on."""

    def __init__(self, costs: Costs, count: int) -> None:
        super().__init__(costs, count)
        graph = costs.graph
        self.queries = Columns(graph, costs.queries, graph.queries)
        self.drift = _DRIFT * costs.query
        self.closed: set[int] = set()
        self.upkeeps: Columns | None = None
        if graph.has_updates:
            self.upkeeps = Columns(graph, costs.upkeeps, [0.0] * len(graph))
            self._watch(costs.kept)

    def follow(self, candidates: Mapping[int, Sequence[int]]) -> None:
        """From now on these are followed, each with its nodes."""
        if self.queries.room < len(candidates):
            by_savings = sorted(self.queries.candidates, key=lambda c: self.savings[c])
            self.closed.update(by_savings[: len(by_savings) // 2])
        self._drop_closed()
        self.queries.add(candidates)
        if self.upkeeps:
            self.upkeeps.add(candidates)
        self._look()

    def is_followed(self, c: int) -> bool:
        return not math.isinf(self.savings[c])

    def close(self, c: int) -> None:
        if self.is_followed(c):
            self.closed.add(c)

    def _drop_closed(self) -> None:
        """Many at once: a column is spread over all of memory."""
        gone = list(self.closed)
        self.savings[gone] = self.carried[gone] = math.inf
        self.queries.drop(self.closed)
        if self.upkeeps:
            self.upkeeps.drop(self.closed)
        self.closed.clear()

    def take(self, move: Move) -> None:
        self.is_current[:] = False
        self.queries.take(move.query_side)
        if self.upkeeps:
            self._watch(move.there)
            self.upkeeps.take(move.upkeep_side)
        self._look()

    def _watch(self, kept: Iterable[int]) -> None:
        graph = self.costs.graph
        assert self.upkeeps
        for i in kept:
            if graph.updates[i] and graph.layout_of[i] < 0:
                self.upkeeps.watch(i, graph.updates[i])

    def _look(self) -> None:
        self.savings[self.queries.candidates] = self.queries.worth() + self.drift
        if self.upkeeps:
            slack = self.drift + _DRIFT * self.upkeeps.total[0]
            self.carried[self.upkeeps.candidates] = self.upkeeps.worth() + slack
