"""Query text to a sqlglot tree that means what Spark means by it, or a refusal that says why."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp
from sqlglot.errors import ParseError, TokenError
from sqlglot.optimizer.normalize_identifiers import normalize_identifiers
from sqlglot.tokenizer_core import Token, TokenType

from viewkeeper.algebra.node import room_to_walk
from viewkeeper.errors import Position, SqlError
from viewkeeper.sql.dialect import ViewSpark

Tree = exp.Expr
_TYPED_LITERALS = frozenset({"DATE", "TIMESTAMP", "TIMESTAMP_NTZ", "TIMESTAMP_LTZ", "TIME"})
_UNIT_FUNCTIONS = frozenset("DATEADD DATE_ADD TIMESTAMPADD DATEDIFF DATE_DIFF TIMEDIFF TIMESTAMPDIFF".split())
# What sqlglot ends in where it knows the beginning of a syntax and not all of it, as of Spark's pipes.
_STUMBLES = (AssertionError, AttributeError, IndexError, KeyError, TypeError, ValueError)

_NAMES = frozenset({TokenType.VAR, TokenType.IDENTIFIER})
_SELECT_ALL = ((TokenType.SELECT, "SELECT"), (TokenType.STAR, "*"), (TokenType.FROM, "FROM"))
_ONE_TEXT = [TokenType.L_PAREN, TokenType.STRING, TokenType.R_PAREN]
# After these a minus is the sign of a number.
_BEFORE_VALUES = frozenset(
    {
        TokenType.L_PAREN,
        TokenType.COMMA,
        TokenType.SELECT,
        TokenType.DISTINCT,
        TokenType.WHERE,
        TokenType.HAVING,
        TokenType.ON,
        TokenType.AND,
        TokenType.OR,
        TokenType.NOT,
        TokenType.WHEN,
        TokenType.THEN,
        TokenType.ELSE,
        TokenType.BETWEEN,
        TokenType.EQ,
        TokenType.NEQ,
        TokenType.LT,
        TokenType.LTE,
        TokenType.GT,
        TokenType.GTE,
        TokenType.NULLSAFE_EQ,
        TokenType.PLUS,
        TokenType.DASH,
        TokenType.STAR,
        TokenType.SLASH,
        TokenType.DIV,
        TokenType.MOD,
        TokenType.DPIPE,
    }
)
_BEFORE_QUERIES = frozenset(
    {
        None,
        TokenType.L_PAREN,
        TokenType.R_PAREN,
        TokenType.UNION,
        TokenType.EXCEPT,
        TokenType.INTERSECT,
        TokenType.ALL,
        TokenType.DISTINCT,
    }
)


def tokenize(sql: str) -> list[Token]:
    try:
        return list(ViewSpark().tokenize(sql))
    except TokenError as error:
        raise SqlError(f"the text cannot be read: {error}") from error


def parse_query(sql: str) -> exp.Query:
    """The tree of one query; SqlError for what sqlglot cannot read or is known to misread."""
    room_to_walk()
    tokens = _spelled_out(tokenize(sql))
    _mend_tokens(tokens)
    try:
        trees = [t for t in ViewSpark().parser().parse(tokens, sql) if t is not None]
    except ParseError as error:
        raise _from_parse_error(error) from error
    except RecursionError as error:
        raise SqlError("the text cannot be read: it is nested too deeply") from error
    except _STUMBLES as error:
        raise SqlError(f"the text cannot be read: {error}") from error
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise SqlError("not a single query")
    _keep_unpivoted_names(trees[0])
    return _mend_tree(normalize_identifiers(trees[0], dialect=ViewSpark))  # Spark's names have no case


def generate(tree: exp.Expr) -> str:
    """Spark SQL for a tree or a part of one."""
    return tree.sql(dialect=ViewSpark)


def position(node: exp.Expr) -> Position | None:
    """Where in the text the node, or the first part of it that knows, stands."""
    for part in node.walk(bfs=False):
        line, column = part.meta.get("line"), part.meta.get("col")
        if line is not None and column is not None:
            # sqlglot counts to the last character of the token
            return Position(line, max(1, column - len(str(part.name)) + 1))
    return None


def unaliased(tree: exp.Expr) -> exp.Expr:
    return tree.this if isinstance(tree, exp.Alias | exp.Aliases) else tree


def ordered_by(tree: exp.Expr) -> list[exp.Ordered]:
    """The terms of its ORDER BY."""
    order = tree.args.get("order")
    return list(order.expressions) if order else []


def function_calls(tree: Tree) -> Iterator[tuple[str, Position | None]]:
    """The functions a query calls by name, and where."""
    for call in tree.find_all(exp.Anonymous):
        if isinstance(call.this, str):
            yield call.this.lower(), position(call)


def selects_star(tree: exp.Expr) -> bool:
    """Whether the query takes all columns of something, whichever they are (count(*) does not)."""
    return any(not isinstance(star.parent, exp.AnonymousAggFunc) for star in tree.find_all(exp.Star))


def parenthesize(tree: exp.Expr) -> exp.Expr:
    """Every operator in its own parentheses, so that Spark sees the tree's structure and not a precedence."""
    shielded = (exp.Dot, exp.PropertyEQ, exp.Escape, exp.Slice, exp.Kwarg, exp.SetOperation)
    operators = (exp.Binary, exp.Not, exp.Neg, exp.BitwiseNot, exp.Between, exp.In)
    for node in reversed(list(tree.walk(bfs=True))):
        if (
            isinstance(node, operators)
            and not isinstance(node, shielded)
            and node.parent is not None
            and not isinstance(node.parent, (exp.Paren, exp.Escape))
            and not node.find_ancestor(exp.Interval, exp.Pivot)
            and not (isinstance(node, exp.Neg) and isinstance(node.this, exp.Literal))
        ):
            wrapper = exp.Paren()
            node.replace(wrapper)
            wrapper.set("this", node)
    return tree


