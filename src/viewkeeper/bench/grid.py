"""Which cases a run has. Quick, at scale 0.1, is meant to take 5 minutes at most, full, at scale 1, an hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Literal

from viewkeeper.bench.cases import (
    Case,
    CommitGrowth,
    DataGrowth,
    DepthGrowth,
    SmallRefresh,
    Sweep,
    TenViews,
    Transactions,
    Writers,
    name,
)
from viewkeeper.bench.mixes import NewOrders, Share, Updates
from viewkeeper.bench.views import ALL, BY_HAND
from viewkeeper.errors import ViewkeeperError

Mode = Literal["quick", "full", "large"]
SCALES: dict[Mode, float] = {"quick": 0.1, "full": 1, "large": 10}


def mode(*, quick: bool = False, large: bool = False) -> Mode:
    """The kind of run that these options ask for."""
    if quick and large:
        raise ViewkeeperError("a run is quick or large, not both")
    return "quick" if quick else "large" if large else "full"


TENTH_OF_A_PERCENT = Share(0.001)
TEN_ORDERS = NewOrders(10)

_QUICK = ("v1", "w_q3", "q1", "q18")
_SEVERAL = ("v1", "w_q3", "w_q10", "q1", "q9", "q13", "q16", "q18")
_LONG = ("v2",)  # all lines with their suppliers' comments: a recompute writes millions of rows
_LARGE = ("v1", "q1", "w_q3", "w_q5", "q9", "w_q10", "q18")
# Views that read the table, by how they read it: added up, joined, in a subquery, under an outer join.
_READERS = {
    "lineitem": ("v1", "q1", "q17"),
    "orders": ("q4", "q13", "w_q10"),
    "customer": ("v1", "w_q10", "q22"),
    "supplier": ("w_q5", "q15", "q20"),
    "part": ("q2", "q16", "q19"),
    "partsupp": ("q2", "q9", "q11"),
    "nation": ("v1", "w_q10", "q7"),
    "region": ("w_q5", "q2", "q8"),
}
_TWO_ROWS = {"nation": 0.08, "region": 0.4}


def grid(mode: Mode) -> tuple[Case, ...]:
    """The cases of a run, those that the bars are about first; larger changes after smaller ones."""
    match mode:
        case "quick":
            return (
                SmallRefresh(1_000_000, rounds=3),
                Sweep(TEN_ORDERS, _QUICK, rounds=2, both=False),
                Sweep(TENTH_OF_A_PERCENT, _QUICK, rounds=2, by_hand=("v1", "w_q3")),
                Sweep(Share(0.05), ("v1",), rounds=1),
                Writers((100,), rounds=2),
                Transactions(20),
                DataGrowth(NewOrders(10), (0.01, 0.1), ("v1",), rounds=1),
                CommitGrowth((1, 10)),
                DepthGrowth((1, 3), rounds=1),
            )
        case "full":
            return (
                SmallRefresh(1_000_000, rounds=9),
                Sweep(TEN_ORDERS, ALL, rounds=3, both=False, once=_LONG),
                Sweep(TENTH_OF_A_PERCENT, ALL, rounds=3, by_hand=BY_HAND, once=_LONG),
                Sweep(Share(0.0001), _SEVERAL, rounds=1),
                Sweep(Share(0.01), _SEVERAL, rounds=1),
                Sweep(Share(0.05), _SEVERAL, rounds=3),
                Sweep(Share(0.1), _SEVERAL, rounds=3),
                *(Sweep(Updates(t, _TWO_ROWS.get(t, 0.001)), views, rounds=3) for t, views in _READERS.items()),
                TenViews(TENTH_OF_A_PERCENT, rounds=1),
                Writers((1, 10, 100), rounds=5),
                Transactions(100),
                DataGrowth(NewOrders(150), (0.1, 1, 3), ("v1",), rounds=2),
                CommitGrowth((1, 10, 100, 1000)),
                DepthGrowth((1, 2, 5, 10), rounds=3),
            )
        case "large":
            return (
                Sweep(TEN_ORDERS, _LARGE, rounds=3, both=False),
                Sweep(TENTH_OF_A_PERCENT, _LARGE, rounds=3, both=False),
            )


def chosen(cases: Sequence[Case], patterns: Sequence[str]) -> tuple[Case, ...]:
    """The cases whose name fits any pattern, as of files; `case/view` also picks among the views of a sweep."""
    found = tuple(narrowed for case in cases if (narrowed := _narrowed(case, patterns)) is not None)
    if not found:
        listed = ", ".join(map(name, cases))
        raise ViewkeeperError(f"no case fits {' or '.join(patterns)}", hint=f"there are: {listed}")
    return found


def _narrowed(case: Case, patterns: Sequence[str]) -> Case | None:
    if not patterns or any(fnmatchcase(name(case), pattern) for pattern in patterns):
        return case
    if isinstance(case, Sweep):
        views = tuple(v for v in case.views if any(fnmatchcase(f"{name(case)}/{v}", p) for p in patterns))
        if views:
            return replace(case, views=views, by_hand=tuple(v for v in case.by_hand if v in views))
    return None
