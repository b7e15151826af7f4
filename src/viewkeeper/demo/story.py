"""What the demo tells: its views, and what happens to their sources."""

from __future__ import annotations

from dataclasses import dataclass

TABLES = ("lineitem", "orders", "customer", "nation")  # the largest first: they are loaded side by side

VIEWS = {
    "urgent_orders": (
        "a filtered join",
        """
        SELECT o.o_orderkey, o.o_orderdate, o.o_totalprice, c.c_name, c.c_mktsegment
        FROM orders o JOIN customer c ON o.o_custkey = c.c_custkey
        WHERE o.o_orderpriority = '1-URGENT' AND o.o_orderstatus = 'O'""",
    ),
    "nation_months": (
        "an aggregate over a three-way join",
        """
        SELECT c.c_nationkey, date_trunc('MONTH', o.o_orderdate) AS month, count(*) AS lines,
               sum(CAST(l.l_extendedprice * (1 - l.l_discount) AS DECIMAL(14, 2))) AS revenue
        FROM customer c
        JOIN orders o ON o.o_custkey = c.c_custkey
        JOIN lineitem l ON l.l_orderkey = o.o_orderkey
        GROUP BY c.c_nationkey, date_trunc('MONTH', o.o_orderdate)""",
    ),
    "part_prices": (
        "an aggregate with min, max and avg",
        """
        SELECT l_partkey, count(*) AS lines, min(l_extendedprice) AS lowest, max(l_extendedprice) AS highest,
               avg(l_quantity) AS quantity
        FROM lineitem
        GROUP BY l_partkey""",
    ),
    "nation_revenue": (
        "a view over the view nation_months",
        """
        SELECT n.n_name, sum(m.lines) AS lines, sum(m.revenue) AS revenue
        FROM nation_months m JOIN nation n ON n.n_nationkey = m.c_nationkey
        GROUP BY n.n_name""",
    ),
}


@dataclass(frozen=True)
class Round:
    """What happens, and the statements that make it happen."""

    title: str
    statements: tuple[str, ...]


ROUNDS = (
    Round(
        "New orders come in with their lines, and customers change their segment",
        (
            """INSERT INTO orders
               SELECT o_orderkey + 100000000, o_custkey, 'O', o_totalprice, DATE '1998-08-03', o_orderpriority,
                      o_clerk, o_shippriority, o_comment
               FROM orders WHERE o_orderkey % 2000 = 1""",
            """INSERT INTO lineitem
               SELECT l_orderkey + 100000000, l_partkey, l_suppkey, l_linenumber, l_quantity, l_extendedprice,
                      l_discount, l_tax, 'N', 'O', DATE '1998-08-20', l_commitdate, l_receiptdate, l_shipinstruct,
                      l_shipmode, l_comment
               FROM lineitem WHERE l_orderkey % 2000 = 1""",
            "UPDATE customer SET c_mktsegment = 'MACHINERY' WHERE c_custkey % 1000 = 7",
        ),
    ),
    Round(
        "Lines are taken back, some get a discount, and a batch of orders is merged in",
        (
            "DELETE FROM lineitem WHERE l_orderkey > 100000000 AND l_linenumber = 3",
            "UPDATE lineitem SET l_discount = 0.10 WHERE l_orderkey BETWEEN 100000 AND 101000",
            """MERGE INTO orders AS t
               USING (SELECT * FROM orders WHERE o_orderkey % 4000 IN (2, 3)) AS s
               ON t.o_orderkey = s.o_orderkey AND s.o_orderkey % 2000 = 2
               WHEN MATCHED THEN UPDATE SET o_orderstatus = 'F'
               WHEN NOT MATCHED THEN INSERT (o_orderkey, o_custkey, o_orderstatus, o_totalprice, o_orderdate,
                 o_orderpriority, o_clerk, o_shippriority, o_comment)
               VALUES (s.o_orderkey + 200000000, s.o_custkey, 'O', s.o_totalprice, DATE '1998-08-04',
                 s.o_orderpriority, s.o_clerk, s.o_shippriority, s.o_comment)""",
        ),
    ),
)
