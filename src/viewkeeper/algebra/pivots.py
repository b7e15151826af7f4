"""PIVOT and UNPIVOT as plain groups and generated rows, once their types are known.

    PIVOT (e(f(x)) FOR c IN (v, …)) = π_{e, …} γ_{G; f(x) of the rows where c <=> v, …} E,   G = what is not mentioned
    UNPIVOT (v FOR n IN (a, b))     = each row of E twice: with n = 'a', v = a and with n = 'b', v = b

Spark has two ways to a PIVOT. If all results are numbers it groups by G and c first, so that a count, or an expression,
is NULL where no row has the value; else it takes the rows apart inside of the measures, and such a count is 0.
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
from viewkeeper.algebra.scalars import (
    NULL,
    ZERO,
    Cast,
    Column,
    Scalar,
    call,
    conjunction,
    same,
    substitute,
    text_constant,
)
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
    by_value = all(_is_number(r.type) for r in rel.results)
    flags: list[Item] = []
    measures: list[Measure] = []
    shown = list(pass_through(rel.schema[: len(rel.group_by)]))
    outputs = rel.schema[len(rel.group_by) :]
    for position, value in enumerate(rel.values):
        compared = zip(rel.columns, value, strict=True)
        here = conjunction([same(Column(c), Cast(v, types[c])) for c, v in compared])
        flag, rows = f"{base}_{position}", f"{base}_rows_{position}"
        flags.append(Item(flag, here, BOOLEAN))
        if by_value and not all(_null_of_nothing(r, rel.measures) for r in rel.results):
            measures.append(Measure(rows, "count", (), BIGINT, where=flag))
        made = outputs[position * len(rel.results) :][: len(rel.results)]
        # A measure that is shown as it is has the name it is shown by.
        called = {r.value.name: f.name for r, f in zip(rel.results, made, strict=True) if isinstance(r.value, Column)}
        for m in rel.measures:
            name, where = called.setdefault(m.name, f"{flag}_{m.name}"), flag
            if m.where is not None:
                where = f"{flag}_{m.name}_where"
                flags.append(Item(where, call("AND", here, Column(m.where)), BOOLEAN))
            picks_value = not by_value and m.function in _FIRST_OR_LAST
            measures.append(replace(m, name=name, where=where, ignore_nulls=m.ignore_nulls or picks_value))
        for r, output in zip(rel.results, made, strict=True):
            result = substitute(r.value, {m: Column(name) for m, name in called.items()})
            if by_value and not _null_of_nothing(r, rel.measures):
                result = call("IF", call("=", Column(rows), ZERO), NULL, result)
            shown.append(Item(output.name, result, output.type))
    rows_below = Project(rel.input, (*pass_through(rel.input.schema), *flags))
    return Project(Aggregate(rows_below, rel.group_by, tuple(measures)), tuple(shown))


# Spark lets them skip the NULLs that it puts in the place of rows with other values.
_FIRST_OR_LAST = frozenset({"first", "first_value", "last", "last_value"})


def _null_of_nothing(result: Item, measures: tuple[Measure, ...]) -> bool:
    """Whether it is NULL anyway where no row has the value."""
    counting = {m.name for m in measures if m.function in COUNTING}
    return isinstance(result.value, Column) and result.value.name not in counting


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
