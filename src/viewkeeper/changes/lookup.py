"""The rows of tables that a small change meets, looked up by its values before anything is joined.

    L ⋈ₖ R = L ⋈ₖ σ_{k ∈ V} R     where V is what k is in L

The rows that were found have few values in turn, by which the next table is asked. Where all that a change reads is
found so, what is left to join is small. What was found by a change's values need not be compared with them again:

    σ_{k ∈ V} R ⋉ₖ L = σ_{k ∈ V} R     where V is what k is in L
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from operator import is_
from typing import Any, assert_never

from viewkeeper.algebra.clock import reads_clock
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
    ScanColumn,
    SetOperation,
    Top,
    Union,
    Unpivot,
    Window,
    empty,
    inputs,
    names,
    with_inputs,
)
from viewkeeper.algebra.relations import Values as Rows
from viewkeeper.algebra.scalars import Column, Scalar, conjuncts, own_columns, subqueries, substitute
from viewkeeper.changes.meeting import met_columns

MOST_LOOKED_THROUGH = 10_000_000  # rows of a table, for those that meet a condition: Spark reads more sooner
KNOWN_ROWS = 20_000  # of a change: the values of more are not looked for, if Spark will be given what was found
KNOWN_HERE = 1_000_000  # the same, if this process will join it
FOUND = 5  # times as many rows, or values that are looked for, as changed rows are known are brought here

Values = frozenset[Any]  # of one column; NULL is None
Told = Callable[[], Values]  # which may take a query to find out: nobody asks unless a table can be asked for them
Known = dict[str, Told]


@dataclass(frozen=True)
class Found:
    """Rows that were looked up: the temporary name they are under, and the values of some of the table's columns.

    Answers to other questions have other names, be it that only other conditions were told: the values differ. They
    are those of rows that fulfil the conditions; `fulfil` says whether all rows do.
    """

    name: str
    values: Mapping[str, Told]
    fulfil: bool = False


@dataclass(frozen=True)
class ChangedValues:
    """Values of some of a table's columns in changed rows; `exact` if those rows have just these, not only at most."""

    values: Mapping[str, Told]
    exact: bool = False


Conditions = tuple[Scalar, ...]
Changed = Callable[[str, Conditions], ChangedValues]
LookUp = Callable[[Scan, Mapping[str, Values], Conditions], Found | None]


def looked_up(change: Relation, changed: Changed, look_up: LookUp) -> Relation:
    """The same change, of rows that were looked up.

    `changed` has the values of a table's changed rows that fulfil some conditions, by its columns, of those whose
    values are known. `look_up` is asked for the rows of a scan with these values, by the table's columns, of which
    those will do that fulfil some conditions. It answers None where they cannot be had. Conditions are told by the
    table's columns.
    """
    return _Lookups(changed, look_up).visit(change)[0]


