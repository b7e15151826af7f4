"""The only oracle: a view against a recompute of its own text at the versions it covers, as bags, both ways."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pyspark.sql import Observation, Row, SparkSession
from pyspark.sql import functions as f

from viewkeeper.algebra.aggregates import AMBIGUOUS
from viewkeeper.algebra.clock import CLOCK
from viewkeeper.algebra.identity import identity
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Measure, Relation, Top, Window
from viewkeeper.algebra.scalars import Column
from viewkeeper.algebra.settled import settled
from viewkeeper.algebra.types import FLOATING
from viewkeeper.runtime.forms import named_query, public_relation
from viewkeeper.sql.render import quote, render
from viewkeeper.sql.unparse import unparse
from viewkeeper.store.changes import Unchanged
from viewkeeper.store.leaves import Pin, PinnedLeaves
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import View, standing

TOLERANCE = 1e-9
_MATCHED_BY_HAND = 100_000
_SIDE = "__vk_side"


@dataclass(frozen=True)
class Difference:
    rows: int
    missing: tuple[Row, ...]
    extra: tuple[Row, ...]


def difference(view: View, registry: Registry, session: SparkSession) -> Difference:
    """Rows the view lacks, and rows it should not have, by adding up both with opposite signs.

    Sums of doubles may differ in their last digits."""
    stands = standing(registry.log(view), view.id)
    pins = {t: Pin(c.version, c.version, Unchanged()) for t, c in stands.covers.items() if t != CLOCK}
    clock = stands.covers.get(CLOCK)
    pins[view.backing] = Pin(stands.version, stands.version, Unchanged())
    leaves = PinnedLeaves(pins, (clock.version, clock.version) if clock else None)
    names = [name for name, _ in view.columns]
    shown = unparse(public_relation(view), leaves)
    if view.definition is not None and (view.has_star or _picks(view.definition)):
        # The columns that * meant when the view was made; of several right answers the one that is kept.
        wanted = unparse(settled(view.definition), leaves)
    else:
        wanted = named_query(view, tuple(names), leaves, registry.find)
    told = [(name, render(identity(Column(name), type_), {name: quote(name)})) for name, type_ in view.columns]
    comparable = ", ".join(f"{value} AS {quote(name)}" for name, value in told)
    actual = session.sql(f"SELECT {comparable} FROM ({shown})")
    expected = session.sql(f"SELECT {comparable} FROM ({wanted})")
    floating = [i for i, (_, type_) in enumerate(view.columns) if any(t in type_ for t in FLOATING)]
    balance = actual.withColumn(_SIDE, f.lit(1)).union(expected.withColumn(_SIDE, f.lit(-1)))
    counted = Observation()
    uneven = (
        balance.observe(counted, f.count_if(f.col(_SIDE) > 0).alias("rows"))
        .groupBy(*(f.col(quote(name)) for name in names))
        .agg(f.sum(_SIDE).alias(_SIDE))
        .where(f.col(_SIDE) != 0)
        .limit(_MATCHED_BY_HAND)
        .collect()
    )
    missing = [Row(*row[:-1]) for row in uneven for _ in range(-row[_SIDE])]
    extra = [Row(*row[:-1]) for row in uneven for _ in range(row[_SIDE])]
    if floating and missing and extra:
        missing, extra = unmatched(missing, extra, frozenset(floating))
    return Difference(int(counted.get["rows"]), tuple(missing), tuple(extra))


def _picks(definition: Relation) -> bool:
    """Whether the definition allows several answers."""
    nodes = list(walk(definition))
    functions = {n.function for n in nodes if isinstance(n, Measure)}
    return bool(functions & AMBIGUOUS) or any(isinstance(n, Top | Window) for n in nodes)


def unmatched(left: Sequence[Row], right: Sequence[Row], floating: frozenset[int]) -> tuple[list[Row], list[Row]]:
    """What is left of both after pairing rows that differ by no more than the tolerance in floating columns."""

    def exact_part(row: Row) -> str:
        return repr([v for i, v in enumerate(row) if i not in floating])

    pool: dict[str, list[Row]] = {}
    for row in right:
        pool.setdefault(exact_part(row), []).append(row)
    missing = []
    for row in left:
        candidates = pool.get(exact_part(row), [])
        found = next((c for c in candidates if all(_close(row[i], c[i]) for i in floating)), None)
        if found is None:
            missing.append(row)
        else:
            candidates.remove(found)
    return missing, [row for rows in pool.values() for row in rows]


def _close(a: object, b: object) -> bool:
    if isinstance(a, float) and isinstance(b, float):
        return (math.isnan(a) and math.isnan(b)) or math.isclose(a, b, rel_tol=TOLERANCE, abs_tol=1e-12)
    return a == b
