"""What every node of the algebra is: data, compared by content.

Equality and hash use a digest of the content, computed once per node, so that comparing large shared
graphs costs no more than comparing two strings.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

_DEPTH = 10_000


@dataclass(frozen=True, eq=False)
class Node:
    """A frozen dataclass whose identity is its content."""

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the class and of all fields; equal content gives the same text in every run."""
        waiting = list(self.children)
        while waiting:  # children first: a chain of many terms is not gone down by recursion
            below = [child for child in waiting[-1].children if "fingerprint" not in vars(child)]
            if below:
                waiting.extend(below)
            else:
                _ = waiting.pop().fingerprint
        content = ",".join(_digest(getattr(self, f.name)) for f in fields(self))
        return hashlib.sha256(f"{type(self).__name__}({content})".encode()).hexdigest()[:32]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below, in field order."""
        return tuple(_nodes(tuple(getattr(self, f.name) for f in fields(self))))


def room_to_walk() -> None:
    """Let functions go down as deep as definitions are: a thousand conditions with OR are a tree of that depth.

    Whoever makes trees calls this. What Python allows otherwise is less than a program may write into a query.
    """
    if sys.getrecursionlimit() < _DEPTH:
        sys.setrecursionlimit(_DEPTH)


def walk(node: Node) -> Iterator[Node]:
    """The node and all below it, each distinct node once, parents first."""
    seen: set[Node] = set()
    stack = [node]
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            yield current
            stack.extend(reversed(current.children))


def _nodes(value: Any) -> Iterator[Node]:
    if isinstance(value, Node):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _nodes(item)


def _digest(value: Any) -> str:
    if isinstance(value, Node):
        return value.fingerprint
    if isinstance(value, tuple):
        return "(" + ",".join(_digest(item) for item in value) + ")"
    return repr(value)
