"""The operators: each is data that says which bag of rows it stands for, and checks its own integrity.

A *change* is an ordinary relation with one more column, `__vk_weight`: +n for n rows that came, −n for n that
went. A relation without that column is a state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal as OneOf
from typing import assert_never

from viewkeeper.algebra.node import Node
from viewkeeper.algebra.scalars import Column, Scalar, own_columns
from viewkeeper.algebra.types import BIGINT
from viewkeeper.errors import InternalError

WEIGHT = "__vk_weight"

State = OneOf["old", "new"]
JoinKind = OneOf["inner", "left", "full", "semi", "anti"]
Side = OneOf["left", "right"]  # of a join


@dataclass(frozen=True, eq=False)
class Field(Node):
    """A named, typed column of a relation."""

    name: str
    type: str


Schema = tuple[Field, ...]
WEIGHT_FIELD = Field(WEIGHT, BIGINT)


@dataclass(frozen=True, eq=False)
class ScanColumn(Node):
    """A column of a stored table, and its name in this relation."""

    source: str
    name: str
    type: str


@dataclass(frozen=True, eq=False)
class Scan(Node):
    """The rows of a stored table, before or after the change at hand."""

    table: str
    columns: tuple[ScanColumn, ...]
    state: State = "new"

    @cached_property
    def schema(self) -> Schema:
        return tuple(Field(c.name, c.type) for c in self.columns)


@dataclass(frozen=True, eq=False)
class Changes(Node):
    """The rows of a stored table that came and went between its old and its new state, with weights."""

    table: str
    columns: tuple[ScanColumn, ...]

    @cached_property
    def schema(self) -> Schema:
        return (*(Field(c.name, c.type) for c in self.columns), WEIGHT_FIELD)


@dataclass(frozen=True, eq=False)
class Values(Node):
    """Rows given in the text; none of them is the empty relation."""

    fields: Schema
    rows: tuple[tuple[Scalar, ...], ...]

    @property
    def schema(self) -> Schema:
        return self.fields


@dataclass(frozen=True, eq=False)
class Filter(Node):
    """Rows of `input` for which `predicate` is true (not unknown)."""

    input: Relation
    predicate: Scalar

    def __post_init__(self) -> None:
        _require(own_columns(self.predicate), self.input, "Filter")

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, eq=False)
class Item(Node):
    """One computed column."""

    name: str
    value: Scalar
    type: str


@dataclass(frozen=True, eq=False)
class Project(Node):
    """For each row of `input` the row of `items`; duplicates stay."""

    input: Relation
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        for item in self.items:
            _require(own_columns(item.value), self.input, "Project")
        _distinct_names(self.schema, "Project")

    @cached_property
    def schema(self) -> Schema:
        return tuple(Field(item.name, item.type) for item in self.items)


@dataclass(frozen=True, eq=False)
class Join(Node):
    """Pairs of rows for which `condition` is true; `left` and `full` pad with NULL, `semi` and `anti` only filter.

    The right side of a `lateral` one may read the row on the left; only in definitions as they are read.
    """

    left: Relation
    right: Relation
    kind: JoinKind
    condition: Scalar
    lateral: bool = False

    def __post_init__(self) -> None:
        both = (*self.left.schema, *self.right.schema)
        _distinct_names(both, "Join")
        missing = own_columns(self.condition) - {f.name for f in both}
        if missing:
            raise InternalError(f"Join reads columns that are not there: {sorted(missing)}")

    @cached_property
    def schema(self) -> Schema:
        return self.left.schema if self.kind in ("semi", "anti") else (*self.left.schema, *self.right.schema)


@dataclass(frozen=True, eq=False)
class Union(Node):
    """All rows of all inputs (UNION ALL); the inputs have the same column names in the same order."""

    inputs: tuple[Relation, ...]

    def __post_init__(self) -> None:
        if len({names(i) for i in self.inputs}) != 1:
            raise InternalError(f"Union of different columns: {[names(i) for i in self.inputs]}")

    @property
    def schema(self) -> Schema:
        return self.inputs[0].schema


@dataclass(frozen=True, eq=False)
class Ordering(Node):
    """A column to order by."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True, eq=False)
