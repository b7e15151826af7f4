"""Time windows: window(ts, …) makes of each row one for every window that its time falls into.

A SELECT may hold it anywhere, and know its result as `window`. So it becomes a LATERAL VIEW of the SELECT before
names are resolved.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from viewkeeper.algebra.scalars import Scalar, call
from viewkeeper.sql.expressions import Scope, refuse, to_scalar
from viewkeeper.sql.parse import generate

_LABEL = "window"


def as_lateral_views(tree: exp.Query) -> None:
    """Put a column of a LATERAL VIEW in the place of every time window."""
    for session in tree.find_all(exp.Anonymous):
        if session.name.lower() == "session_window":
            raise refuse(session, "session_window()", "where a session ends depends on the rows around it")
    for number, select in enumerate(list(tree.find_all(exp.Select))):
        calls = list(_own_calls(select))
        if len({generate(c) for c in calls}) > 1:
            raise refuse(calls[1], "window()", "there can be only one time window in a SELECT")
        if calls:
            alias = f"__vk_window_{number}"
            named = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier(_LABEL)])
            select.append("laterals", exp.Lateral(this=calls[0].copy(), view=True, alias=named))
        for node in calls:
            node.replace(exp.column(_LABEL, table=alias))


def _own_calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The time windows of a SELECT, not those of queries in it."""
    for child in tree.iter_expressions():
        if is_time_window(child):
            yield child
        elif not isinstance(child, exp.Query):
            yield from _own_calls(child)


def is_time_window(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() == "window"


def to_time_window(tree: exp.Expr, scope: Scope) -> Scalar:
    return call("WINDOW", *(to_scalar(a, scope) for a in tree.expressions))
