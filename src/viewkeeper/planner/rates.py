"""How fast this warehouse is: the rates of the cost model, fitted to the refreshes that it has seen.

Of refreshes with parts x (fixed seconds, reads, files, rows and bytes read, rows moved, rows and bytes written) that
took y seconds, the rates are those multiples m of the ones that were measured once which make the factors between x·m
and y small. Where the refreshes do not tell, they stay near each other, at c for this machine, and that near 1:

    min Σ ρ(log (x·m / y)) + λ (log c)² + λ Σ (log m/c)²,   ρ(e) ≈ e², but |e| where e is large

Such parts do not tell everything: what is left is mostly the view's own, and the same at its next refresh of that
size. So each view has factors more, of its changes and of its recomputes, by the refreshes that were about as large.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from math import exp, log
from statistics import median_low
from typing import Any

from viewkeeper.planner.cost import MEASURED_ONCE, Cost, Rates
from viewkeeper.planner.plan import Way

_PRIOR = 0.5  # λ
_FAR = 0.3  # a factor of e^0.3 is much; a cold start, which is off by more, counts less
_LARGEST = 3.5  # of |log c| and |log m/c|
_SHORT = 0.05  # seconds; nobody takes less
_LATEST = 3
_DOUBT = 0.25  # refreshes as the rates have them, which count beside those that were seen
_DOUBT_CREATED = 1.0  # the same, beside a CREATE: the first ones come while Spark is still cold
_LOOKS = 5  # refreshes; what was seen of changes before them may be otherwise now
_AS_LARGE = 2.0  # times as long by the rates, or as short
_CREATED = 1.25  # times as long as a recompute of the view takes later, in the median of 26 views of TPC-H


@dataclass(frozen=True)
class Sample:
    """A refresh: the parts of its cost as they were predicted, how long it took, and in which way.

    created   whether it made the view
    left      how much of the cost of the change was left once the change was read, if it was
    """

    cost: Cost
    seconds: float
    way: Way = "incremental"
    created: bool = False
    left: float | None = None

    @property
    def again(self) -> float:
        """The seconds that it would take now."""
        return max(self.seconds / (_CREATED if self.created else 1), _SHORT)


@dataclass(frozen=True)
class Seen:
    """The seconds that the rates say for a refresh, and how many times as long it took.

    created   whether it made the view: that is like a recompute, but is none
    """

    said: float
    times: float
    created: bool = False

    def apart(self, seconds: float) -> float:
        return abs(log(max(self.said, _SHORT) / max(seconds, _SHORT)))

    def is_as_large(self, seconds: float) -> bool:
        return self.apart(seconds) <= log(_AS_LARGE)


@dataclass(frozen=True)
class Own:
    """What the refreshes of one view have shown, by way, from the latest on.

    left   how much of the cost of a change was left once the change was read
    """

    seen: Mapping[Way, Sequence[Seen]] = field(default_factory=dict)
    left: float | None = None

    def is_new(self, way: Way, seconds: float) -> bool:
        """Whether the other way was taken, and this one never where the rates say about so many seconds."""
        taken = {w: [one for one in found if not one.created] for w, found in self.seen.items()}
        others = any(found for w, found in taken.items() if w != way)
        return others and not any(one.is_as_large(seconds) for one in taken.get(way, ()))

    def factor(self, way: Way, seconds: float) -> float:
        """How many times as long it takes, where the rates say so many seconds.

        By the middle one of the latest, since a cold start is slow. If none was as large, the nearest tells less, and
        nothing if it was smaller and quick: what is fixed was quick then. That the view was created counts as long as
        no refresh took this way.
        """
        found = self.seen.get(way, ())
        refreshed = [one for one in found if not one.created]
        seen, doubt = (refreshed, _DOUBT) if refreshed else (found, _DOUBT_CREATED)
        near = [one.times for one in seen if one.is_as_large(seconds)][:_LATEST]
        if near:
            return exp(log(median_low(near)) * len(near) / (len(near) + doubt))
        if not seen:
            return 1.0
        nearest = min(seen, key=lambda one: one.apart(seconds))
        times = exp(log(nearest.times) / (1 + doubt + nearest.apart(seconds)))
        return max(times, 1.0) if nearest.said < seconds else times


def fitted(samples: Sequence[Sample]) -> Rates:
    """The rates that predict the samples best; without samples those that were measured once."""
    if not samples:
        return MEASURED_ONCE
    import numpy as np  # noqa: PLC0415  # most commands never fit anything
    from scipy.optimize import least_squares  # noqa: PLC0415

    parts = np.array([s.cost.at(MEASURED_ONCE).by_part for s in samples])
    took = np.log([s.again for s in samples])

    def errors(logs: Any) -> Any:  # of c, and of m/c
        return np.concatenate([np.log(parts @ np.exp(logs[0] + logs[1:])) - took, np.sqrt(_PRIOR) * logs])

    bounds = (-_LARGEST, _LARGEST)
    found = least_squares(errors, np.zeros(1 + parts.shape[1]), bounds=bounds, loss="soft_l1", f_scale=_FAR).x
    multiples = map(float, np.exp(found[0] + found[1:]))
    return Rates(*(rate * multiple for rate, multiple in zip(astuple(MEASURED_ONCE), multiples, strict=True)))


def fitted_by_engine(samples: Sequence[Sample]) -> tuple[Rates, Rates]:
    """The rates of Spark and those of this process."""
    return fitted([s for s in samples if s.way != "here"]), fitted([s for s in samples if s.way == "here"])


def shown(samples: Sequence[Sample], rates: Rates, here: Rates = MEASURED_ONCE) -> Own:
    """What the samples of one view tell, at the rates of Spark and of this process; from the latest on."""
    seen: dict[Way, list[Seen]] = {}
    for sample in samples:
        said = max(sample.cost.at(here if sample.way == "here" else rates).seconds, _SHORT)
        seen.setdefault(sample.way, []).append(Seen(said, sample.again / said, sample.created))
    left = [sample.left for sample in samples[:_LOOKS] if sample.left is not None]
    return Own(seen, min(left, default=None))
