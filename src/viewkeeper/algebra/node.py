"""What every node of the algebra is: data, compared by content.

Equality and hash use a digest of the content, computed once per node, so that comparing large shared
graphs costs no more than comparing two strings.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_DEPTH = 10_000


@dataclass(frozen=True, eq=False)
class Node:
    """A frozen dataclass whose identity is its content."""

    @cached_property
    def fingerprint(self) -> str:
        """A digest of the class and of all fields; equal content gives the same text in every run."""
        waiting: list[Node] = [self]
        while True:  # children first: a chain of many terms is not gone down by recursion
            node = waiting[-1]
            below = [child for child in node.children if "fingerprint" not in vars(child)]
            if below:
                waiting += below
                continue
            found = hashlib.sha256(f"{type(node).__name__}{_digest(node._content)}".encode()).hexdigest()[:32]
            if node is self:
                return found
            vars(node)["fingerprint"] = found  # where the property itself would keep it
            waiting.pop()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.fingerprint == other.fingerprint

    def __hash__(self) -> int:
        return hash(self.fingerprint)

    @cached_property
    def children(self) -> tuple[Node, ...]:
        """The nodes directly below, in field order."""
        return tuple(_nodes(self._content))

    @property
    def _content(self) -> tuple[Any, ...]:
        # `dataclasses.fields` takes longer to give the names than all else here.
        return tuple([getattr(self, name) for name in self.__dataclass_fields__])


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


def _nodes(values: tuple[Any, ...]) -> list[Node]:
    found: list[Node] = []
    for value in values:
        if isinstance(value, Node):
            found.append(value)
        elif isinstance(value, tuple):
            found += _nodes(value)
    return found


def _digest(value: Any) -> str:
    if isinstance(value, Node):
        return value.fingerprint
    if isinstance(value, tuple):
        return f"({','.join(map(_digest, value))})"
    return repr(value)
