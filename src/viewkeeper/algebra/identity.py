"""Telling values apart whose type Spark cannot compare, or compares too kindly.

Rows are found again by their values. For a map, a variant, a calendar interval or a string of a collation there is
another value, its *identity*, that Spark compares, equal for two values just where nobody can tell them apart.
"""

from __future__ import annotations

import re

from viewkeeper.algebra.scalars import Scalar, Verbatim

_FOREIGN = ("geometry", "geography")
# An interval of no unit is the calendar's: a month in it is not so and so many days.
_NOT_COMPARED = re.compile(r"map<|variant|collate|geometry|geography|\binterval\b(?! (year|month|day|hour|minute|s))")


def is_comparable(type_: str) -> bool:
    """Whether `=` tells all values of the type apart, so that they can be grouped, joined and sorted as they are."""
    return _NOT_COMPARED.search(type_.lower()) is None


def why_no_identity(type_: str) -> str | None:
    """Why values of the type cannot be told apart at all, or None if they can."""
    kind = next((k for k in _FOREIGN if k in type_.lower()), None)
    return f"{kind} values cannot be compared" if kind else None


def identity(value: Scalar, type_: str) -> Scalar:
    """A comparable value, NULL for NULL, equal for two values of the type just where they are the same."""
    text = _text("\0", type_, 0)
    return value if text == "\0" else Verbatim(tuple(text.split("\0")), (value,) * text.count("\0"))


def _text(value: str, type_: str, depth: int) -> str:
    """SQL of the identity of the value that stands in `value`."""
    lowered = type_.lower()
    if is_comparable(type_):
        return value
    each = f"__vk_each_{depth}"
    if lowered.startswith("array<"):
        return f"TRANSFORM({value}, {each} -> {_text(each, type_[6:-1], depth + 1)})"
    if lowered.startswith("map<"):
        types = zip(("key", "value"), _parts(type_[4:-1]), strict=True)
        key, of = (_text(f"{each}.{part}", t, depth + 1) for part, t in types)
        return f"SORT_ARRAY(TRANSFORM(MAP_ENTRIES({value}), {each} -> STRUCT({key}, {of})))"
    if lowered.startswith("struct<"):
        fields = [part.split(":", 1) for part in _parts(type_[7:-1])]
        inner = ", ".join(_text(f"{value}.`{name.strip('`')}`", t, depth + 1) for name, t in fields)
        return f"IF({value} IS NULL, NULL, STRUCT({inner}))"
    if lowered == "variant":
        return f"IF({value} IS NULL, NULL, STRUCT(TO_JSON({value}), SCHEMA_OF_VARIANT({value})))"
    if "collate" in lowered:
        return f"({value} COLLATE UTF8_BINARY)"
    return f"CAST({value} AS STRING)"


def _parts(inner: str) -> list[str]:
    """The types between commas that stand in no brackets."""
    found, depth, start = [], 0, 0
    for i, character in enumerate(inner):
        depth += character in "<("
        depth -= character in ">)"
        if character == "," and depth == 0:
            found.append(inner[start:i].strip())
            start = i + 1
    return [*found, inner[start:].strip()]
