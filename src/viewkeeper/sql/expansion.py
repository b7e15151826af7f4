"""Texts with parts that stand for others: which calls are in them, and where each part comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.errors import Position, SqlError
from viewkeeper.sql.names import TableMention, table_mentions
from viewkeeper.sql.parse import tokenize
from viewkeeper.sql.render import quote


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


def without_schemas(tree: exp.Query, whole: Callable[[tuple[str, ...]], tuple[str, ...]]) -> Iterator[Piece]:
    """Columns that are called by the schema of their table, called by the table alone; `whole` is a table's whole name.

    Tables of the same name in several schemas get one of their own each. Spark reads `a.b.c` by schema, table and
    column before anything else.
    """
    others = {alias.name.lower() for alias in tree.find_all(exp.TableAlias)}
    mentions: dict[str, dict[tuple[str, ...], list[TableMention]]] = {}
    for mention in table_mentions(tree):
        if not mention.aliased and mention.parts[-1].lower() not in others:
            tables = mentions.setdefault(mention.parts[-1].lower(), {})
            tables.setdefault(_lower(whole(mention.parts)), []).append(mention)
    called: dict[tuple[str, ...], list[tuple[int, int]]] = {}
    for column in tree.find_all(exp.Column):
        table, place = _table_of(column, mentions)
        if table:
            called.setdefault(table, []).append(place)
        elif len(column.parts) > 1 and len(mentions.get(column.parts[0].name.lower(), ())) > 1:
            return  # whose it is only Spark knows
    for name, tables in mentions.items():
        for number, (table, named) in enumerate(tables.items(), 1):
            alias = name if len(tables) == 1 else f"{name}_{number}"
            yield from (Piece(start, end, quote(alias)) for start, end in called.get(table, ()))
            if len(tables) > 1:
                yield from (Piece(mention.end, mention.end, f" AS {quote(alias)}") for mention in named)


def _table_of(
    column: exp.Column, mentions: Mapping[str, Mapping[tuple[str, ...], object]]
) -> tuple[tuple[str, ...], tuple[int, int]]:
    """The table by whose schema a column is called, and where that stands; of any other column, nothing."""
    parts = column.parts
    for last in range(len(parts) - 2, 0, -1):
        called = _lower(tuple(part.name for part in parts[: last + 1]))
        found = [table for table in mentions.get(called[-1], ()) if table[-len(called) :] == called]
        if len(found) == 1:
            return found[0], (parts[0].meta["start"], parts[last].meta["end"] + 1)
    return (), (0, 0)


def _lower(parts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(part.lower() for part in parts)


@dataclass(frozen=True)
class FunctionCall:
    """A call of a function by a name of one part: the texts of its arguments, and where it stands."""

    name: str
    args: tuple[str, ...]
    start: int
    end: int


def calls(text: str) -> Iterator[FunctionCall]:
    tokens = tokenize(text)
    for i, token in enumerate(tokens[:-1]):
        called = token.token_type == TokenType.VAR and tokens[i + 1].token_type == TokenType.L_PAREN
        if called and not (i and tokens[i - 1].token_type == TokenType.DOT):
            args, last = _arguments(text, tokens, i + 1)
            yield FunctionCall(token.text, args, token.start, last + 1)


def with_arguments(body: str, given: Mapping[str, str]) -> str:
    """The body of a function with its parameters, by their names in lower case, replaced."""
    parameters = (t for t in tokenize(body) if t.token_type == TokenType.VAR and t.text.lower() in given)
    return Expanded(body, tuple(Piece(t.start, t.end + 1, given[t.text.lower()]) for t in parameters)).text


def _arguments(text: str, tokens: list[Token], opening: int) -> tuple[tuple[str, ...], int]:
    """The texts of the arguments between brackets, and where the closing one stands."""
    depth, start, found = 0, tokens[opening].end + 1, []
    for token in tokens[opening:]:
        depth += token.token_type == TokenType.L_PAREN
        depth -= token.token_type == TokenType.R_PAREN
        if depth == 0 or (depth == 1 and token.token_type == TokenType.COMMA):
            found.append(text[start : token.start])
            start = token.end + 1
        if depth == 0:
            return tuple(a for a in found if a.strip()), token.end
    raise SqlError("a bracket is not closed")
