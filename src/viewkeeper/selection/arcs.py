"""The arcs of a graph as arrays, for all that is found of many nodes at once."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from viewkeeper.selection.graph import Numbered
from viewkeeper.selection.ragged import Places, Ragged


class Height(NamedTuple):
    """All nodes of one height: where they stand, the pairs they are the input of, and where each node's pairs start.

    `users` says where the users of these pairs stand.
    """

    nodes: slice
    pairs: slice
    users: Places
    starts: Places


class ArcTable:
    """Of queries and of maintenance, for which the arcs are the same and only cost differently.

    Each of these sides has nodes and arcs of its own, one side after the other: what is found of all of them at once
    takes hardly longer than what is found of one. An entry is an input of an arc, a pair an input and one that uses it
    by some arc.

    Pairs stand by the height of the input, the longest way from it to a node that nothing uses: what is known of all
    users of a height's nodes is known of all greater heights' before.

    entries_of_arc, entries_of_pair   the entries of each
    near                              the arcs of each node and those that use it
    pairs_of_user                     the pairs of each
    by_height, height_place           the nodes in the order of heights, and where each node stands in it
    """

    def __init__(self, graph: Numbered, sides: int) -> None:
        height, below = _heights(graph), _below(graph)
        arcs = [(x, inputs) for x, ways in enumerate(graph.query_arcs) for _, inputs in ways]
        # Whether no other input of the arc falls when this one does, so that all its slack counts against this one.
        once = [
            (j, a, inputs.count(j), not any(below[k] >> j & 1 for k in inputs if k != j))
            for a, (_, inputs) in enumerate(arcs)
            for j in set(inputs)
        ]
        entries = [
            (height[j], side * len(graph) + j, arcs[a][0], side * len(arcs) + a, often, is_sole)
            for side in range(sides)
            for j, a, often, is_sole in once
        ]
        entries.sort()
        self.user = np.array([side * len(graph) + x for side in range(sides) for x, _ in arcs], dtype=np.intp)
        self.input = np.array([e[1] for e in entries], dtype=np.intp)
        self.arc = np.array([e[3] for e in entries], dtype=np.intp)
        self.often = np.array([float(e[4]) for e in entries])
        self.is_sole = np.array([e[5] for e in entries], dtype=bool)
        users = self.user[self.arc]
        firsts = np.flatnonzero(np.diff(self.input, prepend=-1) | np.diff(users, prepend=-1))
        self.pair = np.repeat(np.arange(len(firsts)), np.diff(firsts, append=len(entries)))
        self.pair_input = self.input[firsts]
        self.pair_user = users[firsts]
        self.entries_of_arc = Ragged(self.arc, np.arange(len(entries)), len(self.user))
        self.entries_of_pair = Ragged(self.pair, np.arange(len(entries)), len(firsts))
        both = np.concatenate((self.user, self.input)), np.concatenate((np.arange(len(self.user)), self.arc))
        self.near = Ragged(*both, sides * len(graph))
        self.pairs_of_user = Ragged(self.pair_user, np.arange(len(firsts)), sides * len(graph))
        heights = np.tile(height, sides)
        self.by_height = np.argsort(heights, kind="stable")
        self.height_place = np.argsort(self.by_height)
        self.heights = tuple(self._steps(heights[self.by_height]))

    def _steps(self, heights: Places) -> Iterator[Height]:
        users = self.height_place[self.pair_user]
        pairs = np.searchsorted(self.height_place[self.pair_input], np.arange(len(heights) + 1))
        for a, b in pairwise([*np.flatnonzero(np.diff(heights, prepend=-1)).tolist(), len(heights)]):
            if pairs[a] < pairs[b]:
                some = slice(int(pairs[a]), int(pairs[b]))
                yield Height(slice(a, b), some, users[some], pairs[a:b] - pairs[a])


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
