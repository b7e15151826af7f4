"""What the samples say: ratios by view, whether AUTO was right, how good predictions were, and the bars."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from viewkeeper.bench import lazy, small
from viewkeeper.bench.cases import Sweep, name
from viewkeeper.bench.grid import TEN_ORDERS, TENTH_OF_A_PERCENT, Mode, grid
from viewkeeper.bench.mixes import NewOrders, Share, Updates
from viewkeeper.bench.samples import RECOMPUTE, REFRESH, Ratio, Samples, geometric_mean
from viewkeeper.bench.sweep import CLEARLY, HAND, OTHER
from viewkeeper.bench.views import BY_HAND
from viewkeeper.tpch.tables import TABLES

DIFFERENT = 1.2  # two ways that differ by less are as good as each other


@dataclass(frozen=True)
class Compared:
    """One view under one mix: its refresh by AUTO against a plain recompute."""

    case: str
    view: str
    strategy: str
    refresh: float
    recompute: float
    ratio: Ratio
    predicted: float | None


@dataclass(frozen=True)
class Choice:
    """AUTO's way and the other one, measured on the same changes, round by round.

    clear   of each round in which the other way was not measured, since it clearly takes longer: the `times` of the
            round that had shown it
    """

    case: str
    view: str
    strategy: str
    chosen: tuple[float, ...]
    other: tuple[float, ...]
    clear: tuple[float, ...] = ()

    @property
    def times(self) -> float:
        """How many times as long as the other AUTO's way took, which need not be the same one in all rounds."""
        measured = (mine / other for mine, other in zip(self.chosen, self.other, strict=True))
        return statistics.median([*measured, *self.clear])

    @property
    def different(self) -> bool:
        return not 1 / DIFFERENT <= self.times <= DIFFERENT

    @property
    def right(self) -> bool:
        return self.times <= 1

    @property
    def first(self) -> Choice:
        """The same of the first round alone, when no change of this size had been seen."""
        strategy = self.strategy.split("/", 1)[0]
        return replace(self, strategy=strategy, chosen=self.chosen[:1], other=self.other[:1], clear=())


@dataclass(frozen=True)
class Bar:
    """A figure, and what it shall be at most, or at least. None: it was not measured."""

    what: str
    value: float | None
    limit: float
    at_least: bool = False
    of: str = ""

    @property
    def holds(self) -> bool | None:
        if self.value is None:
            return None
        return self.value >= self.limit if self.at_least else self.value <= self.limit


def sweeps(samples: Samples) -> list[str]:
    """The cases that changed TPC-H tables by a mix; what has a place on an axis of growth is none of them."""
    return list(dict.fromkeys(s.case for s in samples.all if s.action == REFRESH and s.at is None))


def change_sizes(samples: Samples, mode: Mode, scale: float) -> list[tuple[float, str]]:
    """The measured mixes of all tables, by the share of the orders that they change, smallest first."""
    found = []
    for case in grid(mode):
        if isinstance(case, Sweep) and name(case) in samples.cases:
            match case.mix:
                case NewOrders(orders):
                    found.append((orders / TABLES["orders"].rows_at(scale), name(case)))
                case Share(share):
                    found.append((share, name(case)))
                case Updates():
                    pass
    return sorted(found)


def compared(samples: Samples, case: str) -> Iterator[Compared]:
    """Each view of a sweep."""
    of_case = samples.where(case=case)
    for view in of_case.subjects:
        found = of_case.where(subject=view)
        refreshed, plain = found.where(action=REFRESH), found.where(action=RECOMPUTE)
        ratio = found.ratio(REFRESH, RECOMPUTE)
        if ratio is not None and refreshed.median is not None and plain.median is not None:
            told = [s.predicted for s in refreshed.all if s.predicted is not None]
            predicted = statistics.median(told) if told else None
            yield Compared(case, view, _strategies(refreshed), refreshed.median, plain.median, ratio, predicted)


def _strategies(refreshed: Samples) -> str:
    return "/".join(dict.fromkeys(s.strategy or "" for s in refreshed.all))


def mean_ratio(samples: Samples, case: str) -> float | None:
    return geometric_mean(c.ratio.value for c in compared(samples, case))