@dataclass
class _Lookups:
    changed: Changed
    look_up: LookUp
    found: dict[str, Found] = field(default_factory=dict)  # by their names
    known: dict[Relation, tuple[Relation, Known]] = field(default_factory=dict)

    def visit(self, rel: Relation) -> tuple[Relation, Known]:
        """The relation of rows that were looked up, and the values that its columns have at most."""
        if rel not in self.known:
            self.known[rel] = self._visit(rel)
        return self.known[rel]

    def _visit(self, rel: Relation) -> tuple[Relation, Known]:
        match rel:
            case Changes(table, columns):
                return rel, _shown(columns, self.changed(table, ()).values)
            case Filter(Changes(table, columns), predicate):
                return rel, _shown(columns, self.changed(table, _by_source(columns, conjuncts(predicate))).values)
            case Scan(table, columns):
                return rel, _shown(columns, self.found[table].values if table in self.found else {})
            case Rows(fields, rows):
                return rel, {} if rows else {f.name: _are(frozenset()) for f in fields}
            case Project(input, items):
                below, known = self.visit(input)
                shown = ((i.name, i.value.name) for i in items if isinstance(i.value, Column))
                return replace(rel, input=below), {name: known[own] for name, own in shown if own in known}
            case Filter(input) | Window(input) | Top(input) | Generate(input):
                below, known = self.visit(input)
                return with_inputs(rel, (below,)), known
            case Aggregate(input, group_by, sets=sets):
                below, known = self.visit(input)
                kept = () if sets else group_by
                return replace(rel, input=below), {c: values for c, values in known.items() if c in kept}
            case Union(parts):
                visited = [self.visit(part) for part in parts]
                return Union(tuple(part for part, _ in visited)), _any_of([known for _, known in visited])
            case Join():
                return self._joined(rel)
            case SetOperation() | Pivot() | Unpivot():
                return with_inputs(rel, tuple(self.visit(i)[0] for i in inputs(rel))), {}
            case _:
                assert_never(rel)

    def _joined(self, rel: Join) -> tuple[Relation, Known]:
        left, of_left = self.visit(rel.left)
        right, of_right = self.visit(rel.right)
        pairs = list(met_columns(rel))
        if rel.kind != "full":
            asked = {theirs: _met(of_left[ours], safe) for ours, theirs, safe in pairs if ours in of_left}
            right, of_right = self._only(right, of_right, asked)
        if rel.kind in ("inner", "semi"):
            asked = {ours: _met(of_right[theirs], safe) for ours, theirs, safe in pairs if theirs in of_right}
            left, of_left = self._only(left, of_left, asked)
        joined = replace(rel, left=left, right=right)
        match rel.kind:
            case "inner":
                return joined, {**of_left, **of_right}
            case "semi" if len(pairs) == len(conjuncts(rel.condition)) == 1 and self._all_meet(left, right, *pairs[0]):
                return left, of_left
            case "semi" | "anti":
                return joined, of_left
            case "left":
                return joined, {**of_left, **_padded(of_right)}
            case "full":
                return joined, {**_padded(of_left), **_padded(of_right)}
            case _:
                assert_never(rel.kind)

    def _only(self, rel: Relation, known: Known, asked: Known) -> tuple[Relation, Known]:
        """What can meet these values, and what is then known of it."""
        if not asked:
            return rel, known
        narrowed = self._narrowed(rel, asked, ())
        if narrowed is not rel:
            rel, known = self.visit(narrowed)
        return rel, {**known, **{c: _both(told, known[c]) if c in known else told for c, told in asked.items()}}

    def _narrowed(self, rel: Relation, asked: Known, where: Conditions) -> Relation:
        """σ_{asked} σ_{where} E, or more of E: asked of the tables that it is made of, one row of them at a time."""
        match rel:
            case _ if not asked:
                return rel
            case Scan(table) if table not in self.found:
                return self._ask(rel, asked, where)[0]
            case Filter(Scan(table) as scan, predicate) if table not in self.found:
                terms = conjuncts(predicate)
                rows, fulfil = self._ask(scan, asked, (*terms, *where))
                return rows if fulfil and all(map(_is_told, terms)) else _over(rel, rows)
            case Filter(input, predicate):
                return _over(rel, self._narrowed(input, asked, (*conjuncts(predicate), *where)))
            case Project(input, items):
                below = {i.value.name: asked[i.name] for i in items if isinstance(i.value, Column) and i.name in asked}
                made = {i.name: i.value for i in items}
                return _over(rel, self._narrowed(input, below, tuple(substitute(term, made) for term in where)))
            case Aggregate(input, group_by, sets=()) | Window(input, group_by):
                return _over(rel, self._narrowed(input, {c: v for c, v in asked.items() if c in group_by}, ()))
            case Union(parts):
                return _over(rel, *(self._narrowed(part, asked, where) for part in parts))
            case Join(left, right, "inner"):
                return _over(rel, *(self._narrowed(side, *_of(side, asked, where)) for side in (left, right)))
            case Join(left, right, "left" | "semi" | "anti"):
                return _over(rel, self._narrowed(left, *_of(left, asked, where)), right)
            case _:
                return rel

    def _all_meet(self, left: Relation, right: Relation, ours: str, theirs: str, null_safe: bool) -> bool:
        """Whether every row of the left side has a partner, by the values that the two columns have."""
        exactly, at_most = self._exactly(right, theirs), self._at_most(left, ours)
        return exactly is not None and at_most is not None and at_most() <= _met(exactly, null_safe)()

    def _exactly(self, rel: Relation, column: str) -> Told | None:
        """The values that a column of changes has, each of them in some row."""
        match rel:
            case Changes(table, columns):
                return self._exactly_changed(table, columns, (), column)
            case Filter(Changes(table, columns), predicate):
                return self._exactly_changed(table, columns, conjuncts(predicate), column)
            case Project(input, items):
                made = next((i.value for i in items if i.name == column), None)
                return self._exactly(input, made.name) if isinstance(made, Column) else None
            case Aggregate(input, group_by, sets=()) if column in group_by:
                return self._exactly(input, column)
            case Union(parts):
                told = [self._exactly(part, column) for part in parts]
                known = [{column: values} for values in told if values is not None]
                return _any_of(known)[column] if len(known) == len(told) else None
            case _:
                return None

    def _exactly_changed(
        self, table: str, columns: tuple[ScanColumn, ...], where: Sequence[Scalar], column: str
    ) -> Told | None:
        told = _by_source(columns, where)
        changed = self.changed(table, told)
        return _shown(columns, changed.values).get(column) if changed.exact and len(told) == len(where) else None

    def _at_most(self, rel: Relation, column: str) -> Told | None:
        """The values that a column of rows which were looked up has at most."""
        match rel:
            case Scan(table, columns) if table in self.found and self.found[table].fulfil:
                return _shown(columns, self.found[table].values).get(column)
            case Filter(input) | Join(input, kind="semi" | "anti"):
                return self._at_most(input, column)
            case Project(input, items):
                made = next((i.value for i in items if i.name == column), None)
                return self._at_most(input, made.name) if isinstance(made, Column) else None
            case _:
                return None

    def _ask(self, scan: Scan, asked: Known, where: Conditions) -> tuple[Relation, bool]:
        """The rows that were looked up, and whether all of them fulfil the conditions, as far as these are told."""
        values = {c.source: asked[c.name]() for c in scan.columns if c.name in asked}
        if not all(values.values()):  # nothing equals none of the values
            return empty(scan.schema), True
        found = self.look_up(scan, values, _by_source(scan.columns, where))
        if found is None:
            return scan, False
        self.found[found.name] = found
        return Scan(found.name, scan.columns), found.fulfil


