"""Queries at a moment: every function of the clock in a text as what it gives then."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.errors import SqlError
from viewkeeper.sql.functions import MOMENTS
from viewkeeper.sql.parse import tokenize

_NEED_BRACKETS = frozenset({"curdate", "now"})
_VALUES = {
    "CURRENT_TIMESTAMP": "TIMESTAMP_MICROS({})",
    "CURRENT_DATE": "CAST(TIMESTAMP_MICROS({}) AS DATE)",
    "LOCALTIMESTAMP": "CAST(TIMESTAMP_MICROS({}) AS TIMESTAMP_NTZ)",
}


def moment_value(function: str, micros: int) -> str:
    """What the function gives at a moment, in microseconds since 1970."""
    return _VALUES[function].format(micros)


def clock_functions(text: str) -> frozenset[str]:
    """The functions of the clock that a query calls; none if its text cannot be taken apart."""
    try:
        return frozenset(function for function, _, _ in _calls(text))
    except SqlError:
        return frozenset()


def at_moment(text: str, micros: int) -> str:
    """The query with every function of the clock replaced by its value at that moment."""
    for function, start, end in reversed(list(_calls(text))):
        text = text[:start] + moment_value(function, micros) + text[end:]
    return text


def _calls(text: str) -> Iterator[tuple[str, int, int]]:
    """Each call of a function of the clock, and where it stands."""
    tokens = tokenize(text)
    for i, token in enumerate(tokens):
        name = token.text.lower()
        if name not in MOMENTS or token.token_type in (TokenType.STRING, TokenType.IDENTIFIER):
            continue
        before, after, last = (_type(tokens, i + step) for step in (-1, 1, 2))
        if before in (TokenType.DOT, TokenType.ALIAS) or after == TokenType.DOT:
            continue  # part of a name, or a name given
        if after == TokenType.L_PAREN and last == TokenType.R_PAREN:
            yield MOMENTS[name], token.start, tokens[i + 2].end + 1
        elif after != TokenType.L_PAREN and name not in _NEED_BRACKETS:
            yield MOMENTS[name], token.start, token.end + 1


def _type(tokens: list[Token], at: int) -> object:
    return tokens[at].token_type if 0 <= at < len(tokens) else None
