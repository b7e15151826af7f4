"""Columns that nothing in the text names get the names that Spark would give them."""

from __future__ import annotations

import pytest
from fake_catalog import FakeCatalog

from viewkeeper.algebra.display import show
from viewkeeper.algebra.reasons import Reason
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable
from viewkeeper.sql.parse import parse_query

pytestmark = pytest.mark.core


class Knowing(FakeCatalog):
    """A catalog that knows what a few queries give."""

    def __init__(self, *answers: tuple[str, ...]) -> None:
        super().__init__()
        columns = (("id", "int"), ("pairs", "array<struct<p:int,q:string>>"), ("m", "map<string,int>"))
        self.sources["n"] = DeltaTable("n", columns)
        self.answers = list(answers)
        self.asked: list[str] = []

    def columns(self, query: str) -> tuple[str, ...]:
        self.asked.append(query)
        return self.answers.pop(0) if self.answers else ()


def read(sql: str, catalog: FakeCatalog, *output: str) -> str:
    result = bind(parse_query(sql), catalog, output)
    assert isinstance(result, Bound), str(result)
    return show(result.as_read)


def test_one_item_is_what_is_there_with_it_and_not_without_it() -> None:
    catalog = Knowing(("id", "p", "q", "x"), ("id", "__vk_here", "x"))
    shown = read("SELECT id, inline(pairs), id + 1 AS x FROM n ORDER BY 1", catalog, "id", "p", "q", "x")
    assert "generate p, q = INLINE(pairs)" in shown
    assert catalog.asked == [
        "SELECT id, INLINE(pairs), id + 1 AS x FROM n",
        "SELECT id, 1 AS __vk_here, id + 1 AS x FROM n",
    ]


def test_the_question_has_the_common_tables_that_are_seen_there() -> None:
    catalog = Knowing(("key", "value"), ("__vk_here",))
    text = "WITH a AS (SELECT m FROM n), b AS (SELECT explode(m) FROM a), c AS (SELECT 1 AS x) SELECT key FROM b"
    assert "generate" in read(text, catalog, "key")
    assert catalog.asked[0] == "WITH a AS (SELECT m FROM n) SELECT * FROM (SELECT EXPLODE(m) FROM a)"


def test_a_lateral_view_is_asked_for_over_what_stands_before_it() -> None:
    catalog = Knowing(("key", "value"))
    text = (
        "SELECT x.key, y.a FROM n JOIN r ON r.a = n.id LATERAL VIEW explode(m) x LATERAL VIEW explode(array(1)) y AS a"
    )
    assert "generate key, value = EXPLODE(m)" in read(text, catalog, "key", "a")
    assert catalog.asked == ["SELECT EXPLODE(m) FROM n JOIN r ON r.a = n.id"]


def test_the_fields_of_a_struct_are_taken_one_by_one() -> None:
    catalog = Knowing(("p", "q"), ("__vk_here",))
    text = "SELECT s.* FROM (SELECT from_json(s, 'p INT, q INT') AS s FROM r)"
    assert "p = (s_2.p), q = (s_2.q)" in read(text, catalog, "p", "q")


def test_a_subquery_is_asked_for_beside_the_rows_around_it() -> None:
    catalog = Knowing(("key", "value"), ("__vk_here",))
    text = "SELECT r.a FROM r JOIN t ON r.a = t.a WHERE EXISTS (SELECT explode(m) FROM n WHERE n.id = r.b)"
    assert "generate key, value = EXPLODE(m)" in read(text, catalog, "a")
    inner = "SELECT EXPLODE(m) FROM n WHERE n.id = r.b"
    assert catalog.asked[0] == f"SELECT __vk_here.* FROM r JOIN t ON r.a = t.a, LATERAL ({inner}) AS __vk_here"
    catalog = Knowing(("key", "value"), ("__vk_here",))
    assert "generate key, value = EXPLODE(" in read(
        "SELECT n.id, q.value FROM n, LATERAL (SELECT explode(n.m)) AS q", catalog, "id", "value"
    )
    assert catalog.asked[0] == "SELECT __vk_here.* FROM n, LATERAL (SELECT EXPLODE(n.m)) AS __vk_here"


def test_a_star_among_arguments_is_spelled_out() -> None:
    spelled = {
        "SELECT count(DISTINCT *) AS x FROM u": "SELECT count(DISTINCT `order`, f) AS x FROM u",
        "SELECT hash(u.*, 1) AS x FROM u JOIN r ON r.a = u.`order`": "SELECT hash(u.`order`, u.f, 1) AS x FROM u JOIN r ON r.a = u.`order`",
    }  # fmt: skip
    for text, wanted in spelled.items():
        assert read(text, Knowing(("order", "f")), "x") == read(wanted, Knowing(), "x")
    struct = "SELECT struct(s.*) AS x FROM (SELECT from_json(s, 'p INT, q INT') AS s FROM r)"
    assert "x = (STRUCT(s_2.p, s_2.q))" in read(struct, Knowing(("p", "q")), "x")
    assert "count(*)" in read("SELECT count(*) AS x FROM u", Knowing(("a",)), "x")


