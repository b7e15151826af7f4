"""Writes the parts of the documentation that code can tell: the support table, change rules, generated SQL.

    python tools/docs.py           rewrite every generated block in README.md and docs/
    python tools/docs.py --check   change nothing, fail if a block is out of date

A block stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->`; BLOCKS below says what is in it. Everything is
found by asking the code: each row of the support table is a query that is bound here, and each page of
docs/operators shows what `changes.maintenance` makes of its example. No Spark is needed.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from viewkeeper.algebra import subqueries, types
from viewkeeper.algebra.aggregates import (
    ADDITIVE,
    AMBIGUOUS,
    EXTREMES,
    KEPT_SCALE,
    REPEATABLE,
    SYNONYMS,
    WIDEST_AVERAGE,
    WIDEST_WEIGHTED_DECIMAL,
    why_not_additive,
)
from viewkeeper.algebra.display import show, show_condition
from viewkeeper.algebra.keys import NOTHING, Declared, ForeignKey
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.orders import without_ties
from viewkeeper.algebra.pivots import without_pivots
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Generate,
    Item,
    Measure,
    Pivot,
    Project,
    Relation,
    Scan,
    Top,
    Union,
    Unpivot,
    Values,
    WindowColumn,
    inputs,
    with_inputs,
)
from viewkeeper.algebra.relations import Filter as Filtered
from viewkeeper.algebra.relations import Join as Joined
from viewkeeper.algebra.relations import Window as Windowed
from viewkeeper.algebra.scalars import Cast, Column, Scalar
from viewkeeper.algebra.sketches import SKETCHES
from viewkeeper.changes import drift, own, propagate, refresh
from viewkeeper.changes.own import OWN
from viewkeeper.changes.refresh import Maintenance, MergeBag, MergeGroups, MergeTop, maintenance
from viewkeeper.changes.relevance import rows_that_matter
from viewkeeper.changes.stored import KeptGroups, StoredForm, stored_form, why_not_maintainable
from viewkeeper.changes.weights import ChangeKind
from viewkeeper.errors import SqlError
from viewkeeper.planner.strategy.order import min_work, one_way
from viewkeeper.planner.strategy.picture import expressions, gantt
from viewkeeper.planner.strategy.schedule import schedule
from viewkeeper.planner.strategy.search import best_one_way, view_strategies
from viewkeeper.planner.strategy.steps import Comp
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.window import leave_out
from viewkeeper.planner.strategy.work import Metric, work
from viewkeeper.runtime import install
from viewkeeper.selection.choice import Budget
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import tau
from viewkeeper.selection.graph import Arc, View, ViewGraph
from viewkeeper.selection.methods import (
    AOGreedy,
    AStar,
    Exact,
    Greedy,
    GreedyInterchange,
    GuessOne,
    InnerLevel,
    InvertedTree,
    Method,
    MultiLevel,
    RGreedy,
)
from viewkeeper.selection.picture import mermaid
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable, Source, Unmaintainable
from viewkeeper.sql.functions import AGGREGATES, CLOCK, GENERATORS, RANDOM, SESSION, WINDOW_ONLY
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.unparse import unparse
from viewkeeper.store.changes import Feed, Files, SourceChange
from viewkeeper.store.leaves import Pin, PinnedLeaves
from viewkeeper.testing.update_graphs import figure_6, tpcd
from viewkeeper.testing.view_graphs import figure_2_2, figure_3_1

ROOT = Path(__file__).resolve().parent.parent

# ------------------------------------------------------------------ a small warehouse that is not there

TABLES: dict[str, tuple[tuple[str, str], ...]] = {
    "sales": (
        ("id", "bigint"),
        ("day", "date"),
        ("store", "int"),
        ("price", "decimal(10,2)"),
        ("weight", "double"),
        ("note", "string"),
        ("tags", "array<string>"),
    ),
    "returns": (("id", "bigint"), ("day", "date"), ("store", "int"), ("price", "decimal(10,2)")),
    "stores": (("id", "int"), ("city", "string")),
}
OLD, NEW = 7, 9  # the versions an example refresh goes from and to


class ExampleTables:
    """The catalog of the examples; any other table is one without a history."""

    def resolve(self, parts: tuple[str, ...]) -> Source:
        name = parts[-1].lower()
        if name in TABLES:
            return DeltaTable(name, TABLES[name])
        return Unmaintainable(name, "not a Delta table, so there is no history of its changes", (("x", "int"),))


def reading(query: str, output: tuple[str, ...]) -> Relation | Reason:
    """The query as typed algebra, or why it is not maintained."""
    try:
        bound = bind(parse_query(query), ExampleTables(), output)
    except SqlError as error:
        return Reason("this query", f"its text cannot be read: {error.message}", error.position)
    if not isinstance(bound, Bound):
        return bound
    relation = without_ties(without_pivots(typed(bound.relation)))
    return why_not_maintainable(stored_form(relation, "__vk_v"), bound.places) or relation


def typed(rel: Relation) -> Relation:
    """The relation with the types Spark would give, as far as the examples need them."""
    match rel:
        case Project(input, items):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            return Project(below, tuple(Item(i.name, i.value, _type_of(i.value, known)) for i in items))
        case Windowed(input, partition_by, order_by, columns):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            shown = tuple(replace(c, type=_over(c, known)) for c in columns)
            return Windowed(below, partition_by, order_by, shown)
        case Generate(input, generator, fields, outer):
            return Generate(typed(input), generator, tuple(Field(f.name, "string") for f in fields), outer)
        case Filtered() | Joined() | Union() | Top():
            return with_inputs(rel, tuple(map(typed, inputs(rel))))
        case Aggregate(input, group_by, measures):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            return Aggregate(below, group_by, tuple(_typed_measure(m, known) for m in measures))
        case Values(fields, rows):
            return Values(tuple(Field(f.name, "int") for f in fields), rows)
        case Pivot(input, measures=measures):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            measured = tuple(_typed_measure(m, known) for m in measures)
            by_name = {m.name: m.type for m in measured}
            results = tuple(Item(r.name, r.value, _type_of(r.value, by_name)) for r in rel.results)
            return replace(rel, input=below, measures=measured, results=results)
        case Unpivot(input, _, taken, _, fields):
            below = typed(input)
            known = {f.name: f.type for f in below.schema}
            made = zip(fields, ("string", *(known[c] for c in taken[0])), strict=True)
            return replace(rel, input=below, fields=tuple(Field(f.name, t) for f, t in made))
        case _:
            return rel


def _type_of(value: Scalar, known: Mapping[str, str]) -> str:
    match value:
        case Column(name):
            return known[name]
        case Cast(_, type_):
            return type_.lower()
        case _:
            return types.UNKNOWN


def _over(column: WindowColumn, known: Mapping[str, str]) -> str:
    return "double" if any(_type_of(a, known) in types.FLOATING for a in column.args) else "decimal(20,2)"


def _typed_measure(measure: Measure, known: Mapping[str, str]) -> Measure:
    argument = known[measure.args[0]] if measure.args else None
    parts = types.decimal_parts(argument or "")
    match measure.function:
        case "min" | "max":
            type_ = argument or types.UNKNOWN
        case "sum" if parts:
            type_ = types.decimal(parts[0] + 10, parts[1])
        case "avg" if parts:
            type_ = types.decimal(parts[0] + 4, parts[1] + 4)
        case "count" | "count_if" | "approx_count_distinct":
            type_ = types.BIGINT
        case "sum" if argument in types.INTEGRAL:
            type_ = types.BIGINT
        case _:
            type_ = "double"
    return replace(measure, type=type_)


# ------------------------------------------------------------------ the support table


@dataclass(frozen=True)
class Construct:
    """Something a definition can hold, a query that holds it, and what is said of it if it is maintained.

    `how` is empty where the construct is not maintained; the reason then comes from the code.
    """

    name: str
    query: str
    page: str
    how: str = ""
    columns: int = 1

    @property
    def verdict(self) -> Relation | Reason:
        return reading(self.query, tuple(f"c{i + 1}" for i in range(self.columns)))


OPERATORS = "docs/operators"
ORDERED = AMBIGUOUS - SKETCHES.keys()
DEFINITIONS = "docs/definitions.md#what-is-recomputed"
_DIGITS = (
    f"decimals of up to {WIDEST_WEIGHTED_DECIMAL} digits, or {KEPT_SCALE} after the point"
    f" (`avg`: {WIDEST_AVERAGE} in all)"
)

CONSTRUCTS = (
    Construct("Delta tables", "SELECT id FROM sales", f"{OPERATORS}/scan.md", "changed rows, from feed or files"),
    Construct(
        "subqueries in `FROM`, CTEs",
        "WITH a AS (SELECT id FROM sales) SELECT id FROM (SELECT id FROM a)",
        f"{OPERATORS}/scan.md",
        "as if written in place",
    ),
    Construct(
        "`VALUES`, constants",
        "SELECT * FROM VALUES (1), (2) AS v(x) UNION ALL SELECT 3",
        f"{OPERATORS}/values.md",
        "never change",
    ),
    Construct(
        "`range()`, generators over constants, in `FROM`",
        "SELECT d.id FROM range(7) AS d LEFT JOIN sales ON sales.id = d.id JOIN explode(array(1, 2)) AS e(x)",
        f"{OPERATORS}/generate.md",
        "never change; joins with them as with any table",
    ),
    Construct("`WHERE`", "SELECT id FROM sales WHERE price > 10", f"{OPERATORS}/filter.md", "changed rows, filtered"),
    Construct(
        "`current_date()`, `now()` … in a condition",
        "SELECT id FROM sales WHERE day > current_date() - INTERVAL 7 DAYS",
        f"{OPERATORS}/filter.md",
        "changed rows, and rows that the clock brings in or takes out",
    ),
    Construct(
        "expressions over one row",
        "SELECT CASE WHEN upper(note) LIKE 'A%' THEN price END FROM sales",
        f"{OPERATORS}/project.md",
        "changed rows, computed",
    ),
    Construct(
        "inner and cross joins on any condition, self-joins",
        "SELECT a.id + s.id FROM sales a JOIN sales b ON a.price < b.price CROSS JOIN stores s",
        f"{OPERATORS}/join.md",
        "one term per changed table",
    ),
    Construct(
        "`JOIN … USING`, `NATURAL JOIN`",
        "SELECT id, price, city FROM sales NATURAL JOIN returns JOIN stores USING (id)",
        f"{OPERATORS}/join.md",
        "as the inner join it stands for",
        3,
    ),
    Construct(
        "outer joins on any condition",
        "SELECT a.id FROM sales a LEFT JOIN stores s ON a.store = s.id FULL JOIN returns r ON r.price > a.price",
        f"{OPERATORS}/join.md",
        "matched rows, and rows that found or lost their last match",
    ),
    Construct(
        "semi and anti joins on any condition",
        "SELECT a.id FROM sales a LEFT ANTI JOIN stores s ON a.store = s.id",
        f"{OPERATORS}/join.md",
        "rows that found or lost their last match",
    ),
    Construct(
        "`EXISTS`, `IN`, with and without `NOT`, anywhere in an expression",
        "SELECT id FROM sales a WHERE store NOT IN (SELECT id FROM stores) OR"
        " EXISTS (SELECT 1 FROM returns r WHERE r.price > a.price)",
        f"{OPERATORS}/subquery.md",
        "as semi and anti joins",
    ),
    Construct(
        "subqueries as values",
        "SELECT id FROM sales a WHERE price > (SELECT avg(price) FROM sales b WHERE b.store = a.store)",
        f"{OPERATORS}/subquery.md",
        "as joins with an aggregate",
    ),
    Construct(
        "subqueries after `LATERAL`, in `JOIN` and `LEFT JOIN` too",
        "SELECT q.price FROM stores s LEFT JOIN LATERAL"
        " (SELECT price FROM sales a WHERE a.store = s.id ORDER BY day DESC LIMIT 1) q",
        f"{OPERATORS}/subquery.md",
        "as the join it stands for",
    ),
    Construct(
        "`UNION ALL`",
        "SELECT id FROM sales UNION ALL SELECT id FROM returns",
        f"{OPERATORS}/union.md",
        "changed rows of each input",
    ),
    Construct(
        "`DISTINCT`, `UNION`",
        "SELECT DISTINCT id FROM (SELECT id FROM sales UNION SELECT id FROM returns)",
        f"{OPERATORS}/distinct.md",
        "copies counted per row",
    ),
    Construct(
        "`EXCEPT`, `INTERSECT`, with and without `ALL`",
        "SELECT id FROM sales EXCEPT SELECT id FROM returns INTERSECT ALL SELECT id FROM sales",
        f"{OPERATORS}/sets.md",
        "copies counted per row, on either side",
    ),
    Construct(
        "window functions with `PARTITION BY`, `WINDOW`, `QUALIFY`",
        "SELECT id FROM sales QUALIFY row_number() OVER (PARTITION BY store ORDER BY day DESC) = 1",
        f"{OPERATORS}/window.md",
        "touched partitions, before and after",
    ),
    Construct(
        "window functions without `PARTITION BY` that look back: ranks, `lag`, running aggregates",
        "SELECT id, sum(price) OVER (ORDER BY day), rank() OVER (ORDER BY price DESC) FROM sales",
        f"{OPERATORS}/window.md",
        "rows from the first changed one on, before and after",
        3,
    ),
    Construct(
        "`sum`, `avg` of `float`, `double`, `first_value` … over `RANGE` with an offset",
        "SELECT sum(weight) OVER (PARTITION BY store ORDER BY day RANGE BETWEEN INTERVAL 7 DAYS PRECEDING AND"
        " CURRENT ROW) FROM sales",
        f"{OPERATORS}/window.md",
        "touched partitions, before and after, equal rows put together first",
    ),
    Construct(
        "`ORDER BY … LIMIT … OFFSET …`",
        "SELECT id FROM sales ORDER BY price DESC LIMIT 10",
        f"{OPERATORS}/top.md",
        "over an aggregate when the view is read, else with a reserve of rows",
    ),
    Construct(
        "`explode` and other generators, `LATERAL VIEW [OUTER]`",
        "SELECT tag FROM sales LATERAL VIEW OUTER explode(tags) t AS tag",
        f"{OPERATORS}/generate.md",
        "changed rows, each with all its rows",
    ),
    Construct(
        "time windows: `window()`, `window_time()`",
        "SELECT window_time(w), n FROM (SELECT window AS w, count(*) AS n FROM sales GROUP BY window(day, '1 day'))",
        f"{OPERATORS}/generate.md",
        "changed rows, each with all its windows",
        2,
    ),
    Construct(
        "sessions: `session_window()`",
        "SELECT store, count(*) FROM sales GROUP BY store, session_window(day, '1 day')",
        f"{OPERATORS}/generate.md",
        "the sessions of touched keys, or from the first changed row on, before and after",
        2,
    ),
    Construct(
        "`PIVOT`, also of expressions over aggregates",
        "SELECT * FROM (SELECT store, price FROM sales) PIVOT (sum(price) / count(price) FOR store IN (1))",
        f"{OPERATORS}/pivot.md",
        "as one aggregate, each value a condition on its rows",
    ),
    Construct(
        "`UNPIVOT`, with and without `NULLS`",
        "SELECT x FROM sales UNPIVOT (x FOR n IN (price))",
        f"{OPERATORS}/pivot.md",
        "changed rows, each once for every column named",
    ),
    Construct(
        "`GROUPING SETS`, `ROLLUP`, `CUBE`, `grouping()`",
        "SELECT grouping(store) FROM sales GROUP BY CUBE (store, day)",
        f"{OPERATORS}/sets.md",
        "as one aggregate, each row once for every set",
    ),
    Construct(
        "`GROUP BY`, also `ALL` and ordinals",
        "SELECT store FROM sales GROUP BY ALL",
        f"{OPERATORS}/aggregate.md",
        "one kept row per group",
    ),
    Construct("no `GROUP BY`", "SELECT count(*) FROM sales", f"{OPERATORS}/aggregate.md", "one row, always there"),
    Construct(
        "`HAVING`, expressions over aggregates",
        "SELECT store FROM sales GROUP BY store HAVING sum(price) / 2 > 1",
        f"{OPERATORS}/aggregate.md",
        "computed when the view is read",
    ),
    Construct(
        "`count`, `sum`, `avg`, with `FILTER`",
        "SELECT sum(price) FILTER (WHERE store = 1) FROM sales",
        f"{OPERATORS}/aggregate.md",
        f"added up from changes: integers, {_DIGITS}",
    ),
    Construct(
        "`sum`, `avg` of `float`, `double`",
        "SELECT store, sum(weight) FROM sales GROUP BY store",
        f"{OPERATORS}/aggregate.md",
        "added up from changes; groups whose error may pass 1e-9 computed afresh",
        2,
    ),
    Construct(
        "`sum`, `avg` of longer decimals",
        "SELECT store, avg(CAST(price AS DECIMAL(30,10))) FROM sales GROUP BY store",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh",
        2,
    ),
    Construct(
        "`min`, `max`",
        "SELECT min(price) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "merged where rows only came; else touched groups computed afresh",
    ),
    Construct(
        "aggregates with `DISTINCT`",
        "SELECT count(DISTINCT store) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh",
    ),
    Construct(
        f"{len(REPEATABLE - ADDITIVE - EXTREMES)} more aggregates (`stddev`, `median`, `count_if` …)",
        "SELECT stddev(price) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh",
    ),
    Construct(
        f"{len(SKETCHES)} sketches (`hll_sketch_agg`, `theta_union_agg`, `kll_sketch_agg_double` …)",
        "SELECT hll_sketch_estimate(hll_sketch_agg(id)) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "merged where rows only came; else touched groups computed afresh",
    ),
    Construct(
        f"{len(ORDERED)} aggregates that depend on order or ties (`first`, `max_by`, `collect_list` …)",
        "SELECT max_by(note, day) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh; below another operator in an order of their own",
    ),
    Construct(
        "`WITHIN GROUP`, `IGNORE NULLS`",
        "SELECT listagg(note) WITHIN GROUP (ORDER BY id) FROM sales",
        f"{OPERATORS}/aggregate.md",
        "touched groups computed afresh",
    ),
    Construct(
        "an aggregate below another operator",
        "SELECT max(n) FROM (SELECT count(*) AS n FROM sales GROUP BY store)",
        f"{OPERATORS}/aggregate.md",
        "touched groups, before and after",
    ),
    Construct(
        "a `float` or `double` aggregate below another operator",
        "SELECT max(n) FROM (SELECT sum(weight) AS n FROM sales GROUP BY store)",
        f"{OPERATORS}/aggregate.md",
        "touched groups, before and after, added up in the order of their values",
    ),
    Construct(
        "`ORDER BY` without `LIMIT`, `SORT BY`, `CLUSTER BY`, `DISTRIBUTE BY`",
        "SELECT id FROM (SELECT id FROM sales ORDER BY id) DISTRIBUTE BY id SORT BY id",
        "docs/definitions.md#clauses-of-the-query",
        "ignored: a table has no order",
    ),
    Construct(
        "hints",
        "SELECT /*+ BROADCAST(s) */ a.id FROM sales a JOIN stores s ON a.store = s.id",
        "docs/definitions.md#clauses-of-the-query",
        "used by recomputes only",
    ),
    Construct(
        "a window without `PARTITION BY` that looks ahead: `lead`, `ntile`, frames with `FOLLOWING`",
        "SELECT lead(price) OVER (ORDER BY day) FROM sales",
        DEFINITIONS,
    ),
    Construct("`LIMIT` without `ORDER BY`", "SELECT id FROM sales LIMIT 3", DEFINITIONS),
    Construct(
        "`session_window()` that is not grouped by, or with a gap that is no constant",
        "SELECT session_window(day, '1 day') FROM sales",
        DEFINITIONS,
    ),
    Construct("`TABLESAMPLE`", "SELECT id FROM sales TABLESAMPLE (10 PERCENT)", DEFINITIONS),
    Construct("`VERSION AS OF`", "SELECT id FROM sales VERSION AS OF 0", DEFINITIONS),
    Construct(
        "other functions of `float` or `double`, `nth_value` and lists over `RANGE` with an offset",
        "SELECT stddev(weight) OVER (PARTITION BY store ORDER BY id RANGE BETWEEN 7 PRECEDING AND CURRENT ROW)"
        " FROM sales",
        DEFINITIONS,
    ),
    Construct(
        "`WITH RECURSIVE`",
        "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r WHERE x < 5) SELECT x FROM r",
        DEFINITIONS,
    ),
    Construct("`rand()`, `uuid()` …", "SELECT rand() FROM sales", DEFINITIONS),
    Construct("`current_date()`, `now()` … elsewhere", "SELECT now() FROM sales", DEFINITIONS),
    Construct("`current_user()`, `current_timezone()` …", "SELECT current_user() FROM sales", DEFINITIONS),
    Construct("sources that are not Delta tables", "SELECT x FROM elsewhere", DEFINITIONS),
)


def support() -> str:
    """The support table of the README; what is recomputed for the same reason shares a row."""
    rows = ["| SQL | How it is kept | Page |", "|---|---|---|"]
    recomputed: dict[tuple[str, str], list[str]] = {}
    for construct in CONSTRUCTS:
        verdict = construct.verdict
        if isinstance(verdict, Reason):
            recomputed.setdefault((verdict.why, construct.page), []).append(construct.name)
        else:
            rows.append(f"| {construct.name} | {construct.how} | {_link(construct.page)} |")
    for (why, page), names in recomputed.items():
        rows.append(f"| {', '.join(names)} | recomputed: {why} | {_link(page)} |")
    return "\n".join(rows)


def reasons() -> str:
    """What Viewkeeper says of each construct that leads to a recompute."""
    rows = ["| Construct | Example | Reason given |", "|---|---|---|"]
    for construct in CONSTRUCTS:
        if isinstance(verdict := construct.verdict, Reason):
            rows.append(f"| {construct.name} | `{construct.query}` | {verdict.construct}: {verdict.why} |")
    return "\n".join(rows)


def _link(page: str) -> str:
    return f"[{page.rsplit('/', 1)[-1].split('.md', maxsplit=1)[0]}]({page})"


def functions() -> str:
    """Functions by name, and why a view that uses them is recomputed."""
    afresh, grouping = REPEATABLE - ADDITIVE - EXTREMES, {"grouping", "grouping_id"}
    rows = (
        ("Aggregates added up from changes", ADDITIVE | {k for k, v in SYNONYMS.items() if v in ADDITIVE}),
        (
            "Aggregates merged from rows that come; else the touched groups are computed afresh",
            EXTREMES | SKETCHES.keys(),
        ),
        ("Aggregates whose touched groups are computed afresh", afresh),
        (
            "Aggregates whose touched groups are computed afresh, below another operator in an order of their own",
            ORDERED,
        ),
        ("Which columns a row is grouped by", grouping),
        ("Aggregates that lead to a recompute", AGGREGATES - REPEATABLE - AMBIGUOUS - set(SYNONYMS) - grouping),
        ("Rows from rows", GENERATORS),
        ("Only over windows: the touched partitions are computed afresh", WINDOW_ONLY),
        ("Another value each time: recompute", RANDOM),
        ("The clock: recompute, but for a filter that compares it with a column", CLOCK),
        ("The session: recompute", SESSION),
    )
    return "\n\n".join(f"**{title}.** {', '.join(f'`{name}`' for name in sorted(found))}" for title, found in rows)


def additive_limits() -> str:
    """Which aggregates are not added up from changes, by the type of their argument, and why."""
    cases = (
        ("sum", f"decimal({WIDEST_WEIGHTED_DECIMAL + 1},{KEPT_SCALE + 1})", False),
        ("avg", f"decimal({WIDEST_AVERAGE + 1},2)", False),
        ("count", "int", True),
        ("max", "int", False),
        ("stddev", "int", False),
    )
    rows = ["| Aggregate | Why its touched groups are computed afresh |", "|---|---|"]
    for function, type_, distinct in cases:
        shown = f"{function}(DISTINCT x)" if distinct else f"{function}(x)"
        rows.append(f"| `{shown}`, x {type_} | {why_not_additive(function, type_, distinct)} |")
    return "\n".join(rows)


# ------------------------------------------------------------------ the operators' pages


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


def example(name: str) -> str:
    return _sql(EXAMPLES[name].query)


def algebra(name: str) -> str:
    return f"```text\n{show(EXAMPLES[name].relation)}\n```"


def rule(name: str) -> str:
    """The equation, as the rule's own docstring gives it."""
    return f"```text\n{inspect.getdoc(EXAMPLES[name].rule)}\n```"


