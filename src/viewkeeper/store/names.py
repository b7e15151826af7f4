"""Table names: canonical text that can stand in SQL as it is and compares equal for the same table."""

from __future__ import annotations

import re

BACKING_PREFIX = "__vk_"
_PLAIN = re.compile(r"[a-z_][a-z0-9_]*")
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]+)")


def canonical(parts: tuple[str, ...]) -> str:
    """`('Sales', 'Order Lines')` as "sales.`order lines`": Spark's names have no case."""
    return ".".join(p.lower() if _PLAIN.fullmatch(p.lower()) else _quoted(p.lower()) for p in parts)


def split(name: str) -> tuple[str, ...]:
    """The parts of a name as people or `canonical` write it."""
    return tuple((m[1].replace("``", "`") if m[2] is None else m[2]).strip() for m in _PART.finditer(name))


def backing_name(view: str) -> str:
    """The table that holds a view's rows, beside the view itself."""
    *schema, name = split(view)
    return canonical((*schema, BACKING_PREFIX + name))


def _quoted(part: str) -> str:
    return "`" + part.replace("`", "``") + "`"
