"""Viewkeeper's own statements: CREATE, REFRESH, DROP, SHOW, DESCRIBE and EXPLAIN of materialized views."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal as OneOf
from typing import TypeVar

from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.errors import Position, SqlError
from viewkeeper.sql.parse import tokenize

Policy = OneOf["AUTO", "INCREMENTAL", "INCREMENTAL STRICT", "FULL"]
Name = tuple[str, ...]
T = TypeVar("T")
_COMMAND = re.compile(r"(?:\s|--[^\n]*\n|/\*.*?\*/)*(SHOW|EXPLAIN)\b", re.IGNORECASE | re.DOTALL)


@dataclass(frozen=True)
class CreateView:
    """CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] name [(columns)] clauses AS query"""

    name: Name
    query: str
    columns: tuple[str, ...] = ()
    column_comments: dict[str, str] = field(default_factory=dict)
    comment: str | None = None
    cluster_by: tuple[str, ...] = ()
    properties: dict[str, str] = field(default_factory=dict)
    policy: Policy = "AUTO"
    or_replace: bool = False
    if_not_exists: bool = False
    cascade: bool = False
    query_start: Position = Position(1, 1)  # noqa: RUF009


@dataclass(frozen=True)
class RefreshView:
    """REFRESH MATERIALIZED VIEW name [FULL]"""

    name: Name
    full: bool = False


@dataclass(frozen=True)
class DropView:
    """DROP MATERIALIZED VIEW [IF EXISTS] name [CASCADE]"""

    name: Name
    if_exists: bool = False
    cascade: bool = False


@dataclass(frozen=True)
class ShowViews:
    """SHOW MATERIALIZED VIEWS"""


@dataclass(frozen=True)
class DescribeView:
    """DESCRIBE MATERIALIZED VIEW name"""

    name: Name


@dataclass(frozen=True)
class ExplainCreate:
    """EXPLAIN CREATE MATERIALIZED VIEW …"""

    create: CreateView


@dataclass(frozen=True)
class ExplainRefresh:
    """EXPLAIN REFRESH [MATERIALIZED VIEW] name"""

    name: Name


@dataclass(frozen=True)
class SparkStatement:
    """Anything else: Spark's business."""

    text: str


Statement = (
    CreateView | RefreshView | DropView | ShowViews | DescribeView | ExplainCreate | ExplainRefresh | SparkStatement
)


def parse_statement(text: str) -> Statement:
    """One statement; a final semicolon is allowed."""
    try:
        tokens = _tokens(text)
    except SqlError:
        return SparkStatement(text)  # Spark's lexer knows more, and says better what is wrong
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return _Reader(text, tokens).statement()


def _tokens(text: str) -> list[Token]:
    """The statement's tokens. sqlglot takes all after SHOW or EXPLAIN for one string: the word is hidden from it."""
    command = _COMMAND.match(text)
    if command is None:
        return tokenize(text)
    start, end = command.span(1)
    tokens = tokenize(text[:start] + "x" * (end - start) + text[end:])
    tokens[0].text = command[1]
    return tokens


def split_statements(text: str) -> list[str]:
    """The statements of a script, parted at its semicolons."""
    parts, start = [], 0
    for token in tokenize(text):
        if token.token_type == TokenType.SEMICOLON:
            parts.append(text[start : token.start])
            start = token.end + 1
    parts.append(text[start:])
    return [p.strip() for p in parts if tokenize(p)]


