"""Guess-one greedy under a hard budget: greedy once for every thing it could have started with; the best run counts.

Plain greedy may spend the budget on small things of high density before a large good one; some start of ours is
that large one. The best of all starts is at least the better of greedy and of the best single thing, hence at least
(1 - 1/e)/2 of the optimum where benefits only fall as more is kept (OR graphs without updates).
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from viewkeeper.selection.ceilings import Ceilings
from viewkeeper.selection.choice import Budget, Choice, Step, finish, total
from viewkeeper.selection.costs import Costs
from viewkeeper.selection.graph import ViewGraph
from viewkeeper.selection.greedy import Stages, small_sets
from viewkeeper.selection.reach import fill


def guess_one(graph: ViewGraph, budget: Budget) -> Choice:
    budget = replace(budget, overshoot=False)
    numbered = graph.numbered
    sets = small_sets(numbered, 1)
    best = Stages(graph, budget, sets)
    best.run()
    bound = best.ceilings.bound(budget)
    least = total(best.costs, budget)
    empty = Costs(numbered)
    ceilings = best.ceilings.of(empty)
    for guess in numbered.candidates:
        start = tuple(i for i in (numbered.layout_of[guess], guess) if i >= 0 and not numbered.is_base[i])
        move = empty.move(start)
        if not budget.fits(move.size, move.upkeep) or _at_best(ceilings, budget, start) >= least:
            continue
        run = Stages(graph, budget, sets, start, ceilings)
        run.trace.append(_guessed(run, empty, budget, start))
        run.run()
        if total(run.costs, budget) < least:
            best, least = run, total(run.costs, budget)
    return finish(graph, budget, best.costs.kept, bound, best.trace)


def _guessed(run: Stages, empty: Costs, budget: Budget, start: tuple[int, ...]) -> Step:
    added = tuple(run.numbered.names[i] for i in start)
    return Step(added, total(empty, budget) - total(run.costs, budget), "the start that led to the best end")


def _at_best(ceilings: Ceilings, budget: Budget, start: tuple[int, ...]) -> float:
    """No run from this start can end below this cost: the space it leaves, filled with the best ceilings."""
    if budget.space is None:
        return -math.inf
    graph = ceilings.graph
    left = [i for i in graph.candidates if i not in start]
    room = budget.space - sum(graph.size[i] for i in start)
    saved = float(ceilings.shared[list(start)].sum()) + fill(ceilings.shared[left], np.array(graph.size)[left], room)
    return ceilings.costs.query - saved
