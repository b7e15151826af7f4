"""The time of a time window, where Spark knows it as one and where it does not."""

from __future__ import annotations

import pytest
from fake_catalog import FakeCatalog

from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.unparse import unparse

pytestmark = pytest.mark.core

WINDOWS = "SELECT window(a, '3 days', '1 day') AS w, b FROM r"


def read(sql: str, *output: str) -> Bound:
    result = bind(parse_query(sql), FakeCatalog(), output)
    assert isinstance(result, Bound), str(result)
    return result


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT window_time(w) AS t FROM ({WINDOWS})",
        f"SELECT b AS t FROM ({WINDOWS}) WHERE CASE WHEN window_time(w) > 3 THEN true END",
        f"SELECT q.b AS t FROM ({WINDOWS}) AS q JOIN t ON window_time(q.w) = t.a",
        f"SELECT window.start AS t FROM ({WINDOWS}) GROUP BY window(window_time(w), '2 days')",
    ],
    ids=["selected", "in a condition", "joined on", "windows of windows"],
)
def test_read_as_it_is_and_kept_as_the_end(sql: str) -> None:
    found = read(sql, "t")
    assert "WINDOW_TIME(" in unparse(found.as_read)
    kept = unparse(found.relation)
    assert "WINDOW_TIME(" not in kept and ".end - INTERVAL '1' MICROSECOND)" in kept


def test_asked_outside_of_the_groups() -> None:
    """Spark does not know the window that is grouped by in the same SELECT."""
    sql = "SELECT window_time(w) AS t, n FROM (SELECT window AS w, count(*) AS n FROM r GROUP BY window(a, '1 day'))"
    text = unparse(read(sql, "t", "n").as_read)
    assert text.startswith("SELECT WINDOW_TIME(`q_2`.`window`) AS `t`") and text.count("GROUP BY") == 1
