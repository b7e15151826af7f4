"""Jobs that keep three of the views, as a good engineer would write them for just these views and changes.

They read the change feeds, pin versions, and MERGE into a table. They rely on what the engineer knows: orders come and
go with all their lines, are never handed to another customer, and nations do not change. They keep no record of what
they have read, as a real job must; that is in their favour.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from viewkeeper.bench.views import BY_HAND, PAPERS

Versions = Mapping[str, int]


@dataclass(frozen=True)
class Range:
    """The versions of all tables before and after a batch of changes."""

    old: Versions
    new: Versions

    def feed(self, table: str, columns: str) -> str:
        """The changed rows of a table with +1 and −1."""
        if self.old[table] == self.new[table]:
            return f"SELECT {columns}, 0L AS w FROM {table} VERSION AS OF {self.new[table]} WHERE false"
        return (
            f"SELECT {columns}, CASE WHEN _change_type IN ('insert', 'update_postimage') THEN 1L ELSE -1L END AS w"
            f" FROM table_changes('{table}', {self.old[table] + 1}, {self.new[table]})"
        )

    def before(self, table: str) -> str:
        return f"{table} VERSION AS OF {self.old[table]} AS {table}"

    def after(self, table: str) -> str:
        return f"{table} VERSION AS OF {self.new[table]} AS {table}"


def job(view: str, target: str, changed: Range) -> str:
    """The MERGE statement that brings the table `target` up to date."""
    jobs = dict(zip(BY_HAND, (_v1, _w_q3, _w_q10), strict=True))
    return jobs[view](target, changed)


def _v1(target: str, r: Range) -> str:
    return f"""
        MERGE INTO {target} AS t USING (
          WITH lines AS ({r.feed("lineitem", "l_orderkey, l_extendedprice, l_quantity")}),
            customers AS ({r.feed("customer", "c_custkey, c_nationkey, c_mktsegment")}),
            moved AS (
              SELECT o_custkey, l_extendedprice, l_quantity, w FROM lines
                JOIN {r.after("orders")} ON l_orderkey = o_orderkey WHERE w > 0
              UNION ALL
              SELECT o_custkey, l_extendedprice, l_quantity, w FROM lines
                JOIN {r.before("orders")} ON l_orderkey = o_orderkey WHERE w < 0),
            changed AS (
              SELECT c_nationkey, c_mktsegment, l_extendedprice, l_quantity, w
              FROM moved JOIN {r.after("customer")} ON o_custkey = c_custkey
              UNION ALL
              SELECT c_nationkey, c_mktsegment, l_extendedprice, l_quantity, w
              FROM customers JOIN {r.before("orders")} ON o_custkey = c_custkey
                JOIN {r.before("lineitem")} ON l_orderkey = o_orderkey)
          SELECT n_name, c_mktsegment, sum(w) AS cnt, sum(w * l_extendedprice) AS price, sum(w * l_quantity) AS quantity
          FROM changed JOIN {r.after("nation")} ON n_nationkey = c_nationkey GROUP BY n_name, c_mktsegment) AS c
        ON t.n_name = c.n_name AND t.c_mktsegment = c.c_mktsegment
        WHEN MATCHED AND t.totalcnt + c.cnt = 0 THEN DELETE
        WHEN MATCHED THEN UPDATE SET totalcnt = t.totalcnt + c.cnt, totalprice = t.totalprice + c.price,
          totalquantity = t.totalquantity + c.quantity
        WHEN NOT MATCHED THEN INSERT (n_name, c_mktsegment, totalcnt, totalprice, totalquantity)
          VALUES (c.n_name, c.c_mktsegment, c.cnt, c.price, c.quantity)"""


def _w_q3(target: str, r: Range) -> str:
    moved = r.feed("customer", "c_custkey, c_mktsegment")
    touched = f"""
        SELECT l_orderkey AS touched_key FROM ({r.feed("lineitem", "l_orderkey")})
        UNION SELECT o_orderkey FROM ({r.feed("orders", "o_orderkey")})
        UNION SELECT o_orderkey FROM {r.after("orders")}
          JOIN ({moved}) AS moved ON o_custkey = moved.c_custkey WHERE moved.c_mktsegment = 'BUILDING'"""
    columns = ("l_orderkey", "o_orderdate", "o_shippriority", "revenue", "cnt")
    return _recompute_touched("w_q3", target, touched, columns, r)


def _w_q10(target: str, r: Range) -> str:
    touched = f"""
        SELECT c_custkey AS touched_key FROM ({r.feed("customer", "c_custkey")})
        UNION SELECT o_custkey FROM ({r.feed("orders", "o_custkey")})
        UNION SELECT o_custkey FROM {r.after("orders")}
          JOIN ({r.feed("lineitem", "l_orderkey, l_returnflag")}) ON l_orderkey = o_orderkey WHERE l_returnflag = 'R'"""
    columns = (
        "c_custkey", "c_name", "c_acctbal", "c_phone", "n_name", "c_address", "c_comment", "revenue", "cnt"
    )  # fmt: skip
    return _recompute_touched("w_q10", target, touched, columns, r)


def _recompute_touched(view: str, target: str, touched: str, columns: tuple[str, ...], r: Range) -> str:
    """The groups that a change may have touched, computed afresh; the first column tells them apart."""
    key = columns[0]
    query = PAPERS[view]
    for table in ("customer", "orders", "lineitem", "nation"):
        query = query.replace(f"{table},", f"{r.after(table)},").replace(f"{table}\n", f"{r.after(table)}\n")
    query = query.replace("WHERE ", f"WHERE {key} IN (SELECT touched_key FROM touched) AND ", 1)
    return f"""
        MERGE INTO {target} AS t USING (
          WITH touched AS ({touched})
          SELECT touched_key, now.* FROM touched LEFT JOIN ({query}) AS now ON touched_key = now.{key}) AS c
        ON t.{key} = c.touched_key
        WHEN MATCHED AND c.{key} IS NULL THEN DELETE
        WHEN MATCHED THEN UPDATE SET {", ".join(f"{name} = c.{name}" for name in columns)}
        WHEN NOT MATCHED AND c.{key} IS NOT NULL THEN INSERT ({", ".join(columns)})
          VALUES ({", ".join(f"c.{name}" for name in columns)})"""
