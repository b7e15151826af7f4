"""What a scalar keeps word for word, opened up into calls, as far as its words are known."""

from __future__ import annotations

from functools import lru_cache, reduce

from sqlglot import exp

from viewkeeper.algebra.scalars import NULL, Call, Cast, Column, Literal, Scalar, Verbatim, call, substitute
from viewkeeper.errors import SqlError
from viewkeeper.sql.expressions import BINARY
from viewkeeper.sql.parse import generate, parse_query

_HOLE = "__vk_hole_"


class _UnknownError(Exception):
    """Words that nothing is known of."""


def opened(scalar: Verbatim) -> Scalar | None:
    """The same expression of calls alone; None if there is any other word in it.

    CASE becomes IF, IN a chain of OR, and BETWEEN one of AND; all of them ask for the same in three values.
    """
    form = _form(scalar.parts)
    return None if form is None else substitute(form, {f"{_HOLE}{n}": arg for n, arg in enumerate(scalar.args)})


@lru_cache(maxsize=2_000)
def _form(parts: tuple[str, ...]) -> Scalar | None:
    text = parts[0] + "".join(f"{_HOLE}{n}{part}" for n, part in enumerate(parts[1:]))
    try:
        return _open(parse_query(f"SELECT {text}").selects[0])
    except (_UnknownError, SqlError):
        return None


def _open(tree: exp.Expr) -> Scalar:
    match tree:
        case exp.Column() if tree.name.startswith(_HOLE):
            return Column(tree.name)
        case exp.Paren() | exp.Alias():
            return _open(tree.this)
        case exp.Literal() | exp.Boolean() | exp.Null():
            return Literal(generate(tree))
        case exp.Neg(this=exp.Literal()):
            return Literal(generate(tree))
        case exp.Interval():
            return Verbatim((f"({generate(tree)})",), ())
        case exp.Not() | exp.Neg():
            return call("NOT" if isinstance(tree, exp.Not) else "-", _open(tree.this))
        case exp.Extract(this=exp.Var(this=unit)) if unit.upper() == "YEAR":
            return call("YEAR", _open(tree.expression))
        case exp.Substring():
            return Call("SUBSTRING", tuple(_open(tree.args[part]) for part in ("this", "start", "length")))
        case exp.Case():
            return _case(tree)
        case exp.If() if tree.args.get("false") is not None:
            return Call("IF", tuple(_open(tree.args[part]) for part in ("this", "true", "false")))
        case exp.Cast() if not tree.args.get("safe") and not tree.args.get("format"):
            return Cast(_open(tree.this), generate(tree.to))
        case exp.Anonymous() if isinstance(tree.this, str):
            return Call(tree.this.upper(), tuple(map(_open, tree.expressions)))
        case exp.DPipe() | exp.Mod():
            return call("||" if isinstance(tree, exp.DPipe) else "%", _open(tree.this), _open(tree.expression))
        case _ if type(tree) in BINARY:
            return call(BINARY[type(tree)], _open(tree.this), _open(tree.expression))
        case _:
            return _condition(tree)


def _condition(tree: exp.Expr) -> Scalar:
    match tree:
        case exp.Is() if isinstance(tree.expression, exp.Null):
            return call("IS NULL", _open(tree.this))
        case exp.Between() if not tree.args.get("symmetric"):
            tested, low, high = (_open(tree.args[part]) for part in ("this", "low", "high"))
            return call("AND", call(">=", tested, low), call("<=", tested, high))
        case exp.In(expressions=[_, *_]) if tree.args.get("query") is None:
            tested = _open(tree.this)
            met: list[Scalar] = [call("=", tested, _open(one)) for one in tree.expressions]
            return reduce(lambda left, right: call("OR", left, right), met)
        case exp.Like():
            like = call("LIKE", _open(tree.this), _open(tree.expression))
            return call("NOT", like) if tree.args.get("negate") else like
        case _:
            raise _UnknownError


def _case(tree: exp.Case) -> Scalar:
    tested = _open(tree.this) if tree.this is not None else None
    value = _open(tree.args["default"]) if tree.args.get("default") is not None else NULL
    for branch in reversed(tree.args["ifs"]):
        condition = _open(branch.this)
        met = condition if tested is None else call("=", tested, condition)
        value = call("IF", met, _open(branch.args["true"]), value)
    return value
