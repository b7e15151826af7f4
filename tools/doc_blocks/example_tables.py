"""A small warehouse that is not there, and how its queries are read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from viewkeeper.algebra import types
from viewkeeper.algebra.orders import without_ties
from viewkeeper.algebra.pivots import without_pivots
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Generate,
    Item,
    Measure,
    Pivot,
    Project,
    Relation,
    Top,
    Union,
    Unpivot,
    Values,
    WindowColumn,
    inputs,
    with_inputs,
)
from viewkeeper.algebra.relations import Filter as Filtered
from viewkeeper.algebra.relations import Join as Joined
from viewkeeper.algebra.relations import Window as Windowed
from viewkeeper.algebra.scalars import Cast, Column, Scalar
from viewkeeper.changes.stored import stored_form, why_not_maintainable
from viewkeeper.errors import SqlError
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable, Source, Unmaintainable
from viewkeeper.sql.parse import parse_query

TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "sales": (
        ("id", "bigint"),
        ("day", "date"),
        ("store", "int"),
        ("price", "decimal(10,2)"),
        ("weight", "double"),
        ("note", "string"),
        ("tags", "array<string>"),
    ),
    "returns": (("id", "bigint"), ("day", "date"), ("store", "int"), ("price", "decimal(10,2)")),
    "stores": (("id", "int"), ("city", "string")),
}
OLD, NEW = 7, 9  # the versions an example refresh goes from and to


class ExampleTables:
    """The catalog of the examples; any other table is one without a history."""

    def columns(self, query: str) -> tuple[str, ...]:
        return ()

    def resolve(self, parts: tuple[str, ...]) -> Source:
        name = parts[-1].lower()
        if name in TABLES:
            return DeltaTable(name, TABLES[name])
        return Unmaintainable(name, "not a Delta table, so there is no history of its changes", (("x", "int"),))


def reading(query: str, output: tuple[str, ...]) -> Relation | Reason:
    """The query as typed algebra, or why it is not maintained."""
    try:
        bound = bind(parse_query(query), ExampleTables(), output)
    except SqlError as error:
        return Reason("this query", f"its text cannot be read: {error.message}", error.position)
    if not isinstance(bound, Bound):
        return bound
    relation = without_ties(without_pivots(typed(bound.relation)))
    return why_not_maintainable(stored_form(relation, "__vk_v"), bound.places) or relation


def typed(rel: Relation) -> Relation:
    """The relation with the types Spark would give, as far as the examples need them."""
    match rel:
        case Project(input, items):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            return Project(below, tuple(Item(i.name, i.value, _type_of(i.value, known)) for i in items))
        case Windowed(input, partition_by, order_by, columns):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            shown = tuple(replace(c, type=_over(c, known)) for c in columns)
            return Windowed(below, partition_by, order_by, shown)
        case Generate(input, generator, fields, outer):
            return Generate(typed(input), generator, tuple(Field(f.name, "string") for f in fields), outer)
        case Filtered() | Joined() | Union() | Top():
            return with_inputs(rel, tuple(map(typed, inputs(rel))))
        case Aggregate(input, group_by, measures):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            return Aggregate(below, group_by, tuple(_typed_measure(m, known) for m in measures))
        case Values(fields, rows):
            return Values(tuple(Field(f.name, "int") for f in fields), rows)
        case Pivot(input, measures=measures):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            measured = tuple(_typed_measure(m, known) for m in measures)
            by_name = {m.name: m.type for m in measured}
            results = tuple(Item(r.name, r.value, _type_of(r.value, by_name)) for r in rel.results)
            return replace(rel, input=below, measures=measured, results=results)
        case Unpivot(input, _, taken, _, fields):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            made = zip(fields, ("string", *(known[c] for c in taken[0])), strict=True)
            return replace(rel, input=below, fields=tuple(Field(f.name, t) for f, t in made))
        case _:
            return rel


def _type_of(value: Scalar, known: Mapping[str, str]) -> str:
    match value:
        case Column(name):
            return known[name]
        case Cast(_, type_):
            return type_.lower()
        case _:
            return types.UNKNOWN


def _over(column: WindowColumn, known: Mapping[str, str]) -> str:
    return "double" if any(_type_of(a, known) in types.FLOATING for a in column.args) else "decimal(20,2)"


def _typed_measure(measure: Measure, known: Mapping[str, str]) -> Measure:
    argument = known[measure.args[0]] if measure.args else None
    parts = types.decimal_parts(argument or "")
    match measure.function:
        case "min" | "max":
            type_ = argument or types.UNKNOWN
        case "sum" if parts:
            type_ = types.decimal(parts[0] + 10, parts[1])
        case "avg" if parts:
            type_ = types.decimal(parts[0] + 4, parts[1] + 4)
        case "count" | "count_if" | "approx_count_distinct":
            type_ = types.BIGINT
        case "sum" if argument in types.INTEGRAL:
            type_ = types.BIGINT
        case _:
            type_ = "double"
    return replace(measure, type=type_)
