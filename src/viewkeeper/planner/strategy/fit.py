"""Whether a strategy can be done within a window at all: a search over all its schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal as OneOf

from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.schedule import AnyStep, Schedule, Slot, dependencies, longest_tails, schedule
from viewkeeper.planner.strategy.steps import Strategy, VersionedStrategy
from viewkeeper.planner.strategy.work import Metric, step_works

_MOST_STEPS = 100  # what such a search has any chance with
_MOST_STATES = 5_000


def within(
    graph: ChangedGraph,
    strategy: Strategy | VersionedStrategy,
    workers: int,
    window: float,
    metric: Metric | None = None,
) -> Schedule | OneOf["impossible", "unknown"]:
    """A schedule that fits into the window, or that there is none, or that this is not known after a long search.

    Taken in the order of their starts, the steps of any schedule can each start as early as those before them allow,
    and nothing gets later. So all such orders are tried, without those that leave too little time.
    """
    listed = schedule(graph, strategy, workers, metric)
    if listed.makespan <= window:
        return listed
    if listed.bound > window:
        return "impossible"
    if len(strategy) > _MOST_STEPS:
        return "unknown"
    works: dict[AnyStep, float] = dict(zip(strategy, step_works(graph, strategy, metric), strict=True))
    needs = dependencies(graph, strategy)
    search = _Search(needs, works, longest_tails(needs, works), window)
    found = search.extend((), (0.0,) * workers, 0.0)
    if found:
        return Schedule(found, max(slot.end for slot in found), listed.bound)
    return "unknown" if len(search.seen) >= _MOST_STATES else "impossible"


@dataclass
class _Search:
    needs: Mapping[AnyStep, set[AnyStep]]
    works: Mapping[AnyStep, float]
    tail: Mapping[AnyStep, float]
    window: float
    seen: set[object] = field(default_factory=set)

    def extend(self, slots: tuple[Slot, ...], free: tuple[float, ...], last: float) -> tuple[Slot, ...] | None:
        """The rest after some steps; `free` says from when on each worker is, `last` when the last of them started."""
        ends = {slot.step: slot.end for slot in slots}
        left = [step for step in self.needs if step not in ends]
        if not left:
            return slots
        if self._is_hopeless(ends, left, free):
            return None
        options = []
        for step in left:
            if all(before in ends for before in self.needs[step]):
                start = max([last, min(free), *(ends[before] for before in self.needs[step])])
                if start + self.tail[step] > self.window:
                    return None
                options.append((-self.tail[step], start, step))
        for _, start, step in sorted(options, key=lambda option: option[:2]):
            worker = max((w for w, at in enumerate(free) if at <= start), key=lambda w: free[w])
            slot = Slot(step, worker, start, start + self.works[step])
            following = (*free[:worker], slot.end, *free[worker + 1 :])
            if found := self.extend((*slots, slot), following, start):
                return found
        return None

    def _is_hopeless(self, ends: Mapping[AnyStep, float], left: list[AnyStep], free: tuple[float, ...]) -> bool:
        """Whether too much work is left, or the same was looked at before, or too much was."""
        if sum(self.works[step] for step in left) > sum(self.window - at for at in free) * (1 + 1e-12):
            return True
        awaited = {before for step in left for before in self.needs[step] if before in ends}
        state = (frozenset(left), tuple(sorted(free)), frozenset((step, ends[step]) for step in awaited))
        if state in self.seen or len(self.seen) >= _MOST_STATES:
            return True
        self.seen.add(state)
        return False
