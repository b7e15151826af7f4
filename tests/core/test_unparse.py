"""The text of the algebra: readable, fully parenthesised, with no name twice."""

from __future__ import annotations

import re

import pytest
from duck import DuckTables
from fake_catalog import FakeCatalog

from viewkeeper.algebra.relations import (
    Aggregate,
    Changes,
    Field,
    Filter,
    Generate,
    Item,
    Join,
    JoinKind,
    Measure,
    Ordering,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Union,
    Values,
    Window,
    WindowColumn,
    empty,
    pass_through,
)
from viewkeeper.algebra.scalars import NULL, ONE, TRUE, Cast, Column, Literal, Outer, Scalar, Subquery, Verbatim, call
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.render import quote, render, string_literal
from viewkeeper.sql.unparse import LONG_EXPRESSION, unparse

pytestmark = pytest.mark.core


def scan(table: str, *columns: str) -> Scan:
    """`table` with columns named `name` or `source=name`."""
    pairs = [c.split("=") for c in columns]
    return Scan(table, tuple(ScanColumn(p[0], p[-1], "bigint") for p in pairs))


def items(**values: Scalar) -> tuple[Item, ...]:
    return tuple(Item(name, value, "bigint") for name, value in values.items())


def count(name: str = "n") -> Measure:
    return Measure(name, "count", (), "bigint")


A, B = Column("a"), Column("b")
R = scan("r", "a", "b")


def test_chains_of_conditions_have_no_parentheses_inside() -> None:
    a, b, c = (Column(name) for name in "abc")
    names_ = {name: name for name in "abc"}
    assert render(call("OR", call("OR", a, b), c), names_) == "(a OR b OR c)"
    assert render(call("OR", a, call("OR", b, c)), names_) == "(a OR (b OR c))"
    assert render(call("AND", call("OR", a, b), c), names_) == "((a OR b) AND c)"


def test_neighbours_share_a_select() -> None:
    filtered = Filter(Filter(R, call(">", A, ONE)), call("IS NOT NULL", B))
    grouped = Aggregate(Project(filtered, items(k=call("+", A, ONE), v=B)), ("k",), (Measure("s", "sum", ("v",), "x"),))
    above = Project(Filter(grouped, call(">", Column("s"), ONE)), items(k=Column("k"), t=call("*", Column("s"), ONE)))
    assert unparse(above) == (
        "SELECT (`r`.`a` + 1) AS `k`, (SUM(`r`.`b`) * 1) AS `t`\n"
        "FROM r AS `r`\n"
        "WHERE (`r`.`a` > 1) AND (`r`.`b` IS NOT NULL)\n"
        "GROUP BY (`r`.`a` + 1)\n"
        "HAVING (SUM(`r`.`b`) > 1)"
    )


def test_measures() -> None:
    measures = (
        count(),
        Measure("d", "count", ("a", "b"), "bigint", distinct=True),
        Measure("w", "sum", ("a",), "bigint", where="b"),
    )
    assert unparse(Aggregate(R, (), measures)) == (
        "SELECT COUNT(*) AS `n`, COUNT(DISTINCT `r`.`a`, `r`.`b`) AS `d`, "
        "SUM(`r`.`a`) FILTER (WHERE `r`.`b`) AS `w`\nFROM r AS `r`"
    )


def test_nothing_is_renamed_without_need() -> None:
    inner = Project(scan("r", "a=x"), items(y=Column("x")))
    assert unparse(Aggregate(Aggregate(inner, ("y",), ()), ("y",), (count(),))) == (
        "SELECT `q`.`a` AS `y`, COUNT(*) AS `n`\n"
        "FROM (SELECT `r`.`a`\n  FROM r AS `r`\n  GROUP BY `r`.`a`) AS `q`\n"
        "GROUP BY `q`.`a`"
    )


def test_no_column_of_a_subquery_has_a_name_twice() -> None:
    joined = Join(scan("r", "a=x"), scan("s", "a=y", "A=z"), "inner", TRUE)
    text = unparse(Aggregate(Aggregate(joined, ("x", "y", "z"), ()), ("z", "y"), ()))
    assert "(SELECT `r`.`a`, `s`.`a` AS `y`, `s`.`A` AS `z`" in text
    assert text.startswith("SELECT `q`.`z`, `q`.`y`\n")


@pytest.mark.parametrize(
    ("kind", "words"),
    [("inner", "INNER JOIN"), ("left", "LEFT JOIN"), ("full", "FULL JOIN"), ("semi", "LEFT SEMI JOIN")],
)
def test_joins(kind: JoinKind, words: str) -> None:
    joined = Join(R, scan("s", "c"), kind, call("<=>", A, Column("c")))
    assert f"FROM r AS `r`\n{words} s AS `s` ON (`r`.`a` <=> `s`.`c`)" in unparse(joined)


