"""What refreshes of this warehouse have cost: from the notes in their commits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from viewkeeper.planner.cost import Cost
from viewkeeper.planner.plan import Way
from viewkeeper.planner.rates import Sample
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import Refreshed, RefreshNote, refreshes

_LATEST = 20  # of each view


def cost_parts(cost: Cost) -> dict[str, float]:
    """A cost as a note keeps it."""
    return {
        "fixed": cost.fixed,
        "reads": cost.reads,
        "rows_read": cost.rows_read,
        "rows_moved": cost.rows_moved,
        "rows_written": cost.rows_written,
    }


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
            cost = replace(cost, rows_written=commit.rows_added or 0)
        # Whatever Spark computes it reads.
        way: Way = "recompute" if note.strategy == "recompute" else "incremental" if cost.reads else "here"
        yield Sample(cost, seconds, way, created, note.left)


def _noted(note: RefreshNote) -> Cost | None:
    if note.cost is None:
        return None
    parts = note.cost
    if "rows_moved" not in parts:  # of another cost model
        return None
    read, written, moved = (int(parts[part]) for part in ("rows_read", "rows_written", "rows_moved"))
    return Cost(read, written, int(parts["reads"]), parts["fixed"], moved)
