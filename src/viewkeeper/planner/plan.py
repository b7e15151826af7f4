"""A plan: one step per view, in the order in which they run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal as OneOf

from viewkeeper.algebra.reasons import Reason
from viewkeeper.changes.refresh import Maintenance
from viewkeeper.planner.cost import Cost

Install = OneOf["append", "replace", "rewrite", "merge"]
Strategy = OneOf["incremental", "recompute", "none"]
Way = OneOf["incremental", "here", "recompute"]  # of costs: from changes by Spark, from changes by this process


@dataclass(frozen=True)
class Nothing:
    """The view is right as it is; `record` says whether the covered versions move on."""

    view: str
    reason: str
    record: bool = False


@dataclass(frozen=True)
class Maintain:
    """Compute the view's change and install it.

    here   whether this process is expected to compute it, without Spark
    """

    view: str
    reason: str
    maintenance: Maintenance
    install: Install
    why_install: str
    cost: Cost
    recompute_cost: Cost
    small: bool
    here: bool = False


@dataclass(frozen=True)
class Recompute:
    """Compute the whole view and replace what it holds.

    instead_of   what a change would take, where that is only dearer
    look         whether it is worth reading the changes first: what they turn out to be may make that cheaper
    """

    view: str
    reason: str
    cost: Cost
    instead_of: Maintain | None = None
    look: bool = False
    obstacle: Reason | None = None


@dataclass(frozen=True)
class Refuse:
    """The policy forbids the only way there is; the view stays as it was."""

    view: str
    reason: str
    hint: str


Step = Nothing | Maintain | Recompute | Refuse


def strategy(step: Step) -> Strategy:
    match step:
        case Nothing() | Refuse():
            return "none"
        case Maintain():
            return "incremental"
        case Recompute():
            return "recompute"


@dataclass(frozen=True)
class Outcome:
    """What a step did, and how many seconds that was predicted to take."""

    strategy: Strategy
    reason: str
    rows_inserted: int
    rows_deleted: int
    install: str = ""
    predicted: float | None = None


@dataclass(frozen=True)
class Plan:
    """The steps of a refresh. For views over views that will change, sizes are predictions."""

    steps: tuple[Step, ...]

    def __iter__(self) -> Iterator[Step]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)