def change(name: str) -> str:
    shown = EXAMPLES[name]
    return _sql(unparse(shown.maintenance.change, shown.leaves))


def kept(name: str) -> str:
    """The columns of the backing table, with what is done to each."""
    form = EXAMPLES[name].form
    assert isinstance(form.kept, KeptGroups)
    words = {
        "add": "added up",
        "least": "LEAST",
        "greatest": "GREATEST",
        "fresh": "computed afresh",
        "drift": "added up, as a bound",
    }
    rows = ["| Kept column | Holds | A change is |", "|---|---|---|"]
    rows += [f"| `{k}` | the group | its key |" for k in form.kept.key]
    for state in form.kept.states:
        measure = state.measure
        holds = f"{measure.function}({', '.join(_arguments(form.kept, measure)) or '*'})"
        rows.append(f"| `{state.name}` | `{holds}` | {words[state.merge]} |")
    return "\n".join(rows)


def _arguments(form: KeptGroups, measure: Measure) -> Iterator[str]:
    """The argument columns by the names they have in the source."""
    assert isinstance(form.input, Project)
    given = {i.name: i.value for i in form.input.items}
    for name in measure.args:
        value = given[name]
        yield value.name if isinstance(value, Column) else name


def readers(name: str) -> str:
    return _sql(unparse(EXAMPLES[name].form.public))