@dataclass
class _Reader:
    """Reads tokens by their words; keywords have no case."""

    text: str
    tokens: list[Token]
    at: int = 0

    def statement(self) -> Statement:
        if self.words("CREATE", "MATERIALIZED", "VIEW") or self.words("CREATE", "OR", "REPLACE", "MATERIALIZED"):
            return self.create()
        if self.take("REFRESH", "MATERIALIZED", "VIEW"):
            return self.done(RefreshView(self.name(), self.take("FULL")))
        if self.take("DROP", "MATERIALIZED", "VIEW"):
            if_exists = self.take("IF", "EXISTS")
            return self.done(DropView(self.name(), if_exists, self.take("CASCADE")))
        if self.take("SHOW", "MATERIALIZED", "VIEWS"):
            return self.done(ShowViews())
        if self.take("DESCRIBE", "MATERIALIZED", "VIEW") or self.take("DESC", "MATERIALIZED", "VIEW"):
            return self.done(DescribeView(self.name()))
        if self.words("EXPLAIN", "CREATE", "MATERIALIZED") or self.words(
            "EXPLAIN", "CREATE", "OR", "REPLACE", "MATERIALIZED"
        ):
            self.take("EXPLAIN")
            return ExplainCreate(self.create())
        if self.take("EXPLAIN", "REFRESH"):
            self.take("MATERIALIZED", "VIEW")
            return self.done(ExplainRefresh(self.name()))
        return SparkStatement(self.text)

    # CREATE

    def create(self) -> CreateView:
        self.expect("CREATE")
        or_replace = self.take("OR", "REPLACE")
        self.expect("MATERIALIZED", "VIEW")
        if_not_exists = self.take("IF", "NOT", "EXISTS")
        if or_replace and if_not_exists:
            raise self.error("OR REPLACE and IF NOT EXISTS exclude each other")
        name = self.name()
        found: dict[str, object] = {}
        columns, comments = self.columns() if self.peek("(") else ((), {})
        while not self.take("AS"):
            key, value = self.clause()
            if key in found:
                raise self.error(f"{key.replace('_', ' ').upper()} is given twice")
            found[key] = value
        if self.at >= len(self.tokens):
            raise self.error("a query must follow AS")
        first, last = self.tokens[self.at], self.tokens[-1]
        return CreateView(
            name=name,
            query=self.text[first.start : last.end + 1],
            columns=columns,
            column_comments=comments,
            or_replace=or_replace,
            if_not_exists=if_not_exists,
            query_start=Position(first.line, max(1, first.col - len(first.text) + 1)),
            **found,  # type: ignore[arg-type]
        )

    def clause(self) -> tuple[str, object]:
        """One clause of CREATE; they come in any order."""
        readers: tuple[tuple[tuple[str, ...], str, Callable[[], object]], ...] = (
            (("COMMENT",), "comment", self.string),
            (("CLUSTER BY",), "cluster_by", lambda: tuple(n[-1] for n in self.listed(self.name))),
            (("TBLPROPERTIES",), "properties", lambda: dict(self.listed(self.property))),
            (("REFRESH", "POLICY"), "policy", self.policy),
            (("CASCADE",), "cascade", lambda: True),
        )
        for words, key, read in readers:
            if self.take(*words):
                return key, read()
        raise self.error(
            "expected COMMENT, CLUSTER BY, TBLPROPERTIES, REFRESH POLICY, CASCADE or AS"
            + (f", found {self.tokens[self.at].text!r}" if self.at < len(self.tokens) else "")
        )

    def policy(self) -> Policy:
        if self.take("AUTO"):
            return "AUTO"
        if self.take("FULL"):
            return "FULL"
        if self.take("INCREMENTAL"):
            return "INCREMENTAL STRICT" if self.take("STRICT") else "INCREMENTAL"
        raise self.error("the policies are AUTO, INCREMENTAL, INCREMENTAL STRICT and FULL")

    def columns(self) -> tuple[tuple[str, ...], dict[str, str]]:
        comments: dict[str, str] = {}

        def column() -> str:
            name = self.identifier()
            if self.take("COMMENT"):
                comments[name] = self.string()
            return name

        return tuple(self.listed(column)), comments

    def property(self) -> tuple[str, str]:
        if self.at < len(self.tokens) and self.tokens[self.at].token_type == TokenType.STRING:
            key = self.string()
        else:
            key = ".".join(self.name())
        self.take("=")
        token = self.next()
        return key, token.text

    # Words

    def words(self, *expected: str) -> bool:
        found = [t.text.upper() for t in self.tokens[self.at : self.at + len(expected)]]
        return found == list(expected)

    def take(self, *expected: str) -> bool:
        if self.words(*expected):
            self.at += len(expected)
            return True
        return False

    def expect(self, *expected: str) -> None:
        if not self.take(*expected):
            raise self.error(f"expected {' '.join(expected)}")

    def peek(self, text: str) -> bool:
        return self.at < len(self.tokens) and self.tokens[self.at].text == text

    def next(self) -> Token:
        if self.at >= len(self.tokens):
            raise self.error("the statement ends too early")
        self.at += 1
        return self.tokens[self.at - 1]

    def string(self) -> str:
        token = self.next()
        if token.token_type != TokenType.STRING:
            raise self.error("expected a string in quotes")
        return token.text

    def identifier(self) -> str:
        token = self.next()
        quoted = token.token_type == TokenType.IDENTIFIER
        word = token.token_type != TokenType.STRING and bool(re.match(r"[^\W\d]", token.text))
        if not quoted and not word:
            raise self.error(f"expected a name, found {token.text!r}")
        return token.text

    def name(self) -> Name:
        parts = [self.identifier()]
        while self.take("."):
            parts.append(self.identifier())
        if len(parts) > 3:
            raise self.error("a name has at most three parts")
        return tuple(parts)

    def listed(self, read: Callable[[], T]) -> list[T]:
        self.expect("(")
        items = [read()]
        while self.take(","):
            items.append(read())
        self.expect(")")
        return items

    def done(self, statement: T) -> T:
        if self.at < len(self.tokens):
            raise self.error(f"unexpected {self.tokens[self.at].text!r}")
        return statement

    def error(self, message: str) -> SqlError:
        token = self.tokens[min(self.at, len(self.tokens) - 1)] if self.tokens else None
        where = Position(token.line, max(1, token.col - len(token.text) + 1)) if token else None
        return SqlError(message, position=where)
