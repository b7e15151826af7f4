"""What identifies a row, and which rows must be there because others are: keys and foreign keys.

Declared ones are believed, implied ones follow from the operators. NULL counts as a value like any other: no two
rows have the same values in a key, NULLs included.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import assert_never

from viewkeeper.algebra.identity import is_comparable
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Generate,
    Item,
    Join,
    Pivot,
    Project,
    Relation,
    Scan,
    SetOperation,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    names,
)
from viewkeeper.algebra.scalars import Call, Column, Scalar, conjuncts
from viewkeeper.algebra.types import UNKNOWN

Key = frozenset[str]
Keys = frozenset[Key]

# Generators that number the rows they make of one row, in their first column.
_NUMBERED = frozenset({"POSEXPLODE", "POSEXPLODE_OUTER", "RANGE"})


@dataclass(frozen=True)
class ForeignKey:
    """Each row of `child` with no NULL in `columns` has a row of `parent` with these values in its key `key`."""

    child: str
    columns: tuple[str, ...]
    parent: str
    key: tuple[str, ...]

    def __str__(self) -> str:
        child, parent = ", ".join(self.columns), ", ".join(self.key)
        return f"FOREIGN KEY {self.child} ({child}) REFERENCES {self.parent} ({parent})"


@dataclass(frozen=True)
class Declared:
    """What is declared of tables and holds before and after a change; columns by their lower-case names.

    A foreign key refers to a key of its parent that is declared too. That a table is small beside others is not
    declared, but as well known without a look at its rows.
    """

    keys: Mapping[str, Keys] = field(default_factory=dict)
    references: tuple[ForeignKey, ...] = ()
    small: frozenset[str] = frozenset()


NOTHING = Declared()


def keys(rel: Relation, declared: Declared) -> Keys:
    """Sets of columns of which no two rows have the same values; none that contains another."""
    match rel:
        case Scan(table, columns):
            shown = {c.source.lower(): c.name for c in reversed(columns)}
            known = declared.keys.get(table, frozenset())
            return frozenset(frozenset(shown[c] for c in key) for key in known if key <= shown.keys())
        case Changes() | Union() | Pivot() | Unpivot():
            return frozenset()
        case Values(_, rows):
            return frozenset({frozenset[str]()}) if len(rows) <= 1 else frozenset()
        case Filter(input) | Window(input) | Top(input):
            return keys(input, declared)
        case Project(input, items):
            return _projected(keys(input, declared), items)
        case Join():
            return _joined(rel, declared)
        case Aggregate(input, group_by, _, sets):
            grouped = frozenset(group_by)
            within = (key for key in keys(input, declared) if key <= grouped)
            return frozenset() if sets else _least((grouped, *within))
        case Generate(input, generator, fields):
            numbered = isinstance(generator, Call) and generator.name in _NUMBERED
            return frozenset(key | {fields[0].name} for key in keys(input, declared) if numbered)
        case SetOperation(left, _, _, by_copies):
            return _least((*keys(left, declared), *(() if by_copies else (frozenset(names(rel)),))))
        case _:
            assert_never(rel)


def _projected(known: Keys, items: tuple[Item, ...]) -> Keys:
    """The keys of which every column is kept as it is, by its new name."""
    shown = {i.value.name: i.name for i in reversed(items) if isinstance(i.value, Column)}
    return frozenset(frozenset(shown[c] for c in key) for key in known if key <= shown.keys())


def _joined(rel: Join, declared: Declared) -> Keys:
    """L ⋈ R, L ⟕ R: a key of L and one of R together; one of L alone where each of its rows meets one of R at most.

    L ⋉ R, L ▷ R: those of L. L ⟗ R: none, as a padded row of each side may hold nothing but NULLs in them.
    """
    left, right = keys(rel.left, declared), keys(rel.right, declared)
    match rel.kind:
        case "semi" | "anti":
            return left
        case "full":
            return frozenset()
        case "inner" | "left":
            pairs = list(equal_columns(rel))
            alone = left if any(key <= {r for _, r in pairs} for key in right) else frozenset()
            if rel.kind == "inner" and any(key <= {ours for ours, _ in pairs} for key in left):
                alone |= right
            return _least((*alone, *(one | other for one, other in product(left, right))))
        case _:
            assert_never(rel.kind)


def equal_columns(rel: Join) -> Iterator[tuple[str, str]]:
    """The columns of the left and of the right side that the condition says are equal and not NULL."""
    return _compared_by(rel, "=")


def same_columns(rel: Join) -> Iterator[tuple[str, str]]:
    """Those that it says are equal, or both NULL."""
    return _compared_by(rel, "<=>")


def _compared_by(rel: Join, operator: str) -> Iterator[tuple[str, str]]:
    left, right = frozenset(names(rel.left)), frozenset(names(rel.right))
    for term in conjuncts(rel.condition):
        match term:
            case Call(name, (Column(a), Column(b))) if name == operator and a in left and b in right:
                yield a, b
            case Call(name, (Column(b), Column(a))) if name == operator and a in left and b in right:
                yield a, b
            case _:
                pass


def equal_columns_alike(rel: Join) -> Iterator[tuple[str, str]]:
    """Those of the same type: in a match the one has the value that the other has."""
    types = {f.name: f.type for side in (rel.left, rel.right) for f in side.schema}
    return ((ours, theirs) for ours, theirs in equal_columns(rel) if types[ours] == types[theirs] != UNKNOWN)


def _least(found: tuple[Key, ...]) -> Keys:
    return frozenset(key for key in found if not any(other < key for other in found))


# Where values come from

Leaf = Scan | Changes


@dataclass(frozen=True)
class Origin:
    """Columns of one leaf, by the names its table has for them."""

    leaf: Leaf
    columns: tuple[str, ...]


def origins(rel: Relation, columns: tuple[str, ...]) -> frozenset[Origin] | None:
    """The leaves that these columns come from: all of one row from one row of a leaf, or all NULL.

    None where any of them is computed.
    """
    match rel:
        case Scan(columns=stored) | Changes(columns=stored):
            by_name = {c.name: c.source.lower() for c in stored}
            known = all(c in by_name for c in columns)
            return frozenset({Origin(rel, tuple(by_name[c] for c in columns))}) if known else None
        case Values(_, rows):
            return None if rows else frozenset()
        case Filter(input) | Top(input) | Window(input) | Generate(input):
            return origins(input, columns) if set(columns) <= set(names(input)) else None
        case Project(input, items):
            values = {i.name: i.value for i in items}
            below = [v.name for c in columns if isinstance(v := values[c], Column)]
            return origins(input, tuple(below)) if len(below) == len(columns) else None
        case Join(left, right):
            side = next((s for s in (left, right) if set(columns) <= set(names(s))), None)
            return origins(side, columns) if side is not None else None
        case Union(inputs):
            found = [origins(i, columns) for i in inputs]
            return None if None in found else frozenset().union(*(f for f in found if f is not None))
        case Aggregate(input, group_by, _, sets):
            return origins(input, columns) if set(columns) <= set(group_by) and not sets else None
        case SetOperation() | Pivot() | Unpivot():
            return None
        case _:
            assert_never(rel)


@dataclass(frozen=True)
class Reference:
    """A foreign key found in a join: which columns of the side that is referred to hold its key."""

    foreign_key: ForeignKey
    columns: tuple[str, ...]


def referred(child: Relation, parent: Relation, condition: Scalar, declared: Declared) -> tuple[Reference, ...]:
    """The foreign keys by which every row of `child` that meets any of `parent` refers to a table in it.

    The compared columns have the same type: across types, one value may equal several.
    """
    pairs = list(equal_columns(Join(child, parent, "inner", condition)))
    found = []
    for foreign in declared.references:
        for chosen in product(pairs, repeat=len(foreign.columns)):
            ours, theirs = tuple(a for a, _ in chosen), tuple(b for _, b in chosen)
            if (
                _come_from(child, ours, foreign.child, foreign.columns)
                and _come_from(parent, theirs, foreign.parent, foreign.key)
                and _types(child, ours) == _types(parent, theirs)
                and all(map(is_comparable, _types(child, ours)))
            ):
                found.append(Reference(foreign, theirs))
    return tuple(found)


def _come_from(rel: Relation, columns: tuple[str, ...], table: str, stored: tuple[str, ...]) -> bool:
    found = origins(rel, columns)
    return bool(found) and all(o.leaf.table == table and o.columns == stored for o in found or ())


def _types(rel: Relation, columns: tuple[str, ...]) -> list[str]:
    types = {f.name: f.type for f in rel.schema}
    return [types[c] for c in columns]
