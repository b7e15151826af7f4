"""Affected keys: which groups a change touches, and the rows that belong to them."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.relations import Aggregate, Item, Join, Project, Relation
from viewkeeper.algebra.scalars import Column, Scalar, conjunction, same

_KEY = "__vk_key_"


@dataclass(frozen=True)
class Keys:
    """The distinct keys in a change, under names of their own so that they can be joined to the rows."""

    relation: Relation
    columns: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(_KEY + c for c in self.columns)

    @property
    def matches(self) -> Scalar:
        return conjunction([same(Column(c), Column(_KEY + c)) for c in self.columns])


def affected_keys(change: Relation, columns: tuple[str, ...]) -> Keys | None:
    """T = distinct π_K(δE); None where there is no key, so that everything is one group."""
    if not columns:
        return None
    types = {f.name: f.type for f in change.schema}
    renamed = Project(change, tuple(Item(_KEY + c, Column(c), types[c]) for c in columns))
    return Keys(Aggregate(renamed, tuple(_KEY + c for c in columns), ()), columns)


def restrict(rel: Relation, keys: Keys | None) -> Relation:
    """E ⋉ T: the rows of the affected groups."""
    return rel if keys is None else Join(rel, keys.relation, "semi", keys.matches)
