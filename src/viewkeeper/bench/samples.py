"""What was measured, one action at a time, and what many samples say: medians, ratios with their spread, means."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

REFRESH, RECOMPUTE = "refresh", "recompute"  # what most cases compare


@dataclass(frozen=True)
class Sample:
    """One action on one subject, mostly a view.

    at           where on the axis of a growth it is: rows, commits, a scale, a depth
    predicted    the seconds that were predicted
    """

    case: str
    subject: str
    action: str
    round: int
    seconds: float
    jobs: int = 0
    at: float | None = None
    strategy: str | None = None
    predicted: float | None = None


@dataclass(frozen=True)
class Ratio:
    """Median seconds by median seconds. The spread is that of the ratios of single rounds."""

    value: float
    low: float
    high: float
    rounds: int

    def __str__(self) -> str:
        return f"{self.value:.2f}" + (f" ({self.low:.2f}–{self.high:.2f})" if self.rounds > 1 else "")


@dataclass(frozen=True)
class Samples:
    """All samples of a run, to be asked for some."""

    all: tuple[Sample, ...]

    def where(
        self, *, case: str | None = None, subject: str | None = None, action: str | None = None, at: float | None = None
    ) -> Samples:
        return Samples(
            tuple(
                s
                for s in self.all
                if (case is None or s.case == case)
                and (subject is None or s.subject == subject)
                and (action is None or s.action == action)
                and (at is None or s.at == at)
            )
        )

    @property
    def seconds(self) -> list[float]:
        return [s.seconds for s in self.all]

    @property
    def median(self) -> float | None:
        return statistics.median(self.seconds) if self.all else None

    @property
    def cases(self) -> list[str]:
        return list(dict.fromkeys(s.case for s in self.all))

    @property
    def subjects(self) -> list[str]:
        return list(dict.fromkeys(s.subject for s in self.all))

    @property
    def places(self) -> list[float]:
        return sorted({s.at for s in self.all if s.at is not None})

    def ratio(self, action: str, by: str) -> Ratio | None:
        """What an action took by what another took, in the same rounds; None if either is missing."""
        upper = {s.round: s.seconds for s in self.where(action=action).all}
        lower = {s.round: s.seconds for s in self.where(action=by).all}
        both = sorted(upper.keys() & lower.keys())
        if not both:
            return None
        single = [upper[r] / lower[r] for r in both]
        value = statistics.median(upper[r] for r in both) / statistics.median(lower[r] for r in both)
        return Ratio(value, min(single), max(single), len(both))


def geometric_mean(values: Iterable[float]) -> float | None:
    found: Sequence[float] = list(values)
    return math.exp(statistics.fmean(map(math.log, found))) if found else None
