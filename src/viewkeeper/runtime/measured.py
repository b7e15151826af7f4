"""What refreshes of this warehouse have cost: from the notes in their commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from viewkeeper.planner.cost import COUNTED, Cost
from viewkeeper.planner.plan import Way
from viewkeeper.planner.rates import Sample
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import Refreshed, RefreshNote, refreshes

_LATEST = 20  # of each view


def cost_parts(cost: Cost) -> dict[str, float]:
    """A cost as a note keeps it."""
    return {"fixed": cost.fixed, **dict(zip(COUNTED, cost.counts, strict=True))}


def measured(registry: Registry) -> dict[str, list[Sample]]:
    """By view, its latest refreshes that had something to compute, from the last on."""
    views = registry.views().values()
    return {view.id: list(_samples(islice(refreshes(registry.log(view), view.id), _LATEST))) for view in views}


def _samples(found: Iterable[Refreshed]) -> Iterator[Sample]:
    for refreshed in found:
        note, commit = refreshed.note, refreshed.commit
        cost, seconds = _noted(note), refreshed.seconds
        if cost is None or seconds is None:
            continue
        created = note.install == "create"
        if created:  # nobody knew how many rows the view would have
            cost = replace(cost, rows_written=commit.rows_added or 0, bytes_written=commit.bytes_added)
        # Whatever Spark computes it reads.
        way: Way = "recompute" if note.strategy == "recompute" else "incremental" if cost.reads else "here"
        yield Sample(cost, seconds, way, created, note.left)


def _noted(note: RefreshNote) -> Cost | None:
    if note.cost is None:
        return None
    if not note.cost.keys() >= set(COUNTED):  # of another cost model
        return None
    return Cost(note.cost["fixed"], *(int(note.cost[part]) for part in COUNTED))
