"""The variables of a choice, and what it pays."""

from __future__ import annotations

from collections.abc import Iterable

from viewkeeper.selection.choice import Budget
from viewkeeper.selection.program import Program


class Ledger:
    """A program in the making.

    keep       x(v) for each node that may be chosen
    constant   the part of the cost that no choice changes
    upkeep     variables with the maintenance that each stands for, where maintenance is limited
    """

    def __init__(self, budget: Budget, candidates: Iterable[int]) -> None:
        self.program = Program()
        self.keep = {i: self.program.variable(upper=1.0, integral=True) for i in candidates}
        self.constant = 0.0
        self.upkeep: list[tuple[int, float]] = []
        self._counts_upkeep = budget.counts_upkeep

    def pay_upkeep(self, variable: int, cost: float) -> None:
        """Maintenance is limited, or else it is part of what is to be the least."""
        if not cost:
            return
        if self._counts_upkeep:
            self.program.add_cost(variable, cost)
        else:
            self.upkeep.append((variable, cost))
