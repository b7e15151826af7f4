"""Views after batches of changes: AUTO's refresh, the way it has not taken, a plain recompute, a hand-written job."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from viewkeeper.bench.by_hand import Range, job
from viewkeeper.bench.cases import DataGrowth, Sweep, TenViews, name
from viewkeeper.bench.samples import RECOMPUTE, REFRESH, Sample
from viewkeeper.bench.stand import Bench, Stand, Timed, second
from viewkeeper.bench.views import TEN
from viewkeeper.reports import RefreshRecord
from viewkeeper.settings import Settings

OTHER, HAND = "other way", "by hand"
TOGETHER, ONE_BY_ONE = "together", "one by one"
CLEARLY = 2.0  # times as long the other way takes: then it is not measured again beside the same way of AUTO


def sweep(case: Sweep, bench: Bench) -> Iterator[Sample]:
    stand = bench.stand()
    stand.add(case.views, both=case.both)
    for view in case.by_hand:
        bench.sql(f"CREATE OR REPLACE TABLE {_hand(view)} USING DELTA AS SELECT * FROM {view}")
    clear: set[tuple[str, str]] = set()
    for number in range(case.rounds):
        views = [v for v in case.views if number == 0 or v not in case.once]
        changed = stand.change(case.mix)
        for view in views:
            bench.tell(f"round {number + 1} of {case.rounds}: {view}")
            by_hand = changed if view in case.by_hand else None
            yield from _Round(stand, name(case), view, number, case.both, by_hand, clear=clear).measure()
    stand.audit_once(case.views)


@dataclass(frozen=True)
class _Round:
    """One view after one batch. What is measured first changes from round to round.

    clear   views and ways that AUTO took where the other took far longer, in an earlier round
    """

    stand: Stand
    case: str
    view: str
    number: int
    both: bool = False
    by_hand: Range | None = None
    at: float | None = None
    clear: set[tuple[str, str]] = field(default_factory=set)

    def measure(self) -> Iterator[Sample]:
        ways = [self._maintained, self._hand_written, self._recomputed]
        for way in ways if self.number % 2 == 0 else reversed(ways):
            yield from way()
        copies = [self.view, *([second(self.view)] if self.both else []), *([_hand(self.view)] if self.by_hand else [])]
        self.stand.check(self.view, *copies)

    def _maintained(self) -> Iterator[Sample]:
        auto = self.stand.bench.refresh(self.view)
        yield self._sample(REFRESH, auto)
        if self.both:
            record = auto.value
            # One that found no rows to install was predicted, and one that had nothing to do was not.
            maintained = record.strategy != "recompute" and record.predicted_seconds is not None
            # Where it is known which way is faster, the second copy is only brought up to date, by that one.
            known = (self.view, record.strategy) in self.clear
            other = self.stand.bench.refresh(second(self.view), full=maintained != known)
            if not known and other.value.strategy != record.strategy:
                yield self._sample(OTHER, other)
                if other.seconds >= CLEARLY * auto.seconds:
                    self.clear.add((self.view, record.strategy))

    def _hand_written(self) -> Iterator[Sample]:
        if self.by_hand is not None:
            statement = job(self.view, _hand(self.view), self.by_hand)
            done = self.stand.bench.timed(lambda: self.stand.bench.sql(statement))
            yield Sample(self.case, self.view, HAND, self.number, done.seconds, done.jobs)

    def _recomputed(self) -> Iterator[Sample]:
        done = self.stand.recompute(self.view)
        yield Sample(self.case, self.view, RECOMPUTE, self.number, done.seconds, done.jobs, self.at)

    def _sample(self, action: str, timed: Timed[RefreshRecord]) -> Sample:
        record = timed.value
        return Sample(
            self.case,
            self.view,
            action,
            self.number,
            timed.seconds,
            timed.jobs,
            self.at,
            record.strategy,
            record.predicted_seconds,
        )


def _hand(view: str) -> str:
    return f"{view}_by_hand"


def data_growth(case: DataGrowth, bench: Bench) -> Iterator[Sample]:
    for scale in case.scales:
        stand = bench.stand(f"scale_{scale:g}".replace(".", "_"), scale)
        stand.add(case.views, both=False)
        for number in range(case.rounds):
            stand.change(case.mix)
            for view in case.views:
                bench.tell(f"scale {scale:g}, round {number + 1} of {case.rounds}: {view}")
                yield from _Round(stand, name(case), view, number, at=scale).measure()


def ten_views(case: TenViews, bench: Bench) -> Iterator[Sample]:
    """Each way gets a batch of its own, since after the first there is nothing left to do."""
    stand = bench.stand()
    stand.add(TEN, both=False)
    wh = bench.wh
    settings = wh.settings
    for number in range(case.rounds):
        for way, at_once in ((TOGETHER, settings.views_at_once), (ONE_BY_ONE, 1)):
            stand.change(case.mix)
            bench.tell(f"round {number + 1} of {case.rounds}: {way}")
            wh.settings = Settings(views_at_once=at_once)
            done = bench.timed(lambda: wh.refresh(*TEN))
            wh.settings = settings
            yield Sample(name(case), "ten views", way, number, done.seconds, done.jobs)
        bench.tell(f"round {number + 1} of {case.rounds}: recomputes")
        recomputes = [stand.recompute(view) for view in TEN]
        seconds, jobs = sum(r.seconds for r in recomputes), sum(r.jobs for r in recomputes)
        yield Sample(name(case), "ten views", RECOMPUTE, number, seconds, jobs)
        for view in TEN:
            stand.check(view, view)