class Measure(Node):
    """An aggregate function over columns of the input (none for count(*)), of the rows where `where` is true.

    `order_by` is what stands in WITHIN GROUP. One that may answer in several ways answers always the same once it is
    `settled` (algebra.settled).
    """

    name: str
    function: str
    args: tuple[str, ...]
    type: str
    distinct: bool = False
    where: str | None = None
    order_by: tuple[Ordering, ...] = ()
    ignore_nulls: bool = False
    settled: bool = False

    @property
    def reads(self) -> frozenset[str]:
        ordered = (o.column for o in self.order_by)
        return frozenset(self.args).union(ordered, {self.where} if self.where else ())


@dataclass(frozen=True, eq=False)
class Aggregate(Node):
    """One row per group of equal `group_by` columns (NULL equals NULL); exactly one row if there are none.

    With grouping `sets` it stands for one grouping by each of them, the other columns NULL; only in definitions as
    they are read.
    """

    input: Relation
    group_by: tuple[str, ...]
    measures: tuple[Measure, ...]
    sets: tuple[tuple[str, ...], ...] = ()

    def __post_init__(self) -> None:
        for measure in self.measures:
            _require(measure.reads, self.input, "Aggregate")
        _require(frozenset(self.group_by), self.input, "Aggregate")
        _distinct_names(self.schema, "Aggregate")

    @cached_property
    def schema(self) -> Schema:
        types = {f.name: f.type for f in self.input.schema}
        keys = tuple(Field(name, types[name]) for name in self.group_by)
        return (*keys, *(Field(m.name, m.type) for m in self.measures))


@dataclass(frozen=True, eq=False)
class WindowColumn(Node):
    """A function over the rows of a window frame, of those where `where` is true.

    No frame in the text is Spark's default one. `settled` says that it answers always the same, though its function
    over such a frame need not (algebra.distances). `within` is the order of WITHIN GROUP.
    """

    name: str
    function: str
    args: tuple[Scalar, ...]
    type: str
    frame: str = ""
    ignore_nulls: bool = False
    where: Scalar | None = None
    settled: bool = False
    within: tuple[Ordering, ...] = ()

    @property
    def reads(self) -> frozenset[str]:
        scalars = (*self.args, *((self.where,) if self.where else ()))
        return frozenset(o.column for o in self.within).union(*map(own_columns, scalars))


@dataclass(frozen=True, eq=False)
class Window(Node):
    """Each row of `input` with more columns, computed from the rows of its partition in their order."""

    input: Relation
    partition_by: tuple[str, ...]
    order_by: tuple[Ordering, ...]
    columns: tuple[WindowColumn, ...]

    def __post_init__(self) -> None:
        read = {*self.partition_by, *(o.column for o in self.order_by)}
        _require(frozenset(read).union(*(c.reads for c in self.columns)), self.input, "Window")
        _distinct_names(self.schema, "Window")

    @cached_property
    def schema(self) -> Schema:
        return (*self.input.schema, *(Field(c.name, c.type) for c in self.columns))


@dataclass(frozen=True, eq=False)
class Top(Node):
    """The first `limit` rows of `input` in an order, after `offset` others; all others for no limit."""

    input: Relation
    order_by: tuple[Ordering, ...]
    limit: int | None
    offset: int = 0

    def __post_init__(self) -> None:
        _require(frozenset(o.column for o in self.order_by), self.input, "Top")

    @property
    def schema(self) -> Schema:
        return self.input.schema


@dataclass(frozen=True, eq=False)
class Generate(Node):
    """For each row of `input` the rows that a generator (explode …) makes of it; if `outer`, at least one."""

    input: Relation
    generator: Scalar
    fields: tuple[Field, ...]
    outer: bool = False

    def __post_init__(self) -> None:
        _require(own_columns(self.generator), self.input, "Generate")
        _distinct_names(self.schema, "Generate")

    @cached_property
    def schema(self) -> Schema:
        return (*self.input.schema, *self.fields)


SetKind = OneOf["except", "intersect"]


@dataclass(frozen=True, eq=False)
class SetOperation(Node):
    """EXCEPT or INTERSECT, by rows or (`all`) by copies of rows; only in definitions as they are read."""

    left: Relation
    right: Relation
    kind: SetKind
    all: bool

    @property
    def schema(self) -> Schema:
        return self.left.schema


