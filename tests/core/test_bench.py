"""The benchmark without Spark: its grid, its changes, its statistics, its report, and what it keeps of a run."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest

from viewkeeper.bench import lazy, small
from viewkeeper.bench.by_hand import Range, job
from viewkeeper.bench.cases import Case, CommitGrowth, Sweep, TenViews, actions, name
from viewkeeper.bench.findings import Bar, bars, change_sizes, choices, condensed, right_share, sweeps
from viewkeeper.bench.grid import SCALES, Mode, chosen, grid, mode
from viewkeeper.bench.mixes import UPDATED, Cursor, Mix, NewOrders, Share, Updates, batch, order_key, title
from viewkeeper.bench.report import markdown, to_data, write_report
from viewkeeper.bench.run import Done, Finished, Kept, Setup, machine
from viewkeeper.bench.samples import RECOMPUTE, REFRESH, Ratio, Sample, Samples, geometric_mean
from viewkeeper.bench.stand import Timed, second
from viewkeeper.bench.sweep import HAND, OTHER, sweep
from viewkeeper.bench.views import ALL, BY_HAND, TEN, VIEWS
from viewkeeper.errors import StorageError, ViewkeeperError
from viewkeeper.reports import RefreshRecord
from viewkeeper.tpch.tables import TABLES

pytestmark = pytest.mark.core

MODES: tuple[Mode, ...] = ("quick", "full", "large")


# Grid


@pytest.mark.parametrize("kind", MODES)
def test_every_case_has_a_name_of_its_own_known_views_and_a_weight(kind: Mode) -> None:
    cases = grid(kind)
    assert len({name(case) for case in cases}) == len(cases)
    for case in cases:
        assert actions(case) > 0
        if isinstance(case, Sweep):
            assert set(case.views) <= set(VIEWS) and set(case.by_hand) <= set(case.views)


def test_a_full_run_has_all_views_all_sizes_and_updates_of_every_table() -> None:
    found = {case.mix: case for case in grid("full") if isinstance(case, Sweep)}
    assert {s.share for s in found if isinstance(s, Share)} == {0.0001, 0.001, 0.01, 0.05, 0.1}
    assert {u.table for u in found if isinstance(u, Updates)} == set(TABLES) == set(UPDATED)
    assert found[NewOrders(10)].views == found[Share(0.001)].views == ALL
    assert len(ALL) == 27 and len(TEN) == 10
    assert any(isinstance(case, TenViews) for case in grid("full"))


def test_patterns_pick_cases_and_views() -> None:
    cases = grid("full")
    assert chosen(cases, []) == cases
    assert [name(c) for c in chosen(cases, ["growth-*"])] == ["growth-data", "growth-commits", "growth-depth"]
    (one,) = chosen(cases, ["0.1%/w_q*"])
    assert isinstance(one, Sweep) and one.views == ("w_q3", "w_q5", "w_q10") and one.by_hand == ("w_q3", "w_q10")
    with pytest.raises(ViewkeeperError, match="no case fits nothing"):
        chosen(cases, ["nothing"])


def test_a_run_is_quick_or_large_or_neither() -> None:
    assert (mode(), mode(quick=True), mode(large=True)) == ("full", "quick", "large")
    with pytest.raises(ViewkeeperError):
        mode(quick=True, large=True)


# Changes, run on DuckDB

SCALE = 0.001


@pytest.fixture
def tables() -> duckdb.DuckDBPyConnection:
    """As many rows as TPC-H has at this scale, with the columns that batches touch."""
    db = duckdb.connect()
    db.execute("CREATE MACRO pmod(a, b) AS ((a % b) + b) % b")
    orders = TABLES["orders"].rows_at(SCALE)
    keys = ", ".join(f"({order_key(n)})" for n in range(1, orders + 1))
    db.execute(
        f"CREATE TABLE orders AS SELECT k AS o_orderkey, 1 AS o_totalprice, '1-URGENT' AS o_orderpriority FROM (VALUES {keys}) t(k)"
    )
    db.execute("CREATE TABLE lineitem AS SELECT o_orderkey AS l_orderkey, n AS l_linenumber, 1 AS l_extendedprice, 1 AS l_quantity "
               "FROM orders, range(4) r(n)")  # fmt: skip
    for table, prefix, columns in (
        ("customer", "c_cust", "1 AS c_acctbal, 'BUILDING' AS c_mktsegment"),
        ("supplier", "s_supp", "1 AS s_acctbal, 1 AS s_nationkey"),
        ("part", "p_part", "1 AS p_retailprice, 1 AS p_size"),
    ):
        rows = TABLES[table].rows_at(SCALE)
        db.execute(f"CREATE TABLE {table} AS SELECT n AS {prefix}key, {columns} FROM range(1, {rows + 1}) r(n)")
    db.execute("CREATE TABLE partsupp AS SELECT p_partkey AS ps_partkey, n AS ps_suppkey, 1 AS ps_supplycost, 1 AS ps_availqty "
               "FROM part, range(4) r(n)")  # fmt: skip
    db.execute(
        "CREATE TABLE nation AS SELECT * FROM (VALUES (1, 'FRANCE'), (2, 'GERMANY'), (3, 'PERU')) t(n_nationkey, n_name)"
    )
    db.execute(
        "CREATE TABLE region AS SELECT * FROM (VALUES (1, 'ASIA'), (2, 'EUROPE'), (3, 'AFRICA')) t(r_regionkey, r_name)"
    )
    return db


def play(db: duckdb.DuckDBPyConnection, mix: Mix, at: Cursor) -> tuple[dict[str, list[int]], Cursor]:
    """The rows that each statement touches, by table; declared keys hold after each."""
    statements, following = batch(mix, SCALE, at)
    touched: dict[str, list[int]] = {}
    for statement in statements:
        (count,) = db.execute(statement.replace("EXCEPT", "EXCLUDE")).fetchone() or (0,)
        touched.setdefault(statement.split()[1 if statement.startswith("UPDATE") else 2], []).append(count)
        assert db.execute("SELECT count(*) FROM lineitem ANTI JOIN orders ON l_orderkey = o_orderkey").fetchone() == (
            0,
        )
        assert db.execute("SELECT count(*) - count(DISTINCT o_orderkey) FROM orders").fetchone() == (0,)
    return touched, following


def test_batches_take_other_rows_each_time_and_keep_declared_keys(tables: duckdb.DuckDBPyConnection) -> None:
    at = Cursor()
    for number in range(4):
        touched, at = play(tables, Share(0.1), at)
        assert touched == {
            "orders": [150, 150], "lineitem": [600, 600], "customer": [15], "supplier": [1], "part": [20],
            "partsupp": [80], "nation": [2],
        }, number  # fmt: skip
    assert at == Cursor(4, 600, 600)
    updated = tables.execute("SELECT count(*) FROM customer WHERE c_acctbal > 1").fetchone()
    assert updated is not None and updated[0] > 45
    touched, _ = play(tables, NewOrders(10), at)
    assert touched == {"orders": [10], "lineitem": [40]}


@pytest.mark.parametrize("table", UPDATED)
def test_every_table_can_be_updated(tables: duckdb.DuckDBPyConnection, table: str) -> None:
    share = {"nation": 0.08, "region": 0.4}.get(table, 0.1)
    touched, at = play(tables, Updates(table, share), Cursor())
    assert list(touched) == [table] and sum(touched[table]) > 0
    assert at == Cursor(1)


def test_less_than_a_row_is_not_updated() -> None:
    statements, _ = batch(Share(0.001), SCALE, Cursor())
    assert [s.split()[0] for s in statements] == ["INSERT", "INSERT", "DELETE", "DELETE"]
    assert batch(Updates("supplier", 0.001), SCALE, Cursor())[0] == ()


def test_keys_of_orders_are_sparse() -> None:
    assert [order_key(n) for n in (1, 7, 8, 9, 16)] == [1, 7, 32, 33, 64]


def test_transactions_are_the_same_each_time_and_skewed() -> None:
    found = list(lazy.skewed(100))
    assert found == list(lazy.skewed(100))
    assert all(1 <= int(s.split()[-3]) <= int(s.split()[-1]) <= 100 for s in found)


@pytest.mark.parametrize("view", BY_HAND)
def test_hand_written_jobs_read_the_feeds_of_what_changed(view: str) -> None:
    old = dict.fromkeys(TABLES, 3)
    statement = job(view, "target", Range(old, {**old, "lineitem": 5}))
    assert "table_changes('lineitem', 4, 5)" in statement and "table_changes('customer'" not in statement
    assert "orders VERSION AS OF 3 AS orders" in statement


# Statistics


def sample(action: str, number: int, seconds: float, view: str = "v1", case: str = "0.1%", **more: object) -> Sample:
    return Sample(case, view, action, number, seconds, **more)  # type: ignore[arg-type]


def test_a_ratio_is_that_of_medians_with_the_spread_of_rounds() -> None:
    found = Samples(tuple(sample(REFRESH, n, s) for n, s in enumerate((1.0, 3.0, 2.0))) +
                    tuple(sample(RECOMPUTE, n, s) for n, s in enumerate((4.0, 4.0, 8.0))))  # fmt: skip
    assert found.ratio(REFRESH, RECOMPUTE) == Ratio(0.5, 0.25, 0.75, 3)
    assert str(found.ratio(REFRESH, RECOMPUTE)) == "0.50 (0.25–0.75)"
    assert str(Ratio(0.5, 0.5, 0.5, 1)) == "0.50"
    assert found.ratio(REFRESH, HAND) is None


def test_only_rounds_that_have_both_are_compared() -> None:
    found = Samples((sample(REFRESH, 0, 1.0), sample(REFRESH, 1, 100.0), sample(RECOMPUTE, 0, 2.0)))
    assert found.ratio(REFRESH, RECOMPUTE) == Ratio(0.5, 0.5, 0.5, 1)


def test_the_geometric_mean_of_nothing_is_nothing() -> None:
    assert geometric_mean([]) is None
    assert geometric_mean([0.25, 4]) == pytest.approx(1)


def run_of(*found: Sample, kind: Mode = "full") -> Finished:
    return Finished(Setup.of(kind), machine(), (Done("everything", 60.0, 4.0, found),))


def one_view(view: str, auto: float, other: float, plain: float, strategy: str = "incremental") -> tuple[Sample, ...]:
    way = "recompute" if strategy == "incremental" else "incremental"
    return (
        sample(REFRESH, 0, auto, view, strategy=strategy, predicted=auto * 2),
        sample(OTHER, 0, other, view, strategy=way, predicted=other),
        sample(RECOMPUTE, 0, plain, view),
    )


def test_auto_is_judged_where_the_ways_differ() -> None:
    found = run_of(*one_view("v1", 1, 4, 4), *one_view("w_q3", 2, 1, 2), *one_view("q1", 1, 1.1, 1)).samples
    assert [(c.view, c.different, c.right) for c in choices(found)] == [
        ("v1", True, True), ("w_q3", True, False), ("q1", False, True),
    ]  # fmt: skip
    assert right_share(choices(found)) == 0.5


def test_auto_is_judged_by_the_median_of_rounds_and_by_the_first_one() -> None:
    found = Samples(tuple(
        sample(action, n, seconds, strategy="recompute" if n else "incremental")
        for n, pair in enumerate(((2.0, 1.0), (1.0, 2.0), (1.0, 1.5)))
        for action, seconds in zip((REFRESH, OTHER), pair, strict=True)
    ))  # fmt: skip
    (choice,) = choices(found)
    assert (choice.strategy, choice.times, choice.right) == ("incremental/recompute", pytest.approx(2 / 3), True)
    assert (choice.first.strategy, choice.first.times, choice.first.right) == ("incremental", 2, False)


def test_rounds_in_which_the_other_way_need_not_be_measured_count_as_those_that_showed_it() -> None:
    found = Samples((
        *(sample(REFRESH, n, s, strategy=w) for n, (w, s) in enumerate((("recompute", 0.8), ("none", 0.2), ("none", 0.3)))),
        sample(OTHER, 0, 0.3, strategy="incremental"), sample(OTHER, 1, 0.5, strategy="recompute"),
    ))  # fmt: skip
    (choice,) = choices(found)
    assert (choice.clear, choice.times, choice.right) == ((0.4,), 0.4, True)
    assert choice.first.right is False and choice.first.clear == ()
    slower = Samples(tuple(replace(s, seconds=0.45) if s.round == 1 and s.action == OTHER else s for s in found.all))
    assert choices(slower)[0].clear == (0.2 / 0.45,)
    near = Samples(tuple(replace(s, seconds=0.39) if s.round == 1 and s.action == OTHER else s for s in found.all))
    assert choices(near)[0].clear == ()


class OneView:
    """Stands for a warehouse in which AUTO takes these ways, and each way these seconds."""

    def __init__(self, ways: list[str], seconds: dict[str, float]) -> None:
        self.ways, self.seconds, self.refreshed = iter(ways), seconds, list[tuple[str, str]]()
        self.bench = self

    def refresh(self, view: str, *, full: bool = False) -> Timed[RefreshRecord]:
        way = ("recompute" if full else "incremental") if view == second("v1") else next(self.ways)
        self.refreshed.append((view, way))
        return Timed(RefreshRecord(view, way, "", 1, 1, 0.1, {}, predicted_seconds=1.0), self.seconds[way], 0)

    def recompute(self, view: str) -> Timed[object]:
        return Timed(None, 5.0, 1)

    def __getattr__(self, _: str) -> Callable[..., Any]:
        """What is not measured."""
        return lambda *_, **__: self


@pytest.mark.parametrize(
    ("recompute", "measured"),
    [(4.0, ["recompute", "incremental"]), (1.5, ["recompute", "recompute", "recompute", "incremental"])],
)
def test_the_other_way_is_measured_until_it_clearly_takes_longer(recompute: float, measured: list[str]) -> None:
    view = OneView(["incremental"] * 3 + ["recompute"], {"incremental": 1.0, "recompute": recompute})
    found = list(sweep(Sweep(Share(0.01), ("v1",), rounds=4), view))  # type: ignore[arg-type]
    assert [s.strategy for s in found if s.action == OTHER] == measured
    # The second copy is brought up to date in each round, by the faster way if both are known.
    assert [v for v, _ in view.refreshed] == ["v1", second("v1")] * 4
    assert [w for v, w in view.refreshed if v != "v1"] == [*measured[:-1], *["incremental"] * (5 - len(measured))]


def test_bars_hold_or_not_or_were_not_measured() -> None:
    found = {
        bar.what: bar for bar in bars(run_of(*one_view("v1", 1, 4, 4), *one_view("q1", 2.4, 4, 2)).samples, "full")
    }
    mean = found["refresh ÷ recompute at 0.1% of all tables, geometric mean"]
    assert mean.value == pytest.approx((0.25 * 1.2) ** 0.5) and mean.limit == 0.5 and mean.of == "2 views"
    assert found["the same, the worst view"].holds is False
    assert found["10 rows inserted: refresh ÷ plain append"].holds is None
    assert Bar("", 14, 13, at_least=True).holds is True
    assert len(bars(Samples(()), "large")) == 5


def test_one_by_one_is_the_sum_and_combined_is_one() -> None:
    eager = tuple(sample(lazy.EAGER, n, 1.0, case="transactions") for n in range(30))
    assert condensed(Samples((*eager, sample(lazy.COMBINED, 0, 2.0, case="transactions")))) == 15


# Report


def everything() -> Finished:
    views = (s for n, v in enumerate(ALL) for s in one_view(v, 0.5 + n / 20, 2.0, 2.0 + n / 30))
    ten = (sample(a, 0, t, v, "10-orders", strategy="incremental" if a == REFRESH else None, predicted=0.7 if a == REFRESH else None)
           for v in ("v1", "q1") for a, t in ((REFRESH, 0.3), (RECOMPUTE, 2.0)))  # fmt: skip
    hand = (sample(HAND, 0, 1.5, v) for v in BY_HAND)
    groups = (
        sample(action, n, seconds, "groups", "small-refresh", jobs=2)
        for n in range(3)
        for action, seconds in ((small.APPEND, 0.15), (small.INSERTED, 0.4), (small.TEN_IDLE, 0.1))
    )
    grown = (sample(a, 0, 0.5 + at / 10, v, c, at=at) for c, v, places in (
        ("growth-data", "v1", (0.1, 1, 3)), ("growth-commits", "groups", (1, 10, 1000)), ("growth-depth", "chain", (1, 10))
    ) for at in places for a in (REFRESH, RECOMPUTE))  # fmt: skip
    written = (sample(lazy.UPDATE, 0, 0.8, subject, "writers", at=100) for subject in ("0 views", "1 view", "10 views"))
    return run_of(*views, *ten, *hand, *groups, *grown, *written, sample(REFRESH, 0, 1.2, "1 view", "writers", at=100),
                  sample(lazy.EAGER, 0, 1.0, case="transactions"), sample(lazy.COMBINED, 0, 1.0, case="transactions"))  # fmt: skip


def test_the_report_has_all_samples_the_bars_and_the_plots(tmp_path: Path) -> None:
    finished = everything()
    files = write_report(finished, tmp_path)
    assert {f.name for f in files} == {
        "report.json", "report.md", "ratios-0.1-percent.png", "growth-change.png", "growth-data.png", "growth-commits.png",
        "growth-depth.png", "predictions.png",
    }  # fmt: skip
    assert all(f.stat().st_size > 0 for f in files)
    data = json.loads((tmp_path / "report.json").read_text())
    assert len(data["samples"]) == len(finished.samples.all)
    assert {"cores", "memory_gigabytes", "pyspark", "delta-spark"} <= data["machine"].keys()
    shown = (tmp_path / "report.md").read_text()
    assert "| refresh ÷ hand-written MERGE job at 0.1%, the worst view | 0.47 | ≤ 1 | yes |" in shown
    assert "| v1 | incremental | 1.00 | 0.50 | 2.00 | 0.25 |" in shown
    assert "![growth-data](growth-data.png)" in shown
    assert str(Path.home()) not in shown + json.dumps(data)


def test_what_was_not_measured_is_left_out() -> None:
    shown = markdown(run_of(kind="quick"))
    assert "The machine was busy" in shown
    assert "## Small refreshes" not in shown and "| – |" in shown
    assert "This was another one" in shown
    assert to_data(run_of())["samples"] == []


def test_mixes_are_sorted_by_their_size() -> None:
    assert [case for _, case in change_sizes(everything().samples, "full", 1)] == ["10-orders", "0.1%"]
    assert sweeps(everything().samples) == ["0.1%", "10-orders"]
    assert title(Updates("part", 0.1)) == "update part"


# What is kept of a run


def test_a_finished_case_is_not_measured_again(tmp_path: Path) -> None:
    case: Case = CommitGrowth((1, 10))
    kept = Kept.open(tmp_path, Setup.of("quick"))
    assert not kept.has(case)
    done = Done(name(case), 7.0, None, (sample(REFRESH, 0, 1.0, at=1),))
    kept.add(case, done)
    again = Kept.open(tmp_path, Setup.of("quick"))
    assert again.has(case) and not again.has(CommitGrowth((1, 100)))
    assert again.all() == (done,)


def test_a_folder_keeps_runs_of_one_kind(tmp_path: Path) -> None:
    Kept.open(tmp_path, Setup.of("quick"))
    with pytest.raises(StorageError, match="another kind"):
        Kept.open(tmp_path, Setup.of("full"))
    assert Setup.of("large").scale == SCALES["large"] and Setup.of("quick", 0.01).scale == 0.01
