"""Plans that mean the same have one canonical form; plans that do not, never."""

from __future__ import annotations

import re

import pytest

from viewkeeper.sql.gate import canonical, optimized_plan

pytestmark = pytest.mark.core

GROUPED = """\
Aggregate [k#10L], [k#10L, sum(v#11L) AS s#20L]
+- Project [k#10L, v#11L]
   +- Filter (isnotnull(v#11L) AND (v#11L > 1))
      +- Relation spark_catalog.default.t[k#10L,v#11L,w#12] parquet
"""
JOINED = """\
Project [v#2, x#6]
+- Join Inner, (k#1L = k#5L)
   :- Filter isnotnull(k#1L)
   :  +- Relation default.a[k#1L,v#2] parquet
   +- Filter isnotnull(k#5L)
      +- Relation default.b[k#5L,x#6] parquet
"""
WITH_ITSELF = """\
Project [v#2, v#6]
+- Join Inner, (k#1L < k#5L)
   :- Relation default.a[k#1L,v#2] parquet
   +- Relation default.a[k#5L,v#6] parquet
"""
UNITED = """\
Union false, false
:- Project [a#1L, b#2L]
:  +- Relation default.t[a#1L,b#2L,c#3L] parquet
+- Project [a#5L, b#6L]
   +- Relation default.t[a#5L,b#6L,c#7L] parquet
"""


OVER_GROUPS = """\
Aggregate [sum((s#20L + 1)) AS a#30L, max(m#21L) AS b#31L]
+- Aggregate [k#10L, w#12], [sum(v#11L) FILTER (WHERE (w#12 = x)) AS s#20L, max(v#11L) AS m#21L]
   +- Relation spark_catalog.default.t[k#10L,v#11L,w#12] parquet
"""


def test_a_function_of_groups_may_be_called_below_or_above_what_makes_rows_of_it() -> None:
    """Its parameters have numbers too, but are no columns."""
    called = "filter({}, lambdafunction((lambda x#{} > 1), lambda x#{}, false))"
    below, above = called.format("collect_set(v#11L, 0, 0)", 30, 30), called.format("s#40", 51, 51)

    def plan(argument: str, grouped: str) -> str:
        made = f"Generate explode({argument}), [0], false, [c#21L]"
        relation = "Relation spark_catalog.default.t[k#10L,v#11L] parquet"
        return f"Project [c#21L]\n+- {made}\n   +- Aggregate [{grouped}]\n      +- {relation}\n"

    one = plan("_gen_input_0#20", f"{below} AS _gen_input_0#20")
    other = plan(above, "collect_set(v#11L, 0, 0) AS s#40")
    assert canonical(one) == canonical(other)
    assert canonical(one) != canonical(other.replace("> 1", "> 2"))


def test_made_columns_are_given_whether_or_not_they_are_renamed() -> None:
    made = "Generate explode(v#11), [1], false, t, [c#21L]\n{0}+- Relation default.t[k#10L,v#11] parquet\n"
    renamed = "Project [k#10L, c#21L AS x#22L]\n+- " + made.format("   ")
    assert canonical(made.format("")) == canonical(renamed)
    assert canonical(made.format("")) != canonical(renamed.replace("k#10L, c#21L AS x#22L", "c#21L AS x#22L, k#10L"))
    assert canonical(made.format("")) != canonical(renamed.replace("c#21L AS x#22L", "k#10L AS x#22L"))


def test_what_rows_are_made_of_may_be_computed_for_that_alone() -> None:
    """It is dropped then; written in place, there is nothing to drop."""
    made = "{}Generate explode(upper({})), {}false, [c#21L]\n"
    below = "Project [k#10L, v#11, lower(v#11) AS p#20]\n{0}   +- Relation default.t[k#10L,v#11] parquet\n"
    dropped = made.format("", "p#20", "[2], ") + "+- " + below.format("")
    kept = made.format("", "lower(v#11)", "") + "+- Relation default.t[k#10L,v#11] parquet\n"
    assert canonical(dropped) == canonical(kept)
    assert canonical(dropped) != canonical(dropped.replace("[2], ", ""))
    assert canonical(dropped) != canonical(dropped.replace("[2]", "[1]"))


