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
