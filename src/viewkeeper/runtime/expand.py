"""Spark's views and SQL functions as what they stand for, in the text of a definition.

A materialized view keeps meaning what it meant when it was created, also if a view or a function that it reads is
replaced later; and what a view of Spark reads can be followed only by its own tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from viewkeeper.errors import SqlError
from viewkeeper.sql.expansion import Expanded, Piece, calls, with_arguments, without_schemas
from viewkeeper.sql.expressions import Refusal
from viewkeeper.sql.names import table_mentions
from viewkeeper.sql.parse import parse_query, table_queries, tokenize
from viewkeeper.sql.render import quote
from viewkeeper.store.names import canonical, split
from viewkeeper.store.registry import Registry

_system_functions: set[str] = set()


def expand(query: str, session: SparkSession, registry: Registry) -> Expanded:
    """The query with every view of Spark and every SQL function that it names spelled out, all the way down."""
    return _Expander(session, registry).query(query)


@dataclass(frozen=True)
class _Expander:
    session: SparkSession
    registry: Registry

    def query(self, text: str, namespace: tuple[str, ...] = ()) -> Expanded:
        """`namespace` is where a text that was written elsewhere looks for tables of shorter names."""
        try:
            tables = (Piece(t.start, t.end + 1, "SELECT * FROM") for t in table_queries(tokenize(text)))
            pieces = [*tables, *self.views(text, namespace), *self.functions(text)]
            named = list(without_schemas(parse_query(text), partial(self.whole, namespace)))
            pieces += named if not any(_overlap(one, other) for one in named for other in pieces) else []
        except (SqlError, Refusal):  # who reads it next says what is wrong with it
            pieces = []
        return Expanded(text, tuple(sorted(pieces, key=lambda p: p.start)))

    # Views

    def views(self, text: str, namespace: tuple[str, ...]) -> Iterator[Piece]:
        for mention in table_mentions(parse_query(text)):
            parts = (*namespace[: max(0, 3 - len(mention.parts))], *mention.parts)
            found = self.view(mention.parts, parts)
            if found is not None:
                alias = "" if mention.aliased else f" AS {quote(mention.parts[-1])}"
                yield Piece(mention.start, mention.end, f"({found}){alias}")
            elif parts != mention.parts:
                alias = "" if mention.aliased else f" AS {quote(mention.parts[-1])}"
                yield Piece(mention.start, mention.end, canonical(parts) + alias)

    def whole(self, namespace: tuple[str, ...], parts: tuple[str, ...]) -> tuple[str, ...]:
        """All parts of a table's name; `namespace` is as for the text."""
        catalog = self.session.catalog
        home = namespace or (catalog.currentCatalog(), catalog.currentDatabase())
        return (*home[: max(0, 3 - len(parts))], *parts)

    def view(self, named: tuple[str, ...], parts: tuple[str, ...]) -> str | None:
        """The text of a view of Spark's; None for anything else."""
        temporary = self.temporary(named)
        if temporary is not None:
            return self.query(temporary).text
        if self.registry.find(self.registry.tables.canonical(parts)) is not None:
            return None
        try:
            if self.session.catalog.getTable(canonical(parts)).tableType != "VIEW":
                return None
            rows = [(r[0], r[1]) for r in self.session.sql(f"DESCRIBE TABLE EXTENDED {canonical(parts)}").collect()]
        except PySparkException:
            return None
        shown = [name for name, _ in rows[: rows.index(("", ""))]] if ("", "") in rows else []
        about = dict(rows[len(shown) :])
        text, outputs = (
            about.get("View Text"),
            re.findall(r"`((?:[^`]|``)+)`", about.get("View Query Output Columns", "")),
        )
        if text is None or len(outputs) != len(shown):
            return None
        inner = self.query(text, split(about["View Catalog and Namespace"])).text
        columns = ", ".join(f"`{o}` AS {quote(n)}" for o, n in zip(outputs, shown, strict=True))
        return f"SELECT {columns} FROM ({inner})"

    def temporary(self, named: tuple[str, ...]) -> str | None:
        """The text of a temporary view of the session; None also for one that was made of a DataFrame."""
        java = getattr(self.session, "_jsparkSession", None)
        if java is None or len(named) > 2:  # Spark Connect keeps its catalog to itself
            return None
        catalog = java.sessionState().catalog()
        try:
            found = (
                catalog.getRawTempView(named[0])
                if len(named) == 1
                else catalog.getRawGlobalTempView(named[1])
                if named[0].lower() == "global_temp"
                else None
            )
            text = found.get().tableMeta().viewText() if found is not None and found.isDefined() else None
            return str(text.get()) if text is not None and text.isDefined() else None
        except Py4JError:
            return None

    # Functions

    def functions(self, text: str) -> Iterator[Piece]:
        end = 0
        for call in calls(text):
            if call.start >= end and call.name.lower() not in self.system_functions():
                body = self.function(call.name, [self.query_part(a) for a in call.args])
                if body is not None:
                    yield Piece(call.start, call.end, body)
                    end = call.end

    def query_part(self, text: str) -> str:
        return Expanded(text, tuple(self.functions(text))).text

    def system_functions(self) -> set[str]:
        if not _system_functions:
            _system_functions.update(r[0].lower() for r in self.session.sql("SHOW SYSTEM FUNCTIONS").collect())
        return _system_functions

    def function(self, name: str, args: list[str]) -> str | None:
        """What a SQL function gives for these arguments, if it looks at nothing else."""
        try:
            rows = [r[0] for r in self.session.sql(f"DESCRIBE FUNCTION EXTENDED {quote(name)}").collect()]
        except PySparkException:
            return None
        about = _described(rows)
        of_arguments = about.get("Type") == ["SCALAR"] and about.get("Data Access") == ["CONTAINS SQL"]
        if not of_arguments or about.get("Deterministic") != ["true"] or "Body" not in about:
            return None
        inputs = [line.split(" ", 1) for line in about.get("Input", []) if line and line != "()"]
        if len(inputs) != len(args):
            return None
        given = {p.lower(): f"CAST({a} AS {t})" for (p, t), a in zip(inputs, args, strict=True)}
        body = with_arguments(self.query_part("\n".join(about["Body"])), given)
        return f"CAST(({body}) AS {about['Returns'][0]})"


def _overlap(one: Piece, other: Piece) -> bool:
    return one.start <= other.end and other.start <= one.end


def _described(rows: list[str]) -> dict[str, list[str]]:
    """What DESCRIBE FUNCTION says, by its headings; the body comes last and may hold anything."""
    about: dict[str, list[str]] = {}
    heading = ""
    for row in rows:
        head, colon, rest = row.partition(":")
        begins = bool(colon) and bool(head.strip()) and not head.startswith(" ") and heading != "Body"
        heading = head if begins else heading
        about.setdefault(heading, []).append((rest if begins else row).strip())
    return about
