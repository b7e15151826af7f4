"""Changes that read each table once, as they would of large tables: parts are computed before, old rows restored."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import date
from decimal import Decimal
from random import Random
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from checks import FEED, assert_right, refresh_and_check, run

from viewkeeper import Settings, Warehouse
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Filter, Relation, Scan, inputs
from viewkeeper.algebra.scalars import Scalar
from viewkeeper.changes.counts import RowCounts
from viewkeeper.changes.parts import Computed
from viewkeeper.here.conditions import fulfilling
from viewkeeper.runtime.few import given
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable
from viewkeeper.sql.parse import parse_query
from viewkeeper.store.files import DataFiles
from viewkeeper.store.rows import FileRows

pytestmark = pytest.mark.spark

# CHAR is padded only as long as Spark knows a column for one.
VIEWS = {
    "alone": """SELECT a.k, a.v FROM t a WHERE a.c = 'x'
                AND EXISTS (SELECT 1 FROM t b WHERE b.k = a.k AND b.v <> a.v AND b.c = 'y')
                AND NOT EXISTS (SELECT 1 FROM t d WHERE d.k = a.k AND d.v > a.v AND d.c IN ('z', 'x'))""",
    "counted": """SELECT a.k, a.c, m.n FROM t a JOIN (SELECT k, count(*) AS n FROM t WHERE c = 'x' GROUP BY k) m
                  ON a.k = m.k WHERE a.c <> 'y'""",
    "later": """SELECT u.k, u.c, t.v FROM u LEFT JOIN t ON u.k = t.k AND t.c = u.c AND t.v > u.w
                WHERE u.c = 'x' OR u.c LIKE 'y%'""",
    "below": """SELECT a.c, count(*) AS n, max(v) AS m FROM t a JOIN u ON a.k = u.k AND u.c = 'x'
                WHERE v < (SELECT avg(v) FROM t b WHERE b.k = a.k AND b.c = 'x') GROUP BY a.c""",
}


def every_read(self: RowCounts, part: Relation) -> float:
    """How many tables need not be read again, were they all large."""
    return sum(isinstance(n, Scan) and not n.table.startswith("__vk_") for n in walk(part)) if inputs(part) else 0


def test_each_table_read_once_it_is_the_same_change(wh: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    parts: list[Relation] = []
    compute = ReadOnce.compute

    def computed(leaves: ReadOnce, part: Relation) -> Computed:
        parts.append(part)
        return compute(leaves, part)

    monkeypatch.setattr(ReadOnce, "compute", computed)
    of_three = "element_at(array('x', 'y', 'z'), CAST((id + {}) % 3 + 1 AS INT))"
    run(
        wh,
        f"CREATE TABLE t (k INT, c CHAR(5), v INT) USING DELTA {FEED}",
        f"CREATE TABLE u (k INT, c CHAR(5), w INT) USING DELTA {FEED}",
        f"INSERT INTO t SELECT id % 7, {of_three.format(0)}, id % 11 FROM range(60)",
        f"INSERT INTO u SELECT id % 7, {of_three.format(0)}, id % 5 FROM range(12)",
        *(f"CREATE MATERIALIZED VIEW {v} REFRESH POLICY INCREMENTAL STRICT AS {q}" for v, q in VIEWS.items()),
    )
    monkeypatch.setattr(RowCounts, "saved", every_read)
    run(
        wh,
        f"INSERT INTO t SELECT id % 7, {of_three.format(1)}, id % 13 FROM range(1, 6)",
        "DELETE FROM t WHERE k = 1 AND v % 2 = 0",
        "UPDATE t SET c = 'x' WHERE k = 4 AND c = 'z'",
        "INSERT INTO u VALUES (1, 'x', 2), (2, 'y', 1)",
        "UPDATE u SET c = 'y' WHERE k = 3",
    )
    assert set(refresh_and_check(wh, VIEWS).values()) == {"incremental"}
    assert parts, "the views were refreshed as if their tables were small"


def test_rows_with_a_char_are_merged(wh: Warehouse) -> None:
    """Delta's MERGE fails where Spark pads what it compares a CHAR with."""
    wh.settings = Settings(rows_here=0, rewrite_rows=0)
    run(
        wh,
        f"CREATE TABLE t (k INT, c CHAR(5), v INT) USING DELTA {FEED}",
        "INSERT INTO t VALUES (1, 'x', 1), (1, 'x', 1), (2, 'y', 2), (3, NULL, 3)",
        "CREATE MATERIALIZED VIEW plain REFRESH POLICY INCREMENTAL STRICT AS SELECT c, v FROM t",
        "CREATE MATERIALIZED VIEW grouped REFRESH POLICY INCREMENTAL STRICT AS SELECT c, sum(v) AS v FROM t GROUP BY c",
        "UPDATE t SET v = v + 1 WHERE k < 3",
        "DELETE FROM t WHERE k = 3",
    )
    assert [record.install for record in wh.refresh("plain", "grouped")] == ["merge", "merge"]
    assert_right(wh, "plain", "grouped")


