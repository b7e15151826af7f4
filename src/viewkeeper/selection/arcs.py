"""The arcs of a graph as arrays, for all that is found of many nodes at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.ragged import Places, Ragged


class Height(NamedTuple):
    """All nodes of one height: where they stand, the pairs they are the input of, and where each node's pairs start."""

    nodes: slice
    pairs: slice
    starts: Places


class ArcTable:
    """Of queries and of maintenance, for which the arcs are the same and only cost differently.

    An entry is an input of an arc, a pair an input and one that uses it by some arc.

    Pairs stand by the height of the input, the longest way from it to a node that nothing uses: what is known of all
    users of a height's nodes is known of all greater heights' before.

    entries_of_arc, entries_of_pair   the entries of each
    near                              the arcs of each node and those that use it
    by_height, height_place           the nodes in the order of heights, and where each node stands in it
    user_place                        where the user of each pair stands in it
    """

    def __init__(self, graph: Numbered) -> None:
        height = _heights(graph)
        arcs = [(x, inputs) for x, ways in enumerate(graph.query_arcs) for _, inputs in ways]
        entries = [(height[j], j, x, a, inputs.count(j)) for a, (x, inputs) in enumerate(arcs) for j in set(inputs)]
        entries.sort()
        self.user = np.array([x for x, _ in arcs], dtype=np.intp)
        self.input = np.array([e[1] for e in entries], dtype=np.intp)
        self.arc = np.array([e[3] for e in entries], dtype=np.intp)
        self.often = np.array([float(e[4]) for e in entries])
        below = _below(graph)
        # Whether no other input of the arc falls when this one does, so that all its slack counts against this one.
        self.is_sole = np.array(
            [not any(below[k] >> j & 1 for k in arcs[a][1] if k != j) for _, j, _, a, _ in entries], dtype=bool
        )
        users = self.user[self.arc]
        firsts = np.flatnonzero(np.diff(self.input, prepend=-1) | np.diff(users, prepend=-1))
        self.pair = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(entries)))
        self.pair_input = self.input[firsts]
        self.pair_user = users[firsts]
        self.entries_of_arc = Ragged(self.arc, np.arange(len(entries)), len(arcs))
        self.entries_of_pair = Ragged(self.pair, np.arange(len(entries)), len(firsts))
        both = np.concatenate((self.user, self.input)), np.concatenate((np.arange(len(arcs)), self.arc))
        self.near = Ragged(*both, len(graph))
        self.by_height = np.argsort(height, kind="stable")
        self.height_place = np.argsort(self.by_height)
        self.user_place = self.height_place[self.pair_user]
        self.heights = tuple(self._steps(np.array(height)[self.by_height]))

    def _steps(self, heights: Places) -> Iterator[Height]:
        pairs = np.searchsorted(self.height_place[self.pair_input], np.arange(len(heights) + 1))
        for a, b in pairwise([*np.flatnonzero(np.diff(heights, prepend=-1)).tolist(), len(heights)]):
            if pairs[a] < pairs[b]:
                yield Height(slice(a, b), slice(int(pairs[a]), int(pairs[b])), pairs[a:b] - pairs[a])


def _heights(graph: Numbered) -> list[int]:
    heights = [0] * len(graph)
    for i in range(len(graph) - 1, -1, -1):
        heights[i] = max((heights[x] + 1 for x in graph.users[i]), default=0)
    return heights


def _below(graph: Numbered) -> list[int]:
    """For each node the set of those it can be computed from, as the bits of a number."""
    below: list[int] = []
    for inputs in graph.inputs:
        found = 0
        for j in inputs:
            found |= below[j] | 1 << j
        below.append(found)
    return below