def installed(name: str, way: str) -> str:
    """The statement that puts the example's change into the view's table."""
    shown, old = EXAMPLES[name], "__vk_v VERSION AS OF 4"
    match shown.maintenance.merge:
        case MergeBag() as merge if way == "append":
            return _sql(install.append_bag("__vk_v", merge).sql)
        case MergeBag() as merge if way == "rewrite":
            return _sql(install.rewrite_bag("__vk_v", old, merge).sql)
        case MergeBag() as merge:
            return _sql(install.merge_bag("__vk_v", old, merge).sql)
        case MergeGroups() as groups if way == "rewrite":
            change_sql = unparse(shown.maintenance.change, shown.leaves)
            return _sql(install.merged_groups(old, groups, change_sql))
        case MergeGroups() as groups:
            return _sql(install.merge_groups("__vk_v", groups).sql)
        case MergeTop() as top:
            return _sql(install.merged_top(old, top, unparse(shown.maintenance.change, shown.leaves)))


def _sql(text: str) -> str:
    return f"```sql\n{text}\n```"


# ------------------------------------------------------------------ the command line


def commands() -> str:
    """Each command with its arguments and own options, as its help has them."""
    return "\n\n".join(_command(c.callback) for c in _commands() if c.callback)


def shared_options() -> str:
    """The options that every command has."""
    callback = _commands()[0].callback
    assert callback is not None
    return _table(o for o in _options(callback) if o.rich_help_panel)


