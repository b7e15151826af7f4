"""What flows have in common: a view is computed where it is not kept, and maintained where it is.

What a flow reads of w on its way through v, it reads because v is not kept; what the maintenance of v reads of w, it
reads because v is kept. Both at once are no more than there is of w:

    r(f, w below v) / uses + u(v, w) / uses ≤ x(w)

where f is a query or the maintenance of another view, and each is divided by how often it can use w at most. Without
these rows the relaxation answers queries from halves of v and of w as if they were kept at different times, and
maintains v from w as if they were kept at the same time. There are many, and few matter: those that the relaxation does
not keep are found and added (`levels.py` has rows against the same for OR graphs).

Where v is kept and w is of use to f all the same, since with everything kept it is cheaper than to read v, the rows
would be wrong; there are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

from viewkeeper.selection.flows import Flow, Flowing, Flows
from viewkeeper.selection.places import places
from viewkeeper.selection.reach import Floats

_TOO_MUCH = 0.01  # of a view
_SOME = 1e-6  # of a unit


class Tie(NamedTuple):
    """What a flow reads of `node` on its ways through `above`, and what the maintenance of `above` reads of it."""

    flowing: Flowing
    above: int
    node: int


class Ties:
    """Those of all flows of a program."""

    def __init__(self, flows: Flows) -> None:
        self.flows = flows
        self.keep = flows.ledger.keep
        self._above: dict[Flowing, Sequence[frozenset[int]]] = {}
        self._still: dict[tuple[int, bool], frozenset[int]] = {}

    def add(self, ties: Iterable[Tie]) -> None:
        """A row for each two places that a tie is about, where it holds."""
        for tie in sorted(ties):
            if tie.node in self._of_use(tie.above, tie.flowing[1]):
                continue
            read = [z for z, above in self._reads(tie.flowing, tie.node) if tie.above in above]
            upkeep = [z for z, _ in self._reads((tie.above, True), tie.node)]
            for (y, often), (z, updates) in product(read, upkeep):
                row = [(y, 1 / often), (z, 1 / updates), (self.keep[tie.node], -1.0)]
                self.flows.ledger.program.row(row, most=0.0)

    def _reads(self, flowing: Flowing, node: int) -> Iterator[tuple[tuple[int, float], frozenset[int]]]:
        """The variables of what is read of a node, each with how often it can be, and what is computed on the way."""
        if flowing in self.flows.all and node in self.keep:
            flow, above = self.flows.all[flowing], self.above(flowing)
            for p, z in flow.reads.items():
                if flow.places[p].node == node:
                    yield (z, flow.most(p)), above[p]

    def found(self, values: Floats) -> set[Tie]:
        """Those that these values do not keep."""
        maintained: dict[tuple[int, int], float] = {}
        for (v, is_upkeep), flow in self.flows.all.items():
            if is_upkeep and values[self.keep[v]] > _SOME:
                for _, w, share in self._shares(flow, values):
                    maintained[v, w] = max(share, maintained.get((v, w), 0.0))
        found: set[Tie] = set()
        for flowing, flow in self.flows.all.items():
            for p, w, share in self._shares(flow, values):
                for v in self.above(flowing)[p]:
                    excess = share + maintained.get((v, w), 0.0) - values[self.keep[w]]
                    if (v, w) in maintained and excess > _TOO_MUCH and w not in self._of_use(v, flowing[1]):
                        found.add(Tie(flowing, v, w))
        return found

    def _shares(self, flow: Flow, values: Floats) -> Iterator[tuple[int, int, float]]:
        """Each place where anything is read, its node, and the share of what can be that is."""
        for p, z in flow.reads.items():
            if values[z] > _SOME:
                yield p, flow.places[p].node, values[z] / flow.most(p)

    def above(self, flowing: Flowing) -> Sequence[frozenset[int]]:
        """For each place the nodes that are computed on every way there; the view that is maintained is kept."""
        if flowing not in self._above:
            top, is_upkeep = flowing
            found: list[frozenset[int]] = []
            for place in self.flows.all[flowing].places:
                ways = (found[p] | {self.flows.all[flowing].places[p].node} for p in place.users)
                found.append(frozenset.intersection(*ways) - {top if is_upkeep else -1} if place.users else frozenset())
            self._above[flowing] = found
        return self._above[flowing]

    def _of_use(self, v: int, is_upkeep: bool) -> frozenset[int]:
        """What computing v can still read though v is kept."""
        if (v, is_upkeep) not in self._still:
            worst, best = self.flows.sides(is_upkeep)
            below = places(v, worst.price[v], worst, best) if best.computed[v] < worst.price[v] else []
            self._still[v, is_upkeep] = frozenset(place.node for place in below)
        return self._still[v, is_upkeep]
