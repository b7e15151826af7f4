"""What it takes for a condition to be true, in SQL's three-valued logic."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from itertools import product

from viewkeeper.algebra.scalars import (
    FALSE,
    Call,
    Cast,
    Column,
    Literal,
    Scalar,
    Verbatim,
    call,
    conjunction,
    conjuncts,
)

# Each an AND of conditions that hold together; the condition is true exactly where one of them is.
Alternatives = tuple[tuple[Scalar, ...], ...]

NEVER: Alternatives = ()
ALWAYS: Alternatives = ((),)
LIMIT = 16  # more alternatives than this are not told apart

OPPOSITE = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
NULL_TEST = {"IS NULL": "IS NOT NULL", "IS NOT NULL": "IS NULL"}
# NULL if any argument is.
STRICT = frozenset(
    """+ - * / % DIV || NOT LIKE ILIKE UPPER LOWER LENGTH STARTSWITH ENDSWITH CONTAINS
    YEAR QUARTER MONTH DAY""".split()
) | set(OPPOSITE)

_HOLE = "\0"
_CONSTANT = r"-?\d+(?:\.\d+)?|'[^'\\]*'|CAST\('[^'\\]*' AS (?:DATE|TIMESTAMP)\)"
_BETWEEN = re.compile(rf"\({_HOLE} BETWEEN ({_HOLE}|{_CONSTANT}) AND ({_HOLE}|{_CONSTANT})\)")
_IN_LIST = re.compile(rf"\({_HOLE} IN \(((?:{_CONSTANT})(?:, (?:{_CONSTANT}))*)\)\)")
_LIKE = re.compile(rf"\({_HOLE} (NOT )?(I)?LIKE '([^'\\]*)'\)")


def alternatives(conditions: Iterable[Scalar]) -> Alternatives:
    """All of the conditions as an OR of ANDs; one that would make too many alternatives stays as it is."""
    found = ALWAYS
    for condition in (term for given in conditions for term in conjuncts(given)):
        more = both(found, when(condition, True))
        found = more if len(more) <= LIMIT else both(found, ((condition,),))
    return found


def when(condition: Scalar, truth: bool) -> Alternatives:
    """When the condition is true, or when it is false; NULL is neither."""
    match condition:
        case Call("AND" | "OR" as name, (left, right)):
            combine = both if (name == "AND") == truth else either
            combined = combine(when(left, truth), when(right, truth))
            return combined if len(combined) <= LIMIT else ((condition if truth else call("NOT", condition),),)
        case Call("NOT", (arg,)):
            return when(arg, not truth)
        case Call(name, (arg,)) if name in NULL_TEST:
            if is_null(arg):
                return ALWAYS if (name == "IS NULL") == truth else NEVER
            return ((call(name if truth else NULL_TEST[name], arg),),)
        case Call("<=>", (left, right)) if is_null(left) or is_null(right):
            return when(call("IS NULL", right if is_null(left) else left), truth)
        case Call(name, (left, right)) if name in OPPOSITE and not is_null(condition):
            return ((call(name if truth else OPPOSITE[name], left, right),),)
        case Literal(sql) if sql.upper() in ("TRUE", "FALSE"):
            return ALWAYS if (sql.upper() == "TRUE") == truth else NEVER
        case Verbatim() if (ends := between(condition)) is not None:
            return when(ends, truth)
        case _ if is_null(condition):
            return NEVER
        case _:
            return ((condition if truth else call("NOT", condition),),)


def both(left: Alternatives, right: Alternatives) -> Alternatives:
    return tuple((*a, *b) for a, b in product(left, right))


def either(left: Alternatives, right: Alternatives) -> Alternatives:
    return left + right


def disjunction(conditions: Iterable[Scalar]) -> Scalar:
    """Any of them, FALSE for none."""
    found = list(dict.fromkeys(conditions))
    return reduce(lambda left, right: call("OR", left, right), found) if found else FALSE


def terms(condition: Scalar) -> list[Scalar]:
    """The terms of an AND, among them what all alternatives of an OR ask for:  (a ∧ b) ∨ (a ∧ c) = a ∧ (b ∨ c)."""
    return [found for term in conjuncts(condition) for found in _shared(term)]


def _shared(term: Scalar) -> list[Scalar]:
    alternatives_ = [conjuncts(one) for one in _disjuncts(term)]
    shared = [part for part in alternatives_[0] if all(part in others for others in alternatives_[1:])]
    if len(alternatives_) == 1 or not shared:
        return [term]
    rest = [[part for part in one if part not in shared] for one in alternatives_]
    return [*shared, disjunction(map(conjunction, rest))] if all(rest) else shared


def _disjuncts(condition: Scalar) -> list[Scalar]:
    match condition:
        case Call("OR", (left, right)):
            return _disjuncts(left) + _disjuncts(right)
        case _:
            return [condition]


def is_null(scalar: Scalar) -> bool:
    """Whether it is NULL by its form alone."""
    match scalar:
        case Literal(sql):
            return sql.upper() == "NULL"
        case Cast(arg, _):
            return is_null(arg)
        case Call(name, args) if name in STRICT:
            return any(map(is_null, args))
        case Verbatim(args=args) if in_list(scalar) or like(scalar):
            return any(map(is_null, args))
        case _:
            return False


def not_null(scalar: Scalar) -> frozenset[str]:
    """Columns that are not NULL wherever the expression is not."""
    match scalar:
        case Column(name):
            return frozenset((name,))
        case Cast(arg, _):
            return not_null(arg)
        case Call(name, args) if name in STRICT:
            return frozenset().union(*map(not_null, args))
        case Verbatim(args=args) if in_list(scalar) or like(scalar):
            return frozenset().union(*map(not_null, args))
        case _:
            return frozenset()


def present_if_true(condition: Scalar) -> frozenset[str]:
    """Columns that are not NULL wherever the condition is true."""
    match condition:
        case Call("AND", (left, right)):
            return present_if_true(left) | present_if_true(right)
        case Call("OR", (left, right)):
            return present_if_true(left) & present_if_true(right)
        case Call("IS NOT NULL", (arg,)):
            return not_null(arg)
        case _:
            return not_null(condition)


# What is kept word for word, but has a shape that is worth knowing


def between(scalar: Verbatim) -> Scalar | None:
    """x BETWEEN a AND b as x >= a AND x <= b."""
    found = _BETWEEN.fullmatch(_HOLE.join(scalar.parts))
    if found is None:
        return None
    tested, *columns = scalar.args
    low, high = (columns.pop(0) if end == _HOLE else constant(end) for end in found.groups())
    return call("AND", call(">=", tested, low), call("<=", tested, high))


def in_list(scalar: Verbatim) -> tuple[Scalar, ...]:
    """The constants of x IN (…), none for any other expression."""
    found = _IN_LIST.fullmatch(_HOLE.join(scalar.parts))
    return tuple(map(constant, re.findall(_CONSTANT, found[1]))) if found else ()


@dataclass(frozen=True)
class Like:
    """What a text has to look like, in any case or as it is; or must not."""

    pattern: str
    any_case: bool
    negated: bool


def like(scalar: Verbatim) -> Like | None:
    """The pattern of x [NOT] LIKE …, None for any other expression."""
    found = _LIKE.fullmatch(_HOLE.join(scalar.parts))
    return Like(found[3], found[2] is not None, found[1] is not None) if found else None


def constant(text: str) -> Scalar:
    """The constant of this text: a number, a string, or a string cast to a type."""
    cast = re.fullmatch(r"CAST\(('.*') AS (\w+)\)", text)
    return Cast(Literal(cast[1]), cast[2]) if cast else Literal(text)
