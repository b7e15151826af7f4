"""Parts of a change that it mentions several times, so that each can be computed once.

The rules nest: what an inner change touches stands several times in the change around it, and in each of those places
again. Written out, the change of a view of many levels has more operators than any engine can plan.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from viewkeeper.algebra.normalize import drop_empty, prune
from viewkeeper.algebra.relations import Changes, Relation, Scan, ScanColumn, empty, inputs, is_empty, with_inputs


@dataclass(frozen=True)
class Sizes:
    """In operators: what is planned as one at most, all written out, and the least that is worth a part.

    Where a change is larger than `most` for the states that it reads again and again, these are parts, too.
    """

    large: int = 150
    worth: int = 8
    most: int = 600


@dataclass(frozen=True)
class Computed:
    """What became of a part: how many rows it has, and the temporary name they are under."""

    name: str
    rows: int


USUAL = Sizes()
Saved = Callable[[Relation], float]


def _nothing(_: Relation) -> float:
    return 0.0


def by_parts(
    change: Relation, compute: Callable[[Relation], Computed], sizes: Sizes = USUAL, saved: Saved = _nothing
) -> Relation:
    """The change with parts of it computed before, one by one, until it is small when written out.

    So are parts that come again and are dear: `saved` says how much it is worth not to compute one once more.
    Parts without rows take with them whatever is joined to them.
    """
    put: dict[Relation, Relation] = {}
    small: set[str] = set()
    while (part := _next_part(change, small, sizes, saved)) is not None:
        if part not in put:  # it may be there again once empty parts are gone
            found = compute(part)
            small.add(found.name)
            columns = tuple(ScanColumn(f.name, f.name, f.type) for f in part.schema)
            put[part] = Scan(found.name, columns) if found.rows else empty(part.schema)
        change = replaced(change, part, put[part])
        if is_empty(put[part]):
            change = prune(drop_empty(change))
    return change


def _next_part(change: Relation, small: set[str], limits: Sizes, saved: Saved) -> Relation | None:
    """The part whose repetition costs most, of those that are small when written out."""
    sizes, counted = _written_out(change)
    if sizes[change] <= limits.large:
        dear = {rel: (n - 1) * saved(rel) for rel, n in counted.items() if n > 1}
        best = max(dear, key=lambda rel: (dear[rel], sizes[rel], rel.fingerprint), default=change)
        return best if dear.get(best, 0) > 0 else None
    follows: dict[Relation, bool] = {}
    for rel in sizes:  # those below come before those above
        own = isinstance(rel, Changes) or (isinstance(rel, Scan) and rel.table in small)
        follows[rel] = own or any(follows[below] for below in inputs(rel))
    fits = [rel for rel, n in counted.items() if n > 1 and limits.worth <= sizes[rel] <= limits.large]
    repeated = [rel for rel in fits if follows[rel]] or (fits if sizes[change] > limits.most else [])
    return max(repeated, key=lambda rel: ((counted[rel] - 1) * sizes[rel], rel.fingerprint), default=None)


def mentions(change: Relation) -> Counter[Relation]:
    """How often each relation stands in the change, all written out."""
    return _written_out(change)[1]


def _written_out(change: Relation) -> tuple[dict[Relation, int], Counter[Relation]]:
    """How many operators each relation is made of, and how often it stands in the change, all written out."""
    order: list[Relation] = []
    seen: set[Relation] = set()

    def visit(rel: Relation) -> None:
        if rel not in seen:
            seen.add(rel)
            for below in inputs(rel):
                visit(below)
            order.append(rel)

    visit(change)
    sizes: dict[Relation, int] = {}
    for rel in order:
        sizes[rel] = 1 + sum(sizes[below] for below in inputs(rel))
    counted = Counter({change: 1})
    for rel in reversed(order):
        for below in inputs(rel):
            counted[below] += counted[rel]
    return sizes, counted


def replaced(change: Relation, part: Relation, put: Relation) -> Relation:
    """The change with something else in the place of a part."""
    known: dict[Relation, Relation] = {part: put}

    def visit(rel: Relation) -> Relation:
        if rel not in known:
            known[rel] = with_inputs(rel, tuple(visit(below) for below in inputs(rel)))
        return known[rel]

    return visit(change)
