"""Plans with subqueries have one canonical form: what is below them matters, their numbers do not."""

from __future__ import annotations

import re

import pytest

from viewkeeper.sql.gate import canonical

pytestmark = pytest.mark.core

WITH_A_SUBQUERY = """\
Project [v#2, (w#3 > scalar-subquery#9 []) AS x#4]
:  +- Aggregate [max(a#11) AS m#12]
:     +- Filter (isnotnull(a#11) AND (a#11 < 7))
:        +- Relation default.s[a#11,b#13] parquet
+- Filter (v#2 > 1)
   +- Relation default.t[v#2,w#3] parquet
"""


def test_what_is_below_a_projection_with_a_subquery_matters() -> None:
    subquery = "".join(WITH_A_SUBQUERY.splitlines(keepends=True)[1:4])
    lower = WITH_A_SUBQUERY.replace(subquery, "").replace("(w#3 > scalar-subquery#9 [])", "(w#3 > m#8)")
    assert canonical(WITH_A_SUBQUERY) == canonical(WITH_A_SUBQUERY.replace("#9 ", "#19 ").replace("#11", "#21"))
    for other in (
        lower,
        WITH_A_SUBQUERY.replace("v#2 > 1", "v#2 > 2"),
        WITH_A_SUBQUERY.replace("a#11 < 7", "a#11 < 8"),
        WITH_A_SUBQUERY.replace("max(a#11)", "max(b#13)"),
        WITH_A_SUBQUERY.replace("default.t", "default.u"),
    ):
        assert canonical(other) != canonical(WITH_A_SUBQUERY)


def test_what_is_below_groups_with_a_subquery_matters() -> None:
    grouped = WITH_A_SUBQUERY.replace(
        "Project [v#2, (w#3 > scalar-subquery#9 []) AS x#4]", "Aggregate [v#2], [v#2, scalar-subquery#9 [] AS x#4]"
    )
    assert canonical(grouped) != canonical(grouped.replace("v#2 > 1", "v#2 > 2"))


def test_a_subquery_twice_is_the_same_value() -> None:
    subquery = "".join(WITH_A_SUBQUERY.splitlines(keepends=True)[1:4])
    again = re.sub(r"#(1\d)", r"#2\1", subquery)
    one = WITH_A_SUBQUERY.replace("[v#2, (w#3 >", "[scalar-subquery#9 [] AS y#5, (w#3 >", 1)
    one = one.replace(subquery, subquery.replace(":  +-", ":  :-", 1).replace("\n:   ", "\n:  :") + subquery)
    other = one.replace(subquery, again).replace("> scalar-subquery#9", "> scalar-subquery#10")
    assert canonical(one) == canonical(other)
    assert canonical(one) != canonical(other.replace("a#211 < 7", "a#211 < 8"))


MERGED = """\
Project [v#2]
+- Filter ((w#3 > scalar-subquery#8 [].avg(a)) AND (v#2 < scalar-subquery#9 [].max(b)))
   :  :- Project [named_struct(avg(a), avg(a)#14, max(b), max(b)#15) AS mergedValue#16]
   :  :  +- Aggregate [avg(a#11) AS avg(a)#14, max(b#13) AS max(b)#15]
   :  :     +- Relation default.s[a#11,b#13] parquet
   :  +- Project [named_struct(avg(a), avg(a)#14, max(b), max(b)#15) AS mergedValue#16]
   :     +- Aggregate [avg(a#11) AS avg(a)#14, max(b#13) AS max(b)#15]
   :        +- Relation default.s[a#11,b#13] parquet
   +- Relation default.t[v#2,w#3] parquet
"""


def test_merged_subqueries_are_told_by_their_places() -> None:
    def named(first: str, second: str) -> str:
        """The same plan of a text that calls the two values otherwise."""
        plan = MERGED.replace("avg(a)#14", f"{first}#14").replace("max(b)#15", f"{second}#15")
        plan = plan.replace("[].avg(a)", f"[].{first}").replace("[].max(b)", f"[].{second}")
        return plan.replace("(avg(a), ", f"({first}, ").replace(", max(b), ", f", {second}, ")

    for names in (("x", "x_2"), ("_col_0", "_col_1")):
        assert canonical(named(*names)) == canonical(MERGED)
    swapped = MERGED.replace("(w#3 > scalar-subquery#8 [].avg(a))", "(w#3 > scalar-subquery#8 [].max(b))")
    for other in (
        swapped,
        MERGED.replace("avg(a#11)", "min(a#11)"),
        MERGED.replace("default.s", "default.u"),
        named("x", "x"),
        named("x, y", "z"),
    ):
        assert canonical(other) != canonical(MERGED)
    assert canonical(named("x", "x")) != canonical(named("x", "x").replace("#14, x, x#15)", "#15, x, x#14)"))
