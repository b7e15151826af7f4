"""AO-greedy and multi-level greedy on query-view graphs.   [Gupta 1999, 2.5.1, Alg. 5]

A stage of AO-greedy takes the connected set of views with the highest benefit per space. The thesis enumerates; here
the densest set is found by a few mixed-integer programs (Dinkelbach: max benefit - λ·space, with λ the best density
so far), and the densest of its connected parts is taken, which is at least as dense as the whole.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from viewkeeper.errors import GraphError
from viewkeeper.selection.choice import Budget, Choice, Step, finish
from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.program import Program
from viewkeeper.selection.query_view import QueryViewGraph, from_view_graph

Views = frozenset[str]
_SECONDS = 600.0  # a stage is not to be given up: without the densest set there is no guarantee


def ao_greedy(graph: ViewGraph, budget: Budget, most_ways: int) -> Choice:
    """The densest connected set at each stage."""
    return multi_level(graph, budget, 0, most_ways)


def multi_level(graph: ViewGraph, budget: Budget, r: int, most_ways: int) -> Choice:
    """At each stage the best of `InnerGreedy` over the connected components; with r = 0 that is AO-greedy.

    As printed, Alg. 5 divides a benefit by a benefit where it means the space.
    """
    if budget.space is None or budget.maintenance is not None:
        raise GraphError("this method is for a space budget alone", hint="Exact() takes any budget")
    if graph.numbered.has_updates:
        raise GraphError("this method is for graphs without updates", hint="Exact() takes updates")
    if r < 0:
        raise GraphError(f"multi-level greedy with r = {r}")
    run = Run(from_view_graph(graph, most_ways), budget.space, budget.overshoot)
    kept: Views = frozenset()
    trace: list[Step] = []
    while run.graph.size(kept) < budget.space * (1 - 1e-9):
        best = run.stage(r, kept)
        if best is None:
            break
        gain = run.benefit(best, kept)
        density = gain / run.graph.size(best) if run.graph.size(best) else math.inf
        trace.append(Step(tuple(sorted(best)), gain, f"highest benefit per space, {density:.6g}"))
        kept |= best
    return finish(graph, budget, graph.numbered.number(kept), -math.inf, trace)


@dataclass(frozen=True)
class Run:
    graph: QueryViewGraph
    space: float
    overshoot: bool

    def benefit(self, more: Views, kept: Views) -> float:
        return self.graph.cost(kept) - self.graph.cost(kept | more)

    def density(self, views: Views, kept: Views) -> float:
        gain, size = self.benefit(views, kept), self.graph.size(views)
        if gain <= 0:
            return -math.inf
        return gain / size if size else math.inf

    def stage(self, r: int, kept: Views) -> Views | None:
        room = self.space if self.overshoot else self.space - self.graph.size(kept)
        found = [self.inner(r, part, kept, room) for part in components(self.open_sets(kept))]
        useful = [views for views in found if views and self.density(views, kept) > 0]
        if not self.overshoot:
            useful = [views for views in useful if self.graph.size(views) <= room * (1 + 1e-9)]
        return max(useful, key=lambda views: self.density(views, kept), default=None)

    def open_sets(self, kept: Views) -> set[Views]:
        """What the ways still lack; those that lack nothing are not open."""
        return {way.views - kept for query in self.graph.queries for way in query.ways} - {frozenset()}

    def inner(self, r: int, sets: set[Views], kept: Views, room: float) -> Views | None:
        """InnerGreedy: the view common to all sets, and then the best of what remains, while the density rises."""
        common = frozenset[str].intersection(*sets)
        if r == 0 or not common:
            return self.densest(sets, kept, room)
        chosen: Views = frozenset([min(common)])
        while self.graph.size(chosen) < room:
            left = {s - chosen for s in sets} - {frozenset()}
            found = [self.inner(r - 1, part, kept | chosen, room) for part in components(left)]
            useful = [views for views in found if views]
            best = max(useful, key=lambda views: self.density(views, kept | chosen), default=None)
            if best is None or self.density(chosen | best, kept) <= self.density(chosen, kept):
                break
            chosen |= best
        return chosen

    def densest(self, sets: set[Views], kept: Views, room: float) -> Views | None:
        """The densest connected union of these sets that has room, by Dinkelbach's method."""
        best: Views | None = None
        ratio = 0.0
        while True:
            views = self._best_at(ratio, sets, kept, room)
            parts = [frozenset[str]().union(*part) for part in components(self._within(sets, views))]
            densest = max(parts, key=lambda part: self.density(part, kept), default=None)
            if densest is None or self.density(densest, kept) <= ratio * (1 + 1e-9):
                return best
            best, ratio = densest, self.density(densest, kept)
            if math.isinf(ratio):
                return best

    def _within(self, sets: set[Views], views: Views) -> set[Views]:
        return {s for s in sets if s <= views}

    def _best_at(self, ratio: float, sets: set[Views], kept: Views, room: float) -> Views:
        """max B(V,kept) - ratio·S(V) over unions V of the sets within the room."""
        program = Program()
        names = sorted(frozenset[str]().union(*sets))
        keep = {name: program.variable(ratio * self.graph.sizes[name], 1.0, integral=True) for name in names}
        program.row(((keep[n], self.graph.sizes[n] / self.space) for n in names), most=room / self.space)
        for query in self.graph.queries:
            now = min((w.cost for w in query.ways if w.views <= kept), default=query.without)
            answers = []
            for way in query.ways:
                lacking = way.views - kept
                if way.cost < now and lacking and lacking <= keep.keys():
                    answer = program.variable(-query.frequency * (now - way.cost), 1.0)
                    answers.append(answer)
                    for name in lacking:
                        program.row([(answer, 1.0), (keep[name], -1.0)], most=0.0)
            if answers:
                program.row(((answer, 1.0) for answer in answers), most=1.0)
        values = program.solve(0.0, _SECONDS).values
        if values is None:
            return frozenset()
        return frozenset(name for name, x in keep.items() if values[x] > 0.5)


def components(sets: Iterable[Views]) -> Iterator[set[Views]]:
    """The connected components of the intersection graph: sets that share a view belong together."""
    left = sorted(sets, key=sorted)
    while left:
        part = {left[0]}
        reached: set[str] = set(left[0])
        left = left[1:]
        grown = True
        while grown:
            joined = [s for s in left if not reached.isdisjoint(s)]
            grown = bool(joined)
            part.update(joined)
            reached.update(*joined)
            left = [s for s in left if s not in part]
        yield part
