"""How a view is kept: what its backing table holds, and what readers see of it.

An aggregate on top is kept as its *state*: the group's row count, sums and counts behind an average, … in hidden
columns. Whatever stands above it (expressions, HAVING) is computed when the view is read. Of a LIMIT on top more rows
are kept than it shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.identity import is_comparable, why_no_identity
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import collapse, sunk
from viewkeeper.algebra.orders import is_settled, only_looks_back
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Item,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Top,
    Window,
    WindowColumn,
    names,
    with_inputs,
)
from viewkeeper.algebra.scalars import Column, Scalar, substitute
from viewkeeper.algebra.settled import settled, why_not_settled
from viewkeeper.changes.kept import Kept, KeptBag, KeptGroups, KeptTop
from viewkeeper.changes.order import connected
from viewkeeper.changes.states import StateBuilder
from viewkeeper.errors import Position

_RESERVE = 100  # at least so many more rows than a LIMIT asks for
_HIDDEN = "__vk_h_"  # begins the name of a column that is kept but not shown

# What may stand above a kept aggregate, to be computed when the view is read.
Above = Project | Filter | Top | Window


@dataclass(frozen=True)
class StoredForm:
    """What the backing table holds, and what readers see of it as algebra over a scan of that table."""

    kept: Kept
    public: Relation


def stored_form(definition: Relation, backing: str) -> StoredForm:
    """How to keep a view of this definition in the table `backing`."""
    above, core = _above(definition)
    if isinstance(core, Aggregate) and all(is_stored(f.type) for f in core.schema):
        return _groups(core, above, backing)
    at, top = next(((n, o) for n, o in enumerate(above) if isinstance(o, Top)), (0, None))
    if top is not None and top.limit is not None and all(is_comparable(f.type) for f in top.input.schema):
        return _first_rows(top, max(1, top.limit + top.offset), above[:at], backing)
    stored = storable_names(names(definition))
    renamed = tuple(Item(s, Column(f.name), f.type) for s, f in zip(stored, definition.schema, strict=True))
    columns = tuple(ScanColumn(s, f.name, f.type) for s, f in zip(stored, definition.schema, strict=True))
    return StoredForm(KeptBag(_tidy(Project(definition, renamed))), Scan(backing, columns))


def is_stored(type_: str) -> bool:
    """Whether a Delta table can have a column of the type."""
    return "interval" not in type_.lower()


def _above(definition: Relation) -> tuple[list[Above], Relation]:
    """What is computed when the view is read, from the top down, and what is below it.

    Windows are only if one of them is of all groups, so that any change may change all its rows.
    """
    above: list[Above] = []
    core = definition
    while isinstance(core, Above) and not (isinstance(core, Filter) and reads_clock(core.predicate)):
        above.append(core)
        core = core.input
    if isinstance(core, Aggregate) and any(map(_of_all, above)):
        return above, core
    at = next((n for n, operator in enumerate(above) if isinstance(operator, Window)), len(above))
    return above[:at], above[at] if at < len(above) else core


def _of_all(rel: Above) -> bool:
    """Whether a row's values depend on all other rows."""
    return isinstance(rel, Window) and not rel.partition_by and not only_looks_back(rel)


def _first_rows(top: Top, wanted: int, above: list[Above], backing: str) -> StoredForm:
    shown = _shown_names(top.input, above)
    renamed = tuple(Item(shown[f.name], Column(f.name), f.type) for f in top.input.schema)
    order = tuple(replace(o, column=shown[o.column]) for o in top.order_by)
    kept = KeptTop(_tidy(Project(top.input, renamed)), order, wanted, max(wanted, _RESERVE))
    columns = tuple(ScanColumn(shown[f.name], f.name, f.type) for f in top.input.schema)
    return StoredForm(kept, _under(above, replace(top, input=Scan(backing, columns))))


def _tidy(rel: Relation) -> Relation:
    """With every condition where it leaves least: parts of a change may be computed before what is above them."""
    return settled(sunk(connected(collapse(rel))))


def _under(above: list[Above], public: Relation) -> Relation:
    for operator in reversed(above):
        public = with_inputs(operator, (public,))
    return collapse(public)


Places = Mapping[str, Position]


def why_not_maintainable(form: StoredForm, places: Places) -> Reason | None:
    """What in the kept form keeps changes from being applied exactly, or None; `places` of its columns in the text."""
    kept = form.kept
    inner = kept.content if isinstance(kept, KeptBag) else kept.input
    for field in () if isinstance(kept, KeptGroups) else kept.content.schema:
        if (why := why_no_identity(field.type)) is not None:
            return _of_column(field, why, places)
    keys = _why_not_keys(kept.content, kept.key, places) if isinstance(kept, KeptGroups) else None
    inside = (reason for node in walk(inner) if (reason := _why_not_inside(node, places)) is not None)
    return keys or next(inside, None)


