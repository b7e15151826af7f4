"""Which rows of each table can matter to a view: E is the same over tables narrowed to those rows.   [Blakeley 1986, 4]

A row that comes or goes without being among them cannot change the view, whatever the other tables hold. A *demand*
is what is asked of the rows of an operator from above: rows that do not meet it may be there or not, nobody sees it.
It may speak of columns of other operators; then some row there must go with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import assert_never

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.conditions import disjunction
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Generate,
    Join,
    Pivot,
    Project,
    Relation,
    Scan,
    Schema,
    SetOperation,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    empty,
    names,
    with_inputs,
)
from viewkeeper.algebra.restriction import Conditions, any_of
from viewkeeper.algebra.scalars import FALSE, NULL, Column, Scalar, columns, conjunction, conjuncts, substitute
from viewkeeper.changes.kept import Kept, KeptBag, KeptGroups, KeptTop
from viewkeeper.errors import InternalError

Demand = list[Scalar]


def narrowed(kept: Kept, *, ansi: bool) -> Kept:
    """The same kept rows, from tables narrowed to what matters; `ansi` says that integers do not wrap around."""
    match kept:
        case KeptBag(content):
            return KeptBag(_Narrowing(ansi).narrow(content, []))
        case KeptGroups() | KeptTop():
            return replace(kept, input=_Narrowing(ansi).narrow(kept.input, []))
        case _:
            assert_never(kept)


def rows_that_matter(kept: Kept, *, ansi: bool) -> Mapping[str, Scalar]:
    """For each table the condition that a row must meet to matter at any of the table's mentions."""
    narrowing = _Narrowing(ansi)
    narrowing.narrow(kept.content if isinstance(kept, KeptBag) else kept.input, [])
    matter = {table: any_of(mentions) for table, mentions in narrowing.found.items()}
    return {table: FALSE if rows is None else conjunction(list(rows)) for table, rows in matter.items()}


@dataclass(frozen=True)
class _Rows:
    """The columns of a relation, and what is true of each of its rows, over variables that nobody else has."""

    columns: Mapping[str, Scalar]
    facts: tuple[Scalar, ...] = ()

    def put_into(self, conditions: Iterable[Scalar]) -> Demand:
        return [*self.facts, *(substitute(c, self.columns) for c in conditions)]