def _commands() -> list[Any]:
    from viewkeeper.cli.main import app  # noqa: PLC0415 - the rest of this file needs no terminal

    return app.registered_commands


def _command(callback: Callable[..., object]) -> str:
    own = [o for o in _options(callback) if not o.rich_help_panel]
    arguments = [o for o in own if not o.param_decls]
    given = "".join(f" {o.metavar}" for o in arguments)
    parts = [f"### {callback.__name__}", f"`viewkeeper {callback.__name__}{given}`", inspect.getdoc(callback) or ""]
    parts += [f"`{o.metavar}`: {o.help}" for o in arguments]
    options = [o for o in own if o.param_decls]
    return "\n\n".join([*parts, *([_table(options)] if options else [])])


@dataclass(frozen=True)
class Option:
    """What typer knows of an argument or an option; an argument has no `param_decls`."""

    param_decls: tuple[str, ...]
    metavar: str
    help: str
    rich_help_panel: str | None


def _options(callback: Callable[..., object]) -> Iterator[Option]:
    for name, parameter in inspect.signature(callback).parameters.items():
        for found in getattr(parameter.annotation, "__metadata__", ()):
            named = type(found).__name__ == "OptionInfo"
            # Inside Annotated the first spelling stands where a default would.
            first = (found.default,) if isinstance(found.default, str) else ()
            spelled = (*first, *(found.param_decls or ())) or (f"--{name.replace('_', '-')}",)
            spelled = spelled if named else ()
            yield Option(spelled, found.metavar or name.upper(), found.help or "", found.rich_help_panel)