def _from_parse_error(error: ParseError) -> SqlError:
    first = error.errors[0] if error.errors else {}
    line, column = first.get("line"), first.get("col")
    where = Position(line, column) if line and column else None
    return SqlError(first.get("description") or str(error), position=where)


def table_queries(tokens: list[Token]) -> list[Token]:
    """The words TABLE that begin a query, as in `TABLE t`, which is `SELECT * FROM t`."""
    found = []
    for i, token in enumerate(tokens[:-1]):
        before, two_before = (tokens[i - n].token_type if i >= n else None for n in (1, 2))
        begins = before in _BEFORE_QUERIES and not (before == TokenType.L_PAREN and two_before in _NAMES)
        if token.token_type == TokenType.TABLE and begins and tokens[i + 1].token_type in _NAMES:
            found.append(token)
    return found


def _spelled_out(tokens: list[Token]) -> list[Token]:
    """`TABLE t` as SELECT * FROM t; `IDENTIFIER('t')` as t; `DATE '…'::type` and `-1::type` with brackets around the
    literal."""
    tokens = _called_by_text(tokens)
    begin = {id(token) for token in table_queries(tokens)}
    found: list[Token] = []
    for i, token in enumerate(tokens):
        if id(token) in begin:
            found += [_at(token, *word) for word in _SELECT_ALL]
        elif _is_cast_literal(tokens, i):
            found += [_at(token, TokenType.L_PAREN, "("), token]
        elif i and _is_cast_literal(tokens, i - 1):
            found += [token, _at(token, TokenType.R_PAREN, ")")]
        else:
            found.append(token)
    return found


def _called_by_text(tokens: list[Token]) -> list[Token]:
    """The name in `IDENTIFIER('name')`, which stands where all of that stood."""
    found, i = [], 0
    while i < len(tokens):
        kinds = [t.token_type for t in tokens[i : i + 4]]
        if tokens[i].text.upper() == "IDENTIFIER" and kinds[1:] == _ONE_TEXT:
            first, last = tokens[i], tokens[i + 3]
            parts = tokenize(tokens[i + 2].text)
            found += [Token(t.token_type, t.text, first.line, first.col, first.start, last.end) for t in parts]
            i += 4
        else:
            found.append(tokens[i])
            i += 1
    return found


def _at(place: Token, kind: TokenType, text: str) -> Token:
    return Token(kind, text, place.line, place.col, place.start, place.end)


def _is_cast_literal(tokens: list[Token], i: int) -> bool:
    """Whether a literal of two words begins there and is cast by `::`, which binds tighter than Spark lets it."""
    kinds = [t.token_type for t in tokens[i : i + 3]]
    typed = tokens[i].text.upper() in _TYPED_LITERALS and kinds[1:] == [TokenType.STRING, TokenType.DCOLON]
    negative = kinds == [TokenType.DASH, TokenType.NUMBER, TokenType.DCOLON]
    return typed or (negative and (i == 0 or tokens[i - 1].token_type in _BEFORE_VALUES))


def _mend_tokens(tokens: list[Token]) -> None:
    for i, token in enumerate(tokens):
        following = tokens[i + 1] if i + 1 < len(tokens) else None
        after = tokens[i + 2] if i + 2 < len(tokens) else None
        if following is None:
            continue
        if token.token_type == TokenType.WINDOW and following.token_type == TokenType.L_PAREN:
            token.token_type = TokenType.VAR  # GROUP BY window(…)
        if (
            token.token_type in (TokenType.ANY, TokenType.SOME)
            and following.token_type == TokenType.L_PAREN
            and after is not None
            and after.token_type == TokenType.DISTINCT
        ):
            token.token_type, token.text = TokenType.VAR, "bool_or"  # any(DISTINCT …) by its other name
        if (
            token.text.upper() in _TYPED_LITERALS
            and following.token_type == TokenType.STRING
            and after is not None
            and after.token_type == TokenType.DOT
        ):
            raise _misread(token, f"{token.text} '…'.name cannot be read", "use brackets")


def _misread(token: Token, message: str, hint: str) -> SqlError:
    return SqlError(message, hint=hint, position=Position(token.line, token.col))


