"""PIVOT and UNPIVOT as plain groups and generated rows, once their types are known.

    PIVOT (f(x) FOR c IN (v, …))   = γ_{G; f(x) of the rows where c <=> v, …} E,   G = the columns not mentioned
    UNPIVOT (v FOR n IN (a, b))    = each row of E twice: with n = 'a', v = a and with n = 'b', v = b

Spark has two ways to a PIVOT. If all measures are numbers it groups by G and c first, so that a count is NULL where
no row has the value; else it takes the rows apart inside of the measures, and such a count is 0.
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.aggregates import COUNTING
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import collapse, prune
from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Generate,
    Item,
    Measure,
    Pivot,
    Project,
    Relation,
    Unpivot,
    inputs,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import NULL, ZERO, Cast, Column, Scalar, call, conjunction, same, text_constant
from viewkeeper.algebra.types import BIGINT, BOOLEAN, FLOATING, INTEGRAL, decimal_parts


def without_pivots(rel: Relation) -> Relation:
    """The typed relation with plain operators for every PIVOT and UNPIVOT."""
    found = (n for n in walk(rel) if isinstance(n, Pivot))
    numbered: dict[Relation, int] = {node: number for number, node in enumerate(found)}

    def visit(rel: Relation) -> Relation:
        below = with_inputs(rel, tuple(visit(i) for i in inputs(rel)))
        match below:
            case Pivot():
                return _grouped(below, f"__vk_pivot_{numbered[rel]}")
            case Unpivot():
                return _generated(below)
            case _:
                return below

    return collapse(prune(visit(rel)))


def _grouped(rel: Pivot, base: str) -> Relation:
    types = {f.name: f.type for f in rel.input.schema}
    by_value = all(_is_number(m.type) for m in rel.measures)
    flags: list[Item] = []
    measures: list[Measure] = []
    shown = list(pass_through(rel.schema[: len(rel.group_by)]))
    outputs = iter(rel.schema[len(rel.group_by) :])
    for position, value in enumerate(rel.values):
        compared = zip(rel.columns, value, strict=True)
        here = conjunction([same(Column(c), Cast(v, types[c])) for c, v in compared])
        flag, rows = f"{base}_{position}", f"{base}_rows_{position}"
        flags.append(Item(flag, here, BOOLEAN))
        if by_value and any(m.function in COUNTING for m in rel.measures):
            measures.append(Measure(rows, "count", (), BIGINT, where=flag))
        for m in rel.measures:
            output, where = next(outputs), flag
            if m.where is not None:
                where = f"{flag}_{m.name}"
                flags.append(Item(where, call("AND", here, Column(m.where)), BOOLEAN))
            measures.append(replace(m, name=output.name, where=where))
            result: Scalar = Column(output.name)
            if by_value and m.function in COUNTING:
                result = call("IF", call("=", Column(rows), ZERO), NULL, result)
            shown.append(Item(output.name, result, output.type))
    rows_below = Project(rel.input, (*pass_through(rel.input.schema), *flags))
    return Project(Aggregate(rows_below, rel.group_by, tuple(measures)), tuple(shown))


def _is_number(type_: str) -> bool:
    return type_ in INTEGRAL | FLOATING | {BOOLEAN} or decimal_parts(type_) is not None


def _generated(rel: Unpivot) -> Relation:
    rows = []
    for label, taken in zip(rel.labels, rel.taken, strict=True):
        values: list[Scalar] = [text_constant(label), *(Column(c) for c in taken)]
        rows.append(call("STRUCT", *(Cast(v, f.type) for v, f in zip(values, rel.fields, strict=True))))
    made: Relation = Generate(rel.input, call("INLINE", call("ARRAY", *rows)), rel.fields)
    if not rel.include_nulls:
        made = Filter(made, call("NOT", conjunction([call("IS NULL", Column(f.name)) for f in rel.fields[1:]])))
    return Project(made, pass_through(rel.schema))
