"""The views that are measured: the 22 of TPC-H, those of the papers, and a set of ten that overlap."""

from __future__ import annotations

from viewkeeper.tpch.queries import QUERIES


def v1(customer: str = "customer") -> str:
    """V1 of the paper on lazy maintenance, over any table that is like customer."""
    return f"""SELECT n_name, c_mktsegment, count(*) AS totalcnt, sum(l_extendedprice) AS totalprice,
          sum(l_quantity) AS totalquantity
        FROM {customer}, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey AND n_nationkey = c_nationkey
        GROUP BY n_name, c_mktsegment"""


# V2 is printed without all of its columns; the key of lineitem is added.
PAPERS = {
    "v1": v1(),
    "v2": """SELECT o_orderkey, l_linenumber, s_name, c_name, c_mktsegment, ps_comment
        FROM customer, orders, lineitem, supplier, partsupp
        WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey AND l_suppkey = ps_suppkey AND l_partkey = ps_partkey
          AND ps_suppkey = s_suppkey AND s_nationkey <> c_nationkey""",
    # Q3, Q5 and Q10 of the paper on update windows: without order and limit, with a count.
    "w_q3": """SELECT l_orderkey, o_orderdate, o_shippriority, sum(l_extendedprice * (1 - l_discount)) AS revenue,
          count(*) AS cnt
        FROM customer, orders, lineitem
        WHERE c_mktsegment = 'BUILDING' AND c_custkey = o_custkey AND l_orderkey = o_orderkey
          AND o_orderdate < DATE '1995-03-15' AND l_shipdate > DATE '1995-03-15'
        GROUP BY l_orderkey, o_orderdate, o_shippriority""",
    "w_q5": """SELECT n_name, sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS cnt
        FROM customer, orders, lineitem, supplier, nation, region
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND l_suppkey = s_suppkey AND c_nationkey = s_nationkey
          AND s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND r_name = 'ASIA'
          AND o_orderdate >= DATE '1994-01-01' AND o_orderdate < DATE '1995-01-01'
        GROUP BY n_name""",
    "w_q10": """SELECT c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment,
          sum(l_extendedprice * (1 - l_discount)) AS revenue, count(*) AS cnt
        FROM customer, orders, lineitem, nation
        WHERE c_custkey = o_custkey AND l_orderkey = o_orderkey AND c_nationkey = n_nationkey AND l_returnflag = 'R'
          AND o_orderdate >= DATE '1993-10-01' AND o_orderdate < DATE '1994-01-01'
        GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment""",
}

# What the set of ten has besides v1, w_q3, w_q5 and w_q10: one aggregate and five joins.
_OTHERS_OF_TEN = {
    "profit": """SELECT n_name, extract(YEAR FROM o_orderdate) AS o_year,
          sum(l_extendedprice * (1 - l_discount) - ps_supplycost * l_quantity) AS profit
        FROM part, supplier, lineitem, partsupp, orders, nation
        WHERE s_suppkey = l_suppkey AND ps_suppkey = l_suppkey AND ps_partkey = l_partkey AND p_partkey = l_partkey
          AND o_orderkey = l_orderkey AND s_nationkey = n_nationkey
        GROUP BY n_name, extract(YEAR FROM o_orderdate)""",
    "urgent_orders": """SELECT o_orderkey, o_orderdate, o_totalprice, c_custkey, c_name, c_mktsegment
        FROM customer, orders WHERE c_custkey = o_custkey AND o_orderpriority = '1-URGENT'""",
    "air_lines": """SELECT l_orderkey, l_linenumber, l_extendedprice, l_shipdate, o_custkey, o_orderdate
        FROM orders, lineitem WHERE o_orderkey = l_orderkey AND l_shipmode = 'AIR'""",
    "small_parts": """SELECT ps_partkey, ps_suppkey, ps_supplycost, ps_availqty, p_name, p_size, s_name
        FROM part, partsupp, supplier WHERE p_partkey = ps_partkey AND s_suppkey = ps_suppkey AND p_size < 15""",
    "returned_lines": """SELECT l_orderkey, l_linenumber, l_extendedprice, o_orderdate, c_custkey, c_name
        FROM customer, orders, lineitem
        WHERE c_custkey = o_custkey AND o_orderkey = l_orderkey AND l_returnflag = 'R'""",
    "asian_supplies": """SELECT ps_partkey, ps_suppkey, ps_supplycost, s_name, n_name
        FROM supplier, nation, region, partsupp
        WHERE s_nationkey = n_nationkey AND n_regionkey = r_regionkey AND ps_suppkey = s_suppkey AND r_name = 'ASIA'""",
}

VIEWS = {**PAPERS, **QUERIES, **_OTHERS_OF_TEN}

ALL = (*PAPERS, *QUERIES)  # those that the bars are about
TEN = ("v1", "w_q3", "w_q5", "w_q10", *_OTHERS_OF_TEN)
BY_HAND = ("v1", "w_q3", "w_q10")  # those that have a hand-written job, too
