"""How far a sum of floating-point numbers may be from what its rows give, and when that is too far.

Such a sum is maintained by adding signed changes, and every addition may be off by its last digit. So beside a sum s a
group keeps its *drift* d, a bound on the error that additions have brought since s was last computed from rows:

    d' = d + (n + 1) · 2⁻⁵² · (|s| + Σ|x|)      n changed rows with the values x

A group stays as it is while d ≤ 10⁻⁹ · |s|. Past that, or where s is no finite number, it is computed afresh.
"""

from __future__ import annotations

from viewkeeper.algebra.scalars import ZERO, Call, Cast, Column, Literal, Scalar, call

DOUBLE = "double"
STEPS = "__vk_steps"  # of a change: how many rows were added up; NULL in a row that was computed afresh
_NONE = Literal("0D")
_LAST_DIGIT = Literal("2.220446049250313E-16D")
_TOO_FAR = Literal("1E-9D")
_INFINITE = Cast(Literal("'Infinity'"), DOUBLE)


def none_of(argument: Scalar) -> Scalar:
    """The drift that a row brings to a sum of this argument when a group is computed from its rows."""
    return call("IF", call("IS NULL", argument), _NONE, _NONE)


def weighted(argument: Scalar, weight: Scalar) -> Scalar:
    return call("*", Cast(argument, DOUBLE), Cast(weight, DOUBLE))


def grown(drift: Column, total: Column, change: Column, steps: Column) -> Scalar:
    """d', from the kept drift and sum and the changed rows: how many, and the sum of their sizes."""
    size = call("+", call("ABS", _or_none(total)), _or_none(change))
    rows = call("+", Cast(steps, DOUBLE), Literal("1D"))
    return call("+", _or_none(drift), call("*", call("*", rows, _LAST_DIGIT), size))


def too_far(total: Scalar, drift: Scalar, count: Scalar) -> Scalar:
    """Whether a sum of so many values must be computed afresh."""
    close = call("<=", drift, call("*", _TOO_FAR, call("ABS", total)))
    finite = call("<", call("ABS", total), _INFINITE)  # NaN is not less than anything
    return call("AND", call("<>", count, ZERO), call("NOT", call("AND", finite, close)))


def _or_none(value: Scalar) -> Call:
    return call("COALESCE", value, _NONE)
