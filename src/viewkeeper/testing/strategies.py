"""Hypothesis strategies for views: any well-typed algebra that binding can produce, nested."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from hypothesis import strategies as st

from viewkeeper.algebra.orders import without_ties
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Item,
    Join,
    JoinKind,
    Measure,
    Ordering,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Schema,
    SetKind,
    SetOperation,
    Top,
    Union,
    Values,
    Window,
    WindowColumn,
)
from viewkeeper.algebra.scalars import TRUE, Column, Scalar, call, columns
from viewkeeper.algebra.sets import as_groups
from viewkeeper.algebra.types import BIGINT, BOOLEAN, decimal_parts
from viewkeeper.testing.choices import Choices, both, chosen
from viewkeeper.testing.expressions import Expressions, aggregate_type
from viewkeeper.testing.histories import SCHEMAS, History, history

DOUBLE, STRING = "double", "string"
DEPTH = 5
LENGTH = 200
_WINDOW_FUNCTIONS = ("ROW_NUMBER", "RANK", "COUNT", "LAG", "SUM", "LEAD", "MIN", "DENSE_RANK", "SUM")
_FRAMES = (
    "",
    "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW",
    "ROWS BETWEEN 1 PRECEDING AND 1 FOLLOWING",
    "ROWS BETWEEN 2 PRECEDING AND UNBOUNDED FOLLOWING",
)


@dataclass(frozen=True)
class Shape:
    """Which views to make."""

    joins: tuple[JoinKind, ...] = ("inner", "left", "full", "semi", "anti")
    aggregates: bool = True
    windows: bool = True
    repeats: bool = True
    empty_values: bool = False
    spark_only: bool = True
    leaves: int = 4


ANY_VIEW = Shape()
ANYTHING = Shape(empty_values=True)


def relations(shape: Shape = ANY_VIEW) -> st.SearchStrategy[Relation]:
    """Any relation, nested up to the depth."""
    return chosen(lambda choices: relation(choices, shape), LENGTH)


def views(shape: Shape = ANY_VIEW) -> st.SearchStrategy[Relation]:
    """A definition: mostly an aggregate with HAVING and expressions above it."""
    return chosen(lambda choices: view(choices, shape), LENGTH)


def changing_relations(
    shape: Shape = ANY_VIEW, steps: int = 1, appends_only: bool = False
) -> st.SearchStrategy[tuple[Relation, History]]:
    """Any relation, and what happens to its tables."""
    return both(lambda c: relation(c, shape), lambda c: history(c, steps, appends_only), LENGTH)


def changing_views(
    shape: Shape = ANY_VIEW, steps: int = 1, appends_only: bool = False
) -> st.SearchStrategy[tuple[Relation, History]]:
    """Any definition, and what happens to its tables."""
    return both(lambda c: view(c, shape), lambda c: history(c, steps, appends_only), LENGTH)


def relation(choices: Choices, shape: Shape) -> Relation:
    return _Maker(choices, shape).relation(DEPTH)


def view(choices: Choices, shape: Shape) -> Relation:
    return _Maker(choices, shape).view()


@dataclass
class _Maker:
    choices: Choices
    shape: Shape
    leaves: int = 0
    taken: set[str] = field(default_factory=set)

    def fresh(self, base: str) -> str:
        """A name nothing else in this view has, made as binding makes it."""
        name, count = base, 1
        while name.lower() in self.taken:
            count += 1
            name = f"{base}_{count}"
        self.taken.add(name.lower())
        return name

    # Relations

    def view(self) -> Relation:
        if self.choices.one_in(4):
            return self.named(self.relation(DEPTH))
        rel: Relation = self.aggregate(DEPTH - 2)
        for _ in range(self.choices.below(3)):
            rel = self.choices.pick((self.project_over, self.filter_over))(rel)
        return self.named(rel)

    def named(self, rel: Relation) -> Relation:
        """The relation under the names its view shows; some columns may be hidden or renamed."""
        rename = self.choices.one_in(3)
        shown = [f for f in rel.schema if not (rename and self.choices.one_in(4))] or list(rel.schema)
        return Project(rel, tuple(Item(self.public(f.name, rename), Column(f.name), f.type) for f in shown))

    def public(self, name: str, rename: bool) -> str:
        return self.fresh("c") if rename or name.startswith("__vk_") else name

    def relation(self, depth: int) -> Relation:
        """One operator with smaller relations below; a table where the depth or the view's size is used up."""
        if depth <= 0:
            return self.leaf()
        ways: list[Callable[[int], Relation]] = [
            lambda _: self.leaf(),
            lambda below: self.project_over(self.relation(below)),
            lambda below: self.filter_over(self.relation(below)),
            lambda _: self.leaf(),
        ]
        if self.shape.aggregates:
            ways.append(self.aggregate)
        if self.shape.windows:
            ways += [self.window, self.top]
        if self.leaves + 1 < self.shape.leaves:
            ways += [self.join, self.union, self.join]
            if self.shape.aggregates:
                ways.append(self.set_operation)
        return self.choices.pick(ways)(depth - 1)

    def leaf(self) -> Relation:
        self.leaves += 1
        if self.choices.one_in(10):
            fields = (Field(self.fresh("g"), BIGINT), Field(self.fresh("g"), STRING))
            rows = range(self.choices.between(0 if self.shape.empty_values else 1, 3))
            return Values(fields, tuple(tuple(self.scalars(()).literal(f.type) for f in fields) for _ in rows))
        table = self.choices.pick(tuple(SCHEMAS))
        return Scan(table, tuple(ScanColumn(c, self.fresh(c), t) for c, t in SCHEMAS[table]))

    def filter_over(self, rel: Relation) -> Relation:
        return Filter(rel, self.scalars(rel.schema).condition())

    def project_over(self, rel: Relation) -> Relation:
        scalars = self.scalars(rel.schema)
        values = [scalars.anything() for _ in range(self.choices.between(1, 3))]
        return Project(rel, tuple(Item(self.fresh("x"), value, type_) for value, type_ in values))

    def join(self, depth: int) -> Relation:
        left = self.relation(depth)
        itself = self.choices.one_in(4) and self.leaves * 2 <= self.shape.leaves
        right = self.renamed(left) if itself else self.relation(depth)
        kind = self.choices.pick(self.shape.joins)
        return Join(left, right, kind, self.join_condition(left.schema, right.schema))

    def renamed(self, rel: Relation) -> Relation:
        """The same rows again, for a join with itself."""
        self.leaves *= 2
        return Project(rel, tuple(Item(self.fresh("y"), Column(f.name), f.type) for f in rel.schema))

    def join_condition(self, left: Schema, right: Schema) -> Scalar:
        """Mostly a comparison of two columns, sometimes nothing or anything."""
        pairs = [(a.name, b.name) for a in left for b in right if a.type == b.type]
        way = self.choices.below(6)
        if way == 5 or not pairs:
            return TRUE if not self.choices.one_in(2) else self.scalars((*left, *right)).condition()
        ours, theirs = self.choices.pick(pairs)
        compared = call(self.choices.pick(("=", "<=>", "=", "<=")), Column(ours), Column(theirs))
        return call("AND", compared, self.scalars((*left, *right)).condition()) if way == 4 else compared

    def union(self, depth: int) -> Relation:
        first = self.relation(depth)
        if self.choices.one_in(2):
            first = self.project_over(first)
        second = self.relation(depth)
        scalars = self.scalars(second.schema)
        return Union((first, Project(second, tuple(Item(f.name, scalars.of(f.type, 1), f.type) for f in first.schema))))

    def set_operation(self, depth: int) -> Relation:
        """EXCEPT or INTERSECT of relations that overlap, as groups."""
        left = self.project_over(self.relation(depth))
        below = self.relation(depth)
        scalars = self.scalars(below.schema)
        right = Project(below, tuple(Item(self.fresh("z"), scalars.of(f.type, 1), f.type) for f in left.schema))
        kind: SetKind = self.choices.pick(("except", "intersect"))
        by_copies = self.shape.repeats and self.choices.one_in(2)
        grouped = as_groups(SetOperation(left, right, kind, by_copies))
        return Project(grouped, tuple(Item(self.fresh("x"), Column(f.name), f.type) for f in left.schema))

    # Orders

    def window(self, depth: int) -> Relation:
        """Functions over partitions; where single rows are picked, the order has no ties."""
        rel = self.relation(depth)
        keys = tuple(dict.fromkeys(self.choices.pick(rel.schema).name for _ in range(self.choices.pick((1, 1, 2, 0)))))
        order = self.orderings(rel.schema)
        numbers = [Column(f.name) for f in rel.schema if f.type == BIGINT]
        columns: list[WindowColumn] = []
        for _ in range(self.choices.between(1, 2)):
            function = self.choices.pick(_WINDOW_FUNCTIONS if numbers else _WINDOW_FUNCTIONS[:4])
            field = self.choices.pick(rel.schema)
            args: tuple[Scalar, ...] = ()
            type_ = BIGINT
            if function in ("LAG", "LEAD", "MIN"):
                args, type_ = (Column(field.name),), field.type
            elif function == "SUM":
                args = (self.choices.pick(numbers),)
            frame = self.choices.pick(_FRAMES) if function in ("SUM", "MIN", "COUNT") and order else ""
            if function == "COUNT":
                args = (Column(field.name),)
            columns.append(WindowColumn(self.fresh("w"), function, args, type_, frame))
        return without_ties(Window(rel, keys, order or self.orderings(rel.schema, 1), tuple(columns)))

    def top(self, depth: int) -> Relation:
        rel = self.relation(depth)
        return without_ties(
            Top(rel, self.orderings(rel.schema, 1), self.choices.below(4), self.choices.pick((0, 0, 1)))
        )

    def orderings(self, schema: Schema, least: int = 0) -> tuple[Ordering, ...]:
        picked = dict.fromkeys(self.choices.pick(schema).name for _ in range(self.choices.between(least, 2)))
        return tuple(Ordering(c, self.choices.one_in(2), not self.choices.one_in(3)) for c in picked)

    def scalars(self, schema: Schema) -> Expressions:
        return Expressions(self.choices, schema)

    # Aggregates

    def aggregate(self, depth: int) -> Relation:
        """γ over computed columns; without keys, without measures (DISTINCT), or with both."""
        rel = self.relation(depth)
        scalars = self.scalars(rel.schema)
        items: list[Item] = []
        keys = [self.computed(items, *scalars.anything()) for _ in range(self.choices.pick((1, 2, 1, 0)))]
        measures: list[Measure] = []
        for _ in range(self.choices.between(0 if keys else 1, 3)):
            measures.append(self.measure(scalars, items, measures))
        return Aggregate(Project(rel, tuple(items)), tuple(dict.fromkeys(keys)), tuple(measures))

    def computed(self, items: list[Item], value: Scalar, type_: str) -> str:
        """The name under which the value is computed below the aggregate, once for equal values."""
        for item in items:
            if item.value == value and item.type == type_:
                return item.name
        of = f"__vk_of_{min(columns(value), default='x')}".lower()
        name = value.name if isinstance(value, Column) else self.fresh(of)
        items.append(Item(name, value, type_))
        return name

    def measure(self, scalars: Expressions, items: list[Item], others: list[Measure]) -> Measure:
        """One more measure, half of the time of what another one measures already."""
        where = self.computed(items, scalars.condition(), BOOLEAN) if self.choices.one_in(4) else None
        if self.choices.one_in(5):
            return Measure(self.fresh("count"), "count", (), BIGINT, where=where)
        measured = [a for m in others for a in m.args]
        name = measured[-1] if measured and self.choices.one_in(2) else self.computed(items, *scalars.anything())
        type_ = next(i.type for i in items if i.name == name)
        args: tuple[str, ...] = (name,)
        function = self.choices.pick(self.functions(type_))
        if function == "count" and self.shape.spark_only and self.choices.one_in(4):
            args = (*args, self.computed(items, *scalars.anything()))
        distinct = self.choices.one_in(5)
        return Measure(self.fresh(function), function, args, aggregate_type(function, type_), distinct, where)

    def functions(self, type_: str) -> tuple[str, ...]:
        """Aggregates of this type.

        Other databases average decimals as doubles, add doubles in any order, and count_if nothing is NULL.
        """
        spark = self.shape.spark_only
        if type_ == BIGINT:
            return ("sum", "avg", "count", "min", "max", "sum", "bit_and", "bit_or", "bit_xor")
        if type_ == BOOLEAN:
            more = ("count_if", "any", "some", "every") if spark else ()
            return ("count", "bool_and", "bool_or", "min", "max", *more)
        if type_ == DOUBLE and spark:
            return ("min", "count", "max", "sum", "avg")
        if decimal_parts(type_):
            return ("sum", "count", "min", "max", "sum", *(("avg", "avg") if spark else ()))
        return ("min", "count", "max")
