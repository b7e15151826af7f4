"""What refreshes of this warehouse have cost: from the notes in their commits."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from viewkeeper.planner.cost import Cost
from viewkeeper.planner.rates import Sample
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import RefreshNote, refreshes

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


def measured(registry: Registry) -> Iterator[Sample]:
    """The latest refreshes of every view that had a change to compute, from the last on."""
    for view in registry.views().values():
        for found in islice(refreshes(registry.log(view), view.id), _LATEST):
            cost = _noted(found.note)
            if cost is not None:
                seconds = (found.commit.timestamp - found.note.started) / 1000
                yield Sample(
                    cost, seconds, view.id, "recompute" if found.note.strategy == "recompute" else "incremental"
                )


def _noted(note: RefreshNote) -> Cost | None:
    if note.cost is None or not note.started:
        return None
    parts = note.cost
    if "rows_moved" not in parts:  # of another cost model
        return None
    read, written, moved = (int(parts[part]) for part in ("rows_read", "rows_written", "rows_moved"))
    return Cost(read, written, int(parts["reads"]), parts["fixed"], moved)
