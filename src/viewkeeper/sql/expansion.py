"""Texts with parts that stand for others: which calls are in them, and where each part comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.errors import Position, SqlError
from viewkeeper.sql.parse import tokenize


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
