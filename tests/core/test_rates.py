"""Rates of the cost model: fitted to what refreshes took, near what was measured once where they do not tell."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.relations import Aggregate, Join, Measure, Scan, ScanColumn
from viewkeeper.algebra.scalars import Column, call
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.planner.build import Situation, plan_view, seen_closer
from viewkeeper.planner.cost import MEASURED_ONCE, NETTED_HERE, Cost, Rates, Sizes
from viewkeeper.planner.plan import Maintain, Recompute
from viewkeeper.planner.rates import Own, Sample, Seen, fitted, fitted_by_engine, shown
from viewkeeper.settings import Settings

pytestmark = pytest.mark.core

SLOW_DISK = Rates(
    fixed=2.0, per_read=0.2, per_row_read=4e-6, per_byte_read=1e-8, per_row_moved=1e-7, per_row_written=5e-7
)


def refreshes(rates: Rates, number: int, noise: float = 0.0, seed: int = 1) -> list[Sample]:
    """Refreshes of all sizes in a warehouse of these rates."""
    chance = random.Random(seed)
    found = []
    for _ in range(number):
        size = 10 ** chance.uniform(2, 7)
        written, moved = int(size * chance.random()), int(2 * size * chance.random())
        cost = Cost(
            fixed=chance.choice([0.3, 0.6, 0.9]),
            reads=chance.randint(1, 6),
            files=chance.randint(1, 60),
            rows_read=int(size),
            bytes_read=int(size * chance.uniform(1, 100)),
            rows_moved=moved,
            rows_written=written,
            bytes_written=int(written * chance.uniform(10, 200)),
        )
        found.append(Sample(cost, cost.at(rates).seconds * chance.uniform(1 - noise, 1 + noise)))
    return found


def off(rates: Rates, samples: list[Sample]) -> float:
    """The median of the relative errors."""
    errors = sorted(abs(s.cost.at(rates).seconds - s.seconds) / s.seconds for s in samples)
    return errors[len(errors) // 2]


def test_without_a_history_they_are_those_measured_once() -> None:
    assert fitted([]) == MEASURED_ONCE


@given(st.integers(1, 30), st.integers(0, 99))
def test_refreshes_as_predicted_change_nothing(number: int, seed: int) -> None:
    found = fitted(refreshes(MEASURED_ONCE, number, seed=seed))
    assert off(found, refreshes(MEASURED_ONCE, 20)) < 0.02


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_another_machine_is_found_out(noise: float) -> None:
    later = refreshes(SLOW_DISK, 100, seed=2)
    assert off(MEASURED_ONCE, later) > 0.5
    assert off(fitted(refreshes(SLOW_DISK, 60, noise)), later) < 0.1 + noise / 3


def test_cold_starts_do_not_decide() -> None:
    """Every tenth refresh took ten times as long."""
    samples = [
        replace(s, seconds=s.seconds * (10 if n % 10 == 0 else 1)) for n, s in enumerate(refreshes(SLOW_DISK, 60))
    ]
    assert off(fitted(samples), refreshes(SLOW_DISK, 100, seed=2)) < 0.25


def test_one_refresh_does_not_decide() -> None:
    once = refreshes(SLOW_DISK, 1)
    assert off(fitted(once), refreshes(SLOW_DISK, 50)) > 0.1


SALES = Scan("sales", (ScanColumn("k", "k", "int"), ScanColumn("x", "x", "bigint")))
SHOPS = Scan("shops", (ScanColumn("id", "id", "int"), ScanColumn("town", "town", "string")))


def test_auto_chooses_by_what_refreshes_took() -> None:
    """Where writing is dear and reading cheap, a small change is worth it earlier."""
    kept = stored_form(Aggregate(SALES, ("k",), (Measure("s", "sum", ("x",), "bigint"),)), "v").kept
    sizes = {"sales": Sizes(20_000, 10)}
    chosen = [
        plan_view(Situation("v", "AUTO", kept, 500, sizes, {"sales": "any"}, moved=True, rates=rates), Settings())
        for rates in (Rates(per_row_read=1e-8), Rates(per_row_read=1e-4))
    ]
    assert [type(step) for step in chosen] == [Recompute, Maintain]
    assert all(step.cost.seconds < 1 for step in chosen if isinstance(step, Maintain | Recompute))


def test_bytes_and_files_count() -> None:
    """A view of wide rows is dearer to write, one of wide tables to compute, and a change of many commits to read."""
    kept = stored_form(Aggregate(SALES, ("k",), (Measure("s", "sum", ("x",), "bigint"),)), "v").kept
    sizes = Sizes(2_000_000, 1_000, change_files=1)
    usual = Situation("v", "AUTO", kept, 50_000, {"sales": sizes}, {"sales": "any"}, moved=True)

    def costs(situation: Situation) -> tuple[Cost, Cost]:
        step = plan_view(situation, Settings())
        assert isinstance(step, Maintain)
        return step.cost, step.recompute_cost

    change, recompute = costs(usual)
    wide, wide_recompute = costs(replace(usual, sizes={"sales": replace(sizes, value_bytes=40.0)}))
    assert wide_recompute.bytes_read == 10 * recompute.bytes_read == 10 * 2 * 2_000_000 * 4
    assert wide_recompute.seconds > recompute.seconds and wide.seconds < 1.01 * change.seconds
    many, many_recompute = costs(replace(usual, sizes={"sales": replace(sizes, change_files=100)}))
    assert many.files == change.files + 99 and many.seconds > change.seconds and many_recompute == recompute
    large, large_recompute = costs(replace(usual, row_bytes=500.0))
    assert large_recompute.bytes_written == 10 * recompute.bytes_written == 50_000 * 500
    assert large.seconds > change.seconds and large_recompute.seconds > recompute.seconds


def test_auto_looks_at_the_changes_where_they_may_be_less_than_they_seem() -> None:
    """All shops were updated, but not their towns: once that is seen, only the changes of sales are left."""
    joined = Join(SALES, SHOPS, "inner", call("=", Column("k"), Column("id")))
    kept = stored_form(Aggregate(joined, ("town",), (Measure("s", "sum", ("x",), "bigint"),)), "v").kept
    sizes = {"sales": Sizes(2_000_000, 100), "shops": Sizes(20_000, 40_000)}
    situation = Situation("v", "AUTO", kept, 500, sizes, {"sales": "any", "shops": "any"}, moved=True)
    step = plan_view(situation, Settings())
    assert isinstance(step, Recompute) and step.look and step.instead_of is not None and "unless" in step.reason
    found = maintenance(kept, {"sales": "any"})
    closer = seen_closer(found, situation, {"sales": 100, "shops": 0}, step.cost, Settings())
    assert isinstance(closer, Maintain) and closer.cost.seconds < step.instead_of.cost.seconds
    again = seen_closer(step.instead_of.maintenance, situation, {}, step.cost, Settings())
    assert isinstance(again, Recompute) and not again.look, "it is looked at once"
    many = replace(situation, sizes={**sizes, "sales": Sizes(2_000_000, 200_000)})
    unseen = plan_view(many, Settings())
    assert isinstance(unseen, Recompute) and not unseen.look, "many rows are too dear to look at"


def test_many_small_appends_are_written_as_one() -> None:
    kept = stored_form(SALES, "v").kept
    situation = Situation(
        "v", "INCREMENTAL", kept, 5_000, {"sales": Sizes(5_000, 1)}, {"sales": "appended"}, moved=True
    )
    installs = [plan_view(replace(situation, files=files), Settings()) for files in (1, 50, 51)]
    assert [step.install for step in installs if isinstance(step, Maintain)] == ["append", "append", "rewrite"]
    (large,) = [plan_view(replace(situation, files=51, rows=2_000_000), Settings())]
    assert isinstance(large, Maintain) and large.install == "append", "a large view is left to OPTIMIZE"


COST = Cost(rows_read=10_000_000)


def test_a_view_has_its_own_factors() -> None:
    """Twice as slow as the rates say, and a cold start slower still; recomputes of it as fast as they say."""
    samples = [Sample(COST, COST.seconds * off) for off in (2, 9, 2.1)]
    found = shown([*samples, Sample(COST, COST.seconds, "recompute")], MEASURED_ONCE)
    assert 1.7 < found.factor("incremental", COST.seconds) < 2
    assert found.factor("recompute", COST.seconds) == 1
    assert shown([], MEASURED_ONCE).factor("recompute", 1) == 1


def test_refreshes_about_as_large_tell_most() -> None:
    """Small changes are as fast as the rates say, large ones four times as slow."""
    small = Cost(rows_read=100_000)
    samples = [Sample(small, small.seconds) for _ in range(5)] + [Sample(COST, COST.seconds * 4) for _ in range(3)]
    found = shown(samples, MEASURED_ONCE)
    assert found.factor("incremental", small.seconds) == 1
    assert 3 < found.factor("incremental", COST.seconds * 1.5) < 4
    beyond = [found.factor("incremental", COST.seconds * times) for times in (3, 30, 300)]
    assert 3 > beyond[0] > beyond[1] > beyond[2] > 1, "the farther, the less it tells"
    quick = shown([Sample(COST, COST.seconds / 4)], MEASURED_ONCE)
    assert quick.factor("incremental", COST.seconds * 9) == 1, "what is fixed was quick"
    assert quick.factor("incremental", COST.seconds / 9) < 1


CREATED = [Sample(COST, COST.seconds * 3, "recompute", created=True)]


def test_creating_a_view_tells_of_its_recomputes() -> None:
    found = shown(CREATED, MEASURED_ONCE)
    assert 1.5 < found.factor("recompute", COST.seconds) < 1.8, "half: it takes longer, the first time"
    assert not found.is_new("incremental", COST.seconds), "no refresh took any way"
    slower = shown([Sample(COST, COST.seconds * 4, "recompute"), *CREATED], MEASURED_ONCE)
    assert slower.factor("recompute", COST.seconds) > 2.5, "once there is a recompute, it alone tells"


def own(**times: float) -> Own:
    """The ways that were taken, and how many times as long as predicted they take."""
    return Own({way: [Seen(said, off) for said in (0.1, 0.4)] * 9 for way, off in times.items()})  # type: ignore[misc]


def test_the_other_way_is_tried_once() -> None:
    kept = stored_form(Aggregate(SALES, ("k",), (Measure("s", "sum", ("x",), "bigint"),)), "v").kept
    situation = Situation("v", "AUTO", kept, 500, {"sales": Sizes(20_000, 10)}, {"sales": "any"}, moved=True)

    def chosen(known: Own) -> tuple[type, bool]:
        step = plan_view(replace(situation, own=known), Settings())
        return type(step), step.reason.startswith("tried once")

    usual = chosen(Own())
    assert usual == (Recompute, False)
    assert chosen(own(recompute=1)) == (Maintain, True)
    assert chosen(own(recompute=1, incremental=1)) == usual
    assert chosen(own(recompute=0.1)) == (Recompute, False), "it would be much dearer"
    assert chosen(own(recompute=1, incremental=0.4)) == (Maintain, False)
    assert chosen(own(incremental=0.75)) == (Recompute, True)
    assert chosen(own(incremental=0.5)) == (Maintain, False), "CREATE has told enough"
    small = Own({"recompute": [Seen(0.4, 1)], "incremental": [Seen(0.01, 1)]})
    assert chosen(small) == (Maintain, True), "it was never taken for a change of this size"


def test_what_was_left_of_changes_is_expected_again() -> None:
    """Once changes were read, no look is needed to know about how much they will turn out to be."""
    joined = Join(SALES, SHOPS, "inner", call("=", Column("k"), Column("id")))
    kept = stored_form(Aggregate(joined, ("town",), (Measure("s", "sum", ("x",), "bigint"),)), "v").kept
    sizes = {"sales": Sizes(2_000_000, 100), "shops": Sizes(20_000, 40_000)}
    situation = Situation("v", "AUTO", kept, 500, sizes, {"sales": "any", "shops": "any"}, moved=True)
    steps = [plan_view(replace(situation, own=Own(left=left)), Settings()) for left in (None, 1.0, 0.1)]
    assert [(type(step), isinstance(step, Recompute) and step.look) for step in steps] == [
        (Recompute, True),
        (Recompute, False),
        (Maintain, False),
    ]


def test_what_this_process_computes_tells_nothing_of_spark() -> None:
    quick = [replace(s, seconds=s.seconds / 10, way="here") for s in refreshes(MEASURED_ONCE, 20)]
    spark, here = fitted_by_engine([*quick, *refreshes(MEASURED_ONCE, 20)])
    assert off(spark, refreshes(MEASURED_ONCE, 20)) < 0.02
    assert off(here, quick) < 0.1
    found = shown([Sample(COST, COST.seconds / 10, "here")], MEASURED_ONCE)
    assert found.factor("here", COST.seconds) < 0.2
    assert found.factor("incremental", COST.seconds) == 1


def test_what_was_read_is_not_saved_by_a_recompute() -> None:
    """Once a change was read here, a recompute only saves what is left to do; what was read stays part of the cost."""
    kept = stored_form(Aggregate(SALES, ("k",), (Measure("s", "sum", ("x",), "bigint"),)), "v").kept
    assert kept is not None
    situation = Situation(
        "v", "AUTO", kept, 500, {"sales": Sizes(8_000_000, 500_000, here=True)}, {"sales": "any"}, moved=True,
        known_here=lambda _: True,
    )  # fmt: skip
    planned = plan_view(situation, Settings())
    assert isinstance(planned, Maintain) and planned.here

    def closer(left: int, full: float) -> Maintain | Recompute:
        return seen_closer(planned.maintenance, situation, {"sales": left}, Cost(fixed=full), Settings())

    all_left, few_left = closer(500_000, 99), closer(10, 99)
    assert all_left.cost == planned.cost and isinstance(few_left, Maintain)
    reading_all = Cost(rows_moved=NETTED_HERE * 500_000).seconds
    assert reading_all < few_left.cost.seconds < planned.cost.seconds - reading_all
    assert isinstance(closer(10, 0.5 * reading_all), Maintain), "nearly all of it is done"
    assert isinstance(closer(500_000, 0.5 * reading_all), Recompute)