def _why_not_inside(node: object, places: Places) -> Reason | None:
    """Why the old rows of an operator could not be found again."""
    match node:
        case Aggregate(group_by=keys):
            return _why_not_keys(node, keys, places) or _why_not_measured(node, places)
        case Window(partition_by=keys, columns=columns):
            over = (reason for c in columns if (reason := _why_not_over(c, places)) is not None)
            return _why_not_keys(node, keys, places) or next(over, None)
        case _:
            return None


def _why_not_keys(rel: Relation, keys: tuple[str, ...], places: Places) -> Reason | None:
    for field in rel.schema:
        if field.name in keys and not is_comparable(field.type):
            return _of_column(field, "values that are equal without being the same make one group", places)
    return None


def _of_column(field: Field, why: str, places: Places) -> Reason:
    base = field.name.removeprefix(_HIDDEN)
    place = next((places[n] for n in (field.name, base, f"__vk_{base}") if n in places), None)
    return Reason(f"column {base} of type {field.type}", why, place)


def _why_not_measured(rel: Aggregate, places: Places) -> Reason | None:
    found = why_not_settled(rel)
    if found is None:
        return None
    measure, why = found
    return Reason(f"{measure.function}() inside the view", why, places.get(measure.name))


def _why_not_over(column: WindowColumn, places: Places) -> Reason | None:
    if is_settled(column):
        return None
    return Reason(
        f"{column.function.lower()}() OVER (… {column.frame})",
        "it may answer otherwise in another computation, so the old rows could not be found again",
        places.get(column.name),
    )


def _scan(backing: str, rel: Relation) -> Scan:
    return Scan(backing, tuple(ScanColumn(f.name, f.name, f.type) for f in rel.schema))


def _groups(aggregate: Aggregate, above: list[Above], backing: str) -> StoredForm:
    shown = _shown_names(aggregate, above)
    builder = StateBuilder(aggregate, shown)
    values: dict[str, Scalar] = {k: Column(shown[k]) for k in aggregate.group_by}
    for measure in aggregate.measures:
        values[measure.name] = builder.add(measure)
    kept = builder.kept()
    kept = replace(kept, input=_tidy(kept.input))
    types = {f.name: f.type for f in aggregate.schema}
    public: Relation = Project(
        _scan(backing, kept.content), tuple(Item(n, values[n], types[n]) for n in names(aggregate))
    )
    return StoredForm(kept, _filters_first(_under(above, public)))


def _filters_first(public: Relation) -> Relation:
    """π(σ(π(scan))) as π(σ(scan)): the form every reader of a view knows."""
    match public:
        case Project(Filter(Project(scan, inner), predicate), items):
            by = {i.name: i.value for i in inner}
            merged = tuple(Item(i.name, substitute(i.value, by), i.type) for i in items)
            return Project(Filter(scan, substitute(predicate, by)), merged)
        case Filter(Project(scan, inner), predicate):
            by = {i.name: i.value for i in inner}
            return Project(Filter(scan, substitute(predicate, by)), inner)
        case Project(Project(scan, inner), items):
            by = {i.name: i.value for i in inner}
            return Project(scan, tuple(Item(i.name, substitute(i.value, by), i.type) for i in items))
        case _:
            return public


def _shown_names(core: Relation, above: list[Above]) -> dict[str, str]:
    """The name each column of what is kept has in the view, or a hidden one if it is not shown as it is."""
    current = {n: n for n in names(core)}
    for operator in reversed(above):
        if isinstance(operator, Project):
            renamed = {i.value.name: i.name for i in reversed(operator.items) if isinstance(i.value, Column)}
            current = {n: renamed[c] for n, c in current.items() if c in renamed}
    hidden = {n: f"{_HIDDEN}{n.removeprefix('__vk_')}" for n in names(core)}
    shown = tuple(current.get(n, hidden[n]) for n in names(core))
    return dict(zip(names(core), storable_names(shown), strict=True))


_NOT_STORABLE = re.compile(r"[ ,;{}()\n\t=.`]")


def storable_names(names_: tuple[str, ...]) -> tuple[str, ...]:
    """Names a Delta table can have for columns of these names, each once."""
    stored: list[str] = []
    for name in names_:
        base = _NOT_STORABLE.sub("_", name) or "_"
        candidate, count = base, 1
        while candidate.lower() in (s.lower() for s in stored):
            count += 1
            candidate = f"{base}_{count}"
        stored.append(candidate)
    return tuple(stored)
