"""Reading keeps Spark's meaning where sqlglot would change it, and refuses what it would misread."""

from __future__ import annotations

import pytest
from sqlglot import exp

from viewkeeper.errors import Position, SqlError
from viewkeeper.sql.parse import generate, parenthesize, parse_query, selects_star

pytestmark = pytest.mark.core


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT 'a''b' AS x", r"SELECT 'a\'b' AS x"),
        (r"SELECT 'a\'b' AS x", r"SELECT 'a\'b' AS x"),
        ('SELECT "x" AS x', "SELECT 'x' AS x"),
        ("SELECT a IS NOT NULL AS x FROM t", "SELECT a IS NOT NULL AS x FROM t"),
        ("SELECT to_date(a, 'yyyy') AS x FROM t", "SELECT TO_DATE(a, 'yyyy') AS x FROM t"),
        ("SELECT to_char(1, '9') AS x FROM t", "SELECT TO_CHAR(1, '9') AS x FROM t"),
        ("SELECT unix_date(a) AS x FROM t", "SELECT UNIX_DATE(a) AS x FROM t"),
        ("SELECT max_by(a, b, 2) AS x FROM t", "SELECT MAX_BY(a, b, 2) AS x FROM t"),
        ("SELECT substr(a, 1, b + 1) AS x FROM t", "SELECT SUBSTR(a, 1, b + 1) AS x FROM t"),
        ("SELECT substr(a FROM 2 FOR 3) AS x FROM t", "SELECT SUBSTRING(a, 2, 3) AS x FROM t"),
        ("SELECT position('x', a) AS x FROM t", "SELECT POSITION('x', a) AS x FROM t"),
        ("SELECT position('x' IN a) AS x FROM t", "SELECT LOCATE('x', a) AS x FROM t"),
        ("SELECT listagg(a) AS x FROM t", "SELECT LISTAGG(a) AS x FROM t"),
        ("SELECT parse_json(a) AS x FROM t", "SELECT PARSE_JSON(a) AS x FROM t"),
        ("SELECT datediff(DAY, a, b) AS x FROM t", "SELECT DATEDIFF(DAY, a, b) AS x FROM t"),
        ("SELECT col1 FROM VALUES (1), (2)", "SELECT col1 FROM VALUES (1), (2) AS __values(col1)"),
        ("SELECT col2 FROM VALUES (1, 2) AS v", "SELECT col2 FROM VALUES (1, 2) AS v(col1, col2)"),
        ("SELECT x FROM VALUES (1) AS v(x)", "SELECT x FROM VALUES (1) AS v(x)"),
        ("SELECT x FROM VALUES 1, 2 + 1 AS v(x)", "SELECT x FROM VALUES (1), (2 + 1) AS v(x)"),
        ("SELECT v.col1 FROM VALUES 1, 2 AS v", "SELECT v.col1 FROM VALUES (1), (2) AS v(col1)"),
        ("SELECT a FROM IDENTIFIER('x.t') AS q", "SELECT a FROM x.t AS q"),
        (
            "SELECT grouping__id FROM t GROUP BY CUBE (a)",
            "SELECT GROUPING_ID() AS grouping__id FROM t GROUP BY CUBE (a)",
        ),
        (
            "SELECT a FROM t GROUP BY CUBE (a) HAVING grouping__id > 0",
            "SELECT a FROM t GROUP BY CUBE (a) HAVING GROUPING_ID() > 0",
        ),
        ("SELECT grouping__id FROM t", "SELECT grouping__id FROM t"),
        ("SELECT 1 AS x FROM t GROUP BY window(ts, '1 day')", "SELECT 1 AS x FROM t GROUP BY WINDOW(ts, '1 day')"),
    ],
)
def test_comes_out_as_it_went_in(sql: str, expected: str) -> None:
    assert generate(parse_query(sql)) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("ts - INTERVAL 1 DAY 2 HOURS", "(ts - (INTERVAL '1' DAY + INTERVAL '2' HOURS))"),
        ("ts - INTERVAL 1 DAY + INTERVAL 2 HOURS", "((ts - INTERVAL '1' DAY) + INTERVAL '2' HOURS)"),
        ("2 * INTERVAL 1 DAY 2 HOURS", "(2 * (INTERVAL '1' DAY + INTERVAL '2' HOURS))"),
        ("a + b * c - d", "((a + (b * c)) - d)"),
        ("a | b ^ c & d + 1 | e", "((a | (b ^ (c & (d + 1)))) | e)"),
        ("a OR b AND NOT c", "(a OR (b AND (NOT c)))"),
        ("a BETWEEN 1 AND b + 1", "(a BETWEEN 1 AND (b + 1))"),
        ("a IN (1, b + 1)", "(a IN (1, (b + 1)))"),
        ("- a * 3", "((-a) * 3)"),
        ("a * -3", "(a * -3)"),
        ("(a + b) * c", "((a + b) * c)"),
        ("s.x.y = 1", "(s.x.y = 1)"),
        ("a LIKE 'x!%' ESCAPE '!'", "a LIKE 'x!%' ESCAPE '!'"),
    ],
)
def test_parentheses_show_the_tree(expression: str, expected: str) -> None:
    assert generate(parenthesize(parse_query(f"SELECT {expression} FROM t"))) == f"SELECT {expected} FROM t"


