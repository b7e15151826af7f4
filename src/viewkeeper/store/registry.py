"""The views of a warehouse, found by the tables that hold their rows."""

from __future__ import annotations

import graphlib
from collections.abc import Iterable

from viewkeeper.errors import SourceError, StorageError, UnknownViewError
from viewkeeper.store.log import TableLog
from viewkeeper.store.names import backing_name, split
from viewkeeper.store.tables import Tables
from viewkeeper.store.views import VIEW_PROPERTY, View


class Registry:
    """Views by canonical name, always as their tables say now."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self._known: dict[str, tuple[str, View]] = {}

    def views(self) -> dict[str, View]:
        """All views, each after those it reads."""
        found = [view for backing in self.tables.backing_tables() if (view := self._at(backing)) is not None]
        return {v.name: v for v in in_order(found)}

    def find(self, name: str) -> View | None:
        """The view of this canonical name."""
        backing = backing_name(name)
        return self._at(backing) if self.tables.has_delta(backing) else None

    def current(self, view: View) -> View | None:
        """The view as its table says now: another one, if it was replaced since."""
        return self._at(view.backing)

    def get(self, parts: tuple[str, ...]) -> View:
        name = self.tables.canonical(parts)
        view = self.find(name)
        if view is None:
            known = ", ".join(self.views()) or "none"
            raise UnknownViewError(f"there is no materialized view {name}", hint=f"known views: {known}")
        return view

    def log(self, view: View) -> TableLog:
        return self.tables.log(view.backing)

    def readers(self, view: View) -> list[View]:
        """Views that read this one, directly or through others, in dependency order."""
        reached = {view.backing}
        readers = []
        for other in self.views().values():
            if reached.intersection(other.tables):
                reached.add(other.backing)
                readers.append(other)
        return readers

    def with_sources(self, views: Iterable[View]) -> list[View]:
        """These views and every view they read, in dependency order."""
        by_backing = {v.backing: v for v in self.views().values()}
        needed: set[str] = set()
        pending = [v.backing for v in views]
        while pending:
            backing = pending.pop()
            if backing in by_backing and backing not in needed:
                needed.add(backing)
                pending.extend(by_backing[backing].tables)
        return [v for v in by_backing.values() if v.backing in needed]

    def _at(self, backing: str) -> View | None:
        try:
            text = self.tables.log(backing).snapshot().metadata.properties.get(VIEW_PROPERTY)
        except SourceError:
            return None
        if text is None:
            return None
        known = self._known.get(backing)
        if known is None or known[0] != text:
            try:
                known = self._known[backing] = (text, View.from_json(text))
            except StorageError as error:
                raise StorageError(f"{backing}: {error.message}", hint=error.hint) from error
        return known[1]


def in_order(views: Iterable[View]) -> list[View]:
    """Views after the views they read; by name where that leaves a choice."""
    by_backing = {v.backing: v for v in sorted(views, key=lambda v: split(v.name))}
    graph = {b: [t for t in v.tables if t in by_backing] for b, v in by_backing.items()}
    return [by_backing[b] for b in graphlib.TopologicalSorter(graph).static_order()]
