"""What can be measured: cases are data. `grid.py` chooses them, `run.py` runs them."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.bench.mixes import Mix, title


@dataclass(frozen=True)
class Sweep:
    """Views after batches of one mix: AUTO's refresh against a plain recompute, in turn.

    both       whether the way that AUTO has not taken is measured, too
    by_hand    views whose hand-written job is measured, in all rounds
    once       views that are too large for more than one round
    """

    mix: Mix
    views: tuple[str, ...]
    rounds: int
    both: bool = True
    by_hand: tuple[str, ...] = ()
    once: tuple[str, ...] = ()


@dataclass(frozen=True)
class SmallRefresh:
    """10 rows changed of many, a view of 1 000 groups, against a plain append of 10 rows; ten such views."""

    rows: int
    rounds: int


@dataclass(frozen=True)
class TenViews:
    """Ten views that overlap: refreshed together, one by one, and recomputed."""

    mix: Mix
    rounds: int


@dataclass(frozen=True)
class Writers:
    """An update of so many customers, where 0, 1 and 10 views read them (Z1 and Z2 of the lazy paper)."""

    sizes: tuple[int, ...]
    rounds: int


@dataclass(frozen=True)
class Transactions:
    """Small updates of the same few customers: V1 refreshed after each, against once for all (Z5)."""

    count: int


@dataclass(frozen=True)
class DataGrowth:
    """The same change at several scales."""

    mix: Mix
    scales: tuple[float, ...]
    views: tuple[str, ...]
    rounds: int


@dataclass(frozen=True)
class CommitGrowth:
    """One refresh after so many commits of one row."""

    counts: tuple[int, ...]


@dataclass(frozen=True)
class DepthGrowth:
    """Views over views, so many of them one over the other."""

    depths: tuple[int, ...]
    rounds: int


Case = Sweep | SmallRefresh | TenViews | Writers | Transactions | DataGrowth | CommitGrowth | DepthGrowth


def name(case: Case) -> str:
    """What `--only` picks it by, and the name of the file that keeps its samples."""
    match case:
        case Sweep(mix):
            return title(mix).replace(" ", "-")
        case SmallRefresh():
            return "small-refresh"
        case TenViews():
            return "ten-views"
        case Writers():
            return "writers"
        case Transactions():
            return "transactions"
        case DataGrowth():
            return "growth-data"
        case CommitGrowth():
            return "growth-commits"
        case DepthGrowth():
            return "growth-depth"


def actions(case: Case) -> int:
    """About how many things it times or does beside: what the estimate of the time that is left goes by."""
    match case:
        case Sweep(_, views, rounds, both, by_hand):
            return len(views) * (2 * rounds + both) + len(by_hand) * rounds + 4 * rounds
        case SmallRefresh(_, rounds):
            return 12 * rounds
        case TenViews(_, rounds):
            return 10 + 30 * rounds
        case Writers(sizes, rounds):
            return 10 + 4 * len(sizes) * rounds
        case Transactions(count):
            return 2 * count
        case DataGrowth(_, scales, views, rounds):
            return len(scales) * (10 + len(views) * (1 + 2 * rounds))
        case CommitGrowth(counts):
            return sum(counts) // 5 + len(counts)
        case DepthGrowth(depths, rounds):
            return max(depths) + sum(depths) * rounds
