"""Where the cost of one view can go: the nodes below it, some of them as several places, one for each of its users.

A node that is used twice is paid for twice, so its uses could be told apart, which makes a tree of the graph. In the
program of a tree half of a kept view answers half of each use; where all uses are one place, half of it may answer one
of two uses wholly, and a thirtieth one of thirty. So the tree has by far the better relaxation, and far more places
than the graph has nodes: `flows.py` finds out which nodes are worth dividing.

Nothing takes a way that costs as much as base tables alone do. So a place is left out with which what is above it could
not cost less, were everything kept.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush

import numpy as np

from viewkeeper.selection.costs import Side


@dataclass
class Way:
    """What it costs besides its inputs, and these as they are found: places, each with how often it is used."""

    cost: float
    inputs: list[tuple[int, int]] = field(default_factory=list)


@dataclass(frozen=True)
class Use:
    """By one of the ways of a place, so many times; not worth it if it costs `most` or more each time."""

    way: int
    times: int
    most: float


Users = Mapping[int, Sequence[Use]]  # by their places


@dataclass
class Place:
    """A node, where it is used, and how often at most; its ways worth taking, as they are found.

    One way needs no inputs: base tables alone, and what is kept in any case.
    """

    node: int
    users: Users
    often: float
    ways: list[Way]


def places(top: int, cost: float, worst: Side, best: Side, divided: Collection[int] = ()) -> list[Place]:
    """The places below the top, each before those it is computed from; of divided nodes one for each place above.

    cost          what the top costs with only that kept which must be
    worst, best   what everything costs so, and with all kept that may be
    """
    found: list[Place] = []
    users: dict[int, dict[int, list[Use]]] = {top: {}}
    waiting = [-top]
    while waiting:
        i = -heappop(waiting)
        alone = cost if i == top else worst.used[i]
        for some in _parts(users[i], i in divided):
            most = min(alone, max((use.most for uses in some.values() for use in uses), default=alone))
            often = sum(found[p].often * max(use.times for use in uses) for p, uses in some.items())
            place = Place(i, some, often if some else 1.0, [Way(alone)] if alone <= most < math.inf else [])
            for p, uses in some.items():
                for use in uses:
                    found[p].ways[use.way].inputs.append((len(found), use.times))
            for way, inputs, beside in _worth_taking(i, most, worst, best):
                for j in dict.fromkeys(inputs):
                    times = inputs.count(j)
                    if j not in users:
                        users[j] = {}
                        heappush(waiting, -j)
                    use = Use(len(place.ways), times, best.used[j] + (most - beside) / times)
                    users[j].setdefault(len(found), []).append(use)
                place.ways.append(way)
            found.append(place)
    return found


def _parts(users: Users, divided: bool) -> list[Users]:
    """Who shares a place. The ways of one place are alternatives, so they need no places of their own."""
    return [{p: uses} for p, uses in users.items()] if divided and users else [users]


def _worth_taking(i: int, most: float, worst: Side, best: Side) -> list[tuple[Way, list[int], float]]:
    """The ways of a node that may cost less than that, the inputs that are no base tables, and the least that it is."""
    is_base = worst.graph.is_base
    found = []
    for own, inputs in worst.arcs[i]:
        least = own + sum(best.used[j] for j in inputs)
        if least < most:
            way = Way(own + sum(worst.price[j] for j in inputs if is_base[j]))
            found.append((way, [j for j in inputs if not is_base[j]], least))
    return found


def most_uses(found: Sequence[Place]) -> dict[int, float]:
    """How often computing the first of these places can use each node at most; where each node has one place."""
    rows = np.zeros((len(found), len(found)))
    for p in range(len(found) - 1, -1, -1):
        row = rows[p]
        for way in found[p].ways:
            if way.inputs:
                below, times = (np.array(some) for some in zip(*way.inputs, strict=True))
                np.maximum(row, times @ rows[below], out=row)
        row[p] = 1.0
    return {place.node: float(often) for place, often in zip(found, rows[0], strict=True)}
