"""The same view written in two ways holds the same rows after the same changes."""

from __future__ import annotations

import itertools
import os

import pytest
from checks import rows, run, strategies
from shapes import JOINS, OTHERS, ROUNDS, SETUP

from viewkeeper import Warehouse

pytestmark = pytest.mark.spark

PAIRS = {
    "matched": ("SELECT * FROM o LEFT SEMI JOIN c ON o.k = c.k", "SELECT * FROM o WHERE EXISTS (SELECT 1 FROM c WHERE c.k = o.k)"),
    "alone": (
        "SELECT o.id FROM o LEFT JOIN (SELECT DISTINCT k FROM c WHERE k IS NOT NULL) c ON o.k = c.k WHERE c.k IS NULL",
        "SELECT id FROM o WHERE NOT EXISTS (SELECT 1 FROM c WHERE c.k = o.k)",
    ),
    "either": (
        "SELECT id FROM o WHERE price > 3 OR k = 1",
        "SELECT id FROM o WHERE price > 3 UNION ALL SELECT id FROM o WHERE k = 1 AND (price <= 3 OR price IS NULL)",
    ),
    "kinds": ("SELECT DISTINCT k, tag FROM o", "SELECT k, tag FROM o GROUP BY k, tag"),
    "latest": (
        "SELECT k, id FROM o QUALIFY row_number() OVER (PARTITION BY k ORDER BY day DESC NULLS LAST, id DESC) = 1",
        "SELECT k, max_by(id, struct(day, id)) AS id FROM o GROUP BY k",
    ),
    "large": (
        "SELECT k, sum(price) AS x FROM o GROUP BY k HAVING count(*) > 3",
        "SELECT k, x FROM (SELECT k, sum(price) AS x, count(*) AS n FROM o GROUP BY k) WHERE n > 3",
    ),
    "counts": (
        "SELECT c.name, (SELECT count(*) FROM o WHERE o.k = c.k) AS n FROM c",
        "SELECT c.name, coalesce(n, 0) AS n FROM c LEFT JOIN (SELECT k, count(*) AS n FROM o GROUP BY k) o ON o.k = c.k",
    ),
    "both": (
        "SELECT k FROM o INTERSECT SELECT k FROM e",
        "SELECT DISTINCT o.k FROM o JOIN e ON o.k <=> e.k",
    ),
    "totals": (
        "SELECT k, tag, sum(price) AS x FROM o GROUP BY ROLLUP (k, tag)",
        "SELECT k, tag, sum(price) AS x FROM o GROUP BY k, tag UNION ALL SELECT k, NULL, sum(price) FROM o GROUP BY k"
        " UNION ALL SELECT NULL, NULL, sum(price) FROM o",
    ),
    "outer_": (
        "SELECT o.id, c.name FROM o FULL JOIN c ON o.k = c.k",
        "SELECT o.id, c.name FROM o LEFT JOIN c ON o.k = c.k UNION ALL SELECT NULL, name FROM c ANTI JOIN o ON o.k = c.k",
    ),
}  # fmt: skip


@pytest.mark.skipif("VIEWKEEPER_FUZZ" not in os.environ, reason="part of `make fuzz`")
def test_two_ways_agree(wh: Warehouse) -> None:
    run(wh, *SETUP)
    names = [f"{name}_{i}" for name in PAIRS for i in (1, 2)]
    for name, pair in PAIRS.items():
        for i, query in enumerate(pair):
            wh.sql(f"CREATE MATERIALIZED VIEW {name}_{i + 1} REFRESH POLICY INCREMENTAL STRICT AS {query}")
    for statements in ROUNDS:
        run(wh, *statements)
        assert "recompute" not in strategies(wh.refresh(*names)).values()
        for name in PAIRS:
            assert rows(wh, f"SELECT * FROM {name}_1") == rows(wh, f"SELECT * FROM {name}_2"), name


MOMENTS = {name: {**JOINS, **OTHERS}[name] for name in ("full_", "case_not_in", "except_all", "running", "dearest")}


@pytest.mark.skipif("VIEWKEEPER_FUZZ" not in os.environ, reason="part of `make fuzz`")
def test_when_it_is_refreshed_does_not_matter(wh: Warehouse) -> None:
    """After every commit, once for all of them, or made of all rows in the end: the same rows."""
    run(wh, *SETUP)

    def create(moment: str) -> list[str]:
        for name, query in MOMENTS.items():
            wh.sql(f"CREATE MATERIALIZED VIEW {name}_{moment} REFRESH POLICY INCREMENTAL STRICT AS {query}")
        return [f"{name}_{moment}" for name in MOMENTS]

    often, once = create("often"), create("once")
    for statement in itertools.chain(*ROUNDS):
        run(wh, statement)
        assert "recompute" not in strategies(wh.refresh(*often)).values(), statement
    assert "recompute" not in strategies(wh.refresh(*once)).values()
    create("late")
    for name in MOMENTS:
        shown = [rows(wh, f"SELECT * FROM {name}_{moment}") for moment in ("often", "once", "late")]
        assert shown[0] == shown[1] == shown[2], name