def test_a_join_on_the_right_is_bracketed() -> None:
    right = Join(scan("s", "c"), scan("t", "d"), "inner", TRUE)
    assert "CROSS JOIN (s AS `s`\nCROSS JOIN t AS `t`)" in unparse(Join(R, right, "inner", TRUE))


@pytest.mark.parametrize(("kind", "words"), [("inner", "INNER JOIN"), ("left", "LEFT JOIN")])
def test_what_is_computed_below_a_join_stays_there(kind: JoinKind, words: str) -> None:
    """What is padded must be computed before; and Spark concludes more of a column than of its expression."""
    right = Project(scan("s", "c"), items(x=call("COALESCE", Column("c"), ONE)))
    text = unparse(Join(R, right, kind, call("=", A, Column("x"))))
    assert f"{words} (SELECT COALESCE(`s`.`c`, 1) AS `x`\n  FROM s AS `s`) AS `q` ON (`r`.`a` = `q`.`x`)" in text


def test_no_table_is_called_as_a_column() -> None:
    """In a subquery, Spark looks into the nearer column of that name rather than at the table."""
    outer = scan("dept", "id")
    inner = Filter(scan("emp", "dept=d", "x"), call("=", Column("d"), Outer("id")))
    text = unparse(Filter(outer, Subquery("exists", (), inner)))
    assert "FROM dept AS `dept_2`" in text
    assert "(`emp`.`dept` = `dept_2`.`id`)" in text


def test_windows_over_computed_groups_are_apart() -> None:
    """Spark does not always know in a window what was computed to group by."""
    grouped = Aggregate(Project(R, items(x=call("+", A, ONE))), ("x",), ())
    numbered = Window(grouped, (), (Ordering("x"),), (WindowColumn("n", "ROW_NUMBER", (), "int"),))
    assert "ROW_NUMBER() OVER (ORDER BY `q`.`x` ASC NULLS FIRST)" in unparse(numbered)


def test_a_filter_on_a_padded_side_stays_there() -> None:
    right = Filter(scan("s", "c"), call(">", Column("c"), ONE))
    for kind in ("left", "full", "semi", "anti"):
        assert "JOIN (SELECT `s`.`c`\n  FROM s AS `s`\n  WHERE" in unparse(Join(R, right, kind, TRUE))
    left = Join(Filter(R, call(">", A, ONE)), scan("s", "c"), "full", TRUE)
    assert "FROM (SELECT `r`.`a`, `r`.`b`\n  FROM r AS `r`\n  WHERE" in unparse(left)


def test_no_alias_twice() -> None:
    """A table may be called as the second mention of another would be."""
    tables = [scan("t", "a=a1"), scan("db.T", "a=a2"), scan("t_2", "a=a3"), scan("`other`.`t`", "a=a4"), scan("q", "a")]
    joined: Relation = Aggregate(tables[0], ("a1",), ())
    for table in tables[1:]:
        joined = Join(joined, table, "inner", TRUE)
    aliases = re.findall(r" AS `(\w+)`$", unparse(joined), re.MULTILINE)
    assert len({alias.lower() for alias in aliases}) == len(aliases) == 6


def test_constants_are_not_grouped_by_as_themselves() -> None:
    """GROUP BY 2 would be the second column."""
    constant = Aggregate(Project(R, items(k=Literal("2"))), ("k",), (count(),))
    assert unparse(constant).endswith("GROUP BY `q`.`k`")


def test_a_constant_above_a_global_aggregate_is_one_row() -> None:
    total = Aggregate(R, (), (count(),))
    assert unparse(Project(total, items(x=ONE))) == "SELECT 1 AS `x`\nFROM r AS `r`\nHAVING TRUE"
    renamed = Project(Project(total, items(x=ONE, n=Column("n"))), items(y=Column("x")))
    assert unparse(renamed).endswith("HAVING TRUE")
    assert "HAVING" not in unparse(Project(total, items(x=Column("n"))))


def test_values() -> None:
    given = Values((Field("x", "bigint"), Field("y", "string")), ((ONE, NULL), (Literal("2"), Literal("'a'"))))
    assert unparse(given) == "SELECT `given`.`x`, `given`.`y`\nFROM VALUES (1, NULL), (2, 'a') AS `given`(`x`, `y`)"
    assert "CAST(NULL AS string) AS `y` WHERE FALSE" in unparse(empty(given.fields))
    assert unparse(Project(Values((), ((),)), items(x=ONE))) == "SELECT 1 AS `x`"