def _mend_tree(tree: exp.Query) -> exp.Query:
    for addition in list(tree.find_all(exp.Add)):
        _mend_compound_interval(addition)
    for table in list(tree.find_all(exp.Table)):
        _as_query(table)
    for values in tree.find_all(exp.Values):
        _name_values_columns(values)
    for function in tree.find_all(exp.Anonymous):
        _keep_unit_keyword(function)
    for taken in list(tree.find_all(exp.JSONExtract)):
        taken.replace(_variant_get(taken))
    for quantified in list(tree.find_all(exp.Any)):
        _mend_any(quantified)
    for select in tree.find_all(exp.Select):
        _mend_grouping_id(select)
    return tree


def _variant_get(taken: exp.JSONExtract) -> exp.Expr:
    """`v:a.b[0]` by the function that Spark makes of it."""
    path = ""
    for part in taken.expression.expressions:
        match part:
            case exp.JSONPathRoot():
                path += "$"
            case exp.JSONPathKey(this=str(key)):
                path += f"['{key}']" if part.args.get("quoted") else f".{key}"
            case exp.JSONPathSubscript(this=int(index)):
                path += f"[{index}]"
            case _:
                raise SqlError("this path into a VARIANT cannot be read", position=position(taken))
    given = [taken.this, exp.Literal.string(path), exp.Literal.string("variant")]
    return exp.Anonymous(this="variant_get", expressions=given)


def _mend_grouping_id(select: exp.Select) -> None:
    """Hive's column `grouping__id`, which Spark takes for a call where there are groups."""
    for column in list(select.find_all(exp.Column)) if select.args.get("group") else ():
        if column.name == "grouping__id" and not column.table and column.find_ancestor(exp.Select) is select:
            called = exp.AnonymousAggFunc(this="GROUPING_ID", expressions=[])
            column.replace(exp.alias_(called, column.name) if column.parent is select else called)


def _mend_any(quantified: exp.Any) -> None:
    """`any(x)` is an aggregate, unless it follows LIKE."""
    if isinstance(quantified.this, exp.Paren) and not isinstance(
        quantified.parent, exp.Like | exp.ILike | exp.RegexpLike
    ):
        quantified.replace(exp.AnonymousAggFunc(this="ANY", expressions=[quantified.this.this]))


def _mend_compound_interval(addition: exp.Add) -> None:
    """`ts - INTERVAL 1 DAY 2 HOURS` comes as `ts - INTERVAL 1 DAY + INTERVAL 2 HOURS`: bracket the interval."""
    if (
        isinstance(addition.expression, exp.Interval)
        and isinstance(addition.this, (exp.Interval, exp.Add))
        and isinstance(addition.parent, exp.Binary)
        and not isinstance(addition.parent, exp.Add)
    ):
        addition.replace(exp.paren(addition.copy()))


def _as_query(table: exp.Table) -> None:
    """VALUES with a join after it, in brackets, comes as a table of itself: (SELECT * FROM VALUES … AS t(x)) AS t."""
    if isinstance(values := table.this, exp.Values):
        alias = table.args.get("alias")
        values.set("alias", alias)
        named = exp.TableAlias(this=alias.this.copy()) if alias else None
        rows = exp.select("*").from_(values)
        table.replace(exp.Subquery(this=rows, alias=named, joins=table.args.get("joins")))


def _name_values_columns(values: exp.Values) -> None:
    """Give VALUES its column names col1 … coln, which Spark knows and sqlglot does not."""
    for row in values.expressions:
        cells = row.expressions if isinstance(row, exp.Tuple) else [row]
        if any(isinstance(cell, exp.Alias) for cell in cells):
            raise SqlError("an alias inside of VALUES cannot be read", position=position(values))
    alias = values.args.get("alias")
    if isinstance(values.parent, (exp.From, exp.Join)) and not (alias and alias.args.get("columns")):
        first = values.expressions[0]
        width = len(first.expressions) if isinstance(first, exp.Tuple) else 1
        name = (alias.this if alias else None) or exp.to_identifier("__values")
        columns = [exp.to_identifier(f"col{i + 1}") for i in range(width)]
        values.set("alias", exp.TableAlias(this=name, columns=columns))


def _keep_unpivoted_names(tree: exp.Query) -> None:
    """UNPIVOT makes values of names, as they are written."""
    for pivot in tree.find_all(exp.Pivot):
        for field in pivot.args["fields"] if pivot.args.get("unpivot") else []:
            for taken in list(field.expressions):
                inner = taken.this if isinstance(taken, exp.PivotAlias) else taken
                parts = inner.expressions if isinstance(inner, exp.Tuple) else [inner]
                name = taken.args["alias"].name if inner is not taken else "_".join(p.name for p in parts)
                taken.replace(exp.PivotAlias(this=inner.copy(), alias=exp.Literal.string(name)))


def _keep_unit_keyword(function: exp.Anonymous) -> None:
    """datediff(DAY, a, b): DAY is a keyword, not a column."""
    args = function.expressions
    if function.name.upper() in _UNIT_FUNCTIONS and len(args) == 3 and isinstance(args[0], exp.Column):
        args[0].replace(exp.var(args[0].name.upper()))
