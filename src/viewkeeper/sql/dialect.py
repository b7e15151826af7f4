"""Spark SQL for sqlglot, with function calls kept word for word.

sqlglot's own Spark dialect translates calls on the way through and now and then changes what they mean. Views
must come out as they went in, so only calls with a syntax of their own are given a shape.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import sqlglot.parser
from sqlglot import exp
from sqlglot.dialects.spark import Spark
from sqlglot.generators.spark import SparkGenerator
from sqlglot.parsers.spark import SparkParser
from sqlglot.tokenizer_core import TokenType

from viewkeeper.errors import SetupError
from viewkeeper.sql.functions import AGGREGATES

if not str(sqlglot.parser.__file__).endswith(".py"):  # pragma: no cover - depends on the installation
    raise SetupError(
        "the compiled build of sqlglot cannot be extended",
        hint="pip uninstall sqlglotc, and install sqlglot without the [c] or [rs] extra",
    )

_SPECIAL_SYNTAX = (
    "CAST",
    "TRY_CAST",
    "EXTRACT",
    "POSITION",
    "SUBSTRING",
    "SUBSTR",
    "TRIM",
    "OVERLAY",
)
_ALSO_CALLED = ("SUBSTRING", "SUBSTR", "POSITION")  # `substr(s, 2)` beside `substr(s FROM 2)`
_CONSTRUCTORS = (
    "EXPLODE",
    "EXPLODE_OUTER",
    "POSEXPLODE",
    "POSEXPLODE_OUTER",
    "INLINE",
    "STACK",
    "STRUCT",
    "ARRAY",
    "MAP",
)


# From the one that binds closest on; sqlglot reads them from left to right, whichever they are.
_BITS: tuple[tuple[TokenType, type[exp.Binary]], ...] = (
    (TokenType.AMP, exp.BitwiseAnd),
    (TokenType.CARET, exp.BitwiseXor),
    (TokenType.PIPE, exp.BitwiseOr),
)


def _aggregate(name: str) -> Callable[[list[exp.Expr]], exp.Expr]:
    return lambda args: exp.AnonymousAggFunc(this=name, expressions=list(args))


def _as_called(name: str, own_syntax: Callable[[SparkParser], exp.Expr]) -> Callable[[SparkParser], exp.Expr]:
    """A call under the name it was written with, which Spark shows in its plans, unless it has words between."""

    def parse(parser: SparkParser) -> exp.Expr:
        begin = parser._index
        args = parser._parse_csv(parser._parse_bitwise)
        if parser._curr.token_type == TokenType.R_PAREN:
            return exp.Anonymous(this=name, expressions=args)
        parser._retreat(begin)
        return own_syntax(parser)

    return parse


class ViewSpark(Spark):
    """Spark 4 as written by people, unchanged by reading and writing it."""

    SUPPORTS_STRUCT_STAR_EXPANSION = True

    class Tokenizer(Spark.Tokenizer):
        STRING_ESCAPES = ["\\", "'", '"']  # noqa: RUF012  ('a''b' is a'b in Spark 4)

    class Parser(SparkParser):
        ADD_JOIN_ON_TRUE = False  # a LATERAL join without a condition is another thing (algebra.laterals)
        FUNCTIONS: ClassVar[Any] = {
            **{name.upper(): _aggregate(name.upper()) for name in sorted(AGGREGATES)},
            **{k: SparkParser.FUNCTIONS[k] for k in _CONSTRUCTORS if k in SparkParser.FUNCTIONS},
        }
        FUNCTION_PARSERS: ClassVar[Any] = {
            k: _as_called(k, v) if k in _ALSO_CALLED else v
            for k, v in SparkParser.FUNCTION_PARSERS.items()
            if k in _SPECIAL_SYNTAX
        }

        COLON_IS_VARIANT_EXTRACT = True  # v:a.b

        # `x FOR y IN …` is no comprehension here, but stands in PIVOT.
        RANGE_PARSERS: ClassVar[Any] = {k: v for k, v in SparkParser.RANGE_PARSERS.items() if k != TokenType.FOR}

        BITWISE: ClassVar[Any] = {}  # see _parse_bitwise

        PIPE_SYNTAX_TRANSFORM_PARSERS: ClassVar[Any] = {
            **SparkParser.PIPE_SYNTAX_TRANSFORM_PARSERS,
            "AS": lambda self, query: self._piped_as(query),
            "DROP": lambda self, query: self._piped_drop(query),
            "OFFSET": lambda self, query: self._parse_pipe_syntax_limit(query),
            "SET": lambda self, query: self._piped_set(query),
        }

        def _parse_bitwise(self) -> exp.Expr | None:
            """`a | b ^ c & d` is `a | (b ^ (c & d))`."""
            return self._parse_bits(len(_BITS))

        def _parse_bits(self, level: int) -> exp.Expr | None:
            if not level:
                return super()._parse_bitwise()
            token, made = _BITS[level - 1]
            this = self._parse_bits(level - 1)
            while self._match(token):
                this = self.expression(made(this=this, expression=self._parse_bits(level - 1)))
            return this

        def _piped_as(self, query: exp.Select) -> exp.Select:
            """`|> AS t`: what came so far, under a name."""
            named = self._build_pipe_cte(query, [exp.Star()])
            named.args["from_"].this.set("alias", self._parse_table_alias())
            return named

        def _piped_drop(self, query: exp.Select) -> exp.Select:
            self._advance()
            dropped = self._parse_csv(self._parse_column)
            return self._piped_columns(query, exp.Star(except_=dropped))

        def _piped_set(self, query: exp.Select) -> exp.Select:
            """`|> SET x = …, y = …`, each of which sees those before it."""
            self._advance()
            for assigned in self._parse_csv(self._parse_assignment_of_column):
                query = self._piped_columns(query, exp.Star(replace=[assigned]))
            return query

        def _parse_assignment_of_column(self) -> exp.Alias:
            column = self._parse_id_var()
            if not self._match(TokenType.EQ):
                self.raise_error("SET wants column = expression")
            return exp.Alias(this=self._parse_disjunction(), alias=column)

        def _piped_columns(self, query: exp.Select, columns: exp.Star) -> exp.Select:
            """All columns of what came so far, but for some."""
            if query.expressions != [exp.Star()] or any(query.args.get(c) for c in ("distinct", "order", "limit")):
                query = self._build_pipe_cte(query, [exp.Star()])
            return self._build_pipe_cte(query.select(columns, append=False, copy=False), [exp.Star()])

        def _parse_derived_table_values(self, allow_value_synonym: bool = False) -> exp.Values | None:
            """`(VALUES …)`; where a join follows before the bracket ends, the bracket is not that of VALUES."""
            begin = self._index
            if self._match_pair(TokenType.L_PAREN, TokenType.VALUES):
                self._parse_csv(self._parse_value)
                self._parse_table_alias()
                ends = self._curr.token_type == TokenType.R_PAREN
                self._retreat(begin)
                if not ends:
                    return None
            return super()._parse_derived_table_values(allow_value_synonym)

        def _parse_value(self, values: bool = True) -> exp.Tuple | None:
            """A row of VALUES; an alias after one without brackets is that of all rows."""
            if self._curr.token_type == TokenType.L_PAREN:
                return super()._parse_value(values)
            cell = self._parse_disjunction()
            return exp.Tuple(expressions=[cell]) if cell else None

        def _parse_pivot_aggregation(self) -> exp.Expr | None:
            """PIVOT takes expressions over aggregates, not only calls of them."""
            return self._parse_alias(self._parse_disjunction())

    class Generator(SparkGenerator):
        TYPE_MAPPING: ClassVar[Any] = {**SparkGenerator.TYPE_MAPPING, exp.DType.TIME: "TIME"}
        TRANSFORMS: ClassVar[Any] = {
            k: v for k, v in SparkGenerator.TRANSFORMS.items() if k not in (exp.WithinGroup, exp.Select)
        }

        def not_sql(self, expression: exp.Not) -> str:
            """x IS NOT NULL rather than NOT x IS NULL: the form Spark itself prints."""
            inner = expression.this
            if isinstance(inner, exp.Is) and isinstance(inner.expression, (exp.Null, exp.Boolean)):
                return f"{self.sql(inner, 'this')} IS NOT {self.sql(inner, 'expression')}"
            return super().not_sql(expression)
