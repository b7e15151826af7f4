"""Spark's views and SQL functions as what they stand for, in the text of a definition.

A materialized view keeps meaning what it meant when it was created, also if a view or a function that it reads is
replaced later; and what a view of Spark reads can be followed only by its own tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.errors import Position, SqlError
from viewkeeper.sql.bind import table_mentions
from viewkeeper.sql.expressions import Refusal
from viewkeeper.sql.parse import parse_query, tokenize
from viewkeeper.sql.unparse import quote
from viewkeeper.store.names import canonical, split
from viewkeeper.store.registry import Registry

_system_functions: set[str] = set()


@dataclass(frozen=True)
class Piece:
    """A part of the text that another stands for: where it was, and what stands there now."""

    start: int
    end: int
    by: str


@dataclass(frozen=True)
class Expanded:
    """A text with its views and functions spelled out, and where each part of it comes from."""

    written: str
    pieces: tuple[Piece, ...]

    @property
    def text(self) -> str:
        found = self.written
        for piece in reversed(self.pieces):
            found = found[: piece.start] + piece.by + found[piece.end :]
        return found

    def origin(self, position: Position) -> Position:
        """The place in the text as it was written; a place inside of a view is where the view is named."""
        lines = self.text.split("\n")
        at = sum(len(line) + 1 for line in lines[: position.line - 1]) + position.column - 1
        for piece in self.pieces:
            if at < piece.start:
                break
            if at < piece.start + len(piece.by):
                at = piece.start
                break
            at -= len(piece.by) - (piece.end - piece.start)
        before = self.written[:at]
        return Position(before.count("\n") + 1, at - (before.rfind("\n") + 1) + 1)


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
            pieces = [*self.views(text, namespace), *self.functions(text)]
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
        tokens = tokenize(text)
        end = -1
        for i, token in enumerate(tokens[:-1]):
            called = token.token_type == TokenType.VAR and tokens[i + 1].token_type == TokenType.L_PAREN
            if not called or token.start < end or token.text.lower() in self.system_functions():
                continue
            if i and tokens[i - 1].token_type == TokenType.DOT:
                continue
            args, last = _arguments(text, tokens, i + 1)
            body = self.function(token.text, [self.query_part(a) for a in args])
            if body is not None:
                yield Piece(token.start, last + 1, body)
                end = last

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
        body = self.query_part("\n".join(about["Body"]))
        pieces = [
            Piece(t.start, t.end + 1, given[t.text.lower()])
            for t in tokenize(body)
            if t.token_type == TokenType.VAR and t.text.lower() in given
        ]
        return f"CAST(({Expanded(body, tuple(pieces)).text}) AS {about['Returns'][0]})"


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


def _arguments(text: str, tokens: list[Token], opening: int) -> tuple[list[str], int]:
    """The texts of the arguments between brackets, and where the closing one stands."""
    depth, start, found = 0, tokens[opening].end + 1, []
    for token in tokens[opening:]:
        depth += token.token_type == TokenType.L_PAREN
        depth -= token.token_type == TokenType.R_PAREN
        if depth == 0 or (depth == 1 and token.token_type == TokenType.COMMA):
            found.append(text[start : token.start])
            start = token.end + 1
        if depth == 0:
            return [a for a in found if a.strip()], token.end
    raise SqlError("a bracket is not closed")
