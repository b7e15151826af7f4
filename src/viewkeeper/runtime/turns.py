"""Views at the same time, each after those it reads.

A small refresh is mostly waiting: for plans, for single tasks, for the file system. Two at once take little longer than
one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from graphlib import TopologicalSorter
from typing import TypeVar

from viewkeeper.store.views import View

T = TypeVar("T")


def in_turn(views: Sequence[View], work: Callable[[View], T], at_once: int) -> list[T]:
    """What the work on each view gives, in the order of the views; at most so many are worked on at once."""
    place = {view.backing: n for n, view in enumerate(views)}
    reads = {n: {place[t] for t in view.tables if t in place} for n, view in enumerate(views)}
    if at_once <= 1 or len(views) <= 1:
        return [work(view) for view in views]
    turns = TopologicalSorter(reads)
    turns.prepare()
    results: dict[int, T] = {}
    running: dict[Future[T], int] = {}
    with ThreadPoolExecutor(at_once, thread_name_prefix="viewkeeper") as pool:
        while turns.is_active():
            for n in sorted(turns.get_ready()):
                running[pool.submit(work, views[n])] = n
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                n = running.pop(done)
                results[n] = done.result()
                turns.done(n)
    return [results[n] for n in range(len(views))]
