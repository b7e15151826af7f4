"""The view's own rows as they were before the change, where they tell what its tables would be read for.

Of an outer join every row is in the view, so a padded row in it is one that had no match. And where the view shows the
key of a table, the rows that were made of a row of that table are those with its key: rows go by key, or change in
place, without a look at the tables that they were joined with.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.conditions import present_if_true
from viewkeeper.algebra.identity import is_comparable
from viewkeeper.algebra.keys import Declared
from viewkeeper.algebra.relations import (
    WEIGHT,
    WEIGHT_FIELD,
    Changes,
    Filter,
    Generate,
    Item,
    Join,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Schema,
    Window,
    inputs,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import NULL, ZERO, Cast, Column, Scalar, call, columns, conjunction, same, substitute
from viewkeeper.changes.groups import affected_keys, restrict
from viewkeeper.changes.weights import negative, net, positive

OWN = "__vk_own"  # the view's table as it was, by the name that it has during a refresh
ShownColumns = Mapping[str, str]  # columns of a relation inside a view, and the names that the view has for them

_SHOWN = "__vk_shown_"
_MOVED = "__vk_moved_"
_OTHER = "__vk_other"  # any value that does not come from the traced table


def own_rows(schema: Schema) -> Scan:
    return Scan(OWN, tuple(ScanColumn(f.name, f.name, f.type) for f in schema))


# Rows without a match


def shown_joins(content: Relation) -> dict[Join, ShownColumns]:
    """The outer joins of which every row is in the view, and by which names it shows their columns."""
    return dict(_shown(content, {name: name for name in names(content)}))


def _shown(rel: Relation, shown: ShownColumns) -> Iterator[tuple[Join, ShownColumns]]:
    match rel:
        case Project(input, items):
            below = {i.value.name: shown[i.name] for i in items if isinstance(i.value, Column) and i.name in shown}
            yield from _shown(input, below)
        case Join(left, right, "left" | "full" as kind):
            yield rel, {c: view for c, view in shown.items() if c in names(rel)}
            yield from _shown(left, shown)
            if kind == "full":
                yield from _shown(right, shown)
        case Window(input) | Generate(input, outer=True):
            yield from _shown(input, shown)
        case _:
            pass


@dataclass(frozen=True)
class Unmatched:
    """Rows of the view that show a row of one side of an outer join without a match, and how to find that row."""

    relation: Relation
    matches: Scalar


def unmatched(left: Relation, right: Relation, condition: Scalar, shown: ShownColumns) -> Unmatched | None:
    """σ_{r IS NULL ∧ l IS NOT NULL} V_old, for columns r of R and l of L that are not NULL in any match.

    None if the view lacks such a column, or one of L that the condition looks at.
    """
    present = present_if_true(condition) & shown.keys()
    theirs = sorted(present & set(names(right)))
    looked = {f.name: f.type for f in left.schema if f.name in columns(condition)}
    if not theirs or not present & looked.keys() or not looked.keys() <= shown.keys():
        return None
    if not all(map(is_comparable, looked.values())):
        return None
    types = {f.name: f.type for f in (*left.schema, *right.schema)}
    wanted = (*looked, theirs[0])
    rows = Scan(OWN, tuple(ScanColumn(shown[c], _SHOWN + c, types[c]) for c in wanted))
    padded = [call("IS NULL", Column(_SHOWN + theirs[0]))]
    met = [call("IS NOT NULL", Column(_SHOWN + c)) for c in looked if c in present]
    return Unmatched(
        Filter(rows, conjunction([*padded, *met])),
        conjunction([same(Column(c), Column(_SHOWN + c)) for c in looked]),
    )


# Rows by the key of a table


@dataclass(frozen=True)
class _Traced:
    """A relation each of whose rows is made of one row of a table.

    values   every column, as an expression over the columns of the table's scan and _OTHER
    looked   the columns of the scan that decide which rows there are
    """

    scan: Scan
    values: Mapping[str, Scalar]
    looked: frozenset[str] = frozenset()

    def looking(self, condition: Scalar, beside: Relation | None = None) -> _Traced:
        """With a condition looked at, over these columns and those of a relation beside."""
        others = {} if beside is None else dict.fromkeys(names(beside), Column(_OTHER))
        read = columns(substitute(condition, {**others, **self.values})) - {_OTHER}
        return replace(self, looked=self.looked | read)

    def beside(self, *others: str) -> _Traced:
        return replace(self, values={**dict.fromkeys(others, Column(_OTHER)), **self.values})


def _traced(rel: Relation, table: str) -> _Traced | None:
    """Where each row comes from, None if not each from one row of the table."""
    match rel:
        case Scan(name) if name == table:
            return _Traced(rel, {c: Column(c) for c in names(rel)})
        case Filter(input, predicate) if not reads_clock(predicate):
            below = _traced(input, table)
            return below.looking(predicate) if below else None
        case Project(input, items):
            below = _traced(input, table)
            return replace(below, values={i.name: substitute(i.value, below.values) for i in items}) if below else None
        case Generate(input, generator, fields):
            below = _traced(input, table)
            return below.looking(generator).beside(*(f.name for f in fields)) if below else None
        case Join(left, right, kind, condition):
            side, other = (right, left) if kind == "inner" and _reads(right, table) else (left, right)
            below = _traced(side, table) if kind != "full" and not _reads(other, table) else None
            if below is None:
                return None
            looked = below.looking(condition, other)
            return looked if kind in ("semi", "anti") else looked.beside(*names(other))
        case _:
            return None


def _reads(rel: Relation, table: str) -> bool:
    return any(_reads(i, table) for i in inputs(rel)) or (isinstance(rel, Scan) and rel.table == table)


@dataclass(frozen=True)
class ByKey:
    """How the rows of a view follow the rows of one table that they were made of.

    `against` is empty if no key of the table came, and none that stayed changed what decides which rows there are.
    """

    against: Relation
    change: Relation


def rows_by_key(content: Relation, table: str, declared: Declared) -> ByKey | None:
    """δV = π_{weight; V where it is −1, as R makes it where it is +1}(V_old ⋈ δR), by the key of R, which V shows.

    No other table is read.
    """
    found = _traced(content, table)
    key = _shown_key(found, declared) if found else None
    if found is None or key is None:
        return None
    mixed = [columns(v) - {_OTHER} for v in found.values.values() if _OTHER in columns(v)]
    looked = found.looked.union(key.values(), *mixed)
    renamed = {c: Column(_MOVED + c) for c in names(found.scan)}
    moved = Project(
        net(Changes(table, found.scan.columns)),
        (*(Item(_MOVED + f.name, Column(f.name), f.type) for f in found.scan.schema), *pass_through((WEIGHT_FIELD,))),
    )
    on_key = conjunction([same(Column(shown), renamed[own]) for shown, own in key.items()])
    goes = call("<", Column(WEIGHT), ZERO)

    def value(column: str) -> Scalar:
        made = found.values[column]
        return (
            Column(column) if _OTHER in columns(made) else call("IF", goes, Column(column), substitute(made, renamed))
        )

    items = tuple(Item(f.name, value(f.name), f.type) for f in content.schema)
    rows = Join(own_rows(content.schema), moved, "inner", on_key)
    change = net(Project(rows, (*items, *pass_through((WEIGHT_FIELD,)))))
    return ByKey(_came_with(table, found.scan, looked), change)


def groups_by_key(
    input: Relation, key: tuple[str, ...], states: Schema, table: str, declared: Declared
) -> ByKey | None:
    """□V = V_old ⋉ δ⁻R, by the key of R, which is part of the group's: all its groups go."""
    found = _traced(input, table)
    if found is None:
        return None
    shown = _shown_key(replace(found, values={k: found.values[k] for k in key}), declared)
    if shown is None:
        return None
    view = own_rows(tuple(f for f in input.schema if f.name in key))
    went = _by_view_names(negative(net(Changes(table, found.scan.columns))), shown)
    gone = restrict(view, affected_keys(went, tuple(shown)))
    types = {f.name: f.type for f in input.schema}
    keys = tuple(Item(k, Column(k), types[k]) for k in key)
    nothing = tuple(Item(f.name, Cast(NULL, f.type), f.type) for f in states)
    return ByKey(_came_with(table, found.scan, frozenset(names(found.scan))), Project(gone, (*keys, *nothing)))


def _shown_key(found: _Traced, declared: Declared) -> dict[str, str] | None:
    """The columns of the view that show the shortest declared key of the table, each with the scan's name of it."""
    sources = {c.source.lower(): c for c in found.scan.columns}
    shown = {v.name: name for name, v in found.values.items() if isinstance(v, Column)}
    usable = [
        {shown[sources[c].name]: sources[c].name for c in sorted(key)}
        for key in declared.keys.get(found.scan.table, ())
        if key and all(c in sources and sources[c].name in shown and is_comparable(sources[c].type) for c in key)
    ]
    return min(usable, key=lambda k: (len(k), sorted(k)), default=None)


def _by_view_names(change: Relation, key: Mapping[str, str]) -> Relation:
    types = {f.name: f.type for f in change.schema}
    return Project(change, tuple(Item(shown, Column(own), types[own]) for shown, own in key.items()))


def _came_with(table: str, scan: Scan, looked: frozenset[str]) -> Relation:
    """δ⁺ of these columns alone: keys that came, or that stayed with another value in one of them."""
    return positive(net(Changes(table, tuple(c for c in scan.columns if c.name in looked))))