def test_no_columns() -> None:
    assert unparse(Project(R, ())) == "SELECT 1 AS __vk_nothing\nFROM r AS `r`"
    assert unparse(Aggregate(Project(R, ()), (), (count(),))) == "SELECT COUNT(*) AS `n`\nFROM r AS `r`"


def test_union() -> None:
    one = Project(scan("r", "a"), pass_through(scan("r", "a").schema))
    assert unparse(Union((one, one))) == "SELECT `r`.`a`\nFROM r AS `r`\nUNION ALL\nSELECT `r_2`.`a`\nFROM r AS `r_2`"
    assert unparse(Filter(Union((one, one)), TRUE)).startswith("SELECT `q`.`a`\nFROM (SELECT `r`.`a`")


def test_leaves() -> None:
    old = Scan("r", R.columns, "old")
    changes = Changes("t", (ScanColumn("Order", "o", "bigint"),))
    text = unparse(Join(old, changes, "inner", TRUE), DuckTables())
    assert "FROM r_old AS `r`" in text
    assert "(SELECT `Order`, __vk_weight FROM t_changes) AS `t_changes`" in text
    shown = "`r`.`a`, `r`.`b`, `t_changes`.`Order` AS `o`, `t_changes`.`__vk_weight`"
    assert text.startswith(f"SELECT /*+ BROADCAST(`t_changes`) */ {shown}")


def test_names_are_quoted() -> None:
    assert quote("a b") == "`a b`"
    assert quote("a`b") == "`a``b`"
    odd = Scan("t", (ScanColumn("a`b", "x y", "bigint"),))
    assert unparse(odd) == "SELECT `t`.`a``b` AS `x y`\nFROM t AS `t`"


def test_strings_are_quoted() -> None:
    assert string_literal("it's") == r"'it\'s'"
    assert string_literal("back\\slash") == r"'back\\slash'"


def test_scalars() -> None:
    columns = {"a": "`t`.`a`", "b": "`t`.`b`"}
    for scalar, expected in (
        (call("+", A, call("*", B, ONE)), "(`t`.`a` + (`t`.`b` * 1))"),
        (call("-", A), "(- `t`.`a`)"),
        (call("NOT", call("IS NULL", A)), "(NOT (`t`.`a` IS NULL))"),
        (call("IF", A, B, NULL), "IF(`t`.`a`, `t`.`b`, NULL)"),
        (Cast(A, "decimal(10,2)"), "CAST(`t`.`a` AS decimal(10,2))"),
        (Verbatim(("(CASE WHEN ", " THEN ", " END)"), (A, B)), "(CASE WHEN `t`.`a` THEN `t`.`b` END)"),
    ):
        assert render(scalar, columns) == expected


def test_long_expressions_are_not_written_out_again() -> None:
    rel: Relation = scan("r", "a")
    for _ in range(40):
        rel = Project(rel, items(a=call("+", A, A)))
    assert len(unparse(rel)) < 40 * LONG_EXPRESSION


def test_units_stay_words() -> None:
    result = bind(parse_query("SELECT datediff(DAY, a, b) AS x FROM r"), FakeCatalog(), ("x",))
    assert isinstance(result, Bound)
    assert unparse(result.relation) == "SELECT DATEDIFF(DAY, `r`.`a`, `r`.`b`) AS `x`\nFROM r AS `r`"


def test_numbers_are_a_table_of_their_own() -> None:
    one_row = Values((), ((),))
    numbers = Generate(one_row, call("RANGE", Literal("1"), Literal("9000000")), (Field("id", "bigint"),))
    assert unparse(numbers) == "SELECT `range`.`n` AS `id`\nFROM RANGE(1, 9000000) AS `range`(`n`)"
    given = Values((Field("x", "int"),), ((Literal("1"),),))
    text = unparse(Generate(given, call("RANGE", Literal("3")), (Field("id", "bigint"),)))
    assert "VALUES (1) AS `given`(`x`)\nCROSS JOIN RANGE(3) AS `range`(`n`)" in text


def test_variants_are_taken_apart_after_lateral() -> None:
    rows = Scan("t", (ScanColumn("v", "v", "variant"),))
    fields = tuple(Field(name, type_) for name, type_ in (("pos", "int"), ("key", "string"), ("value", "variant")))
    text = unparse(Generate(rows, Verbatim(("VARIANT_EXPLODE(", ")"), (Column("v"),)), fields))
    assert "FROM t AS `t`\nCROSS JOIN LATERAL VARIANT_EXPLODE(`t`.`v`) AS `made`(`pos`, `key`, `value`)" in text
