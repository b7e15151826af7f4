"""Small changes, read before anything else: then it is known which tables changed at all, as far as the view sees.

An update of columns that the view does not read nets to nothing, and so may a row that comes and goes. Rows that cannot
matter to the view are no reason to look at the tables they would be joined with. And where rows only came, as it turns
out, the change reads less.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.conditions import disjunction
from viewkeeper.algebra.relations import Filter, Relation, Scan, inputs
from viewkeeper.algebra.scalars import TRUE, Column, Scalar, conjunction, substitute
from viewkeeper.changes.weights import Changed
from viewkeeper.runtime.reads import ReadOnce

_AT_ONCE = 4  # they wait for Spark's driver more than for a core


def read_first(content: Relation, changed: Changed, leaves: ReadOnce) -> Changed:
    """What is left of the changes for a view with this content, once the small ones are read."""
    small = [table for table in changed if leaves.reads_first(table)]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        seen = dict(zip(small, pool.map(lambda t: leaves.read_first(t, what_matters(content, t)), small), strict=True))
    left = {table: kind for table, kind in changed.items() if table not in seen or seen[table].matters}
    return {table: "appended" if table in seen and not seen[table].went else kind for table, kind in left.items()}


def what_matters(content: Relation, table: str) -> Scalar:
    """Over the table's own columns: what the filters right above any of its mentions ask of a row."""
    return disjunction(conjunction(asked) for asked in _mentions(content, table, []))


def _mentions(rel: Relation, table: str, asked: list[Scalar]) -> Iterator[list[Scalar]]:
    """For each mention of the table the conditions on it, which come from the filters that lead to it."""
    match rel:
        case Scan(name, columns) if name == table:
            stored: dict[str, Scalar] = {c.name: Column(c.source) for c in columns}
            yield [substitute(condition, stored) for condition in asked] or [TRUE]
        case Filter(input, predicate):
            yield from _mentions(input, table, asked if reads_clock(predicate) else [predicate, *asked])
        case _:
            for below in inputs(rel):
                yield from _mentions(below, table, [])
