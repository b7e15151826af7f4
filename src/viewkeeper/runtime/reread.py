"""A definition read again from its text, with what the logs tell of its tables: no Spark."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Relation, Scan
from viewkeeper.errors import ViewkeeperError
from viewkeeper.runtime.forms import public_relation
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable, KeptView, Source
from viewkeeper.sql.parse import parse_query
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import View


@dataclass(frozen=True)
class _LoggedTables:
    """The tables of one view's text."""

    view: View
    registry: Registry

    def resolve(self, parts: tuple[str, ...]) -> Source:
        tables = self.registry.tables
        name = tables.canonical((*self.view.namespace[: 3 - len(parts)], *parts))
        read = self.registry.find(name)
        if read is not None:
            return KeptView(name, public_relation(read), read.columns)
        columns = tables.log(name).snapshot().metadata.columns
        # What * meant when the view was made: columns that came since are not among those it reads.
        known = self._read(name) if self.view.has_star else frozenset(columns)
        return DeltaTable(name, tuple((n, str(type_)) for n, (type_, _) in columns.items() if n in known))

    def columns(self, query: str) -> tuple[str, ...]:
        return ()  # there is no Spark to ask

    def _read(self, name: str) -> frozenset[str]:
        assert self.view.definition is not None
        scans = (n for n in walk(self.view.definition) if isinstance(n, Scan) and n.table == name)
        return frozenset(c.source.lower() for scan in scans for c in scan.columns)


def reread(view: View, registry: Registry) -> Relation | Reason:
    """The algebra of a maintained view as its text says it, before lowering; or why it cannot be had."""
    try:
        bound = bind(parse_query(view.query), _LoggedTables(view, registry), tuple(name for name, _ in view.columns))
    except ViewkeeperError as error:
        return Reason("this query", error.message)
    return bound.as_read if isinstance(bound, Bound) else bound
