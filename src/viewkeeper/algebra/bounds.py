"""Difference constraints: what a conjunction of `x ≤ y + c` says of any two of its terms.   [Blakeley 1986, 4]

A constant is a term like any other: `x ≤ c` is `x ≤ zero + c` and `x ≥ c` is `zero ≤ x − c`. The paper prints these two
the wrong way round, which would drop rows that matter.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

Term = TypeVar("Term", bound=Hashable)


@dataclass(frozen=True, order=True)
class Bound:
    """x − y is at most `limit`, or less than it if not `closed`; of two bounds the smaller says more."""

    limit: Fraction
    closed: bool = True

    def __add__(self, other: Bound) -> Bound:
        """x − y ≤ b and y − z ≤ c give x − z ≤ b + c"""
        return Bound(self.limit + other.limit, self.closed and other.closed)

    @property
    def of_integers(self) -> Bound:
        """The same said of a whole number: less than c is at most c − 1."""
        below = math.floor(self.limit)
        return Bound(Fraction(below if self.closed or below != self.limit else below - 1))


NO_MORE = Bound(Fraction(0))
LESS = Bound(Fraction(0), closed=False)

Bounds = Mapping[tuple[Term, Term], Bound]


def closure(said: Iterable[tuple[Term, Term, Bound]], integers: Collection[Term]) -> Bounds[Term] | None:
    """The tightest bound that follows for every two terms; None if nothing can satisfy them all.

    Floyd–Warshall. Exact where all terms are integers or none is; sound, if not always the tightest, for a mix.
    """
    tightest: dict[tuple[Term, Term], Bound] = {}

    def learn(x: Term, y: Term, bound: Bound) -> None:
        if x in integers and y in integers:
            bound = bound.of_integers
        if (x, y) not in tightest or bound < tightest[x, y]:
            tightest[x, y] = bound

    for x, y, bound in said:
        learn(x, y, bound)
    for middle in dict.fromkeys(term for pair in tightest for term in pair):
        before = [(x, bound) for (x, y), bound in tightest.items() if y == middle]
        after = [(y, bound) for (x, y), bound in tightest.items() if x == middle]
        for x, first in before:
            for y, second in after:
                learn(x, y, first + second)
    if any(x == y and bound < NO_MORE for (x, y), bound in tightest.items()):
        return None
    return tightest


def equal(bounds: Bounds[Term], x: Term, y: Term) -> bool:
    """Whether x − y is one fixed number."""
    there, back = bounds.get((x, y)), bounds.get((y, x))
    return there is not None and back is not None and there + back == NO_MORE


def essential(bounds: Bounds[Term], terms: Sequence[Term]) -> list[tuple[Term, Term, Bound]]:
    """The bounds of a closure between these terms, without those that follow from the others."""
    leader = {t: next(s for s in terms if s == t or equal(bounds, s, t)) for t in terms}
    kept = [pair for t, first in leader.items() if t != first for pair in ((t, first), (first, t))]
    leaders = [t for t, first in leader.items() if t == first]
    for x in leaders:
        for y in leaders:
            others = [z for z in leaders if z not in (x, y) and (x, z) in bounds and (z, y) in bounds]
            if x != y and (x, y) in bounds and all(bounds[x, z] + bounds[z, y] > bounds[x, y] for z in others):
                kept.append((x, y))
    return [(x, y, bounds[x, y]) for x, y in kept]
