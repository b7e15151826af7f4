"""Whether two relations have the same rows, but for the names of columns and for columns that one of them lacks."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.relations import (
    Aggregate,
    Filter,
    Generate,
    Join,
    Measure,
    Ordering,
    Project,
    Relation,
    Scan,
    Top,
    Union,
    Values,
    Window,
    WindowColumn,
    names,
)
from viewkeeper.algebra.scalars import TRUE, Column, Scalar, conjuncts, own_columns, substitute

Renaming = Mapping[str, str]


@dataclass(frozen=True)
class Flat:
    """π_items σ_terms (leaf_0 × leaf_1 × …), where the column x of leaf_i is called `i.x`."""

    leaves: tuple[Relation, ...]
    terms: tuple[Scalar, ...]
    items: Mapping[str, Scalar]


def flat(rel: Relation) -> Flat:
    """A relation as a product of relations that are none, with conditions and columns above them."""
    match rel:
        case Filter(input, predicate):
            below = flat(input)
            return replace(below, terms=below.terms + _terms(predicate, below.items))
        case Project(input, items):
            below = flat(input)
            return replace(below, items={i.name: substitute(i.value, below.items) for i in items})
        case Join(Filter(left, predicate), _, "left" | "semi" | "anti"):
            return flat(Filter(replace(rel, left=left), predicate))
        case Join(left, right, "inner", condition):
            first = flat(left)
            second = _after(len(first.leaves), flat(right))
            columns = {**first.items, **second.items}
            terms = first.terms + second.terms + _terms(condition, columns)
            return Flat(first.leaves + second.leaves, terms, columns)
        case _:
            return Flat((rel,), (), {n: Column(f"0.{n}") for n in names(rel)})


def _terms(condition: Scalar, items: Mapping[str, Scalar]) -> tuple[Scalar, ...]:
    return tuple(substitute(t, items) for t in conjuncts(condition) if t != TRUE)


def _after(count: int, second: Flat) -> Flat:
    """The product with its relations numbered from `count` on."""
    by = {f"{i}.{n}": Column(f"{i + count}.{n}") for i, leaf in enumerate(second.leaves) for n in names(leaf)}
    items = {n: substitute(v, by) for n, v in second.items.items()}
    return Flat(second.leaves, tuple(substitute(t, by) for t in second.terms), items)


@dataclass(frozen=True)
class Signature:
    """What a measure computes, whatever its columns are called."""

    function: str
    args: tuple[Scalar, ...]
    distinct: bool
    where: Scalar | None
    order_by: tuple[tuple[Scalar, Ordering], ...]
    ignore_nulls: bool
    settled: bool


def signature(measure: Measure, items: Mapping[str, Scalar]) -> Signature:
    return Signature(
        measure.function,
        tuple(items[a] for a in measure.args),
        measure.distinct,
        items[measure.where] if measure.where else None,
        tuple((items[o.column], replace(o, column="")) for o in measure.order_by),
        measure.ignore_nulls,
        measure.settled,
    )


def same_rows(old: Relation, new: Relation) -> Renaming | None:
    """For each column of `new` the same column of `old`, if there is one; None where the rows may differ."""
    a, b = flat(old), flat(new)
    if a.leaves == (old,) and b.leaves == (new,):
        return _same_leaf(old, new)
    by = same_leaves(a, b)
    if by is None or {renamed(t, by) for t in b.terms} != set(a.terms):
        return None
    known = {value: name for name, value in a.items.items()}
    found = {n: value for n, v in b.items.items() if (value := renamed(v, by)) is not None}
    return {n: known[value] for n, value in found.items() if value in known}


def same_leaves(old: Flat, new: Flat) -> Renaming | None:
    """For the columns `i.x` of a product the same ones of another, if both are made of the same relations."""
    if len(old.leaves) != len(new.leaves):
        return None
    by: dict[str, str] = {}
    for i, (left, right) in enumerate(zip(old.leaves, new.leaves, strict=True)):
        columns = same_rows(left, right)
        if columns is None:
            return None
        by.update({f"{i}.{n}": f"{i}.{o}" for n, o in columns.items()})
    return by


def renamed(value: Scalar, by: Renaming) -> Scalar | None:
    """The expression over the other relation's columns, if it has all of them."""
    return substitute(value, {n: Column(o) for n, o in by.items()}) if own_columns(value) <= set(by) else None


