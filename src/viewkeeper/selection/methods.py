"""The methods of choosing, each with what can be set about it. docs/algorithms says which to use when."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal as OneOf


@dataclass(frozen=True)
class Greedy:
    """The best benefit per budget, one thing at a time.   [Gupta 1999, Alg. 1]"""


@dataclass(frozen=True)
class GreedyInterchange:
    """Greedy, then one in for one out while it helps.   [Alg. 2]"""


@dataclass(frozen=True)
class RGreedy:
    """The best set of a view and up to r - 1 of its layouts, or one layout of a kept view.   [Alg. 3]"""

    r: int = 2


@dataclass(frozen=True)
class InnerLevel:
    """The best set of a view and as many of its layouts as raise its density, or one layout.   [Alg. 4]"""


@dataclass(frozen=True)
class AOGreedy:
    """The densest connected set of views, over the query-view graph.   [2.5.1]"""

    ways: int = 50_000


@dataclass(frozen=True)
class MultiLevel:
    """AO-greedy, recursing r times on the view common to a component.   [Alg. 5]"""

    r: int = 1
    ways: int = 50_000


@dataclass(frozen=True)
class InvertedTree:
    """The best node with any set of its ancestors, under a maintenance limit; OR graphs.   [Alg. 6]

    After `limit` sets in one stage the search is cut short, and the trace says so.
    """

    limit: int = 200_000


@dataclass(frozen=True)
class AStar:
    """Exact, by search over the nodes in order, with the thesis' lower bound or our tighter one.   [Alg. 7, 8]

    After `limit` expanded nodes the best choice known is returned, with the bound that was reached.
    """

    bound: OneOf["thesis", "tight"] = "tight"
    limit: int = 200_000


@dataclass(frozen=True)
class GuessOne:
    """Greedy once for every thing it could have started with; for budgets that must not be exceeded."""


@dataclass(frozen=True)
class Annealing:
    """Greedy-interchange and random moves, some of them for the worse; for budgets that must not be exceeded.

    `moves` for each thing that may be kept; another `seed` is another walk.   [Kirkpatrick 1983]
    """

    moves: int = 100
    seed: int = 1


@dataclass(frozen=True)
class Exact:
    """A mixed-integer program: proved optimal up to `gap`, or after `seconds` the best found with its proved gap."""

    gap: float = 0.0
    seconds: float = 60.0


Method = (
    Greedy
    | GreedyInterchange
    | RGreedy
    | InnerLevel
    | AOGreedy
    | MultiLevel
    | InvertedTree
    | AStar
    | GuessOne
    | Annealing
    | Exact
)
