"""What is asked of a method, and what it answers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeVar

from viewkeeper.errors import GraphError
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.graph import Numbered, ViewGraph
from viewkeeper.selection.reach import Floats

Amount = TypeVar("Amount", float, Floats)
SLACK = 1e-9  # rounding of sums; not a tolerance for exceeding a budget


@dataclass(frozen=True)
class Budget:
    """How much space and how much maintenance time may be used; None for as much as one likes.

    Where maintenance is limited, what counts is the cost of queries alone. Where it is not, maintenance is part of
    the cost. With `overshoot` a method goes on until a budget is used up, so that the last thing taken may exceed it:
    the protocol of the thesis, for which its bounds hold. Without, nothing is taken that does not fit.
    """

    space: float | None = None
    maintenance: float | None = None
    overshoot: bool = False

    def __post_init__(self) -> None:
        for limit in (self.space, self.maintenance):
            if limit is not None and not (math.isfinite(limit) and limit > 0):
                raise GraphError(f"a budget of {limit} is not a number above 0")

    @property
    def counts_upkeep(self) -> bool:
        return self.maintenance is None

    def share(self, size: Amount, upkeep: Amount) -> Amount:
        """How much of the budget something uses up: the sum of its shares of what is limited, 1 if nothing is."""
        if self.space is None and self.maintenance is None:
            return 0 * size + 1.0
        share = size / self.space if self.space is not None else 0 * size
        return share + upkeep / self.maintenance if self.maintenance is not None else share

    def fits(self, size: float, upkeep: float) -> bool:
        within_space = self.space is None or size <= self.space * (1 + SLACK)
        return within_space and (self.maintenance is None or upkeep <= self.maintenance * (1 + SLACK))

    def is_used_up(self, size: float, upkeep: float) -> bool:
        full = self.space is not None and size >= self.space * (1 - SLACK)
        return full or (self.maintenance is not None and upkeep >= self.maintenance * (1 - SLACK))


@dataclass(frozen=True)
class Step:
    """One decision of a method: what came and what went, by how much the cost fell, and why just that."""

    added: tuple[str, ...]
    benefit: float
    reason: str
    dropped: tuple[str, ...] = ()


@dataclass(frozen=True)
class Choice:
    """Views and layouts to keep.

    cost    τ of the choice
    bound   no choice within the budget costs less
    gap     (cost - bound) / cost: the share of the cost that a better choice could save at most
    """

    views: tuple[str, ...]
    layouts: tuple[str, ...]
    cost: float
    bound: float
    gap: float
    trace: tuple[Step, ...]
    space: float
    maintenance: float


def total(costs: Costs, budget: Budget) -> float:
    """τ of what is kept, as this budget counts it."""
    return costs.query + costs.upkeep if budget.counts_upkeep else costs.query


def finish(graph: ViewGraph, budget: Budget, kept: Iterable[int], bound: float, trace: Iterable[Step]) -> Choice:
    """The choice, its costs computed afresh rather than from the sum of many small steps."""
    numbered = graph.numbered
    chosen = sorted(kept, key=lambda i: numbered.rank[i])
    costs = Costs(numbered, chosen)
    cost = total(costs, budget)
    bound = max(min(bound, cost), floor(numbered))
    return Choice(
        views=names(numbered, (i for i in chosen if numbered.layout_of[i] < 0)),
        layouts=names(numbered, (i for i in chosen if numbered.layout_of[i] >= 0)),
        cost=cost,
        bound=bound,
        gap=(cost - bound) / cost if cost > bound * (1 + 1e-12) else 0.0,
        trace=tuple(trace),
        space=costs.size,
        maintenance=costs.upkeep,
    )


def floor(numbered: Numbered) -> float:
    """What all queries would cost were everything kept: no choice can do better."""
    return Costs(numbered, numbered.candidates).query


def names(numbered: Numbered, nodes: Iterable[int]) -> tuple[str, ...]:
    return tuple(numbered.names[i] for i in nodes)