def _same_leaf(old: Relation, new: Relation) -> Renaming | None:
    match old, new:
        case Scan(), Scan():
            return _same_scan(old, new)
        case Values(), Values():
            alike = old.rows == new.rows and [f.type for f in old.fields] == [f.type for f in new.fields]
            return dict(zip(names(new), names(old), strict=True)) if alike else None
        case Aggregate(), Aggregate():
            return _same_aggregate(old, new)
        case Window(), Window():
            return _same_window(old, new)
        case Top(), Top():
            below = same_rows(old.input, new.input)
            alike = below is not None and _order(new.order_by, below) == old.order_by
            return below if alike and (old.limit, old.offset) == (new.limit, new.offset) else None
        case Generate(), Generate():
            return _same_generate(old, new)
        case Join(), Join():
            return _same_join(old, new)
        case Union(), Union():
            return _same_union(old, new)
        case _:
            return None


def _same_scan(old: Scan, new: Scan) -> Renaming | None:
    if (old.table, old.state) != (new.table, new.state):
        return None
    known = {(c.source.lower(), c.type): c.name for c in old.columns}
    return {c.name: o for c in new.columns if (o := known.get((c.source.lower(), c.type))) is not None}


def _same_aggregate(old: Aggregate, new: Aggregate) -> Renaming | None:
    below = same_rows(old.input, new.input)
    if below is None or {below.get(k) for k in new.group_by} != set(old.group_by) or (old.sets or new.sets):
        return None
    known = {(signature(m, {a: Column(a) for a in m.reads}), m.type): m.name for m in old.measures}
    columns: dict[str, Scalar] = {n: Column(o) for n, o in below.items()}
    measures = {m.name: known.get((signature(m, columns), m.type)) for m in new.measures if m.reads <= set(below)}
    return {**{k: below[k] for k in new.group_by}, **{n: o for n, o in measures.items() if o is not None}}


def _same_window(old: Window, new: Window) -> Renaming | None:
    below = same_rows(old.input, new.input)
    if below is None or {below.get(p) for p in new.partition_by} != set(old.partition_by):
        return None
    if _order(new.order_by, below) != old.order_by:
        return None
    found = dict(below)
    for column in new.columns:
        args = tuple(renamed(a, below) for a in column.args)
        where = renamed(column.where, below) if column.where else None
        if None in args or (column.where and where is None):
            continue
        for known in old.columns:
            read = (args, where, _order(column.within, below))
            if read == (known.args, known.where, known.within) and _same_function(column, known):
                found[column.name] = known.name
    return found


def _same_function(new: WindowColumn, old: WindowColumn) -> bool:
    """Whether both are the same but for what they read, and for their names."""
    return replace(new, name=old.name, args=old.args, where=old.where, within=old.within) == old


def _same_generate(old: Generate, new: Generate) -> Renaming | None:
    below = same_rows(old.input, new.input)
    alike = old.outer == new.outer and [f.type for f in old.fields] == [f.type for f in new.fields]
    if below is None or not alike or renamed(new.generator, below) != old.generator:
        return None
    return {**below, **{n.name: o.name for n, o in zip(new.fields, old.fields, strict=True)}}


def _same_join(old: Join, new: Join) -> Renaming | None:
    left, right = same_rows(old.left, new.left), same_rows(old.right, new.right)
    if left is None or right is None or old.kind != new.kind:
        return None
    both = {**left, **right}
    if {renamed(t, both) for t in conjuncts(new.condition)} != set(conjuncts(old.condition)):
        return None
    return left if old.kind in ("semi", "anti") else both


def _same_union(old: Union, new: Union) -> Renaming | None:
    if len(old.inputs) != len(new.inputs):
        return None
    found = [same_rows(o, n) for o, n in zip(old.inputs, new.inputs, strict=True)]
    pairs = [set(f.items()) for f in found if f is not None]
    return dict(set.intersection(*pairs)) if len(pairs) == len(found) else None


def _order(order_by: tuple[Ordering, ...], by: Renaming) -> tuple[Ordering, ...]:
    return tuple(replace(o, column=by.get(o.column, "")) for o in order_by)
