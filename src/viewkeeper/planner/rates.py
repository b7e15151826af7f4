"""How fast this warehouse is: the rates of the cost model, fitted to the refreshes that it has seen.

Of refreshes with parts x (fixed seconds, reads, rows read, moved and written) that took y seconds, the rates are those
multiples m of the ones that were measured once which make the factors between x·m and y small, and stay near 1 where
the refreshes do not tell:   min Σ ρ(log (x·m / y)) + λ Σ (log m)²,   ρ(e) ≈ e², but |e| where e is large

Rows and reads do not tell everything: what is left is mostly the view's own, and the same at its next refresh. So each
view has two factors more, of its changes and of its recomputes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from math import exp, log
from typing import Any

from viewkeeper.planner.cost import MEASURED_ONCE, Cost, Rates
from viewkeeper.planner.plan import Way

_PRIOR = 0.5  # λ
_FAR = 0.3  # a factor of e^0.3 is much; a cold start, which is off by more, counts less
_LARGEST = 3.5  # of |log m|
_SHORT = 0.05  # seconds; nobody takes less
_LATEST = 3
_DOUBT = 0.5  # refreshes as the rates have them, which count beside those that were seen


@dataclass(frozen=True)
class Sample:
    """A refresh: of which view and in which way, the parts of its cost as they were predicted, how long it took."""

    cost: Cost
    seconds: float
    view: str = ""
    way: Way = "incremental"


@dataclass(frozen=True)
class Own:
    """What is known of one way to refresh one view: how often it was taken, and how far off the rates are."""

    taken: int = 0
    factor: float = 1.0


def fitted(samples: Sequence[Sample]) -> Rates:
    """The rates that predict the samples best; without samples those that were measured once."""
    if not samples:
        return MEASURED_ONCE
    import numpy as np  # noqa: PLC0415  # most commands never fit anything
    from scipy.optimize import least_squares  # noqa: PLC0415

    parts = np.array([_parts(s.cost) for s in samples])
    took = np.log([max(s.seconds, _SHORT) for s in samples])

    def errors(multiples: Any) -> Any:
        return np.concatenate([np.log(parts @ np.exp(multiples)) - took, np.sqrt(_PRIOR) * multiples])

    bounds = (-_LARGEST, _LARGEST)
    found = least_squares(errors, np.zeros(parts.shape[1]), bounds=bounds, loss="soft_l1", f_scale=_FAR).x
    multiples = map(float, np.exp(found))
    return Rates(*(rate * multiple for rate, multiple in zip(astuple(MEASURED_ONCE), multiples, strict=True)))


def own_factors(samples: Sequence[Sample], rates: Rates) -> dict[tuple[str, Way], Own]:
    """By view and way; `samples` from the latest on. A cold start is slow, so that the fastest of the latest tells."""
    found: dict[tuple[str, Way], list[float]] = {}
    for sample in samples:
        off = log(max(sample.seconds, _SHORT) / max(sample.cost.at(rates).seconds, _SHORT))
        found.setdefault((sample.view, sample.way), []).append(off)
    return {
        which: Own(len(offs), exp(min(offs[:_LATEST]) * len(offs) / (len(offs) + _DOUBT)))
        for which, offs in found.items()
    }


def _parts(cost: Cost) -> list[float]:
    """The seconds of each part at the rates that were measured once."""
    once = MEASURED_ONCE
    return [
        cost.fixed * once.fixed,
        cost.reads * once.per_read,
        cost.rows_read * once.per_row_read,
        cost.rows_moved * once.per_row_moved,
        cost.rows_written * once.per_row_written,
    ]
