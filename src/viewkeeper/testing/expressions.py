"""Well-typed random scalars over the columns of a relation."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.relations import Field, Schema
from viewkeeper.algebra.scalars import NULL, TRUE, Cast, Column, Literal, Scalar, call
from viewkeeper.algebra.types import BIGINT, BOOLEAN, decimal, decimal_parts
from viewkeeper.testing.choices import Choices

_LITERALS: dict[str, tuple[Scalar, ...]] = {
    BIGINT: (Literal("1"), Literal("0"), Literal("2"), Literal("-1"), Cast(NULL, BIGINT)),
    "string": (Literal("'a'"), Literal("'ab'"), Literal("''"), Cast(NULL, "string")),
    BOOLEAN: (TRUE, TRUE, Literal("FALSE"), Cast(NULL, BOOLEAN)),
}
_COMPARISONS = ("<=", ">=", "<=>", "<>", "=", ">=", "<")
_WIDEST_SUM = 30  # beyond 38 digits Spark gives up scale for precision; stay well below


@dataclass(frozen=True)
class Expressions:
    """Expressions over the columns of `schema`."""

    choices: Choices
    schema: Schema

    def anything(self) -> tuple[Scalar, str]:
        """A column as often as not, else an expression; with its type."""
        if self.schema and not self.choices.one_in(2):
            column = self.choices.pick(self.schema)
            return Column(column.name), column.type
        decimals = [f for f in self.schema if (parts := decimal_parts(f.type)) and parts[0] <= _WIDEST_SUM]
        if decimals and self.choices.one_in(3):
            return self.sum_of_decimals(self.choices.pick(decimals), self.choices.pick(decimals))
        if self.choices.one_in(8):
            return call("/", self.of(BIGINT, 1), Literal("2")), "double"
        type_ = self.choices.pick((BIGINT, "string", BOOLEAN, "decimal(10,2)"))
        return self.of(type_, 2), type_

    def condition(self) -> Scalar:
        """Mostly true of many rows."""
        return self.boolean(1) if self.schema else self.of(BOOLEAN, 1)

    def of(self, type_: str, depth: int) -> Scalar:
        """An expression of exactly this type."""
        if depth <= 0 or not self.choices.one_in(2):
            own = [Column(f.name) for f in self.schema if f.type == type_]
            return self.choices.pick(own) if own and not self.choices.one_in(4) else self.literal(type_)
        if type_ == BOOLEAN:
            return self.boolean(depth - 1)
        if type_ == BIGINT and not self.choices.one_in(2):
            return self.integer(depth - 1)
        return self.choice(type_, depth - 1)

    def literal(self, type_: str) -> Scalar:
        if type_ in _LITERALS:
            return self.choices.pick(_LITERALS[type_])
        return Cast(Literal(self.choices.pick(("1", "0", "NULL"))), type_)

    def choice(self, type_: str, depth: int) -> Scalar:
        """One of several values of the type."""
        function = self.choices.pick(("COALESCE", "IF", "LEAST", "GREATEST", "NULLIF"))
        values = (self.of(type_, depth), self.of(type_, depth))
        return call("IF", self.of(BOOLEAN, depth), *values) if function == "IF" else call(function, *values)

    def integer(self, depth: int) -> Scalar:
        value = self.of(BIGINT, depth)
        match self.choices.pick(("+", "-", "*", "ABS", "negative")):
            case "ABS":
                return call("ABS", value)
            case "negative":
                return call("-", value)
            case "*":
                return call("*", value, self.literal(BIGINT))  # by a constant, as nested it must not overflow
            case operator:
                return call(operator, value, self.of(BIGINT, depth))

    def boolean(self, depth: int) -> Scalar:
        match self.choices.below(10):
            case 4 | 5 | 9:
                column = Column(self.choices.pick(self.schema).name) if self.schema else self.literal(BIGINT)
                return call(self.choices.pick(("IS NOT NULL", "IS NOT NULL", "IS NULL")), column)
            case 6:
                parts = (self.boolean(depth - 1), self.boolean(depth - 1)) if depth > 0 else (TRUE, TRUE)
                return call(self.choices.pick(("OR", "OR", "AND")), *parts)
            case 7:
                return call("NOT", self.of(BOOLEAN, depth))
            case _:
                return self.comparison(depth)

    def comparison(self, depth: int) -> Scalar:
        if not self.schema:
            return call("=", self.of(BIGINT, depth), self.of(BIGINT, depth))
        column = self.choices.pick(self.schema)
        others = [Column(f.name) for f in self.schema if f.type == column.type and f != column]
        right = self.choices.pick(others) if others and not self.choices.one_in(3) else self.of(column.type, depth)
        return call(self.choices.pick(_COMPARISONS), Column(column.name), right)

    def sum_of_decimals(self, left: Field, right: Field) -> tuple[Scalar, str]:
        (p1, s1), (p2, s2) = (decimal_parts(f.type) or (0, 0) for f in (left, right))
        type_ = decimal(max(p1 - s1, p2 - s2) + max(s1, s2) + 1, max(s1, s2))
        return call(self.choices.pick(("+", "-")), Column(left.name), Column(right.name)), type_


def aggregate_type(function: str, argument: str) -> str:
    """The type Spark gives an aggregate of this argument."""
    if function in ("count", "count_if"):
        return BIGINT
    if function not in ("sum", "avg"):
        return argument
    parts = decimal_parts(argument)
    if parts is None:
        return "double" if function == "avg" else argument
    precision, scale = parts
    return decimal(precision + 10, scale) if function == "sum" else decimal(precision + 4, scale + 4)