def test_where_groups_are_computed_with_does_not_matter() -> None:
    summed = "sum(v#11L) FILTER (WHERE (w#12 = x))"
    inside = OVER_GROUPS.replace("sum((s#20L + 1))", "sum(s#20L)").replace(f"{summed} AS", f"({summed} + 1) AS")
    turned = OVER_GROUPS.replace(
        f"[{summed} AS s#20L, max(v#11L) AS m#21L]", f"[max(v#11L) AS m#21L, {summed} AS s#20L]"
    )
    twice = OVER_GROUPS.replace("m#21L]", f"m#21L, ({summed} + 1) AS n#22L]").replace("(s#20L + 1)", "n#22L")
    for same in (inside, turned, twice, OVER_GROUPS.replace("[k#10L, w#12], [", "[w#12, k#10L], [")):
        assert same != OVER_GROUPS
        assert canonical(same) == canonical(OVER_GROUPS)
    for other in (
        inside.replace("+ 1", "+ 2"),
        OVER_GROUPS.replace("(s#20L + 1)", "(m#21L + 1)"),
        OVER_GROUPS.replace("(w#12 = x)", "(w#12 = y)"),
        OVER_GROUPS.replace("[k#10L, w#12], [", "[k#10L], ["),
        OVER_GROUPS.replace("max(v#11L) AS m", "min(v#11L) AS m"),
    ):
        assert canonical(other) != canonical(OVER_GROUPS)


def test_what_a_comparison_implies_need_not_be_said() -> None:
    def kept(condition: str) -> str:
        return canonical(f"Filter ({condition})\n+- Relation default.t[a#1L,b#2L,c#3L] parquet")

    plain = kept("((a#1L + b#2L) > 3) AND (c#3L = 5)")
    for implied in ("(a#1L + b#2L)", "a#1L", "b#2L", "c#3L"):
        assert kept(f"(isnotnull({implied}) AND ((a#1L + b#2L) > 3)) AND (c#3L = 5)") == plain
    either = "((a#1L > 3) OR (b#2L > 3)) AND (c#3L <=> 5)"
    for needed in ("a#1L", "b#2L", "c#3L"):
        assert kept(f"isnotnull({needed}) AND {either}") != kept(either)


def test_numbers_do_not_matter() -> None:
    for plan in (GROUPED, JOINED, WITH_ITSELF, UNITED):
        renumbered = re.sub(r"#(\d+)", lambda m: f"#{900 - int(m[1])}", plan)
        assert renumbered != plan
        assert canonical(renumbered) == canonical(plan)


def test_names_of_results_do_not_matter() -> None:
    assert canonical(GROUPED.replace("AS s#", "AS total#")) == canonical(GROUPED)
    assert canonical(GROUPED.replace("AS s#", "AS the total (all)#")) == canonical(GROUPED)


def test_where_rows_are_put_and_how_they_are_joined_does_not_matter() -> None:
    for placing in (
        "Sort [v#2 ASC NULLS FIRST], true",
        "Sort [v#2 ASC NULLS FIRST], false",
        "RepartitionByExpression [v#2]",
    ):
        put = f"{placing}\n+- " + JOINED.replace("\n", "\n   ")
        assert canonical(put) == canonical(JOINED)
    assert canonical(JOINED.replace("k#5L)\n   :-", "k#5L), rightHint=(strategy=broadcast)\n   :-")) == canonical(
        JOINED
    )


def test_an_order_that_an_aggregate_depends_on_matters() -> None:
    plain = GROUPED.replace("sum", "collect_list")
    sorted_below = plain.replace("+- Project [k#10L, v#11L]", "+- Sort [v#11L ASC NULLS FIRST], true")
    assert canonical(sorted_below) != canonical(plain)


def test_renames_do_not_matter() -> None:
    renamed = """\
Aggregate [x#30L], [x#30L, sum(y#31L) AS s#20L]
+- Project [k#10L AS x#30L, v#11L AS y#31L]
   +- Filter (isnotnull(v#11L) AND (v#11L > 1))
      +- Relation spark_catalog.default.t[k#10L,v#11L,w#12] parquet
"""
    assert canonical(renamed) == canonical(GROUPED)


