"""The time that a time window stands for.

Spark has `window_time(w)` only of a column that it still knows to be one of its windows. What is kept, grouped in sets
or padded with NULL is a plain pair of times to it, so its last microsecond is asked of that:

    window_time(w) = w.end − 1 µs
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.relations import Filter, Generate, Join, Project, Relation, inputs, with_inputs
from viewkeeper.algebra.scalars import Call, Scalar, Verbatim, rebuild


def with_plain_times(rel: Relation) -> Relation:
    """The relation, its subqueries already joins, with the end of a window wherever its time is asked for."""
    below = with_inputs(rel, tuple(with_plain_times(i) for i in inputs(rel)))
    match below:
        case Filter(input, predicate):
            return Filter(input, rebuild(predicate, _end))
        case Project(input, items):
            return Project(input, tuple(replace(i, value=rebuild(i.value, _end)) for i in items))
        case Join():
            return replace(below, condition=rebuild(below.condition, _end))
        case Generate():
            return replace(below, generator=rebuild(below.generator, _end))
        case _:
            return below


def _end(scalar: Scalar) -> Scalar | None:
    match scalar:
        case Call("WINDOW_TIME", (window,)):
            return Verbatim(("(", ".end - INTERVAL '1' MICROSECOND)"), (window,))
        case _:
            return None
