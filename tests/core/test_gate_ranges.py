"""Plans with ranges, which Spark shows without the numbers of their columns."""

from __future__ import annotations

import re

import pytest

from viewkeeper.sql.gate import canonical

pytestmark = pytest.mark.core

RANGED = """\
Project [k#5L, id#1L]
+- Join LeftOuter, (k#5L = id#1L)
   :- Range (0, 5, step=1)
   +- Relation default.t[k#5L] parquet
"""
TWO_RANGES = """\
Join Inner
:- Range (0, 5, step=1)
+- Project
   +- Range (0, 7, step=1)
"""
COMPARED = """\
Project [x#2L]
+- Join Inner, (x#2L < y#4L)
   :- Project [id#1L AS x#2L]
   :  +- Range (0, 5, step=1)
   +- Project [id#3L AS y#4L]
      +- Range (0, 5, step=1)
"""


def test_a_range_has_a_number_though_its_plan_does_not_show_it() -> None:
    renamed = RANGED.replace("id#1L", "x#2L").replace(
        "Range (0, 5, step=1)", "Project [id#1L AS x#2L]\n   :  +- Range (0, 5, step=1)"
    )
    assert canonical(renamed) == canonical(RANGED)
    assert canonical(RANGED.replace("[k#5L, id#1L]", "[id#1L, k#5L]")) != canonical(RANGED)


def test_ranges_are_told_apart() -> None:
    second = TWO_RANGES.replace(":- Range", ":- Project\n:  +- Range").replace("+- Project\n   +- Range", "+- Range")
    assert canonical(second) != canonical(TWO_RANGES)
    assert canonical(COMPARED.replace("Project [x#2L]", "Project [y#4L]")) != canonical(COMPARED)
    assert canonical(COMPARED) == canonical(re.sub(r"#(\d)", lambda m: f"#{m[1]}0", COMPARED))


def test_ranges_that_cannot_be_told_apart_are_like_nothing() -> None:
    bare = "Join Inner, (id#1L < id#3L)\n:- Range (0, 5, step=1)\n+- Range (0, 5, step=1)\n"
    assert canonical(bare) != canonical(bare.replace("#1L", "#8L").replace("#3L", "#9L"))
