"""What fills a view's table."""

from __future__ import annotations

from pathlib import Path

import pytest
from hand_made import make_table, make_view

from viewkeeper.runtime.forms import content_query
from viewkeeper.store.changes import Unchanged
from viewkeeper.store.leaves import Pin, PinnedLeaves

pytestmark = pytest.mark.core

PINNED = PinnedLeaves({"sales": Pin(3, 3, Unchanged())})


@pytest.mark.parametrize(
    ("query", "by_text"),
    [
        ("SELECT id, price FROM sales WHERE price > 1", True),
        ("SELECT s.id FROM sales AS s JOIN (SELECT max(price) AS top FROM sales) AS m ON s.price = m.top", True),
        ("SELECT day, sum(price) AS total FROM sales GROUP BY day", False),  # more is kept than is shown
        ("SELECT main.sales.id FROM sales", False),  # of no schema is what is pinned
        # Of several right answers the kept one has to be found again.
        ("SELECT s.id, m.ids FROM sales AS s JOIN (SELECT day, collect_list(id) AS ids FROM sales GROUP BY day) AS m ON s.day = m.day", False),
        ("SELECT id, row_number() OVER (PARTITION BY day ORDER BY price) AS n FROM sales", False),
    ],
)  # fmt: skip
def test_rows_that_are_kept_as_they_are_come_from_the_views_own_text(tmp_path: Path, query: str, by_text: bool) -> None:
    make_table(tmp_path, "sales")
    view = make_view(tmp_path, f"CREATE MATERIALIZED VIEW v AS {query}")
    assert (query in content_query(view, PINNED, lambda _: None)) == by_text