@dataclass(frozen=True, eq=False)
class Pivot(Node):
    """One row per group: every result for its rows with the first of `values` in `columns`, then with the next …

    A result is an expression over the measures of those rows. Only in definitions whose types are not yet known.
    """

    input: Relation
    group_by: tuple[str, ...]
    columns: tuple[str, ...]
    values: tuple[tuple[Scalar, ...], ...]
    measures: tuple[Measure, ...]
    results: tuple[Item, ...]
    outputs: tuple[str, ...]

    def __post_init__(self) -> None:
        _require(frozenset(self.columns).union(*(m.reads for m in self.measures)), self.input, "Pivot")
        _distinct_names(self.schema, "Pivot")

    @cached_property
    def schema(self) -> Schema:
        types = {f.name: f.type for f in self.input.schema}
        keys = tuple(Field(name, types[name]) for name in self.group_by)
        shown = (r.type for _ in self.values for r in self.results)
        return (*keys, *(Field(name, type_) for name, type_ in zip(self.outputs, shown, strict=True)))


@dataclass(frozen=True, eq=False)
class Unpivot(Node):
    """For each row of `input` one for each list of columns in `taken`: what is `kept`, a label, and their values.

    Rows whose values are all NULL only with `include_nulls`. Only in definitions whose types are not yet known.
    """

    input: Relation
    kept: tuple[str, ...]
    taken: tuple[tuple[str, ...], ...]
    labels: tuple[str, ...]
    fields: tuple[Field, ...]
    include_nulls: bool = False

    def __post_init__(self) -> None:
        _require(frozenset(self.kept).union(*self.taken), self.input, "Unpivot")
        _distinct_names(self.schema, "Unpivot")

    @cached_property
    def schema(self) -> Schema:
        types = {f.name: f.type for f in self.input.schema}
        return (*(Field(name, types[name]) for name in self.kept), *self.fields)


Relation = (
    Scan
    | Changes
    | Values
    | Filter
    | Project
    | Join
    | Union
    | Aggregate
    | Window
    | Top
    | Generate
    | SetOperation
    | Pivot
    | Unpivot
)


def names(rel: Relation) -> tuple[str, ...]:
    return tuple(f.name for f in rel.schema)


def inputs(rel: Relation) -> tuple[Relation, ...]:
    """The relations directly below."""
    match rel:
        case Scan() | Changes() | Values():
            return ()
        case Filter(input) | Project(input) | Aggregate(input) | Window(input) | Top(input) | Generate(input):
            return (input,)
        case Pivot(input) | Unpivot(input):
            return (input,)
        case Join(left, right) | SetOperation(left, right):
            return (left, right)
        case Union(inputs):
            return inputs
        case _:
            assert_never(rel)


def with_inputs(rel: Relation, below: tuple[Relation, ...]) -> Relation:
    """The same operator over other relations of the same columns."""
    match rel, below:
        case ((Scan() | Changes() | Values()), _):
            return rel
        case Filter(), (input,):
            return replace(rel, input=input)
        case Project(), (input,):
            return replace(rel, input=input)
        case Aggregate(), (input,):
            return replace(rel, input=input)
        case Window(), (input,):
            return replace(rel, input=input)
        case Top(), (input,):
            return replace(rel, input=input)
        case Generate(), (input,):
            return replace(rel, input=input)
        case Pivot(), (input,):
            return replace(rel, input=input)
        case Unpivot(), (input,):
            return replace(rel, input=input)
        case Join(), (left, right):
            return replace(rel, left=left, right=right)
        case SetOperation(), (left, right):
            return replace(rel, left=left, right=right)
        case Union(), _:
            return Union(below)
        case _:
            raise InternalError(f"{type(rel).__name__} over {len(below)} relations")


def pass_through(fields: Schema) -> tuple[Item, ...]:
    """Items that keep these columns as they are."""
    return tuple(Item(f.name, Column(f.name), f.type) for f in fields)


def empty(fields: Schema) -> Values:
    return Values(fields, ())


def is_empty(rel: Relation) -> bool:
    return isinstance(rel, Values) and not rel.rows


def _require(needed: frozenset[str], rel: Relation, operator: str) -> None:
    missing = needed - set(names(rel))
    if missing:
        raise InternalError(f"{operator} reads columns that are not there: {sorted(missing)}")


def _distinct_names(fields: Schema, operator: str) -> None:
    seen = [f.name.lower() for f in fields]
    if len(seen) != len(set(seen)):
        raise InternalError(f"{operator} has a column name twice: {seen}")
