"""The state of an aggregate: what is kept of a group so that a change can be merged into it, and what readers see.

An average is kept as a sum and a count, a sum of floating-point numbers with a bound on its error.
"""

from __future__ import annotations

from dataclasses import replace

from viewkeeper.algebra.aggregates import EXTREMES, why_not_additive
from viewkeeper.algebra.relations import Aggregate, Item, Measure, Project
from viewkeeper.algebra.scalars import NULL, ZERO, Call, Cast, Column, Literal, Scalar, call
from viewkeeper.algebra.settled import settled_pick
from viewkeeper.algebra.sketches import SKETCHES
from viewkeeper.algebra.types import BIGINT, FLOATING, INTEGRAL, decimal, decimal_parts
from viewkeeper.changes.drift import DOUBLE, none_of
from viewkeeper.changes.kept import COUNT, How, KeptGroups, StateColumn

WIDE_INTEGER = "decimal(19,0)"  # as which an average adds up integers
_COUNT_DIGITS = 13  # a group of ten million million rows is past anything


class StateBuilder:
    """Collects the state columns of an aggregate; equal ones are kept once."""

    def __init__(self, aggregate: Aggregate, shown: dict[str, str]) -> None:
        self.aggregate = aggregate
        self.shown = shown
        self.types = {f.name: f.type for f in aggregate.input.schema}
        self.items = [Item(shown[k], Column(k), self.types[k]) for k in aggregate.group_by]
        self.states = [StateColumn(Measure(COUNT, "count", (), BIGINT), "add")]

    def kept(self) -> KeptGroups:
        rows = Project(self.aggregate.input, tuple(self.items))
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
        merge: How = "fresh"
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
