"""Types of every column of a bound definition, asked of Spark in one analysis."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import assert_never

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Field,
    Filter,
    Item,
    Join,
    Measure,
    Project,
    Relation,
    Scan,
    Union,
    Values,
)
from viewkeeper.sql.unparse import unparse

Types = Mapping[Relation, tuple[str, ...]]
AskSchema = Callable[[str], tuple[str, ...]]


def with_types(rel: Relation, ask: AskSchema) -> Relation:
    """The relation with every computed column's type filled in. `ask` gives the column types of a query."""
    untyped = [n for n in walk(rel) if isinstance(n, (Project, Aggregate, Values, Union)) and n.schema]
    queries = [f"({unparse(node)}) AS __vk_q{i}" for i, node in enumerate(untyped)]
    found = iter(ask("SELECT * FROM " + " CROSS JOIN ".join(queries)) if queries else ())
    types: dict[Relation, tuple[str, ...]] = {node: tuple(next(found) for _ in node.schema) for node in untyped}
    return _fill(rel, types)


def _fill(rel: Relation, types: Types) -> Relation:
    match rel:
        case Scan() | Changes():
            return rel
        case Values(fields, rows):
            known = types.get(rel, ())
            return Values(tuple(Field(f.name, t) for f, t in zip(fields, known, strict=True)), rows)
        case Filter(input, predicate):
            return Filter(_fill(input, types), predicate)
        case Project(input, items):
            typed = zip(items, types.get(rel, ()), strict=True)
            return Project(_fill(input, types), tuple(Item(i.name, i.value, t) for i, t in typed))
        case Join(left, right, kind, condition):
            return Join(_fill(left, types), _fill(right, types), kind, condition)
        case Union(inputs):
            return Union(tuple(_fill(i, types) for i in inputs))
        case Aggregate(input, group_by, measures):
            known = types.get(rel, ())[len(group_by) :]
            typed_measures = tuple(
                Measure(m.name, m.function, m.args, t, m.distinct, m.where)
                for m, t in zip(measures, known, strict=True)
            )
            return Aggregate(_fill(input, types), group_by, typed_measures)
        case _:
            assert_never(rel)
