"""Conditions that look at the clock.

The clock is one more source: as time moves, rows enter and leave σ_p though nobody changed them. What entered and what
left is asked of the rows as they were, between the two moments that the bounds have moved over.
"""

from __future__ import annotations

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Filter, Join, Relation, inputs, with_inputs
from viewkeeper.algebra.scalars import FALSE, Call, Clock, Scalar, call, conjunction, conjuncts, own_columns, rebuild

CLOCK = "__vk_clock"  # the clock among the sources that changed

_COMPARISONS = frozenset({"=", "<", "<=", ">", ">="})


def reads_clock(scalar: Scalar) -> bool:
    return any(isinstance(node, Clock) for node in walk(scalar))


def earlier(scalar: Scalar) -> Scalar:
    """The expression by the clock of the old state."""
    return rebuild(scalar, lambda s: Clock(s.function, "old") if isinstance(s, Clock) else None)


def moved_bounds(predicate: Scalar) -> tuple[Scalar, Scalar]:
    """What holds of a row now and did not before by the clock alone, and the other way round."""
    steady = [term for term in conjuncts(predicate) if not reads_clock(term)]
    now = [term for term in conjuncts(predicate) if reads_clock(term)]
    then = [earlier(term) for term in now]
    return conjunction([*steady, *now, _not_all(then)]), conjunction([*steady, *then, _not_all(now)])


def in_filters(rel: Relation) -> Relation:
    """σ above an inner join for what its condition asks of the clock."""
    below = with_inputs(rel, tuple(in_filters(i) for i in inputs(rel)))
    match below:
        case Join(left, right, "inner", condition) if reads_clock(condition):
            terms = conjuncts(condition)
            steady = conjunction([t for t in terms if not reads_clock(t)])
            return Filter(Join(left, right, "inner", steady), conjunction([t for t in terms if reads_clock(t)]))
        case _:
            return below


def misplaced(rel: Relation) -> Clock | None:
    """A look at the clock elsewhere than in the condition of a filter."""
    below = inputs(rel)
    own = () if isinstance(rel, Filter) else (child for child in rel.children if child not in below)
    looks = (node for child in own for node in walk(child) if isinstance(node, Clock))
    return next(looks, None) or next((found for i in below if (found := misplaced(i)) is not None), None)


def _not_all(terms: list[Scalar]) -> Scalar:
    """At least one of them is not true."""
    found = _negated(terms[0])
    for term in terms[1:]:
        found = call("OR", found, _negated(term))
    return found


def _negated(term: Scalar) -> Scalar:
    """Not true. A comparison of a row's value with a moment is unknown at one moment just where it is at any other."""
    match term:
        case Call(name, (left, right)) if name in _COMPARISONS and (_apart(left, right) or _apart(right, left)):
            return call("NOT", term)
        case _:
            return call("NOT", call("COALESCE", term, FALSE))


def _apart(value: Scalar, moment: Scalar) -> bool:
    return not reads_clock(value) and not own_columns(moment)
