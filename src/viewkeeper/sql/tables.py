"""Functions that make rows: in the place of a table (range, generators over constants), or selected without names."""

from __future__ import annotations

from sqlglot import exp

from viewkeeper.algebra.scalars import call
from viewkeeper.algebra.types import BIGINT, UNKNOWN
from viewkeeper.sql.catalog import Generated
from viewkeeper.sql.expressions import Scope, function_name, is_generator, refuse, to_generator, to_scalar


def name_made_columns(tree: exp.Query) -> None:
    """Give a generator that is selected without AS the names that Spark gives its columns."""
    for select in tree.find_all(exp.Select):
        for function in [e for e in select.expressions if isinstance(e, exp.Func) and is_generator(e)]:
            names = [exp.to_identifier(name) for name in _usual_names(function)]
            if not names:
                raise refuse(function, f"{function_name(function)}()", "name the columns it makes by AS")
            made = function.copy()
            function.replace(
                exp.alias_(made, names[0]) if len(names) == 1 else exp.Aliases(this=made, expressions=names)
            )


def _usual_names(function: exp.Func) -> list[str]:
    """What Spark calls the columns of a generator, as far as its text says."""
    given = function.this if isinstance(function.this, exp.Expr) else None
    args = [*([given] if given is not None else []), *function.expressions]
    match function_name(function), args:
        case "explode" | "explode_outer", [exp.Map() | exp.VarMap() | exp.ToMap()]:
            return ["key", "value"]
        case "explode" | "explode_outer", _:
            return ["col"]
        case "posexplode" | "posexplode_outer", _:
            return ["pos", "col"]
        case "json_tuple", [_, *paths]:
            return [f"c{i}" for i in range(len(paths))]
        case "stack", [exp.Literal() as rows, *values] if rows.is_int:
            return [f"col{i}" for i in range(-(-len(values) // int(rows.name)))]
        case "inline" | "inline_outer", [exp.Array(expressions=[exp.Struct() as row, *_])]:
            return [field.alias_or_name for field in row.expressions]
        case _:
            return []


def is_function(table: exp.Table) -> bool:
    return not isinstance(table.this, exp.Identifier)


def to_rows(table: exp.Table) -> Generated:
    """What the function makes, and the names and types of its columns."""
    function = table.this
    if isinstance(function, exp.Anonymous) and function.name.lower() == "range":
        return Generated(call("RANGE", *(to_scalar(a, Scope()) for a in function.expressions)), (("id", BIGINT),))
    named = f"table function {function_name(function)}()"
    if not is_generator(function):
        raise refuse(table, named, "its rows are not those of a table")
    if not table.alias_column_names:
        raise refuse(table, named, "name the columns it makes by AS")
    return Generated(to_generator(function, Scope()), tuple((name, UNKNOWN) for name in table.alias_column_names))
