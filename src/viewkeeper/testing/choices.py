"""Many small choices from one draw.

Hypothesis takes longer to draw a hundred small values than the interpreter takes to evaluate a view. One draw of
bytes, read choice by choice, is many times as quick and still shrinks: the first of every choice is its simplest,
and where the bytes end every choice is the first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hypothesis import strategies as st

T = TypeVar("T")
S = TypeVar("S")


@dataclass
class Choices:
    data: bytes
    at: int = 0

    def below(self, n: int) -> int:
        """A number from 0 to n - 1."""
        if self.at >= len(self.data):
            return 0
        self.at += 1
        return self.data[self.at - 1] % n

    def between(self, low: int, high: int) -> int:
        return low + self.below(high - low + 1)

    def pick(self, items: Sequence[T]) -> T:
        return items[self.below(len(items))]

    def one_in(self, n: int) -> bool:
        """True once in n times; False is the simple answer."""
        return self.below(n) == n - 1


def chosen(make: Callable[[Choices], T], length: int) -> st.SearchStrategy[T]:
    """What `make` makes of so many choices."""
    return st.binary(min_size=length, max_size=length).map(lambda data: make(Choices(data)))


def both(first: Callable[[Choices], T], second: Callable[[Choices], S], length: int) -> st.SearchStrategy[tuple[T, S]]:
    """Two things from one draw: of two draws Hypothesis spends every other example on changing only one."""
    return st.binary(min_size=2 * length, max_size=2 * length).map(
        lambda data: (first(Choices(data[:length])), second(Choices(data[length:])))
    )
