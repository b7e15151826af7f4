"""What to leave out when the update window is too short.

A view that is left out keeps its old version, and so do all that read it. The program: keep(v) ≤ keep(u) for every
input u of v, the work of what is kept at most workers × window, and no kept view whose own chain of steps is longer
than the window; the least harm left out. On one worker that is all. On several it is a relaxation: a set that cannot be
scheduled is refused, with all that contain it, and the next one is tried. While every refusal is proved, by a search
over all schedules, the objective stays a bound; so the answer is the best there is whenever `gap` is 0.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeeper.errors import GraphError
from viewkeeper.planner.strategy.fit import within
from viewkeeper.planner.strategy.graph import Changed, ChangedGraph
from viewkeeper.planner.strategy.schedule import Schedule, dependencies, schedule
from viewkeeper.planner.strategy.steps import Inst, VersionedStrategy
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.work import Metric, step_works
from viewkeeper.selection.program import Program

_ROUNDS = 40
_SLACK = 1 + 1e-9


@dataclass(frozen=True)
class Reduced:
    """What is left out, in the order of the graph, and what it harms; `bound` and `gap` as for a choice of views."""

    left_out: tuple[str, ...]
    harm: float
    bound: float
    gap: float
    strategy: VersionedStrategy
    schedule: Schedule


def leave_out(
    graph: ChangedGraph,
    window: float,
    harm: Mapping[str, float],
    *,
    workers: int = 1,
    metric: Metric | None = None,
    seconds: float = 10.0,
) -> Reduced:
    """The least harm that makes the rest fit into the window; `harm` says what staleness of a view costs, else 0.

    After so many seconds the next round is not begun, and the rest is done by hand.
    """
    if not (math.isfinite(window) and window >= 0):
        raise GraphError(f"a window of {window}")
    end = time.monotonic() + seconds
    shortage = _Shortage(graph, window, harm, workers, metric or Metric())
    bound = -math.inf
    refused: list[set[str]] = []
    proved = True
    while len(refused) < _ROUNDS and (left := end - time.monotonic()) > 0:
        kept, least = shortage.relaxed(refused, left)
        bound = max(bound, least) if proved else bound
        if kept is None:
            break
        reduced = shortage.reduced(kept, bound)
        if shortage.fits(reduced.schedule):
            return shortage.filled(kept, bound)
        match within(ChangedGraph(shortage.views(kept)), reduced.strategy, workers, window * _SLACK, metric):
            case "impossible":
                refused.append(kept)
            case "unknown":
                refused.append(kept)
                proved = False
            case shorter:
                return replace(reduced, schedule=shorter)
    return shortage.filled(shortage.by_hand(), bound)


class _Shortage:
    def __init__(
        self, graph: ChangedGraph, window: float, harm: Mapping[str, float], workers: int, metric: Metric
    ) -> None:
        self.graph = graph
        self.window = window
        self.workers = workers
        self.metric = metric
        self.harm = {view.name: float(harm.get(view.name, 0.0)) for view in graph.views}
        if any(not math.isfinite(h) or h < 0 for h in self.harm.values()):
            raise GraphError("the harm of a view is a number from 0 up")
        strategy = with_versions(graph)
        works = step_works(graph, strategy, metric)
        self.work = {view.name: 0.0 for view in graph.views}
        needs = dependencies(graph, strategy)
        ends: dict[object, float] = {}
        for step, cost in zip(strategy, works, strict=True):
            self.work[step.view] += cost
            ends[step] = cost + max((ends[before] for before in needs[step]), default=0.0)
        self.chain = {view.name: ends[Inst(view.name)] for view in graph.views}

    def relaxed(self, refused: list[set[str]], seconds: float) -> tuple[set[str] | None, float]:
        """The kept views of the least harm by work and chains alone, none of those sets that could not be scheduled."""
        program = Program()
        room = self.window * self.workers
        keep = {}
        for view in self.graph.views:
            possible = self.chain[view.name] <= self.window * _SLACK
            keep[view.name] = program.variable(-self.harm[view.name], 1.0 if possible else 0.0, integral=True)
        for view in self.graph.views:
            for below in view.inputs:
                program.row([(keep[view.name], 1.0), (keep[below], -1.0)], most=0.0)
        # Shares of the room; HiGHS may exceed a row by a millionth, so whole sets are checked again afterwards.
        scale = max(room, max(self.work.values(), default=0.0)) or 1.0
        program.row(((keep[name], cost / scale) for name, cost in self.work.items() if cost), most=room / scale)
        for kept in refused:
            program.row(((keep[name], 1.0) for name in kept), most=len(kept) - 1.0)
        everything = sum(self.harm.values())
        solution = program.solve(0.0, seconds, everything)
        if solution.values is None:
            return None, everything + solution.bound
        found = {name for name, x in keep.items() if solution.values[x] > 0.5}
        return found, everything + solution.bound

    def views(self, kept: set[str]) -> tuple[Changed, ...]:
        return tuple(view for view in self.graph.views if view.name in kept)

    def reduced(self, kept: set[str], bound: float) -> Reduced:
        views = self.views(kept)
        strategy = with_versions(ChangedGraph(views))
        harm = sum(self.harm[view.name] for view in self.graph.views if view.name not in kept)
        bound = min(max(bound, 0.0), harm)
        return Reduced(
            left_out=tuple(view.name for view in self.graph.views if view.name not in kept),
            harm=harm,
            bound=bound,
            gap=(harm - bound) / harm if harm > bound * (1 + 1e-7) + 1e-7 else 0.0,
            strategy=strategy,
            schedule=schedule(ChangedGraph(views), strategy, self.workers, self.metric),
        )

    def fits(self, found: Schedule) -> bool:
        return found.makespan <= self.window * _SLACK

    def filled(self, kept: set[str], bound: float) -> Reduced:
        """These and what else fits: what harms nothing is all one to the program, but is not left out for nothing."""
        reduced = self.reduced(kept, bound)
        for name in self.graph.bottom_up:
            if name not in kept and kept.issuperset(self.graph[name].inputs):
                more = kept | {name}
                if sum(self.work[n] for n in more) <= self.window * self.workers * _SLACK:
                    larger = self.reduced(more, bound)
                    if self.fits(larger.schedule):
                        kept, reduced = more, larger
        return reduced

    def by_hand(self) -> set[str]:
        """Of the views that none of the kept read, the one with the least harm per work goes first."""
        kept = {view.name for view in self.graph.views}
        while kept and not self.fits(self.reduced(kept, 0.0).schedule):
            tops = [name for name in kept if kept.isdisjoint(self.graph.readers[name])]
            kept.remove(min(tops, key=lambda name: (self.harm[name] / max(self.work[name], 1e-300), name)))
        return kept