@pytest.mark.parametrize(
    ("sql", "message", "position"),
    [
        ("SELECT * FROM VALUES (1 AS x)", "alias inside of VALUES", None),
        ("SELECT a FROM t; SELECT b FROM t", "not a single query", None),
        ("INSERT INTO t VALUES (1)", "not a single query", None),
        ("SELECT a FROM", "Expected table name", None),
        ("SELECT a,\n  b c d FROM t", "Unexpected token", Position(2, 7)),
        ("SELECT 'abc", "cannot be read", None),
        ("", "not a single query", None),
        ("FROM t |> UNION ALL SELECT * FROM t", "cannot be read", None),
        ("SELECT * FROM t |> ORDER BY x |> LIMIT 1", "cannot be read", None),
    ],
)
def test_refuses_what_it_would_misread(sql: str, message: str, position: Position | None) -> None:
    with pytest.raises(SqlError) as caught:
        parse_query(sql)
    assert message in str(caught.value)
    if position is not None:
        assert caught.value.position == position


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("-1::string", "(-1)::string"),
        ("b * -1::int", "b * (-1)::int"),
        ("b -1::int", "b - (1::int)"),
        ("b - 1::int", "b - (1::int)"),
        ("DATE '2020-01-01'::string", "(DATE '2020-01-01')::string"),
        ("a > timestamp '2020-01-01'::date", "a > (timestamp '2020-01-01')::date"),
    ],
)
def test_a_cast_is_of_the_whole_literal(written: str, meant: str) -> None:
    def plain(expression: str) -> str:
        return generate(parenthesize(parse_query(f"SELECT {expression} FROM t"))).replace("(", "").replace(")", "")

    assert plain(written) == plain(meant)
    assert [type(n) for n in _operators(written)] == [type(n) for n in _operators(meant)]


def _operators(expression: str) -> list[exp.Expr]:
    """The operators from the outermost on; brackets do not count."""
    return [n for n in parse_query(f"SELECT {expression} FROM t").walk(bfs=False) if not isinstance(n, exp.Paren)]


def test_casts_that_are_clear_are_read() -> None:
    assert generate(parse_query("SELECT (-1)::string, CAST(-1 AS STRING), a::int FROM t")) == (
        "SELECT CAST((-1) AS STRING), CAST(-1 AS STRING), CAST(a AS INT) FROM t"
    )


def test_star() -> None:
    assert selects_star(parse_query("SELECT t.*, a FROM t"))
    assert selects_star(parse_query("SELECT a FROM (SELECT * FROM t)"))
    assert not selects_star(parse_query("SELECT count(*), a * 2 FROM t"))
