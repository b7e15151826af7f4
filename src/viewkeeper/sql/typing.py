"""Types of every column of a bound definition, asked of Spark in one analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Generate,
    Pivot,
    Project,
    Relation,
    Union,
    Unpivot,
    Values,
    Window,
    inputs,
    with_inputs,
)
from viewkeeper.sql.unparse import unparse

Types = Mapping[Relation, tuple[str, ...]]
AskSchema = Callable[[str], tuple[str, ...]]


_UNTYPED = (Project, Aggregate, Values, Union, Window, Generate, Pivot, Unpivot)


def with_types(rel: Relation, ask: AskSchema) -> Relation:
    """The relation with every computed column's type filled in. `ask` gives the column types of a query."""
    shown = [n for n in walk(rel) if isinstance(n, _UNTYPED) and n.schema]
    untyped: list[Relation] = [*shown, *(_measured(n) for n in shown if isinstance(n, Pivot))]
    queries = [f"({unparse(node)}) AS __vk_q{i}" for i, node in enumerate(untyped)]
    found = iter(ask("SELECT * FROM " + " CROSS JOIN ".join(queries)) if queries else ())
    types: dict[Relation, tuple[str, ...]] = {node: tuple(next(found) for _ in node.schema) for node in untyped}
    return _fill(rel, types)


def _measured(pivot: Pivot) -> Aggregate:
    """The measures of a PIVOT, which shows only what it makes of them."""
    return Aggregate(pivot.input, (), pivot.measures)


def _fill(rel: Relation, types: Types) -> Relation:
    known = types.get(rel, ())
    typed = with_inputs(rel, tuple(_fill(i, types) for i in inputs(rel)))
    match typed:
        case Values(fields, rows):
            return Values(tuple(Field(f.name, t) for f, t in zip(fields, known, strict=True)), rows)
        case Project(input, items):
            return Project(input, tuple(replace(i, type=t) for i, t in zip(items, known, strict=True)))
        case Aggregate(input, group_by, measures):
            found = zip(measures, known[len(group_by) :], strict=True)
            return Aggregate(input, group_by, tuple(replace(m, type=t) for m, t in found))
        case Window(input, partition_by, order_by, columns):
            found_columns = zip(columns, known[len(input.schema) :], strict=True)
            return Window(input, partition_by, order_by, tuple(replace(c, type=t) for c, t in found_columns))
        case Generate(input, generator, fields, outer):
            made = zip(fields, known[len(input.schema) :], strict=True)
            return Generate(input, generator, tuple(Field(f.name, t) for f, t in made), outer)
        case Pivot(_, group_by, measures=measures, results=results):
            assert isinstance(rel, Pivot)
            measured = zip(measures, types[_measured(rel)], strict=True)
            shown = zip(results, known[len(group_by) :], strict=False)  # the same for each value
            return replace(
                typed,
                measures=tuple(replace(m, type=t) for m, t in measured),
                results=tuple(replace(r, type=t) for r, t in shown),
            )
        case Unpivot(_, kept, fields=fields):
            made = zip(fields, known[len(kept) :], strict=True)
            return replace(typed, fields=tuple(Field(f.name, t) for f, t in made))
        case _:
            return typed