def _table(options: Iterable[Option]) -> str:
    rows = ["| Option | Meaning |", "|---|---|"]
    return "\n".join([*rows, *(f"| {', '.join(f'`{d}`' for d in o.param_decls)} | {o.help} |" for o in options)])


# ------------------------------------------------------------------ blocks

# ------------------------------------------------------------------ pictures of algorithms at work


def chosen(graph: ViewGraph, budget: Budget, method: Method, *, only_used: bool = False) -> str:
    """The graph with what the method keeps in it, and its trace."""
    choice = choose(graph, budget, method)
    before = tau(graph, with_upkeep=budget.counts_upkeep)
    rows = [
        f"| {k} | {', '.join(step.added)} | {', '.join(step.dropped)} | {step.benefit:g} | {step.reason} |"
        for k, step in enumerate(choice.trace, 1)
    ]
    return "\n".join(
        [
            "```mermaid",
            mermaid(graph, choice, only_used=only_used),
            "```",
            "",
            f"`{method}` with `{budget}`: from {before:g} to {choice.cost:g}, space {choice.space:g}, maintenance "
            f"{choice.maintenance:g}; no choice within the budget costs less than {choice.bound:g}.",
            "",
            "| step | comes | goes | benefit | why |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )


def middle_view() -> ViewGraph:
    """Three views for four queries; the middle one looks best alone."""
    nodes = [View("b", reading=10.0), *(View(f"v{k}", (Arc(("b",)),)) for k in range(3))]
    for k, served in enumerate((("v0",), ("v0", "v1"), ("v1", "v2"), ("v2",))):
        ways = (Arc((v,), 5.0 if v == "v1" else 9.0) for v in served)
        nodes.append(View(f"q{k}", (Arc(("b",), 100.0), *ways), queries=1.0, keepable=False))
    return ViewGraph(tuple(nodes))


def crumb_and_cake() -> ViewGraph:
    """A small thing of high density, and a large one that is worth more."""
    gains = {"crumb": (1.0, 2.0), "cake": (100.0, 100.0)}
    nodes = [View("b"), *(View(name, (Arc(("b",), 200.0),), size=size) for name, (size, _) in gains.items())]
    for name, (_, gain) in gains.items():
        arcs = (Arc(("b",), 200.0), Arc((name,), 200.0 - gain))
        nodes.append(View(f"q {name}", arcs, queries=1.0, keepable=False))
    return ViewGraph(tuple(nodes))


def joins() -> ViewGraph:
    """Two ways to compute r⋈s⋈t, of which r⋈s also helps r⋈s⋈u."""
    bases = [View(name, reading=20.0) for name in "rstu"]
    pairs = [View(a + b, (Arc((a, b), 30.0),), size=4.0, reading=15.0) for a, b in ("rs", "st")]
    three = (Arc(("rs", "t"), 10.0), Arc(("r", "st"), 10.0))
    tops = [
        View("rst", three, size=9.0, reading=5.0, queries=2.0),
        View("rsu", (Arc(("rs", "u"), 10.0),), size=9.0, reading=5.0, queries=3.0),
    ]
    return ViewGraph((*bases, *pairs, *tops))


def fenced(kind: str, text: str) -> str:
    return f"```{kind}\n{text}\n```"


def thirteen() -> str:
    """The strategies of Q3 and their work."""
    graph = tpcd("Q3")
    metric = Metric(compute=1.0, install=0.0)
    works = sorted(
        (work(graph, strategy, metric), ", ".join("+".join(sorted(s.changed)) for s in strategy if isinstance(s, Comp)))
        for strategy in view_strategies(graph, "Q3")
    )
    rows = [f"| {order} | {cost / works[0][0]:.3f} |" for cost, order in works]
    return "\n".join(["| order | work ÷ best |", "|---|---|", *rows])


def too_short() -> str:
    graph = tpcd("Q3", "Q5", "Q10")
    window = schedule(graph, with_versions(graph), 2).makespan / 2
    reduced = leave_out(graph, window, {"Q3": 5.0, "Q5": 1.0, "Q10": 2.0}, workers=2)
    found = f"left out {', '.join(reduced.left_out)}: harm {reduced.harm:g}, no less than {reduced.bound:g}"
    return "\n".join(
        [fenced("mermaid", gantt(reduced.schedule, f"half the window, {found}")), "", f"Half the window: {found}."]
    )


def figure_6_order() -> tuple[str, ...]:
    return min_work(figure_6()).order


def relevant_rows() -> str:
    """The rows that matter to three views."""
    views = {
        "SELECT sales.id, city FROM sales JOIN stores ON store = stores.id\n"
        "WHERE day >= DATE '2024-01-01' AND stores.id < 10": ("id", "city"),
        "SELECT id, city FROM stores\n"
        "WHERE id > 5 AND NOT EXISTS (SELECT 1 FROM sales WHERE store = stores.id AND price < 1)": ("id", "city"),
        "SELECT a.id, b.id AS following FROM sales a JOIN sales b ON b.id = a.id + 1\n"
        "WHERE a.id > 100 AND b.note = 'returned'": ("id", "following"),
    }
    shown = []
    for query, output in views.items():
        definition = reading(query, output)
        assert not isinstance(definition, Reason), definition
        found = rows_that_matter(stored_form(definition, "__vk_v").kept, ansi=True)
        rows = "\n".join(f"{table}: {show_condition(condition)}" for table, condition in found.items())
        shown += [_sql(query), fenced("text", rows)]
    return "\n\n".join(shown)


PICTURES: dict[str, Callable[[], str]] = {
    "greedy": lambda: chosen(joins(), Budget(space=9.0), Greedy()),
    "greedy-interchange": lambda: chosen(middle_view(), Budget(space=2.0), GreedyInterchange()),
    "r-greedy": lambda: chosen(figure_2_2(), Budget(space=7.0, overshoot=True), RGreedy(2), only_used=True),
    "inner-level": lambda: chosen(figure_2_2(), Budget(space=7.0, overshoot=True), InnerLevel(), only_used=True),
    "ao-greedy": lambda: chosen(joins(), Budget(space=9.0), AOGreedy()),
    "multi-level": lambda: chosen(figure_2_2(), Budget(space=7.0, overshoot=True), MultiLevel(1), only_used=True),
    "inverted-tree": lambda: chosen(figure_3_1(), Budget(maintenance=4.0), InvertedTree()),
    "a-star": lambda: chosen(figure_3_1(), Budget(maintenance=4.0), AStar()),
    "guess-one": lambda: chosen(crumb_and_cake(), Budget(space=100.0), GuessOne()),
    "exact": lambda: chosen(figure_3_1(), Budget(space=3.0, maintenance=4.0), Exact()),
    "min-work-single": thirteen,
    "min-work": lambda: fenced("mermaid", expressions(figure_6(), one_way(figure_6(), figure_6_order()))),
    "versions": lambda: fenced("text", "\n".join(map(str, with_versions(figure_6())))),
    "schedule": lambda: fenced(
        "mermaid", gantt(schedule(tpcd("Q3", "Q5"), with_versions(tpcd("Q3", "Q5")), 3), "Q3 and Q5 on three workers")
    ),
    "window": too_short,
    "relevance": relevant_rows,
    "search": lambda: fenced("text", "\n".join(map(str, best_one_way(figure_6()).strategy))),
}

KEYED = MergeBag((Field("id", "bigint"), Field("price", "decimal(10,2)")), ("id",))

BLOCKS: dict[str, Callable[[], str]] = {
    "support": support,
    "reasons": reasons,
    "cli-commands": commands,
    "cli-options": shared_options,
    "functions": functions,
    "additive-limits": additive_limits,
    "install-append": lambda: installed("filter", "append"),
    "install-rewrite": lambda: installed("filter", "rewrite"),
    "install-merge": lambda: installed("filter", "merge"),
    "drift": lambda: f"```text\n{inspect.getdoc(drift)}\n```",
    "install-merge-keyed": lambda: _sql(install.merge_keyed("__vk_v", KEYED).sql),
    "install-merge-groups": lambda: installed("aggregate", "merge"),
    "install-top": lambda: installed("top", "rewrite"),
    "install-rewrite-groups": lambda: installed("distinct", "rewrite"),
    "aggregate-kept": lambda: kept("aggregate"),
    "aggregate-readers": lambda: readers("aggregate"),
    "distinct-kept": lambda: kept("distinct"),
    "distinct-readers": lambda: readers("distinct"),
    "except-kept": lambda: kept("except"),
    "except-readers": lambda: readers("except"),
    "top-groups-readers": lambda: readers("top-groups"),
}
BLOCKS |= {f"{name}-picture": draw for name, draw in PICTURES.items()}
for _name in EXAMPLES:
    for _part in (example, algebra, rule, change):
        BLOCKS[f"{_name}-{_part.__name__}"] = lambda name=_name, part=_part: part(name)  # type: ignore[misc]

_BLOCK = re.compile(r"(<!-- ([\w-]+):begin -->\n).*?(<!-- \2:end -->)", re.DOTALL)


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def regenerate(text: str) -> str:
    """The text of a page with every block as the code would have it now."""
    return _BLOCK.sub(lambda m: f"{m[1]}{BLOCKS[m[2]]()}\n{m[3]}", text)


def main(arguments: list[str]) -> int:
    stale = []
    for page in documents():
        text = page.read_text("utf-8")
        fresh = regenerate(text)
        if fresh != text:
            stale.append(page.relative_to(ROOT).as_posix())
            if "--check" not in arguments:
                page.write_text(fresh, "utf-8")
    word = "out of date" if "--check" in arguments else "rewritten"
    print("\n".join(f"{name}: {word}" for name in stale) or "docs: up to date")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
