"""The reference interpreter: what the algebra means, over bags of plain rows.

Small and slow on purpose. Every rule, every generated text and every plan is checked against it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, assert_never

from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Filter,
    Generate,
    Join,
    Measure,
    Pivot,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Schema,
    SetOperation,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    names,
)
from viewkeeper.algebra.scalars import Call, Scalar, parts
from viewkeeper.algebra.settled import in_order
from viewkeeper.algebra.sketches import SKETCHES
from viewkeeper.algebra.types import decimal_parts
from viewkeeper.changes.merge import CHANGE, OLD, Merge, MergeBag, MergeGroups, MergeTop
from viewkeeper.changes.refresh import DOUBTED, Maintenance
from viewkeeper.testing import frames
from viewkeeper.testing.values import EXACT, Row, Value, compiled, fits, rounded, sketched

Bag = Counter[Row]
Feed = tuple[tuple[Row, int], ...]


@dataclass(frozen=True)
class TableStates:
    """A table before and after a change. `feed` holds the change row by row, None for the net difference."""

    columns: tuple[str, ...]
    old: Bag
    new: Bag
    feed: Feed | None = None

    @property
    def changes(self) -> Iterable[tuple[Row, int]]:
        return self.feed if self.feed is not None else difference(self.new, self.old).items()


Tables = Mapping[str, TableStates]


def evaluate(rel: Relation, tables: Tables) -> Bag:
    """The rows of the relation, each with how often it is there; a change has its weight as a column."""
    return _Evaluator(tables).bag(rel)


def signed(rel: Relation, tables: Tables) -> Bag:
    """A change as a bag of signed counts: its rows without the weight, their weights summed, zeros dropped."""
    return weigh(evaluate(rel, tables), names(rel))


def weigh(bag: Bag, columns: tuple[str, ...]) -> Bag:
    at = columns.index(WEIGHT)
    total = Bag()
    for row, count in bag.items():
        weight = row[at]
        assert isinstance(weight, int), f"a weight that is no number: {row}"
        total[row[:at] + row[at + 1 :]] += weight * count
    return _without_zeros(total)


def plus(left: Bag, right: Bag) -> Bag:
    total = left.copy()
    total.update(right)
    return _without_zeros(total)


def difference(left: Bag, right: Bag) -> Bag:
    """left − right, with negative counts where right has more."""
    total = left.copy()
    total.subtract(right)
    return _without_zeros(total)


def _without_zeros(bag: Bag) -> Bag:
    return Counter({row: count for row, count in bag.items() if count})


@dataclass
class _Evaluator:
    tables: Tables
    known: dict[Relation, Bag] = field(default_factory=dict)

    def bag(self, rel: Relation) -> Bag:
        # Change expressions share most of their parts.
        if rel not in self.known:
            self.known[rel] = _checked(rel.schema, self.compute(rel))
        return self.known[rel]

    def compute(self, rel: Relation) -> Bag:
        match rel:
            case Scan(table, columns, state):
                found = self.tables[table]
                picked = _picked(found.columns, columns)
                return _collected((picked(row), n) for row, n in (found.old if state == "old" else found.new).items())
            case Changes(table, columns):
                found = self.tables[table]
                picked = _picked(found.columns, columns)
                return Counter((*picked(row), weight) for row, weight in found.changes)
            case Values(_, rows):
                return Counter(tuple(compiled(cell, ())(()) for cell in row) for row in rows)
            case Filter(input, predicate):
                holds = compiled(predicate, names(input))
                return Counter({row: n for row, n in self.bag(input).items() if holds(row) is True})
            case Project(input, items):
                values = [compiled(item.value, names(input)) for item in items]
                return _collected((tuple(value(row) for value in values), n) for row, n in self.bag(input).items())
            case Join():
                return self.join(rel)
            case Union(inputs):
                return _collected(pair for i in inputs for pair in self.bag(i).items())
            case Aggregate(measures=measures) if any(m.settled for m in measures):
                return self.bag(in_order(rel))
            case Aggregate():
                return self.aggregate(rel)
            case Window():
                return frames.windowed(rel, self.bag(rel.input))
            case Top(input, order_by, limit, offset):
                ordered = frames.in_order(list(self.bag(input).elements()), names(input), order_by)
                return Counter(ordered[offset : None if limit is None else offset + limit])
            case Generate():
                return self.generate(rel)
            case SetOperation() | Pivot() | Unpivot():
                raise NotImplementedError("it has a value only once it is made of groups or generated rows")
            case _:
                assert_never(rel)

    def generate(self, rel: Generate) -> Bag:
        made = _generator(rel.generator, names(rel.input))
        return _collected(((*row, *more), n) for row, n in self.bag(rel.input).items() for more in made(row))

    def join(self, rel: Join) -> Bag:
        left, right = self.bag(rel.left), self.bag(rel.right)
        holds = compiled(rel.condition, names(rel.left) + names(rel.right))
        pairs = {(a, b): m * n for a, m in left.items() for b, n in right.items() if holds(a + b) is True}
        matched_left, matched_right = {a for a, _ in pairs}, {b for _, b in pairs}
        inner = _collected((a + b, n) for (a, b), n in pairs.items())
        pad_right: Row = (None,) * len(rel.right.schema)
        left_alone = _collected((a + pad_right, n) for a, n in left.items() if a not in matched_left)
        match rel.kind:
            case "inner":
                return inner
            case "semi":
                return Counter({a: n for a, n in left.items() if a in matched_left})
            case "anti":
                return Counter({a: n for a, n in left.items() if a not in matched_left})
            case "left":
                return plus(inner, left_alone)
            case "full":
                pad_left: Row = (None,) * len(rel.left.schema)
                right_alone = _collected((pad_left + b, n) for b, n in right.items() if b not in matched_right)
                return plus(plus(inner, left_alone), right_alone)
            case _:
                assert_never(rel.kind)

    def aggregate(self, rel: Aggregate) -> Bag:
        columns = names(rel.input)
        at = [columns.index(key) for key in rel.group_by]
        groups: dict[Row, Bag] = {} if rel.group_by else {(): Bag()}
        for row, n in self.bag(rel.input).items():
            groups.setdefault(tuple(row[i] for i in at), Bag())[row] = n
        return Counter((*key, *(measured(m, columns, rows) for m in rel.measures)) for key, rows in groups.items())


def _generator(scalar: Scalar, columns: tuple[str, ...]) -> Callable[[Row], Iterable[Row]]:
    """The rows that are made of one."""
    match scalar:
        case Call("EXPLODE", (Call("SEQUENCE", (first, last)),)):
            low, high = compiled(first, columns), compiled(last, columns)
            return lambda row: ((made,) for made in range(_number(low(row)), _number(high(row)) + 1))
        case Call("RANGE", args):
            numbers = [_number(compiled(a, ())(())) for a in args[:3]]  # the fourth says how to spread them
            return lambda row: ((made,) for made in range(*numbers))
        case Call("INLINE", (Call("ARRAY", structs),)):
            rows = [[compiled(f, columns) for f in parts(struct)] for struct in structs]
            return lambda row: (tuple(f(row) for f in fields) for fields in rows)
        case _:
            raise NotImplementedError(f"the generator {scalar}")


def _number(value: Value) -> int:
    assert isinstance(value, int), f"a sequence of what is no number: {value!r}"
    return value


def _picked(stored: tuple[str, ...], columns: tuple[ScanColumn, ...]) -> Callable[[Row], Row]:
    at = [stored.index(c.source) for c in columns]
    return lambda row: tuple(row[i] for i in at)


def _collected(pairs: Iterable[tuple[Row, int]]) -> Bag:
    bag = Bag()
    for row, count in pairs:
        bag[row] += count
    return bag


def _checked(schema: Schema, bag: Bag) -> Bag:
    """The bag, once every value is of the type its column claims."""
    for row in bag:
        for value, column in zip(row, schema, strict=True):
            assert fits(value, column.type), f"{column.name} is no {column.type}: {value!r}"
    return bag


# Aggregate functions


def measured(measure: Measure, columns: tuple[str, ...], rows: Bag) -> Value:
    """The measure over the rows of one group."""
    at = [columns.index(a) for a in measure.args]
    if measure.where:
        where = columns.index(measure.where)
        rows = Counter({row: n for row, n in rows.items() if row[where] is True})
    picked = _collected((tuple(row[i] for i in at), n) for row, n in rows.items())
    present = Counter({args: n for args, n in picked.items() if None not in args})
    if measure.distinct:
        present = Counter(dict.fromkeys(present, 1))
    if measure.function == "count":
        return present.total()
    if measure.function == "count_if":
        return present[(True,)]
    values = [args[0] for args in present.elements()]
    if measure.function in SKETCHES:
        return sketched(SKETCHES[measure.function], values)
    return _FUNCTIONS[measure.function](values, measure.type) if values else None


def _sum(values: list[Any]) -> Any:
    if isinstance(values[0], float):
        return math.fsum(values)  # the same in whatever order the rows come
    total = values[0]
    for value in values[1:]:
        total = EXACT.add(total, value) if isinstance(value, Decimal) else total + value
    return total


def _avg(values: list[Any], type_: str) -> Value:
    parts = decimal_parts(type_)
    if parts is None:
        return float(_sum(values)) / float(len(values))
    return rounded(EXACT.divide(_sum(values), Decimal(len(values))), *parts)


def _bits(operator: Callable[[int, int], int]) -> Callable[[list[Any], str], Value]:
    def combined(values: list[Any], _: str) -> Value:
        result: int = values[0]
        for value in values[1:]:
            result = operator(result, value)
        return result

    return combined


_FUNCTIONS: dict[str, Callable[[list[Any], str], Value]] = {
    "any_value": lambda values, _: values[0],
    "sum": lambda values, _: _sum(values),
    "avg": _avg,
    "min": lambda values, _: min(values),
    "max": lambda values, _: max(values),
    **dict.fromkeys(("bool_and", "every"), lambda values, _: all(values)),
    **dict.fromkeys(("bool_or", "any", "some"), lambda values, _: any(values)),
    "bit_and": _bits(lambda a, b: a & b),
    "bit_or": _bits(lambda a, b: a | b),
    "bit_xor": _bits(lambda a, b: a ^ b),
}


# The refresh operator


def apply(merge: Merge, kept: Bag, change: Bag, columns: tuple[str, ...]) -> Bag | None:
    """V ⊔ □V: the kept rows after the change, whose columns are named; None where too few are left.

    What does not fit is an AssertionError.
    """
    match merge:
        case MergeGroups():
            return _merge_groups(merge, kept, change, columns)
        case MergeBag():
            merged = plus(kept, weigh(change, columns))
            assert all(n > 0 for n in merged.values()), f"removed rows that are not there: {-merged}"
            return merged
        case MergeTop():
            return _merge_top(merge, kept, weigh(change, columns))
        case _:
            assert_never(merge)


def without_doubt(step: Maintenance, kept: Bag, change: Bag, tables: Tables) -> tuple[Bag, Bag]:
    """The change with the groups that are in doubt computed afresh, and the keys of those."""
    if step.doubt is None or not isinstance(step.merge, MergeGroups):
        return change, Counter()
    columns, stored = names(step.change), tuple(item.name for item in step.merge.columns)
    seen = tuple(OLD + c for c in stored) + tuple(CHANGE + c for c in columns)
    condition, groups = compiled(step.doubt.condition, seen), _by_key(kept, stored, step.merge.key)
    changed = _by_key(change, columns, step.merge.key)
    keys = Counter(key for key, row in changed.items() if condition(groups.get(key, (None,) * len(stored)) + row))
    if not keys:
        return change, keys
    assert names(step.doubt.afresh) == columns
    afresh = evaluate(step.doubt.afresh, {**tables, DOUBTED: TableStates(step.merge.key, Counter(), keys)})
    return Counter(row for key, row in changed.items() if key not in keys) + afresh, keys


def _merge_top(merge: MergeTop, kept: Bag, change: Bag) -> Bag | None:
    columns = tuple(f.name for f in merge.columns)
    whole = all(row[-1] for row in kept)
    rows = Counter({row[:-1]: n for row, n in kept.items()})
    placed = frames.in_order(list(rows.keys() | change.keys()), columns, merge.order_by)
    if not whole:
        last = max(i for i, row in enumerate(placed) if row in rows)
        placed = placed[: last + 1]
        if change[placed[-1]] < 0:
            change[placed[-1]] = -rows[placed[-1]]
    left = plus(rows, Counter({row: change[row] for row in placed if change[row]}))
    assert all(n > 0 for n in left.values()), f"removed rows that are not there: {-left}"
    if not whole and left.total() < merge.wanted:
        return None
    first = frames.in_order(list(left.elements()), columns, merge.order_by)[: merge.room]
    return Counter((*row, whole and left.total() < merge.room) for row in first)


def _merge_groups(merge: MergeGroups, kept: Bag, change: Bag, columns: tuple[str, ...]) -> Bag:
    stored = tuple(item.name for item in merge.columns)
    seen = tuple(OLD + c for c in stored) + tuple(CHANGE + c for c in columns)
    values = [compiled(item.value, seen) for item in merge.columns]
    count = compiled(merge.count, seen)
    groups = _by_key(kept, stored, merge.key)
    for key, row in _by_key(change, columns, merge.key).items():
        both = groups.get(key, (None,) * len(stored)) + row
        left = count(both) or 0
        assert isinstance(left, int) and left >= 0, f"a negative count for {key}"
        if left == 0 and merge.key:
            groups.pop(key, None)
        else:
            groups[key] = tuple(value(both) for value in values)
    return Counter(groups.values())


def _by_key(bag: Bag, columns: tuple[str, ...], key: tuple[str, ...]) -> dict[Row, Row]:
    at = [columns.index(k) for k in key]
    found: dict[Row, Row] = {}
    for row in bag.elements():
        own = tuple(row[i] for i in at)
        assert own not in found, f"two rows for one key: {own}"
        found[own] = row
    return found
