"""What conditions over many columns say of a few of them: the others eliminated, exactly where that can be decided.

Exact are conjunctions of `x op y`, `x op c` and, for integers, `x op y + c`, and disjunctions of such conjunctions.
Of anything else only what is certain is said, so that no row for which the conditions can hold is ever left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from viewkeeper.algebra.bounds import LESS, NO_MORE, Bound, Bounds, closure, equal, essential
from viewkeeper.algebra.conditions import (
    NULL_TEST,
    OPPOSITE,
    alternatives,
    disjunction,
    in_list,
    like,
    not_null,
    present_if_true,
)
from viewkeeper.algebra.kinds import Constant, Kind, belongs, is_string, kind_of, literal, number
from viewkeeper.algebra.scalars import (
    ZERO,
    Call,
    Cast,
    Column,
    Scalar,
    Verbatim,
    call,
    columns,
    conjunction,
    substitute,
)
from viewkeeper.algebra.types import FLOATING, INTEGRAL, MAX_PRECISION, decimal_parts

Term = Column | Constant
Said = tuple[Term, Term, Bound]
ORIGIN = Constant("number", ZERO)

_FLIPPED = {"<=": ">=", "<": ">", "=": "="}
# Functions that have a value for all arguments of a kind: of which, and what it is.
_TOTAL: dict[str, tuple[Kind, Kind]] = {
    "UPPER": ("string", "string"),
    "LOWER": ("string", "string"),
    "LENGTH": ("string", "number"),
    "STARTSWITH": ("string", "boolean"),
    "ENDSWITH": ("string", "boolean"),
    "CONTAINS": ("string", "boolean"),
    "YEAR": ("date", "number"),
    "QUARTER": ("date", "number"),
    "MONTH": ("date", "number"),
    "DAY": ("date", "number"),
}
_INTEGER_DIGITS = 20


@dataclass(frozen=True)
class Conditions:
    """Conditions over columns of known types. Only with `ansi` is it an error if integers overflow."""

    types: Mapping[str, str]
    ansi: bool

    def restriction(
        self, conditions: Iterable[Scalar], own: Sequence[str], present: frozenset[Scalar] = frozenset()
    ) -> tuple[Scalar, ...] | None:
        """What must hold of the own columns alone so that all conditions can; None if they never can.

        Besides bounds it holds conditions as they are written, if they cannot fail or are `present` anyway.
        """
        cases = (self._of_case(case, own, present) for case in alternatives(conditions))
        return any_of([case for case in cases if case is not None])

    def _of_case(
        self, case: tuple[Scalar, ...], own: Sequence[str], present: frozenset[Scalar]
    ) -> tuple[Scalar, ...] | None:
        known = self._never_null(case)
        missing = (c.args[0] for c in case if isinstance(c, Call) and c.name == "IS NULL")
        if any(isinstance(arg, Column) and arg.name in known for arg in missing):
            return None
        said: list[Said] = []
        others: list[Scalar] = []
        for condition in case:
            bounds = self._bounds(condition, known)
            said += bounds
            if not bounds and (condition in present or self.kind(condition) == "boolean"):
                others.append(condition)
        terms = dict.fromkeys(term for x, y, _ in said for term in (x, y))
        closed = closure([*said, *_order(terms)], {t for t in terms if self._is_integer(t)})
        if closed is None:
            return None
        there = (call("IS NOT NULL", Column(c)) for c in own if c in known)
        seen = (self._own_form(c, closed, own) for c in others)
        return tuple(dict.fromkeys([*self._comparisons(closed, own), *there, *(c for c in seen if c is not None)]))

    # Reading

    def _never_null(self, case: tuple[Scalar, ...]) -> frozenset[str]:
        """Columns that must have a value where all of these are true."""
        known: frozenset[str] = frozenset()
        while True:
            more = known.union(*(self._with_value(condition, known) for condition in case))
            if more == known:
                return known
            known = more

    def _with_value(self, condition: Scalar, known: frozenset[str]) -> frozenset[str]:
        match condition:
            case Call("<=>", (left, right)) if self._is_equality(condition, known):
                return not_null(left) | not_null(right)
            case _:
                return present_if_true(condition)

    def _is_equality(self, condition: Call, known: frozenset[str]) -> bool:
        """Whether it is `<=>` with a value that cannot be NULL."""
        terms = self._terms(*condition.args) if condition.name == "<=>" else None
        return terms is not None and any(
            t.name in known if isinstance(t, Column) else t.kind in ("number", "floating", "string") for t, _ in terms
        )

    def _bounds(self, condition: Scalar, known: frozenset[str]) -> list[Said]:
        """The condition as bounds; none if it is not exactly that."""
        match condition:
            case Call(operator, (left, right)) if operator in OPPOSITE or self._is_equality(condition, known):
                terms = self._terms(left, right)
            case _:
                return []
        if terms is None or operator == "<>":
            return []
        (x, from_x), (y, from_y) = terms
        there, back = Bound(from_y - from_x), Bound(from_x - from_y)
        match operator:
            case "<=":
                return [(x, y, there)]
            case "<":
                return [(x, y, there + LESS)]
            case ">=":
                return [(y, x, back)]
            case ">":
                return [(y, x, back + LESS)]
            case _:
                return [(x, y, there), (y, x, back)]

    def _terms(self, left: Scalar, right: Scalar) -> tuple[tuple[Term, Fraction], tuple[Term, Fraction]] | None:
        """Both sides as a term and what is added to it, if they are of one kind."""
        x, y = self._number(left), self._number(right)
        if x is not None and y is not None:
            return (x, y) if self._comparable(left, right) else None
        kind = self._ordered(left) or self._ordered(right)
        if kind is None or not all(self._ordered(s) == kind or belongs(s, kind) for s in (left, right)):
            return None
        one, other = (s if isinstance(s, Column) else Constant(kind, s) for s in (left, right))
        return (one, Fraction(0)), (other, Fraction(0))

    def _ordered(self, scalar: Scalar) -> Kind | None:
        """The kind of a column whose values are compared, but not added to."""
        kind = kind_of(self.types[scalar.name]) if isinstance(scalar, Column) else None
        return kind if kind not in ("number", "boolean") else None

    def _number(self, scalar: Scalar) -> tuple[Term, Fraction] | None:
        """A column of exact numbers or a constant, and what is added to it."""
        value = number(scalar)
        if value is not None:
            return ORIGIN, value
        match scalar:
            case Column(name):
                return (scalar, Fraction(0)) if kind_of(self.types[name]) == "number" else None
            case Call("+", (left, right)):
                return self._sum(left, number(right)) or self._sum(right, number(left))
            case Call("-", (left, right)):
                value = number(right)
                return self._sum(left, -value if value is not None else None)
            case _:
                return None

    def _sum(self, scalar: Scalar, added: Fraction | None) -> tuple[Term, Fraction] | None:
        """An integer plus an integer, where that does not wrap around."""
        term = self._number(scalar)
        if not self.ansi or term is None or added is None or added.denominator != 1 or not self._is_integer(term[0]):
            return None
        return term[0], term[1] + added

    def _is_integer(self, term: Term) -> bool:
        return self.types[term.name] in INTEGRAL if isinstance(term, Column) else term == ORIGIN

    def _comparable(self, left: Scalar, right: Scalar) -> bool:
        """Whether Spark compares these numbers as they are, without cutting digits."""
        (before, after), (before_2, after_2) = self._digits(left), self._digits(right)
        return max(before, before_2) + max(after, after_2) <= MAX_PRECISION

    def _digits(self, scalar: Scalar) -> tuple[int, int]:
        """At most so many digits before and after the point."""
        if isinstance(scalar, Column) and (parts := decimal_parts(self.types[scalar.name])):
            return parts[0] - parts[1], parts[1]
        value = number(scalar)
        whole, _, fraction = literal(value).sql.partition(".") if value is not None else ("0" * _INTEGER_DIGITS, "", "")
        return len(whole), len(fraction)

    def kind(self, scalar: Scalar) -> Kind | None:
        """The kind of an expression that has a value for every row; None if computing it might fail."""
        match scalar:
            case Column(name):
                return kind_of(self.types[name])
            case Call(name, (arg,)) if name in NULL_TEST:
                return "boolean" if isinstance(arg, Column) or self.kind(arg) else None
            case Call("AND" | "OR" | "NOT", args):
                return "boolean" if all(self.kind(a) == "boolean" for a in args) else None
            case Call(name, (left, right)) if name in OPPOSITE or name == "<=>":
                kind = self.kind(left) or self.kind(right)
                return "boolean" if kind and self._all_of(kind, (left, right)) else None
            case Call("COALESCE", args):
                kinds = {self.kind(a) for a in args}
                return kinds.pop() if len(kinds) == 1 else None
            case Call(name, args) if name in _TOTAL:
                of, kind = _TOTAL[name]
                return kind if self._all_of(of, args) else None
            case Verbatim(args=(arg,)) if constants := in_list(scalar):
                kind = self.kind(arg)
                return "boolean" if kind and self._all_of(kind, constants) else None
            case Verbatim(args=(arg,)) if like(scalar):
                return "boolean" if self.kind(arg) == "string" else None
            case _:
                return "number" if number(scalar) is not None else "string" if is_string(scalar) else None

    def _all_of(self, kind: Kind, args: Iterable[Scalar]) -> bool:
        return all(self.kind(a) == kind or belongs(a, kind) for a in args)

    # Writing

    def _comparisons(self, bounds: Bounds[Term], own: Sequence[str]) -> list[Scalar]:
        """The bounds between own columns and constants, in the order of the columns."""
        seen = dict.fromkeys(term for pair in bounds for term in pair)
        ours = [Column(c) for c in own if Column(c) in seen]
        terms: list[Term] = [*(t for t in seen if isinstance(t, Constant)), *ours]
        written: list[tuple[int, Scalar]] = []
        for x, y, bound in essential(bounds, terms):
            fixed = equal(bounds, x, y)
            if fixed and terms.index(x) < terms.index(y):
                continue  # the other way round it says the same
            comparison = self._comparison(x, y, bound, "=" if fixed else "<=" if bound.closed else "<")
            if comparison is not None:
                about = x if isinstance(x, Column) else y
                written.append((terms.index(about), comparison))
        return [comparison for _, comparison in sorted(written, key=lambda w: w[0])]

    def _comparison(self, x: Term, y: Term, bound: Bound, operator: str) -> Scalar | None:
        """x − y ≤ c as `x <= y + c`, a column first; None where that says nothing, or cannot be said."""
        match x, y:
            case Constant(), Constant():
                return None
            case Constant(_, value), Column():
                return call(_FLIPPED[operator], y, literal(-bound.limit) if x == ORIGIN else value)
            case Column(), Constant(_, value):
                return call(operator, x, literal(bound.limit) if y == ORIGIN else value)
            case Column(), Column() if kind_of(self.types[x.name]) == "number" and not self._comparable(x, y):
                return None
            case Column(), Column() if bound.limit == 0:
                return call(operator, x, y)
            case Column(), Column() if self._is_integer(y):
                return call(operator, x, _sum_of(y, bound.limit))
            case Column(), Column() if self._is_integer(x):
                return call(operator, _sum_of(x, -bound.limit), y)
            case _:
                return None

    def _own_form(self, condition: Scalar, bounds: Bounds[Term], own: Sequence[str]) -> Scalar | None:
        """The condition over own columns alone, others replaced by own ones that are the same."""
        by: dict[str, Scalar] = {}
        read = columns(condition)
        for name in read.difference(own):
            same = next((c for c in own if self._same(bounds, Column(name), Column(c))), None)
            if same is None:
                return None
            by[name] = Column(same)
        return substitute(condition, by) if read else None

    def _same(self, bounds: Bounds[Term], x: Column, y: Column) -> bool:
        """Whether the columns have the same value; 0.0 and -0.0 are equal without being the same."""
        alike = self.types[x.name] == self.types[y.name] and self.types[x.name] not in FLOATING
        return alike and equal(bounds, x, y) and bounds[x, y] == NO_MORE


def any_of(cases: Sequence[tuple[Scalar, ...]]) -> tuple[Scalar, ...] | None:
    """The conditions that hold in every case, and one for what is left of each; None if there is no case."""
    if not cases:
        return None
    common = tuple(c for c in cases[0] if all(c in case for case in cases))
    rest = dict.fromkeys(tuple(c for c in case if c not in common) for case in cases)
    fewest = [case for case in rest if not any(set(other) < set(case) for other in rest)]
    if () in fewest:
        return _briefly(common)
    return _briefly((*common, disjunction(conjunction(list(_briefly(case))) for case in fewest)))


def _briefly(conditions: tuple[Scalar, ...]) -> tuple[Scalar, ...]:
    """Without IS NOT NULL of a column for which another condition says so."""
    tests = {call("IS NOT NULL", Column(name)) for c in conditions for name in columns(c)}
    covered = frozenset[str]().union(*(present_if_true(c) for c in conditions if c not in tests))
    return tuple(c for c in conditions if c not in tests or not columns(c) <= covered)


def _order(terms: Iterable[Term]) -> list[Said]:
    """How the constants of each kind stand to each other, as far as that is known."""
    ranked = [(t, rank) for t in terms if isinstance(t, Constant) and (rank := t.rank) is not None]
    return [
        (c, d, NO_MORE if low == high else LESS)
        for c, low in ranked
        for d, high in ranked
        if c != d and c.kind == d.kind and low <= high  # type: ignore[operator]  # of one kind, so of one type
    ]


def _sum_of(column: Column, added: Fraction) -> Scalar:
    """Wide enough for any sum: the column's value may be close to where its type ends."""
    return call("+", Cast(column, f"decimal({_INTEGER_DIGITS},0)"), literal(added))
