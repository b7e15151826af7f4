"""The 22 queries of TPC-H as views, with changes of all tables, against recompute. Takes long: run by `make fuzz`."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from checks import FEED, run, strategies

from viewkeeper import Warehouse
from viewkeeper.tpch.generator import generating
from viewkeeper.tpch.queries import QUERIES
from viewkeeper.tpch.tables import TABLES

pytestmark = pytest.mark.spark

SCALE = 0.001
ROUNDS = [
    ["INSERT INTO orders SELECT o_orderkey + 1000000, o_custkey, 'F', o_totalprice, o_orderdate, o_orderpriority, o_clerk, "
     "o_shippriority, o_comment FROM orders WHERE o_orderkey % 50 < 3",
     "INSERT INTO lineitem SELECT l_orderkey + 1000000, * EXCEPT (l_orderkey) FROM lineitem WHERE l_orderkey % 50 < 3",
     "UPDATE customer SET c_acctbal = c_acctbal + 5000, c_mktsegment = 'BUILDING' WHERE c_custkey % 10 = 3",
     "DELETE FROM lineitem WHERE l_orderkey % 40 = 1"],
    ["DELETE FROM orders WHERE o_orderkey % 40 = 1",
     "UPDATE lineitem SET l_quantity = l_quantity + 40, l_discount = 0.06 WHERE l_orderkey % 30 = 2",
     "UPDATE supplier SET s_nationkey = (s_nationkey + 1) % 25 WHERE s_suppkey % 3 = 0",
     "UPDATE part SET p_size = 15, p_container = 'MED BOX', p_brand = 'Brand#23' WHERE p_partkey % 9 = 0",
     "UPDATE partsupp SET ps_supplycost = ps_supplycost / 2 WHERE ps_partkey % 7 = 0"],
    ["UPDATE nation SET n_name = 'GERMANY' WHERE n_name = 'JAPAN'", "DELETE FROM customer WHERE c_custkey % 11 = 0",
     "DELETE FROM part WHERE p_partkey % 13 = 0", "DELETE FROM partsupp WHERE ps_partkey % 13 = 0",
     "UPDATE region SET r_name = 'EUROPE' WHERE r_name = 'ASIA'"],
]  # fmt: skip


@pytest.mark.skipif("VIEWKEEPER_FUZZ" not in os.environ, reason="takes minutes; make fuzz runs it")
def test_all_22_are_maintained_from_changes(wh: Warehouse, tmp_path: Path) -> None:
    with generating(tmp_path, SCALE, TABLES):
        assert wh.spark
    for file in tmp_path.glob("*.parquet"):
        run(wh, f"CREATE TABLE {file.stem} USING DELTA {FEED} AS SELECT * FROM parquet.`{file}`")
    for name, query in QUERIES.items():
        wh.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {query}")
    for statements in ROUNDS:
        run(wh, *statements)
        found = strategies(wh.refresh(*QUERIES))
        assert set(found.values()) <= {"incremental", "none"}, found
        for name in QUERIES:
            report = wh.audit(name)
            assert report.equal, str(report)
