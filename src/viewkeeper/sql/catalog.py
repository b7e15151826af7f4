"""What binding must know of the tables a query names, whoever keeps them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from viewkeeper.algebra.relations import Relation
from viewkeeper.algebra.scalars import Scalar


@dataclass(frozen=True)
class DeltaTable:
    """A Delta table: canonical name, and its columns with Spark's types."""

    name: str
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class KeptView:
    """A materialized view of ours: what its readers see, as algebra over its backing table."""

    name: str
    public: Relation
    columns: tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Unmaintainable:
    """Anything else Spark can read, and why its changes cannot be had."""

    name: str
    why: str
    columns: tuple[tuple[str, str], ...]


Source = DeltaTable | KeptView | Unmaintainable


@dataclass(frozen=True)
class Generated:
    """Not a table but a function in the place of one, which makes numbers."""

    generator: Scalar
    columns: tuple[tuple[str, str], ...]


Named = Source | Generated


class Resolver(Protocol):
    def resolve(self, parts: tuple[str, ...]) -> Source:
        """The table of this one- to three-part name; SqlError if there is none."""


class Catalog(Resolver, Protocol):
    def columns(self, query: str) -> tuple[str, ...]:
        """What Spark calls the columns of a query; none where it cannot be asked or cannot say."""
