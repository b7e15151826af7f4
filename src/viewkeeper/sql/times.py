"""Time windows: window(ts, …) makes of each row one for every window that its time falls into, session_window(ts, gap)
one for the session that it is part of.

A SELECT may hold it anywhere, and know its result as `window`. So it becomes a LATERAL VIEW of the SELECT before
names are resolved.
"""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from viewkeeper.algebra.scalars import Scalar, call
from viewkeeper.sql.expressions import Scope, refuse, to_scalar
from viewkeeper.sql.parse import generate

_WINDOWS = ("window", "session_window")


def as_lateral_views(tree: exp.Query) -> list[exp.Expr]:
    """Put a column of a LATERAL VIEW in the place of every time window; those of them that are sessions."""
    sessions: list[exp.Expr] = [n for n in tree.find_all(exp.Anonymous) if n.name.lower() == "session_window"]
    for number, select in enumerate(list(tree.find_all(exp.Select))):
        calls = list(_own_calls(select))
        if len({generate(c) for c in calls}) > 1:
            raise refuse(calls[1], f"{calls[1].name}()", "there can be only one time window in a SELECT")
        if calls:
            alias, label = f"__vk_window_{number}", calls[0].name.lower()
            named = exp.TableAlias(this=exp.to_identifier(alias), columns=[exp.to_identifier(label)])
            select.append("laterals", exp.Lateral(this=calls[0].copy(), view=True, alias=named))
        for node in calls:
            node.replace(exp.column(label, table=alias))
    return sessions


def _own_calls(tree: exp.Expr) -> Iterator[exp.Expr]:
    """The time windows of a SELECT, not those of queries in it."""
    for child in tree.iter_expressions():
        if is_time_window(child):
            yield child
        elif not isinstance(child, exp.Query):
            yield from _own_calls(child)


def is_time_window(tree: exp.Expr) -> bool:
    return isinstance(tree, exp.Anonymous) and tree.name.lower() in _WINDOWS


def to_time_window(tree: exp.Expr, scope: Scope) -> Scalar:
    return call(tree.name.upper(), *(to_scalar(a, scope) for a in tree.expressions))
