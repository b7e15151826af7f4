"""Functions that make rows in the place of a table: range, and generators over constants."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.scalars import call
from viewkeeper.algebra.types import BIGINT, UNKNOWN
from viewkeeper.sql.catalog import Catalog, Generated
from viewkeeper.sql.expressions import Scope, function_name, is_generator, refuse, to_generator, to_scalar
from viewkeeper.sql.made import name_table_function


def is_function(table: exp.Table) -> bool:
    return not isinstance(table.this, exp.Identifier)


def makes_rows(table: exp.Table) -> bool:
    """Whether it is a function that makes its rows of its arguments, and reads no table."""
    return _is_range(table) or is_generator(table.this)


def _is_range(table: exp.Table) -> bool:
    return isinstance(table.this, exp.Anonymous) and table.this.name.lower() == "range"


def to_rows(table: exp.Table, catalog: Catalog) -> Generated:
    """What the function makes, and the names and types of its columns."""
    function = table.this
    if _is_range(table):
        return Generated(call("RANGE", *(to_scalar(a, Scope()) for a in function.expressions)), (("id", BIGINT),))
    named = f"table function {function_name(function)}()"
    if not is_generator(function):
        raise refuse(table, named, "its rows are not those of a table")
    names = name_table_function(table, catalog)
    if not names:
        raise refuse(table, named, "name the columns it makes by AS")
    return Generated(to_generator(function, Scope()), tuple((name, UNKNOWN) for name in names))
