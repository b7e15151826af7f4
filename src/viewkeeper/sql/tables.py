"""Functions that make rows in the place of a table: range, and generators."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.scalars import call
from viewkeeper.algebra.types import BIGINT
from viewkeeper.sql.catalog import Generated
from viewkeeper.sql.expressions import Scope, function_name, is_generator, refuse, to_scalar


def is_function(table: exp.Table) -> bool:
    return not isinstance(table.this, exp.Identifier)


def makes_rows(table: exp.Table) -> bool:
    """Whether it is a function that makes its rows of its arguments, and reads no table."""
    return _is_range(table) or is_generator(table.this)


def _is_range(table: exp.Table) -> bool:
    return isinstance(table.this, exp.Anonymous) and table.this.name.lower() == "range"


def generators_as_queries(tree: exp.Query) -> None:
    """`FROM explode(x) AS t(c)` as FROM (SELECT explode(x) AS c) AS t, which may read the row around it."""
    for table in list(tree.find_all(exp.Table)):
        if is_function(table) and is_generator(table.this):
            columns = [exp.to_identifier(name) for name in table.alias_column_names]
            made: exp.Expr = table.this.copy()
            if columns:
                made = (
                    exp.alias_(made, columns[0]) if len(columns) == 1 else exp.Aliases(this=made, expressions=columns)
                )
            alias = exp.TableAlias(this=exp.to_identifier(table.alias)) if table.alias else None
            joins = [join.copy() for join in table.args.get("joins") or []]
            table.replace(exp.Subquery(this=exp.Select(expressions=[made]), alias=alias, joins=joins))


def to_rows(table: exp.Table) -> Generated:
    """What the function makes, and the names and types of its columns."""
    function = table.this
    if not _is_range(table):
        raise refuse(table, f"table function {function_name(function)}()", "its rows are not those of a table")
    return Generated(call("RANGE", *(to_scalar(a, Scope()) for a in function.expressions)), (("id", BIGINT),))
