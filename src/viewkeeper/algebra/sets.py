"""Set operations and grouping sets as plain groups.

EXCEPT and INTERSECT: per row, its copies on the left and on the right are counted.

    L EXCEPT R        = σ_{l>0 ∧ r=0} G          L EXCEPT ALL R    = each row of G, l − r times
    L INTERSECT R     = σ_{l>0 ∧ r>0} G          L INTERSECT ALL R = each row of G, least(l, r) times
    G = γ_{all columns; l = copies in L, r = copies in R}(L ⊎ R)

Counts are added up from changes, so the change of a set operation needs no look at the rows that did not change.

GROUPING SETS, ROLLUP, CUBE: every row once for each set, the columns outside of the set NULL, and the set's number
as one more column to group by.
"""

from __future__ import annotations

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Generate,
    Item,
    Measure,
    Project,
    Relation,
    SetOperation,
    Union,
    inputs,
    names,
    pass_through,
    with_inputs,
)
from viewkeeper.algebra.scalars import FALSE, NULL, ONE, TRUE, ZERO, Cast, Column, Literal, Scalar, call
from viewkeeper.algebra.types import BIGINT, BOOLEAN, UNKNOWN


def as_groups(rel: Relation) -> Relation:
    """The relation with plain groups for every set operation and for grouping sets."""
    found = (n for n in walk(rel) if isinstance(n, SetOperation | Aggregate))
    numbered: dict[Relation, int] = {node: number for number, node in enumerate(found)}

    def visit(rel: Relation) -> Relation:
        below = with_inputs(rel, tuple(visit(i) for i in inputs(rel)))
        match below:
            case SetOperation():
                return _grouped(below, numbered[rel])
            case Aggregate() if below.sets:
                return _by_sets(below, numbered[rel])
            case _:
                return below

    return visit(rel)


def _by_sets(rel: Aggregate, number: int) -> Relation:
    chosen = f"__vk_set_{number}"
    keys = {k: f"__vk_key_{number}_{i}" for i, k in enumerate(rel.group_by)}
    read = frozenset().union(*(m.reads for m in rel.measures if m.function not in _GROUPING))
    args = pass_through(tuple(f for f in rel.input.schema if f.name in read))
    branches = []
    for position, one in enumerate(rel.sets):
        nulled = tuple(Item(name, Column(k) if k in one else NULL, UNKNOWN) for k, name in keys.items())
        branches.append(Project(rel.input, (*nulled, *args, Item(chosen, Literal(str(position)), UNKNOWN))))
    measures = tuple(m for m in rel.measures if m.function not in _GROUPING)
    groups = Aggregate(Union(tuple(branches)), (*keys.values(), chosen), measures)
    shown = [Item(k, Column(name), UNKNOWN) for k, name in keys.items()]
    for m in rel.measures:
        value = _grouping(m, rel, chosen) if m.function in _GROUPING else Column(m.name)
        shown.append(Item(m.name, value, m.type))
    return Project(groups, tuple(shown))


_GROUPING = {"grouping": "tinyint", "grouping_id": BIGINT}


def _grouping(measure: Measure, rel: Aggregate, chosen: str) -> Scalar:
    """A bit for each column, 1 where the row's set does not have it."""
    over = measure.args or rel.group_by
    value: Scalar = NULL
    for position, one in reversed(list(enumerate(rel.sets))):
        bits = int("0" + "".join("0" if k in one else "1" for k in over), 2)
        value = call("IF", call("=", Column(chosen), Literal(str(position))), Literal(str(bits)), value)
    return Cast(value, _GROUPING[measure.function])


def _grouped(operation: SetOperation, number: int) -> Relation:
    ours, theirs = f"__vk_left_{number}", f"__vk_right_{number}"
    left, right = Column(f"{ours}_n"), Column(f"{theirs}_n")
    tagged = Union(
        (
            _tagged(operation.left, operation, ((ours, TRUE), (theirs, FALSE))),
            _tagged(operation.right, operation, ((ours, FALSE), (theirs, TRUE))),
        )
    )
    counts = (
        Measure(left.name, "count", (), BIGINT, where=ours),
        Measure(right.name, "count", (), BIGINT, where=theirs),
    )
    groups = Aggregate(tagged, names(operation), counts)
    there, here = call(">", left, ZERO), call(">", right, ZERO)
    match operation.kind, operation.all:
        case "except", False:
            rows: Relation = Filter(groups, call("AND", there, call("=", right, ZERO)))
        case "intersect", False:
            rows = Filter(groups, call("AND", there, here))
        case "except", True:
            rows = _repeated(Filter(groups, call(">", left, right)), call("-", left, right), number)
        case _:
            rows = _repeated(Filter(groups, call("AND", there, here)), call("LEAST", left, right), number)
    return Project(rows, pass_through(operation.schema))


def _tagged(rel: Relation, operation: SetOperation, tags: tuple[tuple[str, Scalar], ...]) -> Relation:
    columns = zip(operation.schema, names(rel), strict=True)
    items = (*(Item(f.name, Column(name), f.type) for f, name in columns), *(Item(n, v, BOOLEAN) for n, v in tags))
    return Project(rel, items)


def _repeated(rel: Relation, times: Scalar, number: int) -> Relation:
    return Generate(rel, call("EXPLODE", call("SEQUENCE", ONE, times)), (Field(f"__vk_copy_{number}", BIGINT),))
