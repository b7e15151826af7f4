"""Spark's types by the text Spark prints for them (`decimal(15,2)`), and what the rules must know of them."""

from __future__ import annotations

import re

BIGINT = "bigint"
BOOLEAN = "boolean"
UNKNOWN = "unknown"  # before Spark has been asked

INTEGRAL = frozenset({"tinyint", "smallint", "int", "bigint"})
FLOATING = frozenset({"float", "double"})
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")
MAX_PRECISION = 38


def decimal(precision: int, scale: int) -> str:
    return f"decimal({min(precision, MAX_PRECISION)},{scale})"


def decimal_parts(type_: str) -> tuple[int, int] | None:
    """Precision and scale of a decimal type, else None."""
    match = _DECIMAL.fullmatch(type_)
    return (int(match[1]), int(match[2])) if match else None
