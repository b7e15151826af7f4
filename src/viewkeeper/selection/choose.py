"""One question, many methods: which views and layouts are worth keeping within a budget?"""

from __future__ import annotations

from typing import assert_never

from viewkeeper.selection.anneal import annealing
from viewkeeper.selection.ao_greedy import ao_greedy, multi_level
from viewkeeper.selection.astar import astar
from viewkeeper.selection.choice import Budget, Choice
from viewkeeper.selection.exact import exact
from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.greedy import greedy, inner_level, r_greedy
from viewkeeper.selection.guess import guess_one
from viewkeeper.selection.interchange import greedy_interchange
from viewkeeper.selection.inverted_tree import inverted_tree
from viewkeeper.selection.methods import (
    Annealing,
    AOGreedy,
    AStar,
    Exact,
    Greedy,
    GreedyInterchange,
    GuessOne,
    InnerLevel,
    InvertedTree,
    Method,
    MultiLevel,
    RGreedy,
)


def choose(graph: ViewGraph, budget: Budget, method: Method | None = None) -> Choice:
    """The choice of one method; without one, the exact program.

    AStar, GuessOne, Annealing and Exact never exceed a budget.
    """
    match method or Exact():
        case Greedy():
            return greedy(graph, budget)
        case GreedyInterchange():
            return greedy_interchange(graph, budget)
        case RGreedy(r):
            return r_greedy(graph, budget, r)
        case InnerLevel():
            return inner_level(graph, budget)
        case AOGreedy(ways):
            return ao_greedy(graph, budget, ways)
        case MultiLevel(r, ways):
            return multi_level(graph, budget, r, ways)
        case InvertedTree(limit):
            return inverted_tree(graph, budget, limit)
        case AStar(bound, limit):
            return astar(graph, budget, bound, limit)
        case GuessOne():
            return guess_one(graph, budget)
        case Annealing(moves, seed):
            return annealing(graph, budget, moves, seed)
        case Exact(gap, seconds):
            return exact(graph, budget, gap, seconds)
        case _ as unknown:
            assert_never(unknown)