def _over(rel: Relation, *below: Relation) -> Relation:
    """The same relation over these, itself if they are what it is over."""
    return rel if all(map(is_, below, inputs(rel))) else with_inputs(rel, below)


def _of(rel: Relation, asked: Known, where: Conditions) -> tuple[Known, Conditions]:
    """What is asked of one side of a join."""
    own = set(names(rel))
    return {c: v for c, v in asked.items() if c in own}, tuple(term for term in where if own_columns(term) <= own)


def _by_source(columns: tuple[ScanColumn, ...], where: Iterable[Scalar]) -> Conditions:
    """Conditions by the table's columns, of those that can be told by one row of it."""
    stored: dict[str, Scalar] = {c.name: Column(c.source) for c in columns}
    return tuple(substitute(term, stored) for term in where if _is_told(term))


def _is_told(term: Scalar) -> bool:
    return not subqueries(term) and not reads_clock(term)


def _shown(columns: tuple[ScanColumn, ...], values: Mapping[str, Told]) -> Known:
    return {c.name: values[c.source] for c in columns if c.source in values}


def _are(values: Values) -> Told:
    return lambda: values


def _both(some: Told, others: Told) -> Told:
    return cache(lambda: some() & others())


def _met(told: Told, null_safe: bool) -> Told:
    return told if null_safe else cache(lambda: told() - {None})


def _padded(known: Known) -> Known:
    return {c: cache(lambda told=told: told() | {None}) for c, told in known.items()}


def _any_of(parts: list[Known]) -> Known:
    """What is known of a column in every part."""
    shared = set(parts[0]).intersection(*parts[1:])
    return {c: cache(lambda c=c: frozenset[Any]().union(*(known[c]() for known in parts))) for c in shared}
