"""Mixed-integer programs, built row by row and solved by HiGHS."""

from __future__ import annotations

import ctypes
import math
import os
import sys
import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, linprog, milp
from scipy.sparse import csr_array, vstack

_INFEASIBLE = 2  # as scipy says it
_WITHOUT_HEURISTICS: dict[str, float | bool] = {
    "mip_heuristic_effort": 0.0,
    "mip_heuristic_run_feasibility_jump": False,
    "mip_heuristic_run_rens": False,
    "mip_heuristic_run_rins": False,
    "mip_heuristic_run_root_reduced_cost": False,
}
_one_at_a_time = threading.Lock()


@dataclass(frozen=True)
class Solution:
    """values: None if none was found in time. bound: no solution has a lower objective. proved: the time sufficed."""

    values: NDArray[np.float64] | None
    bound: float
    proved: bool


@dataclass(frozen=True)
class Relaxation:
    """What is best if nothing need be integral; inf where there is no solution at all.

    reduced   by how much the objective grows at least per unit of each variable
    """

    values: NDArray[np.float64] | None
    bound: float
    reduced: NDArray[np.float64]


class Program:
    """Variables between 0 and an upper limit, rows between two limits, the least objective wanted."""

    def __init__(self) -> None:
        self._costs: list[float] = []
        self._upper: list[float] = []
        self._integral: list[int] = []
        self._rows: list[int] = []
        self._columns: list[int] = []
        self._entries: list[float] = []
        self._least: list[float] = []
        self._most: list[float] = []

    def variable(self, cost: float = 0.0, upper: float = math.inf, *, integral: bool = False) -> int:
        self._costs.append(cost)
        self._upper.append(upper)
        self._integral.append(int(integral))
        return len(self._costs) - 1

    def add_cost(self, variable: int, cost: float) -> None:
        self._costs[variable] += cost

    def row(self, entries: Iterable[tuple[int, float]], least: float = -math.inf, most: float = math.inf) -> None:
        for column, entry in entries:
            self._rows.append(len(self._least))
            self._columns.append(column)
            self._entries.append(entry)
        self._least.append(least)
        self._most.append(most)

    def solve(self, gap: float, seconds: float, constant: float = 0.0, below: float = math.inf) -> Solution:
        """`gap` is relative to the objective plus `constant`, which is not part of it.

        If only what is `below` some objective is wanted, that much is the bound at most. Heuristics are then left out:
        a good solution is known, and on large programs they take most of the time.
        """
        if not self._costs:
            return Solution(np.zeros(0), 0.0, True)
        costs, scale, matrix = self._arrays()
        # The constant is a variable fixed to 1, so that HiGHS measures its gap against the whole.
        options: dict[str, float | bool] = {"mip_rel_gap": gap, "time_limit": seconds}
        if below < math.inf:
            options |= {"objective_bound": (below + constant) / scale, **_WITHOUT_HEURISTICS}
        with _without_output(), _any_option():
            result = milp(
                np.append(costs, constant) / scale,
                integrality=np.append(self._integral, 0),
                bounds=Bounds(np.append(np.zeros(len(costs)), 1.0), np.append(self._upper, 1.0)),
                constraints=[LinearConstraint(_wider(matrix), self._least, self._most)] if self._least else [],
                options=options,  # type: ignore[arg-type]
            )
        # Without integral variables the optimum is its own bound.
        bound = result.mip_dual_bound if any(self._integral) else result.fun
        values = None if result.x is None else np.asarray(result.x[:-1], dtype=np.float64)
        if result.status == _INFEASIBLE:
            bound = math.inf
        least = -math.inf if bound is None or math.isnan(bound) else float(bound) * scale - constant
        return Solution(values, min(least, below), result.status == 0)

    def relax(self, seconds: float) -> Relaxation:
        """Without integrality, by the simplex method: reduced costs are those of a vertex, where they are large."""
        if not self._costs:
            return Relaxation(np.zeros(0), 0.0, np.zeros(0))
        costs, scale, matrix = self._arrays()
        least, most = np.array(self._least), np.array(self._most)
        is_same, has_least, has_most = least == most, least > -math.inf, most < math.inf
        below, above = has_most & ~is_same, has_least & ~is_same
        with _without_output():
            result = linprog(
                costs / scale,
                A_ub=vstack((matrix[below], -matrix[above])),
                b_ub=np.concatenate((most[below], -least[above])),
                A_eq=matrix[is_same],
                b_eq=least[is_same],
                bounds=[(0.0, upper) for upper in self._upper],
                method="highs-ds",
                options={"time_limit": seconds},
            )
        if result.status != 0 or result.fun is None:
            return Relaxation(None, math.inf if result.status == _INFEASIBLE else -math.inf, np.zeros(len(costs)))
        reduced = np.asarray(result.lower.marginals, dtype=np.float64) * scale
        return Relaxation(np.asarray(result.x, dtype=np.float64), float(result.fun) * scale, reduced)

    def _arrays(self) -> tuple[NDArray[np.float64], float, csr_array]:
        """The costs, the greatest of them, and the rows."""
        costs = np.array(self._costs)
        shape = (len(self._least), len(self._costs))
        matrix = csr_array((self._entries, (self._rows, self._columns)), shape=shape)
        return costs, float(np.abs(costs).max()) or 1.0, matrix


def _wider(matrix: csr_array) -> csr_array:
    return csr_array((matrix.data, matrix.indices, matrix.indptr), shape=(matrix.shape[0], matrix.shape[1] + 1))


@contextmanager
def _any_option() -> Iterator[None]:
    """scipy hands options it does not know to HiGHS, with a warning."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Unrecognized options", RuntimeWarning)
        yield


@contextmanager
def _without_output() -> Iterator[None]:
    """HiGHS prints now and then whatever its options say, past Python; here that does not reach standard output.

    Where other threads run, what they write meanwhile must not be lost: then all goes to standard error.
    """
    with _one_at_a_time:
        sys.stdout.flush()
        kept = os.dup(1)
        alone = threading.active_count() == 1
        target = os.open(os.devnull, os.O_WRONLY) if alone else os.dup(2)
        os.dup2(target, 1)
        os.close(target)
        try:
            yield
        finally:
            sys.stdout.flush()
            ctypes.CDLL(None).fflush(None)
            os.dup2(kept, 1)
            os.close(kept)
