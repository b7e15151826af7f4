"""A catalog of tables that nobody keeps, for tests of binding."""

from __future__ import annotations

from viewkeeper.algebra.relations import Relation
from viewkeeper.errors import SqlError
from viewkeeper.sql.catalog import DeltaTable, KeptView, Source, Unmaintainable
from viewkeeper.testing.histories import SCHEMAS


class FakeCatalog:
    """The tables of the strategies, more if given, and a table whose changes cannot be had."""

    def __init__(self, **views: Relation) -> None:
        self.sources: dict[str, Source] = {name: DeltaTable(name, columns) for name, columns in SCHEMAS.items()}
        self.sources["csv"] = Unmaintainable("csv", "not a Delta table", (("a", "bigint"),))
        for name, public in views.items():
            self.sources[name] = KeptView(name, public, tuple((f.name, f.type) for f in public.schema))

    def resolve(self, parts: tuple[str, ...]) -> Source:
        found = self.sources.get(parts[-1].lower())
        if found is None or parts[:-1] not in ((), ("main",), ("memory", "main")):
            raise SqlError(f"no table {'.'.join(parts)}")
        return found

    def columns(self, query: str) -> tuple[str, ...]:
        return ()
