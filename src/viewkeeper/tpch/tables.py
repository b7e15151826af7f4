"""The eight tables of TPC-H: how many rows they have, and the keys that hold in them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """A table, its rows at scale 1, its key, and the tables that columns of it refer to."""

    name: str
    rows: int
    key: str
    refers: tuple[tuple[str, str], ...] = ()
    grows: bool = True

    def rows_at(self, scale: float) -> int:
        """How many rows it has at a scale; lineitem has about as many."""
        return round(self.rows * scale) if self.grows else self.rows

    @property
    def properties(self) -> dict[str, str]:
        """Its keys, as properties of a Delta table declare them."""
        declared = {"viewkeeper.primaryKey": self.key}
        for columns, parent in self.refers:
            declared[f"viewkeeper.foreignKey.{parent}"] = f"({columns}) REFERENCES {parent} ({TABLES[parent].key})"
        return declared


# The largest first, since they load side by side.
TABLES = {
    table.name: table
    for table in (
        Table(
            "lineitem",
            6_001_215,
            "l_orderkey, l_linenumber",
            (
                ("l_orderkey", "orders"),
                ("l_partkey, l_suppkey", "partsupp"),
                ("l_partkey", "part"),
                ("l_suppkey", "supplier"),
            ),
        ),
        Table("orders", 1_500_000, "o_orderkey", (("o_custkey", "customer"),)),
        Table("partsupp", 800_000, "ps_partkey, ps_suppkey", (("ps_partkey", "part"), ("ps_suppkey", "supplier"))),
        Table("customer", 150_000, "c_custkey", (("c_nationkey", "nation"),)),
        Table("part", 200_000, "p_partkey"),
        Table("supplier", 10_000, "s_suppkey", (("s_nationkey", "nation"),)),
        Table("nation", 25, "n_nationkey", (("n_regionkey", "region"),), grows=False),
        Table("region", 5, "r_regionkey", grows=False),
    )
}
