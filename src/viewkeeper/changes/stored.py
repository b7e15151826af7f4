"""How a view is kept: what its backing table holds, and what readers see of it.

An aggregate on top is kept as its *state*: the group's row count, sums and counts behind an average, … in hidden
columns. Whatever stands above it (expressions, HAVING) is computed when the view is read. Of a LIMIT on top more rows
are kept than it shows.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal as OneOf

from viewkeeper.algebra.aggregates import EXTREMES, why_not_additive
from viewkeeper.algebra.clock import reads_clock
from viewkeeper.algebra.identity import is_comparable, why_no_identity
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import collapse, constants, sunk
from viewkeeper.algebra.orders import is_settled, only_looks_back
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Item,
    Measure,
    Ordering,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Top,
    Window,
    WindowColumn,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import NULL, ZERO, Call, Cast, Column, Literal, Scalar, call, substitute
from viewkeeper.algebra.settled import settled, settled_pick, why_not_settled
from viewkeeper.algebra.sketches import SKETCHES
from viewkeeper.algebra.types import (
    BIGINT,
    BOOLEAN,
    FLOATING,
    INTEGRAL,
    decimal,
    decimal_parts,
)
from viewkeeper.changes.drift import DOUBLE, none_of
from viewkeeper.changes.order import connected
from viewkeeper.errors import Position

COUNT = "__vk_count"
WHOLE = "__vk_whole"
_RESERVE = 100  # at least so many more rows than a LIMIT asks for
WIDE_INTEGER = "decimal(19,0)"  # as which an average adds up integers
_HIDDEN = "__vk_h_"  # begins the name of a column that is kept but not shown
_COUNT_DIGITS = 13  # a group of ten million million rows is past anything

Merge = OneOf["add", "least", "greatest", "sketch", "fresh", "drift"]


@dataclass(frozen=True)
class StateColumn:
    """One maintained column of a kept aggregate: its measure, and how a change is merged into it.

    `counted_by` names the column that counts the values behind a sum, which is NULL where that is 0, and `drift_of`
    the sum of floating-point numbers of which this column bounds the error.
    """

    measure: Measure
    merge: Merge
    why_fresh: str | None = None
    counted_by: str | None = None
    drift_of: str | None = None

    @property
    def name(self) -> str:
        return self.measure.name


@dataclass(frozen=True)
class KeptGroups:
    """An aggregate kept as one row per group, found by its `key`."""

    input: Relation
    key: tuple[str, ...]
    states: tuple[StateColumn, ...]

    @property
    def content(self) -> Relation:
        return Aggregate(self.input, self.key, tuple(s.measure for s in self.states))

    @property
    def constants(self) -> Mapping[str, Scalar]:
        """The columns of the input that are the same in all rows, such as the settings of an aggregate."""
        return constants(self.input)

    @property
    def drifts(self) -> tuple[StateColumn, ...]:
        """The bounds on the error of sums of floating-point numbers."""
        return tuple(s for s in self.states if s.drift_of is not None)


@dataclass(frozen=True)
class KeptBag:
    """Rows kept as they are, duplicates as so many rows."""

    content: Relation


@dataclass(frozen=True)
class KeptTop:
    """The first rows of `input`, more than the `wanted` ones, so that deleted rows are made up for by the next.

    `__vk_whole` says in every row whether there are no others than those kept; if none are kept, there are none.
    """

    input: Relation
    order_by: tuple[Ordering, ...]
    wanted: int
    reserve: int

    @property
    def room(self) -> int:
        return self.wanted + self.reserve

    @property
    def content(self) -> Relation:
        first = Top(self.input, self.order_by, self.room)
        counted = Window(first, (), (), (WindowColumn(COUNT, "COUNT", (), BIGINT),))
        whole = Item(WHOLE, call("<", Column(COUNT), Literal(str(self.room))), BOOLEAN)
        return Project(counted, (*pass_through(self.input.schema), whole))


Kept = KeptGroups | KeptBag | KeptTop


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
    builder = _StateBuilder(aggregate, shown)
    values: dict[str, Scalar] = {k: Column(shown[k]) for k in aggregate.group_by}
    for measure in aggregate.measures:
        values[measure.name] = builder.add(measure)
    kept = builder.kept()
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


class _StateBuilder:
    """Collects the state columns of an aggregate; equal ones are kept once."""

    def __init__(self, aggregate: Aggregate, shown: dict[str, str]) -> None:
        self.aggregate = aggregate
        self.shown = shown
        self.types = {f.name: f.type for f in aggregate.input.schema}
        self.items = [Item(shown[k], Column(k), self.types[k]) for k in aggregate.group_by]
        self.states = [StateColumn(Measure(COUNT, "count", (), BIGINT), "add")]

    def kept(self) -> KeptGroups:
        rows = _tidy(Project(self.aggregate.input, tuple(self.items)))
        return KeptGroups(rows, tuple(self.shown[k] for k in self.aggregate.group_by), tuple(self.states))

    def add(self, measure: Measure) -> Scalar:
        """Keep what the measure needs; returns its value over the kept columns."""
        name = self.shown[measure.name]
        argument = self.types[measure.args[0]] if measure.args else None
        why = why_not_additive(measure.function, argument, measure.distinct)
        if why is None and measure.function != "count" and argument in FLOATING:
            return self._floating(measure)
        if why is None and measure.function == "avg":
            return self._average(measure, argument or BIGINT)
        if why is None and measure.function == "sum":
            counter = self._count_behind(measure)
            self.states.append(StateColumn(self._measure(measure, name), "add", counted_by=counter))
            return Column(name)
        if why is None:
            self.states.append(StateColumn(self._measure(measure, name), "add"))
            return Column(name)
        merge: Merge = "fresh"
        if measure.function in EXTREMES:
            merge = "least" if measure.function == "min" else "greatest"
        elif measure.function in SKETCHES and not measure.distinct:
            merge = "sketch"
        settled_one = settled_pick(self._measure(measure, name), {i.name: i.type for i in self.items})
        self.states.append(StateColumn(settled_one, merge, why_fresh=why))
        return Column(name)

    def _average(self, measure: Measure, argument: str) -> Scalar:
        counter = self._count_behind(measure)
        column = Column(measure.args[0])
        if argument in INTEGRAL:
            wide: Scalar = Cast(column, WIDE_INTEGER)
            wide_type = WIDE_INTEGER
        else:
            wide, wide_type = column, argument
        parts = decimal_parts(wide_type) or (19, 0)
        total = Measure(
            f"__vk_sum_{self.shown[measure.name].removeprefix('__vk_')}",
            "sum",
            (self._arg(wide, wide_type),),
            decimal(parts[0] + 10, parts[1]),
            where=self._where(measure),
        )
        self.states.append(StateColumn(total, "add", counted_by=counter))
        return average(Column(total.name), Column(counter), argument, measure.type)

    def _floating(self, measure: Measure) -> Scalar:
        """A sum or an average of floating-point numbers: their sum, how far it may be off, and how many they are."""
        name, column, where = self.shown[measure.name], Column(measure.args[0]), self._where(measure)
        bare = name.removeprefix("__vk_")
        average_ = measure.function == "avg"
        counter = self._count_behind(measure)
        arg = self._arg(column, self.types[column.name])
        total = Measure(f"__vk_sum_{bare}" if average_ else name, "sum", (arg,), DOUBLE, where=where)
        drift = Measure(f"__vk_drift_{bare}", "max", (self._arg(none_of(column), DOUBLE),), DOUBLE, where=where)
        self.states.append(StateColumn(total, "add", counted_by=counter))
        self.states.append(StateColumn(drift, "drift", counted_by=counter, drift_of=total.name))
        if not average_:
            return Column(name)
        quotient = call("/", Column(total.name), Cast(Column(counter), DOUBLE))
        return call("IF", call("=", Column(counter), ZERO), NULL, quotient)

    def _count_behind(self, measure: Measure) -> str:
        """The column that counts the non-NULL values of a measure's argument."""
        arg, where = self._arg(Column(measure.args[0]), self.types[measure.args[0]]), self._where(measure)
        for state in self.states:
            m = state.measure
            if m.function == "count" and m.args == (arg,) and m.where == where and not m.distinct:
                return m.name
        counter = Measure(
            f"__vk_n_{self.shown[measure.name].removeprefix('__vk_')}", "count", (arg,), BIGINT, where=where
        )
        self.states.append(StateColumn(counter, "add"))
        return counter.name

    def _measure(self, measure: Measure, name: str) -> Measure:
        args = tuple(self._arg(Column(a), self.types[a]) for a in measure.args)
        order = tuple(replace(o, column=self._arg(Column(o.column), self.types[o.column])) for o in measure.order_by)
        return replace(measure, name=name, args=args, where=self._where(measure), order_by=order)

    def _where(self, measure: Measure) -> str | None:
        return self._arg(Column(measure.where), "boolean") if measure.where else None

    def _arg(self, value: Scalar, type_: str) -> str:
        for item in self.items[len(self.aggregate.group_by) :]:
            if item.value == value:
                return item.name
        name = f"__vk_arg_{len(self.items) - len(self.aggregate.group_by) + 1}"
        self.items.append(Item(name, value, type_))
        return name


def average(total: Scalar, count: Scalar, argument: str, result: str) -> Scalar:
    """Spark's avg from its sum and count, to the last digit.

    Of integers: the quotient of two doubles. Of decimals: Spark rounds the exact quotient once, half away from
    zero; SQL division rounds to its own scale first, so a quotient just below a half may be rounded up. The
    remainder shows it: it must not be larger than half a unit of the last place.
    """
    parts = decimal_parts(result)
    if argument in INTEGRAL or parts is None:
        quotient: Scalar = call("/", Cast(total, "double"), Cast(count, "double"))
        return call("IF", call("=", count, ZERO), NULL, quotient)
    scale = parts[1]
    digits = Cast(count, decimal(_COUNT_DIGITS, 0))
    rounded = Cast(call("/", total, call("NULLIF", digits, ZERO)), result)
    unit = Cast(Literal("'0." + "0" * (scale - 1) + "1'"), decimal(scale + 1, scale))
    rest = call("-", total, call("*", rounded, digits))
    size: Call = call("ABS", rest)
    off = call(">", call("+", size, size), call("*", digits, unit))
    step = call("IF", call(">", rest, ZERO), call("+", rounded, unit), call("-", rounded, unit))
    return call("IF", off, Cast(step, result), rounded)


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
