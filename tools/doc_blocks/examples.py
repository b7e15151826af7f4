"""The definitions that the operators' pages show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from doc_blocks.example_tables import NEW, OLD, reading
from viewkeeper.algebra import subqueries
from viewkeeper.algebra.keys import NOTHING, Declared, ForeignKey
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Relation, Scan
from viewkeeper.changes import own, propagate, refresh
from viewkeeper.changes.own import OWN
from viewkeeper.changes.refresh import Maintenance, maintenance
from viewkeeper.changes.stored import StoredForm, stored_form
from viewkeeper.changes.weights import ChangeKind
from viewkeeper.store.changes import Feed, Files, SourceChange
from viewkeeper.store.leaves import Pin, PinnedLeaves


@dataclass(frozen=True)
class Example:
    """A definition, and the changes of its sources that a page shows it under."""

    query: str
    output: tuple[str, ...]
    rule: Callable[..., object]
    changed: Mapping[str, ChangeKind] = field(default_factory=lambda: {"sales": "any"})
    without_feed: bool = False
    declared: Declared = NOTHING
    own: bool = False

    @property
    def relation(self) -> Relation:
        found = reading(self.query, self.output)
        assert not isinstance(found, Reason), f"{self.query}: {found}"
        return found

    @property
    def form(self) -> StoredForm:
        return stored_form(self.relation, "__vk_v")

    @property
    def maintenance(self) -> Maintenance:
        return maintenance(self.form.kept, self.changed, self.declared, self.own)

    @property
    def leaves(self) -> PinnedLeaves:
        tables = {n.table for n in walk(self.relation) if isinstance(n, Scan)}
        pins = {t: Pin(OLD, NEW if t in self.changed else OLD, self._change(t)) for t in tables}
        return PinnedLeaves(pins, given={OWN: f"__vk_v VERSION AS OF {OLD}"})

    def _change(self, table: str) -> SourceChange:
        appended = self.changed.get(table) == "appended"
        if self.without_feed:
            removed = () if appended else ("part-00000-1c9e.parquet",)
            return Files(("part-00000-8b07.parquet",), removed, appended, 2)
        return Feed(OLD + 1, NEW, appended, 2)


EXAMPLES = {
    "scan": Example("SELECT day, price FROM sales", ("day", "price"), propagate._scan),
    "scan-appended": Example(
        "SELECT day, price FROM sales", ("day", "price"), propagate._scan, changed={"sales": "appended"}
    ),
    "scan-files": Example("SELECT day, price FROM sales", ("day", "price"), propagate._scan, without_feed=True),
    "values": Example(
        "SELECT store, price FROM sales\nUNION ALL\nSELECT x, y FROM VALUES (1, 0.00), (2, 0.00) AS v(x, y)",
        ("store", "price"),
        propagate.change,
    ),
    "filter": Example("SELECT id, price FROM sales\nWHERE price > 10", ("id", "price"), propagate._filter),
    "project": Example("SELECT id, price * 2 AS twice FROM sales", ("id", "twice"), propagate._project),
    "join": Example(
        "SELECT s.id, s.price, t.city\nFROM sales s JOIN stores t ON s.store = t.id",
        ("id", "price", "city"),
        propagate._inner,
        changed={"sales": "any", "stores": "any"},
    ),
    "keyed-join": Example(
        "SELECT s.id, s.price\nFROM sales s LEFT SEMI JOIN stores t ON s.store = t.id AND s.price > t.id",
        ("id", "price"),
        propagate._key_by_key,
        changed={"sales": "any", "stores": "any"},
    ),
    "referring": Example(
        "SELECT s.id, s.price, t.city\nFROM sales s JOIN stores t ON s.store = t.id",
        ("id", "price", "city"),
        propagate._inner_to_parent,
        changed={"sales": "any", "stores": "apart"},
        declared=Declared(
            {"stores": frozenset({frozenset({"id"})})}, (ForeignKey("sales", ("store",), "stores", ("id",)),)
        ),
    ),
    "referring-outer": Example(
        "SELECT s.id, s.price, t.city\nFROM sales s LEFT JOIN stores t ON s.store = t.id",
        ("id", "price", "city"),
        propagate._to_parent,
    ),
    "outer": Example(
        "SELECT s.id, s.price, t.city\nFROM sales s LEFT JOIN stores t ON s.store = t.id",
        ("id", "price", "city"),
        propagate._left,
        changed={"sales": "any", "stores": "any"},
    ),
    "own-flips": Example(
        "SELECT t.id, t.city, s.store, s.price\nFROM stores t LEFT JOIN sales s ON s.store = t.id",
        ("id", "city", "store", "price"),
        propagate._flips,
        changed={"sales": "appended"},
        own=True,
    ),
    "by-key": Example(
        "SELECT s.price, t.id, t.city\nFROM sales s JOIN stores t ON s.store = t.id",
        ("price", "id", "city"),
        own.rows_by_key,
        changed={"stores": "in place"},
        declared=Declared({"stores": frozenset({frozenset({"id"})})}),
        own=True,
    ),
    "groups-by-key": Example(
        "SELECT t.id, sum(s.price) AS price\nFROM sales s JOIN stores t ON s.store = t.id GROUP BY t.id",
        ("id", "price"),
        own.groups_by_key,
    ),
    "semi": Example(
        "SELECT id, price FROM sales LEFT ANTI JOIN stores ON sales.store = stores.id",
        ("id", "price"),
        propagate._flips,
        changed={"stores": "any"},
    ),
    "subquery": Example(
        "SELECT id, price FROM sales a\nWHERE price > (SELECT avg(price) FROM sales b WHERE b.store = a.store)",
        ("id", "price"),
        subqueries.as_joins,
    ),
    "join-one": Example(
        "SELECT s.id, s.price, t.city\nFROM sales s JOIN stores t ON s.store = t.id",
        ("id", "price", "city"),
        propagate._inner,
    ),
    "union": Example(
        "SELECT day, price FROM sales\nUNION ALL\nSELECT day, -price FROM returns",
        ("day", "price"),
        propagate._union,
        changed={"sales": "any", "returns": "appended"},
    ),
    "aggregate": Example(
        "SELECT store, count(*) AS n, sum(price) AS revenue, avg(price) AS mean\nFROM sales GROUP BY store",
        ("store", "n", "revenue", "mean"),
        refresh._summed,
    ),
    "aggregate-afresh": Example(
        "SELECT store, max(price) AS dearest FROM sales GROUP BY store", ("store", "dearest"), refresh._recomputed
    ),
    "aggregate-inserts": Example(
        "SELECT store, max(price) AS dearest FROM sales GROUP BY store",
        ("store", "dearest"),
        refresh._summed,
        changed={"sales": "appended"},
    ),
    "aggregate-inner": Example(
        "SELECT t.city, d.revenue\n"
        "FROM (SELECT store, sum(price) AS revenue FROM sales GROUP BY store) d\n"
        "JOIN stores t ON t.id = d.store",
        ("city", "revenue"),
        propagate._aggregate,
    ),
    "distinct": Example("SELECT DISTINCT store FROM sales", ("store",), refresh._summed),
    "except": Example(
        "SELECT store, price FROM sales\nEXCEPT\nSELECT store, price FROM returns",
        ("store", "price"),
        refresh._summed,
        changed={"sales": "any", "returns": "any"},
    ),
    "rollup": Example(
        "SELECT store, day, sum(price) AS revenue FROM sales GROUP BY ROLLUP (store, day)",
        ("store", "day", "revenue"),
        refresh._summed,
    ),
    "lateral": Example(
        "SELECT s.city, q.price FROM stores s,\n"
        "LATERAL (SELECT price FROM sales WHERE sales.store = s.id ORDER BY day DESC, id LIMIT 1) AS q",
        ("city", "price"),
        subqueries.as_joins,
    ),
    "pivot": Example(
        "SELECT * FROM (SELECT day, store, price FROM sales)\nPIVOT (sum(price) FOR store IN (1 AS one, 2 AS two))",
        ("day", "one", "two"),
        refresh._summed,
    ),
    "unpivot": Example(
        "SELECT day, n, v FROM sales UNPIVOT (v FOR n IN (id, store))", ("day", "n", "v"), propagate._generate
    ),
    "window": Example(
        "SELECT store, day, sum(price) OVER (PARTITION BY store ORDER BY day) AS so_far FROM sales",
        ("store", "day", "so_far"),
        propagate._window,
    ),
    "window-behind": Example(
        "SELECT day, sum(price) OVER (ORDER BY day) AS so_far FROM sales", ("day", "so_far"), propagate._behind
    ),
    "top": Example("SELECT id, price FROM sales ORDER BY price DESC LIMIT 3", ("id", "price"), propagate._top),
    "top-inside": Example(
        "SELECT count(*) AS n FROM (SELECT id, price FROM sales ORDER BY price DESC LIMIT 3)", ("n",), propagate._top
    ),
    "top-groups": Example(
        "SELECT store, sum(price) AS revenue FROM sales\nGROUP BY store ORDER BY revenue DESC LIMIT 3",
        ("store", "revenue"),
        refresh._summed,
    ),
    "generate": Example(
        "SELECT id, tag FROM sales LATERAL VIEW explode(tags) t AS tag", ("id", "tag"), propagate._generate
    ),
}
