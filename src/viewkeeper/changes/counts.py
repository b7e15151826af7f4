"""About how many rows the parts of a change have: by keys where these tell, else by a guess.

Spark takes a join for as large as the product of its sides, so that it would rather shuffle a whole table than send
it the few rows that a change was joined to before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod, sqrt
from typing import assert_never

from viewkeeper.algebra.keys import NOTHING, Declared, equal_columns, keys, origins, same_columns
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Filter,
    Generate,
    Join,
    Pivot,
    Project,
    Relation,
    Scan,
    SetOperation,
    Side,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    inputs,
)
from viewkeeper.algebra.scalars import Call, Column, Scalar, conjuncts

FEW = 200_000  # rows that are sent to the other side of a join
WORTH_A_QUERY = 1_000_000  # rows that take as long to read as one more query does
MATCHES = 10  # of a value, as is likely where nothing is known
_LEFT = {"=": 0.2, "IN": 0.3, "LIKE": 0.2, "<": 0.5, "<=": 0.5, ">": 0.5, ">=": 0.5}  # by a comparison


@dataclass(frozen=True)
class RowCounts:
    """Rows of tables and of their changes, and what is declared of them; a table that is not there may be large."""

    tables: dict[str, int]  # grows with the parts that are computed on the way
    changes: Mapping[str, int]
    declared: Declared = NOTHING
    guessing: bool = False  # what is likely; else what is to be reckoned with: large tables may hold a value often
    known: dict[Relation, float] = field(default_factory=dict)

    def rows(self, rel: Relation) -> float:
        if rel not in self.known:
            self.known[rel] = self._rows(rel)
        return self.known[rel]

    def is_few(self, rel: Relation) -> bool:
        return self.rows(rel) <= FEW

    def saved(self, part: Relation) -> float:
        """How many rows of large tables need not be read again, if a part of few rows is computed once."""
        if not inputs(part) or not self.is_few(part):
            return 0
        tables = [self.tables.get(n.table, 0) for n in walk(part) if isinstance(n, Scan)]
        read = sum(rows for rows in tables if rows > FEW)
        return read if read > WORTH_A_QUERY else 0

    def sent(self, join: Join) -> Side | None:
        """The side of a join whose few rows are sent to the other; what is padded or kept can only be sent to."""
        if join.kind == "full":
            return None
        left, right = self.rows(join.left), self.rows(join.right)
        if join.kind == "inner" and left <= min(right, FEW):
            return "left"
        return "right" if right <= FEW else None

    def _rows(self, rel: Relation) -> float:
        match rel:
            case Scan(table):
                return self.tables.get(table, float("inf"))
            case Changes(table):
                return self.changes.get(table, float("inf"))
            case Values(_, rows):
                return len(rows)
            case Filter(input, predicate):
                return self.rows(input) * (left_by(predicate) if self.guessing else 1)
            case Project(input) | Window(input) | Pivot(input):
                return self.rows(input)
            case Aggregate(input, group_by, _, sets):
                return self._different(input, group_by) * max(1, len(sets)) if group_by else 1
            case Top(input, _, limit):
                return self.rows(input) if limit is None else min(limit, self.rows(input))
            case Generate(input):
                return self.rows(input) * MATCHES
            case Unpivot(input, taken=taken):
                return self.rows(input) * len(taken)
            case Union(inputs):
                return sum(map(self.rows, inputs))
            case SetOperation(left, right):
                return self.rows(left) + self.rows(right)
            case Join():
                return self._joined(rel)
            case _:
                assert_never(rel)

    def _joined(self, rel: Join) -> float:
        left, right = self.rows(rel.left), self.rows(rel.right)
        match rel.kind:
            case "inner":
                return self._met(rel)
            case "semi":
                return min(left, self._met(rel))
            case "anti":
                return left
            case "left":
                return max(left, self._met(rel))
            case "full":
                return left + right
            case _:
                assert_never(rel.kind)

    def _met(self, rel: Join) -> float:
        """|L ⋈ R| ≈ |L| · |R| / values of the compared columns, as many as the table has of which they are a key."""
        left, right = self.rows(rel.left), self.rows(rel.right)
        pairs = [*equal_columns(rel), *(same_columns(rel) if self.guessing else ())]  # NULLs may be many
        if not pairs or 0 in (left, right):
            return min(left * right, max(left, right)) if self.guessing else left * right
        ours, theirs = (tuple(dict.fromkeys(side)) for side in zip(*pairs, strict=True))
        bounds = [left * right]
        if any(key <= set(theirs) for key in keys(rel.right, self.declared)):
            bounds.append(left)
        if any(key <= set(ours) for key in keys(rel.left, self.declared)):
            bounds.append(right)
        values = max(self._values(rel.left, ours), self._values(rel.right, theirs))
        matches = MATCHES if self.guessing else sqrt(max(left, right))
        bounds.append(left * right / values if values else min(left, right) * matches)
        return min(bounds)

    def _different(self, rel: Relation, columns: tuple[str, ...]) -> float:
        """How many values columns can have at most: |γₓ(L ⋉ₓ R)| ≤ |R|."""
        match rel:
            case Filter(input):
                found = self._different(input, columns)
            case Project(input, items):
                below = {i.name: i.value.name for i in items if isinstance(i.value, Column)}
                shown = set(columns) <= below.keys()
                found = self._different(input, tuple(below[c] for c in columns)) if shown else self.rows(rel)
            case Join(left, right, "inner" | "semi"):
                compared = {ours for ours, _ in (*equal_columns(rel), *same_columns(rel))}
                found = self.rows(right) if compared >= set(columns) else self.rows(rel)
                if {f.name for f in left.schema} >= set(columns):
                    found = min(found, self._different(left, columns))
            case _:
                found = self.rows(rel)
        return min(found, self.rows(rel))

    def _values(self, rel: Relation, columns: tuple[str, ...]) -> float:
        """How many values columns can have that are a key of the table they come from; 0 if they are none."""
        found = origins(rel, columns) or frozenset()
        counts = [
            self.tables.get(o.leaf.table, 0)
            for o in found
            if any(key <= set(o.columns) for key in self.declared.keys.get(o.leaf.table, ()))
        ]
        return max(counts, default=0)


def left_by(predicate: Scalar) -> float:
    """Which share of the rows fulfils a condition."""
    shares = (_LEFT.get(term.name, 1.0) for term in conjuncts(predicate) if isinstance(term, Call))
    return prod(shares, start=1.0)
