"""Rows of a table that several parts of a change ask for by the same keys, from one read of the table.

    X(R ⋉ T), X made of filters and projections, is made of R ⋉ T with the columns that any such X reads

Where a view mentions a table several times, and its keys are computed afresh, so does the change. Then R ⋉ T stands in
it several times, and can be computed once (`changes/parts.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Filter, Item, Join, Project, Relation, Scan, ScanColumn, inputs, with_inputs
from viewkeeper.algebra.scalars import Call, Column, Scalar, columns, conjunction, conjuncts, subqueries, substitute
from viewkeeper.changes.restored import from_one_read

_NAMED = "__vk_all_"  # before the name that the table has for a column: other columns may be called so


@dataclass(frozen=True)
class Asked:
    """X(R) ⋉ T, in R's own columns: by which keys rows are asked for, and by what else."""

    scan: Scan
    keys: Relation
    matches: frozenset[Scalar]
    conditions: frozenset[Scalar]

    @property
    def which(self) -> tuple[str, str, Relation, frozenset[Scalar]]:
        return self.scan.table, self.scan.state, self.keys, self.matches


def read_together(change: Relation, worth: Callable[[Relation], bool]) -> Relation:
    """The same change; `worth` says of rows whether it pays to compute them once."""
    groups: dict[tuple[str, str, Relation, frozenset[Scalar]], dict[Join, Asked]] = {}
    for node in walk(change):
        if isinstance(node, Join) and (asked := _asked(node)) is not None:
            groups.setdefault(asked.which, {})[node] = asked
    known: dict[Relation, Relation] = {}
    for group in groups.values():
        if len({asked.scan for asked in group.values()}) > 1 and worth(rows := _all_of(list(group.values()))):
            known.update({node: _from(node.left, rows) for node in group})

    def visit(rel: Relation) -> Relation:
        if rel not in known:
            known[rel] = with_inputs(rel, tuple(map(visit, inputs(rel))))
        return known[rel]

    return visit(change)


def read_once(change: Relation, worth: Callable[[Relation], bool]) -> Relation:
    """The same change, with each table read as few times as can be told."""
    return read_together(from_one_read(change, worth), worth)


def _asked(rel: Join) -> Asked | None:
    found = _read(rel.left) if rel.kind == "semi" else None
    if found is None:
        return None
    scan, own, conditions = found
    renamed = _renamed(own)
    theirs = {f.name for f in rel.right.schema}
    terms = conjuncts(rel.condition)
    if not all(_compares(term, own, theirs) for term in terms):
        return None
    return Asked(scan, rel.right, frozenset(substitute(term, renamed) for term in terms), conditions)


def _compares(term: Scalar, own: Mapping[str, str], theirs: set[str]) -> bool:
    match term:
        case Call("=" | "<=>", (Column(one), Column(other))):
            return (one in own and other in theirs) or (other in own and one in theirs)
        case _:
            return False


def _read(rel: Relation) -> tuple[Scan, dict[str, str], frozenset[Scalar]] | None:
    """The table that rows are made of one by one, which columns are its own, and what is asked of these."""
    match rel:
        case Scan(columns=read):
            return rel, {c.name: c.source for c in read}, frozenset()
        case Filter(input, predicate) if (found := _read(input)) is not None:
            scan, own, conditions = found
            renamed = _renamed(own)
            told = (t for t in conjuncts(predicate) if columns(t) <= own.keys() and not subqueries(t))
            return scan, own, conditions.union(substitute(term, renamed) for term in told)
        case Project(input, items) if (found := _read(input)) is not None:
            scan, own, conditions = found
            shown = {i.name: own[i.value.name] for i in items if isinstance(i.value, Column) and i.value.name in own}
            return scan, shown, conditions
        case _:
            return None


def _renamed(own: Mapping[str, str]) -> dict[str, Scalar]:
    return {name: Column(_NAMED + source) for name, source in own.items()}


def _all_of(asked: list[Asked]) -> Relation:
    """R ⋉ T, with all that any of them reads, and what all of them ask for."""
    first = asked[0]
    read = {c.source: ScanColumn(c.source, _NAMED + c.source, c.type) for one in asked for c in one.scan.columns}
    rows: Relation = Scan(first.scan.table, tuple(read.values()), first.scan.state)
    common = frozenset.intersection(*(one.conditions for one in asked))
    if common:
        rows = Filter(rows, conjunction(sorted(common, key=str)))
    return Join(rows, first.keys, "semi", conjunction(sorted(first.matches, key=str)))


def _from(rel: Relation, rows: Relation) -> Relation:
    """X made of these rows instead of all that its table has."""
    match rel:
        case Scan(columns=read):
            return Project(rows, tuple(Item(c.name, Column(_NAMED + c.source), c.type) for c in read))
        case _:
            return with_inputs(rel, tuple(_from(below, rows) for below in inputs(rel)))
