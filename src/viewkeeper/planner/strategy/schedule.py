"""A strategy on several workers, and the update window it needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush

from viewkeeper.errors import GraphError
from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.steps import Comp, CompAt, Inst, Strategy, VersionedStrategy
from viewkeeper.planner.strategy.work import Metric, step_works

AnyStep = Comp | CompAt | Inst


@dataclass(frozen=True)
class Slot:
    """A step, the worker it runs on and its time."""

    step: AnyStep
    worker: int
    start: float
    end: float


@dataclass(frozen=True)
class Schedule:
    """makespan: the update window. bound: no schedule of these steps on as many workers is shorter."""

    slots: tuple[Slot, ...]
    makespan: float
    bound: float


def dependencies(graph: ChangedGraph, strategy: Strategy | VersionedStrategy) -> dict[AnyStep, set[AnyStep]]:
    """For each step those that must end before it starts, so that it reads what it would read one step at a time."""
    place = {step: k for k, step in enumerate(strategy)}
    needs: dict[AnyStep, set[AnyStep]] = {step: set() for step in strategy}
    comps: dict[str, list[AnyStep]] = {}
    for step in strategy:
        if not isinstance(step, Inst):
            comps.setdefault(step.view, []).append(step)
    for step in strategy:
        match step:
            case Inst(view):
                needs[step].update(comps.get(view, ()))
            case CompAt(_, changed, new):
                needs[step].update(Inst(name) for name in new)
                needs[step].update(earlier for name in changed for earlier in comps.get(name, ()))
            case Comp(view, changed):
                needs[step].update(earlier for name in changed for earlier in comps.get(name, ()))
                # Without versions, a table is read as it is: on the same side of its install as in the sequence.
                for name in graph[view].inputs:
                    install = Inst(name)
                    if install in place and place[install] < place[step]:
                        needs[step].add(install)
                    elif install in place:
                        needs[install].add(step)
    return needs


def schedule(
    graph: ChangedGraph, strategy: Strategy | VersionedStrategy, workers: int, metric: Metric | None = None
) -> Schedule:
    """Whenever a worker is free it takes, of the steps that can run, the one with the longest way to the end.

    At most 2 - 1/workers times as long as the shortest schedule [Graham 1969].
    """
    if workers < 1:
        raise GraphError(f"a schedule on {workers} workers")
    needs = dependencies(graph, strategy)
    works = dict(zip(strategy, step_works(graph, strategy, metric), strict=True))
    tail = longest_tails(needs, works)
    slots = tuple(_list_schedule(needs, works, tail, workers))
    bound = max(max(tail.values(), default=0.0), sum(works.values()) / workers)
    return Schedule(slots, max((slot.end for slot in slots), default=0.0), bound)


def longest_tails(needs: Mapping[AnyStep, set[AnyStep]], works: Mapping[AnyStep, float]) -> dict[AnyStep, float]:
    """For each step, the longest chain of steps from its start to the end."""
    later = _released(needs)
    left = {step: len(following) for step, following in later.items()}
    stack = [step for step, count in left.items() if not count]
    tail: dict[AnyStep, float] = {}
    while stack:
        step = stack.pop()
        tail[step] = works[step] + max((tail[following] for following in later[step]), default=0.0)
        for earlier in needs[step]:
            left[earlier] -= 1
            if not left[earlier]:
                stack.append(earlier)
    return tail


def _released(needs: Mapping[AnyStep, set[AnyStep]]) -> dict[AnyStep, list[AnyStep]]:
    later: dict[AnyStep, list[AnyStep]] = {step: [] for step in needs}
    for step, before in needs.items():
        for earlier in before:
            later[earlier].append(step)
    return later


def _list_schedule(
    needs: Mapping[AnyStep, set[AnyStep]], works: Mapping[AnyStep, float], tail: Mapping[AnyStep, float], workers: int
) -> Iterator[Slot]:
    place = {step: k for k, step in enumerate(needs)}
    later = _released(needs)
    waiting = {step: len(before) for step, before in needs.items()}
    ready = [(-tail[step], place[step], step) for step, count in waiting.items() if not count]
    heapify(ready)
    free = list(range(workers))
    running: list[tuple[float, int, int, AnyStep]] = []
    now = 0.0
    while ready or running:
        while ready and free:
            _, _, step = heappop(ready)
            worker = heappop(free)
            heappush(running, (now + works[step], place[step], worker, step))
            yield Slot(step, worker, now, now + works[step])
        now = running[0][0]
        while running and running[0][0] <= now:
            _, _, worker, step = heappop(running)
            heappush(free, worker)
            for following in later[step]:
                waiting[following] -= 1
                if not waiting[following]:
                    heappush(ready, (-tail[following], place[following], following))