class Columns(FakeCatalog):
    """A catalog that knows the columns of each thing that a star may be of."""

    def columns(self, query: str) -> tuple[str, ...]:
        known = {"r.*": "a b s", "u.*": "order f", "q.*": "w", "q.w.*": "x y z", "q.w.z.*": "m n"}
        found = known.get(query.removeprefix("SELECT ").split(" FROM ")[0], "")
        return tuple(found.split())


STRUCT = "(SELECT from_json(s, 'x INT, y INT, z STRUCT<m: INT, n: INT>') AS w FROM r) AS q"


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("SELECT * EXCEPT (r.s) FROM r", "SELECT a, b FROM r"),
        ("SELECT r.* EXCEPT (r.s, A), f FROM r JOIN u ON a = `order`", "SELECT b, f FROM r JOIN u ON a = `order`"),
        ("SELECT * EXCEPT (u.`order`, r.b, r.s) FROM r JOIN u ON a = `order`", "SELECT a, f FROM r JOIN u ON a = `order`"),
        ("SELECT * EXCEPT (q.w.x, f) FROM " + STRUCT + ", u", "SELECT named_struct('y', w.y, 'z', w.z) AS w, `order` FROM " + STRUCT + ", u"),
        ("SELECT * EXCEPT (w.z.m, w.y) FROM " + STRUCT, "SELECT named_struct('x', w.x, 'z', named_struct('n', w.z.n)) AS w FROM " + STRUCT),
    ],
)  # fmt: skip
def test_a_star_but_for_columns_of_a_table_or_fields(query: str, same: str) -> None:
    output = tuple("xy"[: len(parse_query(same).selects)])
    assert read(query, Columns(), *output) == read(same, Columns(), *output)


@pytest.mark.parametrize(
    ("query", "made"),
    [
        ("SELECT stack(2, a, b, b, a) FROM r", ("col0", "col1")),
        ("SELECT json_tuple(s, 'x', 'y') FROM r", ("c0", "c1")),
        ("SELECT posexplode(array(a, b)) FROM r", ("pos", "col")),
        ("SELECT inline(array(struct(a AS x, b AS y))) FROM r", ("x", "y")),
        ("SELECT a, col FROM r, LATERAL explode(array(a, b))", ("a", "col")),
    ],
)
def test_what_the_text_says_is_not_asked_for(query: str, made: tuple[str, ...]) -> None:
    catalog = Knowing()
    assert "generate" in read(query, catalog, *made)
    assert not catalog.asked


@pytest.mark.parametrize(
    "query",
    [
        "SELECT p.* FROM (SELECT a, s, b FROM r) PIVOT (sum(b) FOR s IN ('a' AS x)) AS p",
        "SELECT q.* FROM (r JOIN (SELECT a, b AS x FROM r) AS q ON r.a = q.a)",
        "SELECT v.* FROM VALUES (1, 2) AS v(a, x)",
    ],
)
def test_all_columns_of_what_stands_in_from_are_no_fields(query: str) -> None:
    catalog = Knowing(("y", "z"), ("__vk_here",))
    read(query, catalog, "a", "x")
    assert not catalog.asked


def test_without_an_answer_the_reason_says_what_to_do() -> None:
    result = bind(parse_query("SELECT inline(pairs) FROM n"), Knowing(), ("p", "q"))
    assert isinstance(result, Reason)
    assert "name the columns it makes by AS" in str(result)


def test_rows_made_of_groups() -> None:
    shown = read("SELECT a, explode(collect_set(b)) AS x FROM r GROUP BY a", FakeCatalog(), "a", "x")
    assert "generate x = EXPLODE(collect_set)" in shown


@pytest.mark.parametrize(
    ("query", "same"),
    [
        ("TABLE r", "SELECT * FROM r"),
        ("(TABLE r) EXCEPT ALL TABLE r", "(SELECT * FROM r) EXCEPT ALL SELECT * FROM r"),
        ("WITH x AS (TABLE r) TABLE x", "WITH x AS (SELECT * FROM r) SELECT * FROM x"),
        ("SELECT a FROM r WHERE a IN (TABLE u)", "SELECT a FROM r WHERE a IN (SELECT * FROM u)"),
        ("SELECT s:A.b[0]:c['D'] AS x FROM r", "SELECT variant_get(s, '$.A.b[0].c[\\'D\\']', 'variant') AS x FROM r"),
    ],
)
def test_short_forms(query: str, same: str) -> None:
    assert parse_query(query) == parse_query(same)