CHAIN = """SELECT c.region, count(*) AS n, sum(l.qty) AS qty FROM customers c JOIN orders o ON o.cust = c.id
           JOIN lines l ON l.ord = o.id WHERE o.day < 20 GROUP BY c.region"""


def test_what_a_change_meets_is_looked_up(wh: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """From a customer to its orders, and from those of them that count to their lines: no table is read by Spark."""
    asked: list[tuple[tuple[str, ...], dict[str, set[int]], int]] = []

    def looked_up(
        rows: FileRows, files: DataFiles, columns: tuple[str, ...], among: Mapping[str, Sequence[int]], most: int
    ) -> pa.Table:
        found = rows_with(rows, files, columns, among, most)
        assert found is not None
        asked.append((columns, {c: set(values) for c, values in among.items()}, len(found)))
        return found

    run(
        wh,
        f"CREATE TABLE customers (id INT, region STRING) USING DELTA {FEED}",
        f"CREATE TABLE orders (id INT, cust INT, day INT) USING DELTA {FEED}",
        f"CREATE TABLE lines (ord INT, qty INT) USING DELTA {FEED}",
        "INSERT INTO customers SELECT id, concat('r', id % 3) FROM range(20)",
        "INSERT INTO orders SELECT id, id % 20, id % 40 FROM range(100)",
        "INSERT INTO lines SELECT id % 100, id FROM range(300)",
        f"CREATE MATERIALIZED VIEW chain REFRESH POLICY INCREMENTAL STRICT AS {CHAIN}",
        "UPDATE customers SET region = 'r9' WHERE id = 7",
    )
    rows_with = FileRows.rows_with
    monkeypatch.setattr(FileRows, "rows_with", looked_up)
    read: list[str] = []
    state = ReadOnce.state
    monkeypatch.setattr(ReadOnce, "state", lambda leaves, t, s: read.append(t) or state(leaves, t, s))
    assert refresh_and_check(wh, {"chain": CHAIN}) == {"chain": "incremental"}
    assert asked == [
        (("id", "cust", "day"), {"cust": {7}}, 5),
        (("ord", "qty"), {"ord": {7, 47, 87}}, 9),
    ]
    assert all(table.startswith("__vk_") for table in read)


def test_of_the_same_rows_others_may_count_elsewhere(wh: Warehouse) -> None:
    """The orders of a changed customer are looked up once; by their days, some lead to lines and others to bills."""
    both = """WITH of_customers AS (SELECT region, o.id, day FROM customers c JOIN orders o ON o.cust = c.id)
        SELECT region, id, qty FROM of_customers JOIN lines ON ord = id WHERE day < 20
        UNION ALL SELECT region, id, qty FROM of_customers JOIN bills ON ord = id WHERE day >= 20"""
    run(
        wh,
        f"CREATE TABLE customers (id INT, region STRING) USING DELTA {FEED}",
        f"CREATE TABLE orders (id INT, cust INT, day INT) USING DELTA {FEED}",
        "INSERT INTO customers SELECT id, concat('r', id % 3) FROM range(20)",
        "INSERT INTO orders SELECT id, id % 20, id % 40 FROM range(100)",
        "CREATE TABLE lines USING DELTA AS SELECT CAST(id % 100 AS INT) AS ord, id AS qty FROM range(300)",
        "CREATE TABLE bills USING DELTA AS SELECT * FROM lines",
        f"CREATE MATERIALIZED VIEW both_ways REFRESH POLICY INCREMENTAL STRICT AS {both}",
        "UPDATE customers SET region = 'r9' WHERE id = 7",
    )
    assert refresh_and_check(wh, {"both_ways": both}) == {"both_ways": "incremental"}


def test_rows_behind_an_empty_chunk_are_given_too(wh: Warehouse) -> None:
    some = pa.table({"a": [1, 2]})
    assert given(wh.spark, pa.concat_tables([some, some.slice(2), some])).count() == 4


KINDS = """true AS b, CAST(1 AS TINYINT) AS i1, CAST(-2 AS SMALLINT) AS i2, 3 AS i4, 4L AS i8, CAST('NaN' AS FLOAT) AS f4,
    CAST(-0.0 AS DOUBLE) AS f8, CAST(1.5 AS DECIMAL(5,2)) AS m5, CAST(1.5 AS DECIMAL(18,4)) AS m18, CAST(-1.5 AS DECIMAL(38,10)) AS m38,
    'a\\nä😀' AS s, X'00FF' AS x, DATE '1500-01-01' AS d, TIMESTAMP '1500-01-01 01:02:03.000004' AS t,
    TIMESTAMP_NTZ '2024-02-29 01:02:03' AS tz"""


def test_few_rows_are_written_as_spark_would(wh: Warehouse) -> None:
    """By this process; and days of long ago are read as such whatever calendar Spark is told to expect."""
    columns = "b i1 i2 i4 i8 f4 f8 m5 m18 m38 s x d t tz".split()
    view = f"SELECT k, count(*) AS n, {', '.join(f'max({c}) AS {c}' for c in columns)} FROM t GROUP BY k"
    run(
        wh,
        f"CREATE TABLE t USING DELTA {FEED} AS SELECT 0 AS k, {KINDS}",
        f"CREATE MATERIALIZED VIEW v REFRESH POLICY INCREMENTAL STRICT AS {view}",
        f"INSERT INTO t SELECT 1 AS k, {KINDS}",
        "INSERT INTO t (k) VALUES (2)",
    )
    assert refresh_and_check(wh, {"v": view}) == {"v": "incremental"}
    schema = wh.spark.catalog.currentDatabase()
    log = wh.registry.log(wh.registry.get((schema, "v")))
    files = log.files(log.version())
    assert files is not None
    (path,) = files.whole
    assert "parquet-cpp" in pq.read_metadata(path).created_by
    old = wh.spark.newSession()
    old.conf.set("spark.sql.parquet.datetimeRebaseModeInRead", "LEGACY")
    read = old.sql(f"SELECT d, t FROM {schema}.v WHERE k = 1")
    assert read.collect() == wh.spark.sql("SELECT DATE '1500-01-01', TIMESTAMP '1500-01-01 01:02:03.000004'").collect()


COMPARED = {
    "i INT": ["0", "-7", "1.5", "l", "m"],
    "l BIGINT": ["0", "9223372036854775807", "3000000000", "2.50", "m"],
    "m DECIMAL(15,2)": ["0", "2.5", "-0.005", "99999999999999", "w"],
    "w DECIMAL(38,10)": ["1", "0.00000000001", "1234567890123456789012345678"],
    "s STRING": ["''", "'b'", "'é'", "'a%b'", "'😀'", "'1'"],
    "x DATE": [
        "y",
        "DATE '2024-02-29'",
        "DATE '2024-01-31' + INTERVAL 1 MONTH",
        "DATE '2024-03-01' - INTERVAL '1' DAY",
    ],
    "y DATE": ["DATE '0001-01-01'", "DATE '2023-02-28' + INTERVAL '1' YEAR", "'2024-02-29'"],
}
OTHER_CONDITIONS = """s LIKE '%b%', s NOT LIKE 'a%', s LIKE 'a%b%', s LIKE '%', s LIKE '', s IN ('a%b', ''), i IN (0, 2, -7),
m IN (2.5, 0), x IN (DATE '2024-02-29'), x BETWEEN y AND DATE '2024-12-31', i IS NULL, d IS NULL, d = 1.0, d > 0,
i > 0 AND s > 'a', i > 0 OR s > 'a', NOT (i > 0 OR x < y), i <> 0 AND (s = '' OR m > 1)"""
VALUES = {
    "i": (0, 2, -7, None),
    "l": (0, 2**63 - 1, -(2**63), None),
    "m": (Decimal("0.00"), Decimal("2.50"), Decimal("-0.01"), None),
    "w": (Decimal(1), Decimal("2.5"), Decimal(10) ** 27, None),
    "s": ("", "a%b", "a\nb", "é", "😀", "\uffff", "B", None),
    "x": (date(2024, 2, 29), date(1, 1, 1), date(2024, 3, 1), None),
    "y": (date(2024, 2, 29), date(9999, 12, 31), None),
    "d": (float("nan"), -0.0, 1.0, None),
}


def test_conditions_on_rows_here_mean_what_they_mean_to_spark(wh: Warehouse) -> None:
    columns = [*COMPARED, "d DOUBLE"]
    types = dict(column.lower().split() for column in columns)
    rng = Random(1)
    rows = [(n, *(rng.choice(VALUES[name]) for name in types)) for n in range(200)]
    frame = wh.spark.createDataFrame(rows, f"n INT, {', '.join(columns)}")
    here = frame.toArrow()
    ops = ("=", "<>", "<", "<=", ">", ">=")
    texts = [f"{c.split()[0]} {op} {other}" for c, others in COMPARED.items() for other in others for op in ops]
    texts += re.split(r",\s(?![^(]*\))", OTHER_CONDITIONS)
    told = frame.selectExpr(*(f"({text}) AS c{n}" for n, text in enumerate(texts))).collect()
    unknown = []
    for n, text in enumerate(texts):
        for asked, truth in ((text, True), (f"NOT ({text})", False)):
            some, left = fulfilling(here, {"n": "int", **types}, [condition(asked, types)])
            expected = [row for row, found in enumerate(told) if found[n] is truth]
            assert left or some["n"].to_pylist() == expected, asked
            unknown += left
    assert len(unknown) <= len(texts) / 10, unknown


def condition(text: str, types: dict[str, str]) -> Scalar:
    """As it is read in a view over these columns."""
    catalog = SimpleNamespace(resolve=lambda _: DeltaTable("every", tuple(types.items())), columns=lambda _: ())
    read = bind(parse_query(f"SELECT i FROM every WHERE {text}"), catalog, ("i",))
    assert isinstance(read, Bound), str(read)
    return next(node.predicate for node in walk(read.as_read) if isinstance(node, Filter))