def test_projections_that_only_pick_do_not_matter() -> None:
    without = GROUPED.replace("+- Project [k#10L, v#11L]\n   +- Filter", "+- Filter").replace("      +-", "   +-")
    assert without.count("\n") == 3
    assert canonical(without) == canonical(GROUPED)


def test_cross_is_inner_and_sorts_do_not_matter() -> None:
    assert canonical(JOINED.replace("Join Inner", "Join Cross")) == canonical(JOINED)
    bare, always = (JOINED.replace("Join Inner, (k#1L = k#5L)", f"Join LeftOuter{on}") for on in ("", ", true"))
    assert canonical(bare) == canonical(always)
    lines = ["Sort [s#20L ASC NULLS FIRST], true"]
    lines += [("   " + line if i else "+- " + line) for i, line in enumerate(GROUPED.splitlines())]
    assert canonical("\n".join(lines)) == canonical(GROUPED)


DIFFERENT = {
    "another table": (GROUPED, GROUPED.replace("default.t", "default.u")),
    "another constant": (GROUPED, GROUPED.replace("> 1", "> 2")),
    "another comparison": (GROUPED, GROUPED.replace("> 1", ">= 1")),
    "another aggregate": (GROUPED, GROUPED.replace("sum(", "max(")),
    "another key": (GROUPED, GROUPED.replace("Aggregate [k#10L], [k#10L,", "Aggregate [v#11L], [v#11L,")),
    "columns in another order": (
        GROUPED,
        GROUPED.replace("[k#10L, sum(v#11L) AS s#20L]", "[sum(v#11L) AS s#20L, k#10L]"),
    ),
    "picked columns in another order": (JOINED, JOINED.replace("[v#2, x#6]", "[x#6, v#2]")),
    "another column": (GROUPED, GROUPED.replace("sum(v#11L)", "sum(w#12)")),
    "join condition": (JOINED, JOINED.replace("k#1L = k#5L", "k#1L = x#6")),
    "join kind": (JOINED, JOINED.replace("Join Inner", "Join LeftOuter")),
    "no join condition": (JOINED, JOINED.replace("Join Inner, (k#1L = k#5L)", "Join Inner")),
    "sides of a join": (
        JOINED,
        """\
Project [v#2, x#6]
+- Join Inner, (k#1L = k#5L)
   :- Filter isnotnull(k#5L)
   :  +- Relation default.b[k#5L,x#6] parquet
   +- Filter isnotnull(k#1L)
      +- Relation default.a[k#1L,v#2] parquet
""",
    ),
    "direction within a join of a table with itself": (WITH_ITSELF, WITH_ITSELF.replace("k#1L < k#5L", "k#5L < k#1L")),
    "side shown of a join of a table with itself": (WITH_ITSELF, WITH_ITSELF.replace("[v#2, v#6]", "[v#6, v#2]")),
    "order of columns under a union": (UNITED, UNITED.replace("[a#5L, b#6L]", "[b#6L, a#5L]")),
    "column under a union": (UNITED, UNITED.replace("[a#5L, b#6L]", "[a#5L, c#7L]")),
    "a limit": (f"GlobalLimit 3\n+- {GROUPED.splitlines()[-1].strip(' +-')}", GROUPED.splitlines()[-1].strip(" +-")),
}


@pytest.mark.parametrize(("one", "other"), DIFFERENT.values(), ids=DIFFERENT.keys())
def test_what_matters(one: str, other: str) -> None:
    assert one != other
    assert canonical(one) != canonical(other)


FIELD = """\
Aggregate [x#7], [x#7, count(1) AS n#9L]
+- Project [s#3.x AS x#7]
   +- Relation default.t[k#1L,s#3,q#4] parquet
"""


@pytest.mark.parametrize("other", ["s#3.y", "s#3[0]", "s#3 IN (1,2)", "q#4.x"])
def test_expressions_that_begin_with_a_column_matter(other: str) -> None:
    assert canonical(FIELD.replace("s#3.x AS", f"{other} AS")) != canonical(FIELD)