@dataclass
class _Narrowing:
    ansi: bool
    types: dict[str, str] = field(default_factory=dict)  # of the variables made so far
    found: dict[str, list[tuple[Scalar, ...]]] = field(default_factory=dict)  # by table, for each mention

    # From above: what is asked of the rows of each operator

    def narrow(self, rel: Relation, demand: Demand) -> Relation:
        """The relation with every table narrowed to the rows that meet the demand."""
        match rel:
            case Scan():
                return self.table(rel, rel, demand)
            case Filter():
                scan = _filtered_table(rel)
                if scan is not None:
                    return self.table(rel, scan, demand)
                return Filter(self.narrow(rel.input, [*_steady(rel.predicate), *demand]), rel.predicate)
            case Project(input, items):
                values = {i.name: i.value for i in items}
                return replace(rel, input=self.narrow(input, [substitute(c, values) for c in demand]))
            case Join():
                return self.join(rel, demand)
            case Union(inputs):
                return Union(tuple(self.narrow(i, self.alike(rel.schema, i.schema, demand)) for i in inputs))
            case Aggregate(input, group_by):
                return replace(rel, input=self.narrow(input, self.only(group_by, rel.schema, demand)))
            case Window(input, partition_by):
                return replace(rel, input=self.narrow(input, self.only(partition_by, rel.schema, demand)))
            case Top(input):
                return replace(rel, input=self.narrow(input, self.only((), rel.schema, demand)))
            case Generate(input):
                return replace(rel, input=self.narrow(input, self.only(names(input), rel.schema, demand)))
            case Values():
                return rel
            case Changes() | SetOperation() | Pivot() | Unpivot():
                raise InternalError(f"{type(rel).__name__} is never in a kept form")
            case _:
                assert_never(rel)

    def table(self, rel: Relation, scan: Scan, demand: Demand) -> Relation:
        """σ_p R for the rows that matter, p without what the filters right above the table say already."""
        own, present = names(scan), _filters(rel)
        known = Conditions({**self.types, **{f.name: f.type for f in scan.schema}}, self.ansi)
        matters = known.restriction([*present, *demand], own, frozenset(present))
        stored = {c.name: Column(c.source) for c in scan.columns}
        mentions = self.found.setdefault(scan.table, [])
        if matters is None:
            return empty(rel.schema)
        mentions.append(tuple(substitute(c, stored) for c in matters))
        already = known.restriction(present, own, frozenset(present)) or ()
        more = [c for c in matters if c not in already]
        return Filter(rel, conjunction(more)) if more else rel

    def join(self, rel: Join, demand: Demand) -> Relation:
        """What a pair of rows must meet, seen from either side with any row of the other."""
        on = conjuncts(rel.condition)
        left, right = self.rows(rel.left), self.rows(rel.right)
        match rel.kind:
            case "inner" | "semi":
                of_left, of_right = right.put_into([*on, *demand]), left.put_into([*on, *demand])
            case "anti":
                # A left row needs no partner; a right row matters if it could take away a left one.
                of_left, of_right = demand, left.put_into([*on, *demand])
            case "left":
                certain, open_ = _split(demand, rel.right)
                of_left = [*certain, *_paired_or_alone([*on, *open_], right, open_, rel.right)]
                of_right = left.put_into([*on, *_with_or_without(demand, rel.right)])
            case "full":
                # A row of either side also decides whether its partners stay alone.
                of_left = _paired_or_alone([*on, *_with_or_without(demand, rel.left)], right, demand, rel.right)
                of_right = _paired_or_alone([*on, *_with_or_without(demand, rel.right)], left, demand, rel.left)
            case _:
                assert_never(rel.kind)
        return with_inputs(rel, (self.narrow(rel.left, of_left), self.narrow(rel.right, of_right)))

    def only(self, kept: tuple[str, ...], schema: Schema, demand: Demand) -> Demand:
        """The demand with the value of every other column left open."""
        unknown = self.variables(tuple(f for f in schema if f.name not in kept))
        return [substitute(c, unknown) for c in demand]

    def alike(self, schema: Schema, branch: Schema, demand: Demand) -> Demand:
        """The demand for one branch of a union: columns whose type is another one there are left open."""
        pairs = zip(schema, branch, strict=True)
        return self.only(tuple(f.name for f, own in pairs if f.type == own.type), schema, demand)

    # From below: what is known of the rows of each operator

    def rows(self, rel: Relation) -> _Rows:
        match rel:
            case Scan() | Values() | Union():
                return _Rows(self.variables(rel.schema))
            case Filter(input, predicate):
                below = self.rows(input)
                return replace(below, facts=tuple(below.put_into(_steady(predicate))))
            case Project(input, items):
                below = self.rows(input)
                return replace(below, columns={i.name: substitute(i.value, below.columns) for i in items})
            case Join():
                return self.joined_rows(rel)
            case Aggregate(group_by=()):
                return _Rows(self.variables(rel.schema))  # one row, even of nothing
            case Aggregate(input) | Window(input) | Top(input) | Generate(input):
                below = self.rows(input)
                kept = rel.group_by if isinstance(rel, Aggregate) else names(input)
                made = self.variables(tuple(f for f in rel.schema if f.name not in kept))
                return replace(below, columns={**{k: below.columns[k] for k in kept}, **made})
            case Changes() | SetOperation() | Pivot() | Unpivot():
                raise InternalError(f"{type(rel).__name__} is never in a kept form")
            case _:
                assert_never(rel)

    def joined_rows(self, rel: Join) -> _Rows:
        if rel.kind == "full":
            return _Rows(self.variables(rel.schema))
        left = self.rows(rel.left)
        match rel.kind:
            case "anti":
                return left
            case "left":
                return replace(left, columns={**left.columns, **self.variables(rel.right.schema)})
            case "inner" | "semi":
                right = self.rows(rel.right)
                both = _Rows({**left.columns, **right.columns}, left.facts + right.facts)
                facts = tuple(both.put_into(conjuncts(rel.condition)))
                return _Rows(both.columns if rel.kind == "inner" else left.columns, facts)
            case _:
                assert_never(rel.kind)

    def variables(self, schema: Schema) -> dict[str, Scalar]:
        """A new variable for each column, under a name that no column can have."""
        made: dict[str, Scalar] = {}
        for f in schema:
            name = f"{f.name}\0{len(self.types)}"
            self.types[name] = f.type
            made[f.name] = Column(name)
        return made


def _with_or_without(demand: Demand, side: Relation) -> Demand:
    """The demand for a pair, or for what is left of it when the row of that side is not there."""
    certain, open_ = _split(demand, side)
    return [*certain, disjunction((conjunction(open_), conjunction(_padded(open_, side))))] if open_ else certain


def _paired_or_alone(pair: Demand, others: _Rows, demand: Demand, other: Relation) -> Demand:
    """What is asked of a row that stays without a partner: it pairs with one of the others, or is wanted alone."""
    alone = conjunction(_padded(demand, other))
    return [disjunction((conjunction(others.put_into(pair)), alone))] if demand else []


def _split(demand: Demand, side: Relation) -> tuple[Demand, Demand]:
    """What does not read a side, and what does."""
    own = frozenset(names(side))
    return [c for c in demand if not columns(c) & own], [c for c in demand if columns(c) & own]


def _padded(demand: Demand, side: Relation) -> Demand:
    """The demand for rows that have NULL for this side."""
    return [substitute(c, dict.fromkeys(names(side), NULL)) for c in demand]


def _steady(condition: Scalar) -> list[Scalar]:
    """The terms of a condition that hold of a row at any time: what the clock keeps out today may come in tomorrow."""
    return [term for term in conjuncts(condition) if not reads_clock(term)]


def _filtered_table(rel: Relation) -> Scan | None:
    while isinstance(rel, Filter):
        rel = rel.input
    return rel if isinstance(rel, Scan) else None


def _filters(rel: Relation) -> list[Scalar]:
    """The conditions of the filters right above a table, the lowest first."""
    return [*_filters(rel.input), *_steady(rel.predicate)] if isinstance(rel, Filter) else []
