"""Queries and maintenance of an AND-OR graph, as flows from each view down to what is there.

One unit of flow goes from each query down through its arcs, an arc sending one unit to each of its inputs, until it
ends in base tables and in what is kept: through the places that `places.py` finds. At first each node has one place.
Where the relaxation reads more than it could if all uses of a view were apart, they are told apart (`ties.py` says what
else it could not do). Of views that will hardly be kept, maintenance need not be a flow: it costs no less than at best.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from viewkeeper.selection.costs import Costs, Side
from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.ledger import Ledger
from viewkeeper.selection.places import Place, most_uses, places
from viewkeeper.selection.reach import Floats

Flowing = tuple[int, bool]  # a view, and whether it is its maintenance
Divided = Mapping[Flowing, frozenset[int]]

_SOME = 1e-4  # of a unit: what flows
_TOO_MUCH = 1e-3  # the same: what is read


@dataclass(frozen=True)
class Flow:
    """The places of one flow, the variables of their ways, and those of what is read where.

    often   how often each node can be used at most
    """

    places: Sequence[Place]
    ways: Sequence[Sequence[int]]
    reads: Mapping[int, int]
    often: Mapping[int, float]

    def most(self, p: int) -> float:
        """How often a place can be read."""
        place = self.places[p]
        return min(place.often, self.often[place.node])

    def too_shared(self, values: Floats, keep: Mapping[int, int]) -> set[int]:
        """The nodes with several users on the way to a place that is read more than it could be, were these told apart.

        Of each use that is taken no more than x can be read if x of the view is kept, and no more than flows there.
        """
        found: set[int] = set()
        taken: dict[int, float] = {0: 1.0}  # how many uses of each place are
        through: dict[int, frozenset[int]] = {0: frozenset()}  # the nodes with several users from the top to here
        for p, place in enumerate(self.places):
            kept = values[keep[place.node]] if p in self.reads else 0.0
            could = 0.0
            for user, uses in place.users.items():
                flow = sum(values[self.ways[user][use.way]] * use.times for use in uses)
                if user in taken and flow > _SOME:
                    times = taken[user] * max(use.times for use in uses)
                    taken[p] = taken.get(p, 0.0) + times
                    could += min(flow, times * kept)
                    shared = {place.node} if len(place.users) > 1 else frozenset()
                    through[p] = through.get(p, frozenset()) | through[user] | shared
            if p in taken and p in self.reads and values[self.reads[p]] > could + _TOO_MUCH:
                found |= through[p]
        return found


class Flows:
    """Adds all queries and all maintenance of a graph to a ledger.

    least      the costs with only that kept which must be
    divided    for each flow the nodes that have a place for each user
    followed   the views whose maintenance is a flow, None for all; that of others costs what it does at best
    """

    def __init__(
        self, graph: Numbered, ledger: Ledger, least: Costs, divided: Divided, followed: Collection[int] | None = None
    ) -> None:
        self.graph = graph
        self.ledger = ledger
        self.least = least
        self.everything = Costs(graph, ledger.keep)
        self.divided = divided
        self.followed = followed
        self.all: dict[Flowing, Flow] = {}

    def add(self) -> None:
        for i, often in enumerate(self.graph.queries):
            if often and self.graph.is_base[i]:
                self.ledger.constant += often * self.graph.reading[i]
            elif often:
                for variable, cost in self._flow(i, None):
                    self.ledger.program.add_cost(variable, often * cost)
        for i, x in self.ledger.keep.items():
            self._add_upkeep(i, x)

    def divided_further(self, values: Floats) -> Divided:
        """The nodes to divide, after what the relaxation gave."""
        more = {flowing: flow.too_shared(values, self.ledger.keep) for flowing, flow in self.all.items()}
        divided = {flowing: self.divided.get(flowing, frozenset()) | nodes for flowing, nodes in more.items()}
        return {flowing: nodes for flowing, nodes in divided.items() if nodes}

    def _add_upkeep(self, i: int, x: int) -> None:
        often = self.graph.updates[i]
        if not often:
            return
        self.ledger.pay_upkeep(x, often * self.graph.maintenance[i])
        if self.graph.layout_of[i] >= 0:
            return
        if self.followed is not None and i not in self.followed:
            self.ledger.pay_upkeep(x, often * self.everything.upkeeps.computed[i])
        else:
            for variable, cost in self._flow(i, x):
                self.ledger.pay_upkeep(variable, often * cost)

    def sides(self, is_upkeep: bool) -> tuple[Side, Side]:
        """What everything costs at worst and at best, as queries or as maintenance."""
        if is_upkeep:
            return self.least.upkeeps, self.everything.upkeeps
        return self.least.queries, self.everything.queries

    def _flow(self, top: int, source: int | None) -> list[tuple[int, float]]:
        """One unit, or x of the source, enters at the top; what enters a place leaves by its ways, or is read there.

        The variables come back with what one unit through each costs.
        """
        program, keep = self.ledger.program, self.ledger.keep
        worst, best = self.sides(source is not None)
        # The change of a view may be read, but it must be computed for the view itself.
        alone = worst.used[top] if source is None else worst.computed[top]
        found = places(top, alone, worst, best)
        often = most_uses(found)
        flowing = (top, source is not None)
        if flowing in self.divided:
            found = places(top, alone, worst, best, self.divided[flowing])
        entering: list[list[tuple[int, float]]] = [[] for _ in found]
        costs: list[tuple[int, float]] = []
        ways: list[list[int]] = []
        reads: dict[int, int] = {}
        read: dict[int, list[tuple[int, float]]] = {}
        for p, place in enumerate(found):
            i = place.node
            ways.append([program.variable() for _ in place.ways])
            for z, way in zip(ways[p], place.ways, strict=True):
                costs.append((z, way.cost))
                for q, times in way.inputs:
                    entering[q].append((z, -float(times)))
            leaving = [(z, 1.0) for z in ways[p]]
            if i in keep and not (p == 0 and source is not None) and worst.price[i] < worst.used[i]:
                reads[p] = program.variable()
                costs.append((reads[p], worst.price[i]))
                program.row([(reads[p], 1.0), (keep[i], -min(place.often, often[i]))], most=0.0)
                leaving.append((reads[p], 1.0))
                read.setdefault(i, []).append((reads[p], 1.0))
            if p:
                program.row([*leaving, *entering[p]], 0.0, 0.0)
            elif source is None:
                program.row(leaving, 1.0, 1.0)
            else:
                program.row([*leaving, (source, -1.0)], 0.0, 0.0)
        for i, several in read.items():
            if len(several) > 1:  # not all places of a node need be used at once: some are of alternatives
                program.row([*several, (keep[i], -often[i])], most=0.0)
        self.all[flowing] = Flow(found, ways, reads, often)
        return costs