def test_plan_is_found_in_what_explain_prints() -> None:
    explained = f"== Parsed Logical Plan ==\nx\n\n== Optimized Logical Plan ==\n{GROUPED}\n== Physical Plan ==\ny\n"
    assert optimized_plan(explained) == canonical(GROUPED)


RIGHT = """\
Project [v#2, x#6]
+- Join RightOuter, (k#1L = k#5L)
   :- Relation default.a[k#1L,v#2] parquet
   +- Relation default.b[k#5L,x#6] parquet
"""
LEFT = """\
Project [v#2, x#6]
+- Join LeftOuter, (k#1L = k#5L)
   :- Relation default.b[k#5L,x#6] parquet
   +- Relation default.a[k#1L,v#2] parquet
"""


def test_a_right_join_is_a_left_join_the_other_way_round() -> None:
    assert canonical(RIGHT) == canonical(LEFT)
    assert canonical(RIGHT) != canonical(LEFT.replace("LeftOuter", "Inner"))
    assert canonical(RIGHT) != canonical(RIGHT.replace("RightOuter", "LeftOuter"))


LIMITED = """\
GlobalLimit 3
+- LocalLimit 3
   +- Sort [v#11L DESC NULLS LAST], true
      +- Relation spark_catalog.default.t[k#10L,v#11L] parquet
"""


def test_an_order_below_a_limit_matters() -> None:
    assert canonical(LIMITED) != canonical(LIMITED.replace("DESC NULLS LAST", "ASC NULLS FIRST"))
    assert canonical(LIMITED) != canonical(LIMITED.replace("[v#11L DESC", "[k#10L DESC"))


WINDOW = """\
Window [rank(s#20L) windowspecdefinition(k#10L, s#20L ASC NULLS FIRST) AS n#30], [k#10L], [s#20L ASC NULLS FIRST]
+- Aggregate [k#10L], [k#10L, sum(v#11L) AS s#20L]
   +- Relation spark_catalog.default.t[k#10L,v#11L] parquet
"""
TWICE = """\
Project [k#10L, s#20L, n#30]
+- Window [rank(w#21L) windowspecdefinition(k#10L, w#21L ASC NULLS FIRST) AS n#30], [k#10L], [w#21L ASC NULLS FIRST]
   +- Aggregate [k#10L], [k#10L, sum(v#11L) AS s#20L, sum(v#11L) AS w#21L]
      +- Relation spark_catalog.default.t[k#10L,v#11L] parquet
"""


def test_a_value_computed_twice_is_the_same_value() -> None:
    assert canonical(WINDOW) == canonical(TWICE)
    assert canonical(WINDOW) != canonical(TWICE.replace("sum(v#11L) AS w", "max(v#11L) AS w"))
    assert canonical(WINDOW) != canonical(TWICE.replace("[k#10L, s#20L, n#30]", "[k#10L, n#30, s#20L]"))


def test_the_alias_of_a_lateral_view_does_not_matter() -> None:
    plan = "Generate explode(x#1), [0], false, e, [y#2]\n+- Relation default.t[x#1] parquet\n"
    assert canonical(plan) == canonical(plan.replace(", e, ", ", "))
    assert canonical(plan) != canonical(plan.replace("false, e", "true, e"))


def test_where_a_column_is_computed_does_not_matter() -> None:
    below = """\
Aggregate [k#10L], [k#10L, sum(x#30L) AS s#20L]
+- Project [k#10L, (v#11L * 2) AS x#30L]
   +- Relation spark_catalog.default.t[k#10L,v#11L] parquet
"""
    inside = """\
Aggregate [k#10L], [k#10L, sum((v#11L * 2)) AS s#20L]
+- Relation spark_catalog.default.t[k#10L,v#11L] parquet
"""
    assert canonical(below) == canonical(inside)
    assert canonical(below) != canonical(inside.replace("* 2", "* 3"))


