"""Expressions of an update strategy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Comp:
    """Compute the part of a view's change that comes from the changes of some of its inputs together."""

    view: str
    changed: frozenset[str]

    def __str__(self) -> str:
        return f"Comp({self.view},{{{','.join(sorted(self.changed))}}})"


@dataclass(frozen=True)
class Inst:
    """Install a view's change."""

    view: str

    def __str__(self) -> str:
        return f"Inst({self.view})"


@dataclass(frozen=True)
class CompAt:
    """Comp over versioned tables: it says itself which inputs it reads after their change, the others as they were."""

    view: str
    changed: frozenset[str]
    new: frozenset[str]

    def __str__(self) -> str:
        after = f" after {{{','.join(sorted(self.new))}}}" if self.new else ""
        return f"Comp({self.view},{{{','.join(sorted(self.changed))}}}{after})"


Strategy = tuple[Comp | Inst, ...]
VersionedStrategy = tuple[CompAt | Inst, ...]
