"""Aggregates that give the same answer in every computation.

Old rows are found again by computing them a second time. A floating-point sum depends on the order of its rows in the
last digits, `first`, `collect_list` or a tie in `max_by` on more than that. Inside a view such a measure is
*settled*: computed in an order of its own, which is one of the answers that the definition allows.

    γ_G f(x)            = γ_G max(ω_{G, in the order of x} f(x))     floating-point and approximate f
    γ_G first(x)        = γ_G min(x)                                 any value will do
    γ_G max_by(x, y)    = γ_G max((y, x)).x
    γ_G max_by(x, y, k) = γ_G max_by(x, (y, x), k)
    γ_G collect_list(x) = sort(γ_G collect_list(x))
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from viewkeeper.algebra.aggregates import AMBIGUOUS, COUNTING, EXTREMES
from viewkeeper.algebra.identity import is_comparable
from viewkeeper.algebra.normalize import constants
from viewkeeper.algebra.relations import (
    Aggregate,
    Item,
    Measure,
    Ordering,
    Project,
    Relation,
    Window,
    WindowColumn,
    inputs,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import NULL, TRUE, Column, Literal, Scalar, Verbatim, call
from viewkeeper.algebra.sketches import DRAWN
from viewkeeper.algebra.subqueries import SINGLE
from viewkeeper.algebra.types import FLOATING, UNKNOWN

_SAME_IN_ANY_ORDER = EXTREMES | COUNTING | {"median", "percentile", "percentile_cont", "percentile_disc"}
_ANY_ROW = frozenset({"any_value", "first", "first_value", "last", "last_value"})
_LISTS = frozenset({"array_agg", "collect_list", "collect_set"})
_JOINED = frozenset({"listagg", "string_agg"})
_BY = {"max_by": "max", "min_by": "min"}
_PICKS = _ANY_ROW | _LISTS | _JOINED | _BY.keys() | {"mode"}
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


def settled(rel: Relation) -> Relation:
    """The relation with every measure that needs it computed in an order of its own."""
    below = with_inputs(rel, tuple(settled(i) for i in inputs(rel)))
    if not isinstance(below, Aggregate):
        return below
    types = {f.name: f.type for f in below.input.schema}
    return replace(below, measures=tuple(replace(m, settled=_can_settle(m, types)) for m in below.measures))


def _can_settle(measure: Measure, types: Mapping[str, str]) -> bool:
    return _unsettled(measure) and all(is_comparable(types[a]) for a in measure.args)


def settled_pick(measure: Measure, types: Mapping[str, str]) -> Measure:
    """A measure of kept groups that answers always in the same way, where few rows could make it answer otherwise.

    What is only approximate for many rows stays as it is: to sort them would cost more than they are worth.
    """
    sortable = all(is_comparable(types[a]) for a in measure.args)
    drawn = measure.function == "histogram_numeric" and not measure.distinct
    return replace(measure, settled=sortable and (measure.function in _PICKS or drawn))


def why_not_settled(rel: Aggregate) -> tuple[Measure, str] | None:
    """A measure that may answer otherwise in another computation all the same, and why."""
    types = {f.name: f.type for f in rel.input.schema}
    for measure in rel.measures:
        if not _unsettled(measure):
            continue
        if measure.function in DRAWN:
            return measure, "what it keeps of many values it draws at random"
        foreign = next((types[a] for a in measure.args if not is_comparable(types[a])), None)
        if foreign is not None:
            return measure, f"its rows have no order: {foreign} values cannot be sorted"
        if measure.distinct and measure.function not in _PICKS:
            return measure, "a floating-point result over DISTINCT values differs in the last digits each time"
    return None


def in_order(rel: Aggregate) -> Relation:
    """The aggregate with its settled measures spelled out."""
    plan = _Plan(rel)
    measures = tuple(replace(plan.measure(m), settled=False) if m.settled else m for m in rel.measures)
    below: Relation = Project(rel.input, (*pass_through(rel.input.schema), *plan.items)) if plan.items else rel.input
    for order, columns in plan.windows.items():
        below = Window(below, rel.group_by, order, tuple(columns))
    groups = replace(rel, input=below, measures=measures)
    if not plan.after:
        return groups
    return Project(groups, tuple(Item(f.name, plan.after.get(f.name, Column(f.name)), f.type) for f in rel.schema))


def _unsettled(measure: Measure) -> bool:
    if measure.name.startswith(SINGLE) or measure.function in _SAME_IN_ANY_ORDER:
        return False
    return measure.function in AMBIGUOUS or measure.type in FLOATING


@dataclass
class _Plan:
    """What is computed below an aggregate, in windows over that, and above, for its settled measures."""

    rel: Aggregate
    items: list[Item] = field(default_factory=list)
    windows: dict[tuple[Ordering, ...], list[WindowColumn]] = field(default_factory=dict)
    after: dict[str, Scalar] = field(default_factory=dict)

    def measure(self, m: Measure) -> Measure:
        if m.function in _ANY_ROW:
            return replace(m, function="min", args=m.args[:1], distinct=False, ignore_nulls=False)
        if m.function in _LISTS:
            self.after[m.name] = call("SORT_ARRAY", Column(m.name))
            return m
        if m.function in _BY:
            value, by = (Column(a) for a in m.args[:2])
            named = call("NAMED_STRUCT", Literal("'by'"), by, Literal("'of'"), value)
            pair = call("IF", call("IS NULL", by), NULL, named)
            if len(m.args) > 2:  # the first so many, as a list
                return replace(m, args=(m.args[0], self.computed(pair), *m.args[2:]))
            self.after[m.name] = Verbatim(("", ".of"), (Column(m.name),))
            return replace(m, function=_BY[m.function], args=(self.computed(pair),))
        if m.function in _JOINED:
            ordered = any(o.column == m.args[0] for o in m.order_by)
            return m if ordered else replace(m, order_by=(*m.order_by, Ordering(m.args[0])))
        if m.function == "mode":  # WITHIN GROUP says how to break ties
            return m if m.order_by else replace(m, args=(m.args[0], self.computed(TRUE)))
        return self.over(m)

    def over(self, m: Measure) -> Measure:
        """The measure over a window in the order of its arguments, of which every row of the group has the value."""
        # A constant stays one, as a percentage must, unless there is nothing else to leave out rows by.
        known = constants(self.rel.input)
        if m.where and set(m.args) <= known.keys():
            known = {}
        args = tuple(known.get(a) or Column(self.masked(a, m)) for a in m.args)
        order = tuple(Ordering(a.name) for a in args if isinstance(a, Column))
        name = f"__vk_over_{m.name}"
        column = WindowColumn(name, m.function.upper(), args, m.type, _WHOLE)
        self.windows.setdefault(order, []).append(column)
        return replace(m, function="max", args=(name,), where=None)

    def masked(self, arg: str, m: Measure) -> str:
        return self.computed(call("IF", Column(m.where), Column(arg), NULL)) if m.where else arg

    def computed(self, value: Scalar) -> str:
        for item in self.items:
            if item.value == value:
                return item.name
        self.items.append(Item(f"__vk_in_order_{len(self.items)}", value, UNKNOWN))
        return self.items[-1].name
