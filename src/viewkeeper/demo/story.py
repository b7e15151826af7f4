"""What the demo tells: its views, and what happens to their sources."""

from __future__ import annotations

from dataclasses import dataclass

# The columns of TPC-H that the demo needs; the largest table first, since they load side by side.
TABLES = {
    "lineitem": "l_orderkey, l_linenumber, l_suppkey, l_quantity, l_extendedprice, l_discount, l_returnflag,"
    " l_shipdate, l_shipmode",
    "orders": "o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority",
    "customer": "c_custkey, c_name, c_mktsegment, c_nationkey",
    "supplier": "s_suppkey, s_name, s_nationkey",
    "nation": "n_nationkey, n_name, n_regionkey",
}

VIEWS = {
    "urgent_orders": (
        "a filtered join",
        """
        SELECT o.o_orderkey, o.o_orderdate, o.o_totalprice, c.c_name, c.c_mktsegment
        FROM orders o JOIN customer c ON c.c_custkey = o.o_custkey
        WHERE o.o_orderpriority = '1-URGENT' AND o.o_orderstatus = 'O'""",
    ),
    "nation_months": (
        "an aggregate over a three-way join",
        """
        SELECT n.n_name AS nation, date_trunc('MONTH', l.l_shipdate) AS month, count(*) AS lines,
               sum(CAST(l.l_extendedprice * (1 - l.l_discount) AS DECIMAL(14, 2))) AS revenue
        FROM lineitem l
        JOIN supplier s ON s.s_suppkey = l.l_suppkey
        JOIN nation n ON n.n_nationkey = s.s_nationkey
        GROUP BY n.n_name, date_trunc('MONTH', l.l_shipdate)""",
    ),
    "ship_modes": (
        "an aggregate with min, max and avg",
        """
        SELECT l_shipmode, l_returnflag, count(*) AS lines, min(l_extendedprice) AS lowest,
               max(l_extendedprice) AS highest, avg(l_quantity) AS quantity
        FROM lineitem
        GROUP BY l_shipmode, l_returnflag""",
    ),
    "nation_revenue": (
        "a view over the view nation_months",
        """
        SELECT nation, sum(lines) AS lines, sum(revenue) AS revenue
        FROM nation_months
        GROUP BY nation""",
    ),
}


@dataclass(frozen=True)
class Round:
    """What happens, and the statements that make it happen: each with the table it changes."""

    title: str
    statements: tuple[tuple[str, str], ...]


ROUNDS = (
    Round(
        "A day's business: new orders and their lines come in",
        (
            (
                "orders",
                """INSERT INTO orders
                SELECT o_orderkey + 100000000, o_custkey, 'O', o_totalprice, DATE '1998-08-03', o_orderpriority
                FROM orders WHERE o_orderkey % 2000 = 1""",
            ),
            (
                "lineitem",
                """INSERT INTO lineitem
                SELECT l_orderkey + 100000000, l_linenumber, l_suppkey, l_quantity, l_extendedprice, l_discount, 'N',
                       DATE '1998-08-20', l_shipmode
                FROM lineitem WHERE l_orderkey % 2000 = 1""",
            ),
        ),
    ),
    Round(
        "Corrections: orders are merged in and cancelled, and lines get a discount",
        (
            (
                "orders",
                """MERGE INTO orders AS t
                USING (SELECT * FROM orders WHERE o_orderkey % 4000 IN (2, 3)) AS s
                ON t.o_orderkey = s.o_orderkey AND s.o_orderkey % 4000 = 2
                WHEN MATCHED THEN UPDATE SET o_orderpriority = '1-URGENT'
                WHEN NOT MATCHED THEN
                  INSERT (o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate, o_orderpriority)
                  VALUES (s.o_orderkey + 200000000, s.o_custkey, 'O', s.o_totalprice, DATE '1998-08-04',
                    s.o_orderpriority)
                """,
            ),
            ("orders", "DELETE FROM orders WHERE o_orderkey > 100000000 AND o_orderkey % 3 = 0"),
            ("lineitem", "UPDATE lineitem SET l_discount = 0.10 WHERE l_orderkey BETWEEN 100000 AND 101000"),
        ),
    ),
)
