"""What a LATERAL query makes of the row on its left alone, without rows of its own: S(E) instead of E ⋈ S."""

from __future__ import annotations

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Filter, Generate, Item, Join, Project, Relation, Values, names, pass_through
from viewkeeper.algebra.scalars import TRUE, Column, Outer, Scalar, rebuild, subqueries


def of_each_row(rel: Join) -> Relation | None:
    """S(E) for a lateral join of E and S; None if S has rows of its own, or rows of E without any are to be padded."""
    if rel.kind == "left":
        return _padded(rel) if rel.condition == TRUE else None
    rows = _made(rel, rel.right)
    return Filter(rows, rel.condition) if rows is not None and rel.condition != TRUE else rows


def without_condition(rel: Join) -> Relation | None:
    """What Spark makes of a lateral join that has no ON, where all of S is values or one generator.

    It computes them on the row itself and pads none, also where it is called a LEFT JOIN.
    """
    made = [n for n in walk(rel.right) if isinstance(n, Filter | Generate)]
    return _made(rel, rel.right) if len(made) < 2 and not any(isinstance(n, Filter) for n in made) else None


def _padded(rel: Join) -> Relation | None:
    """⟕: a row without any is as one that an outer generator makes, if that is all there is."""
    match rel.right:
        case Generate(Values((), ((),))) as made:
            return _made(rel, Generate(made.input, made.generator, made.fields, outer=True))
        case Project(Generate(Values((), ((),))) as made, items) if all(isinstance(i.value, Column) for i in items):
            padded = Generate(made.input, made.generator, made.fields, outer=True)
            return _made(rel, Project(padded, items))
        case _ if not any(isinstance(n, Filter | Generate) for n in walk(rel.right)):
            return _made(rel, rel.right)  # one row, always
        case _:
            return None


def _made(rel: Join, made: Relation) -> Relation | None:
    seen = frozenset(names(rel.left))

    def inward(scalar: Scalar) -> Scalar:
        return rebuild(scalar, lambda s: Column(s.name) if isinstance(s, Outer) and s.name in seen else None)

    below = _made(rel, made.input) if isinstance(made, Generate | Filter | Project) else None
    match made:
        case Values((), ((),)):
            return rel.left
        case Generate(_, generator, fields, outer) if below is not None:
            return Generate(below, inward(generator), fields, outer)
        case Filter(_, predicate) if below is not None and not subqueries(predicate):
            return Filter(below, inward(predicate))
        case Project(_, items) if below is not None and not any(subqueries(i.value) for i in items):
            computed = tuple(Item(i.name, inward(i.value), i.type) for i in items)
            return Project(below, (*pass_through(rel.left.schema), *computed))
        case _:
            return None