def choices(samples: Samples) -> list[Choice]:
    """Every measured pair of AUTO's way and the other one; rounds of one case and view are one choice."""
    found = []
    for case in sweeps(samples):
        for view in samples.where(case=case).subjects:
            of_view = samples.where(case=case, subject=view)
            others = {s.round: s.seconds for s in of_view.where(action=OTHER).all}
            chosen = [s for s in of_view.where(action=REFRESH).all if s.round in others]
            if chosen:
                mine, other = tuple(s.seconds for s in chosen), tuple(others[s.round] for s in chosen)
                shown = {s.strategy: m / o for s, m, o in zip(chosen, mine, other, strict=True) if o >= CLEARLY * m}
                left = [s for s in of_view.where(action=REFRESH).all if s.round not in others]
                clear = tuple(shown[s.strategy] for s in left if s.strategy in shown)
                found.append(Choice(case, view, _strategies(Samples(tuple(chosen))), mine, other, clear))
    return found


def right_share(found: Iterable[Choice]) -> float | None:
    """How often AUTO took the cheaper way, where it mattered."""
    different = [c for c in found if c.different]
    return sum(c.right for c in different) / len(different) if different else None


WAYS = ("incremental", "recompute")


def predictions(samples: Samples, way: str) -> list[tuple[float, float]]:
    """Predicted and actual seconds of all refreshes of one way; one that found no rows to install is incremental."""
    return [
        (s.predicted, s.seconds)
        for s in samples.all
        if s.predicted is not None and (s.strategy == "recompute") == (way == "recompute")
    ]


def prediction_error(samples: Samples, way: str) -> tuple[float, float] | None:
    """The median of actual by predicted seconds, and the median factor by which they differ, either way."""
    ratios = [actual / predicted for predicted, actual in predictions(samples, way)]
    if not ratios:
        return None
    return statistics.median(ratios), statistics.median(max(r, 1 / r) for r in ratios)


def condensed(samples: Samples) -> float | None:
    """All refreshes one by one, by the one of all changes together."""
    of_case = samples.where(case="transactions")
    combined = of_case.where(action=lazy.COMBINED).median
    return sum(of_case.where(action=lazy.EAGER).seconds) / combined if combined else None


def bars(samples: Samples, mode: Mode) -> list[Bar]:
    """What this project promises itself. Those of a full run are shown for a quick one, too."""
    tenth, ten = name(Sweep(TENTH_OF_A_PERCENT, (), 0)), name(Sweep(TEN_ORDERS, (), 0))
    ratios = [c.ratio.value for c in compared(samples, tenth)]
    by_hand = [r.value for v in BY_HAND if (r := samples.where(case=tenth, subject=v).ratio(REFRESH, HAND)) is not None]
    large = mode == "large"
    tenth_bar, ten_bar = (0.15, 0.05) if large else (0.5, 0.25)
    views = f"{len(ratios)} views"
    found = [
        Bar(f"refresh ÷ recompute at {tenth} of all tables, geometric mean", mean_ratio(samples, tenth), tenth_bar,
            of=views),
        Bar("the same, the worst view", max(ratios, default=None), 1.1, of=views),
        Bar("refresh ÷ recompute after 10 new orders, geometric mean", mean_ratio(samples, ten), ten_bar,
            of=f"{len(list(compared(samples, ten)))} views"),
        Bar(f"refresh ÷ hand-written MERGE job at {tenth}, the worst view", max(by_hand, default=None), 1.0,
            of=", ".join(BY_HAND)),
        Bar("AUTO right, where the two ways differ by over 20 %", right_share(choices(samples)), 0.95, at_least=True,
            of=f"{sum(c.different for c in choices(samples))} of {len(choices(samples))} cases"),
    ]  # fmt: skip
    return found if large else [*_small_bars(samples), *found, *_other_bars(samples)]


def _small_bars(samples: Samples) -> list[Bar]:
    groups = samples.where(case="small-refresh")

    def by_append(action: str) -> float | None:
        upper, lower = groups.where(action=action).median, groups.where(action=small.APPEND).median
        return upper / lower if upper and lower else None

    return [
        Bar("10 rows inserted: refresh ÷ plain append", by_append(small.INSERTED), 3),
        Bar("10 rows updated: refresh ÷ plain append", by_append(small.UPDATED), 3),
        Bar("nothing to do, ten views ÷ plain append", by_append(small.TEN_IDLE), 1),
    ]


def _other_bars(samples: Samples) -> list[Bar]:
    ten = samples.where(case="small-refresh").ratio(small.TEN_ONE_BY_ONE, small.TEN_TOGETHER)
    count = len(samples.where(case="transactions", action=lazy.EAGER).all)
    return [
        Bar("skewed small transactions: one by one ÷ combined", condensed(samples), 13, at_least=True,
            of=f"{count} transactions"),
        Bar("ten independent views: one by one ÷ one refresh", ten.value if ten else None, 1.3, at_least=True),
    ]  # fmt: skip