def test_the_order_of_terms_does_not_matter() -> None:
    plan = "Filter ((isnotnull(a#1) AND (a#1 > 1)) AND ((b#2 < 3) OR (b#2 = a#1)))\n+- Relation default.t[a#1,b#2] parquet\n"
    same = "Filter (isnotnull(a#1) AND (((b#2 < 3) OR (b#2 = a#1)) AND (a#1 > 1)))\n+- Relation default.t[a#1,b#2] parquet\n"
    assert canonical(plan) == canonical(same)
    assert canonical(plan) != canonical(plan.replace(") AND ((b", ") OR ((b"))
    assert canonical(plan) != canonical(plan.replace("(a#1 > 1)", "(b#2 > 1)"))


OVER = """\
Project [v#2, (r#4 + r#4) AS x#6]
+- Window [rank(v#2) windowspecdefinition(w#3, v#2 ASC NULLS FIRST) AS r#4, sum(v#2) windowspecdefinition(w#3) AS s#5], [w#3]
   +- Relation default.t[v#2,w#3] parquet
"""


def test_a_window_function_twice_is_the_same_value() -> None:
    rank = "rank(v#2) windowspecdefinition(w#3, v#2 ASC NULLS FIRST) AS"
    twice = OVER.replace(f"{rank} r#4", f"{rank} r#4, {rank} r#7").replace("r#4 + r#4", "r#4 + r#7")
    last = OVER.replace(f"{rank} r#4, ", "").replace("AS s#5]", f"AS s#5, {rank} r#4]")
    for same in (twice, last):
        assert same != OVER
        assert canonical(same) == canonical(OVER)
    for other in (OVER.replace("r#4 + r#4", "r#4 + s#5"), OVER.replace("v#2 ASC", "v#2 DESC")):
        assert canonical(other) != canonical(OVER)


def test_a_window_of_all_rows() -> None:
    whole = OVER.replace("], [w#3]", "]").replace("(w#3, v#2", "(v#2").replace("(w#3)", "()")
    assert canonical(whole) == canonical(whole.replace("r#4", "q#8"))
    assert canonical(whole) != canonical(OVER)


def test_the_names_of_what_distinct_aggregates_are_spread_by_do_not_matter() -> None:
    spread = """\
Aggregate [k#1], [k#1, count(t.v#8) FILTER (WHERE ((gid#7 = 1) AND (t.v > 2)#10)) AS a#3L]
+- Aggregate [k#1, t.v#8, gid#7], [k#1, t.v#8, gid#7, max((t.v > 2)#9) AS (t.v > 2)#10]
   +- Expand [[k#1, v#2, 1, (v#2 > 2)]], [k#1, t.v#8, gid#7, (t.v > 2)#9]
      +- Relation default.t[k#1,v#2] parquet
"""
    renamed = spread.replace("t.v", "some_query.v_3")
    assert renamed != spread
    assert canonical(renamed) == canonical(spread)
    assert canonical(renamed.replace("(v#2 > 2)]]", "(v#2 > 3)]]")) != canonical(spread)


def test_by_which_constant_rows_are_grouped_does_not_matter() -> None:
    grouped = "Aggregate [0], [x AS a#3, count(1) AS n#4L]\n+- Relation default.t[k#1,v#2] parquet\n"
    assert canonical(grouped) == canonical(grouped.replace("[0]", "[x]"))
    assert canonical(grouped) != canonical(grouped.replace("[0]", "[k#1]"))
    assert canonical(grouped.replace("[0]", "[k#1]")) == canonical(grouped.replace("[0]", "[x, k#1]"))
    assert canonical(grouped) != canonical(grouped.replace("[0], ", ""))
    assert canonical(grouped) != canonical(grouped.replace("[x AS", "[y AS"))


def test_how_a_name_of_several_words_is_written_does_not_matter() -> None:
    plan = "Project [a b#1, (x.y#2 > 1) AS z#3]\n+- Relation default.t[a b#1,x.y#2] parquet\n"
    assert canonical(plan) == canonical(plan.replace("Project [a b", "Project [A B").replace("(x.y", "(X.Y"))
    assert canonical(plan) != canonical(plan.replace("[a b#1, (x.y#2", "[x.y#2, (a b#1"))
