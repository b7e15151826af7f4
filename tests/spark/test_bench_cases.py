"""Cases of the benchmark at a tiny scale: all that is measured is right. Takes long: run by `make fuzz`."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from viewkeeper import Warehouse
from viewkeeper.bench.cases import Case, CommitGrowth, DepthGrowth, SmallRefresh, Sweep, Transactions, Writers
from viewkeeper.bench.mixes import Share
from viewkeeper.bench.run import measure
from viewkeeper.bench.samples import RECOMPUTE, REFRESH
from viewkeeper.bench.stand import Bench
from viewkeeper.bench.sweep import HAND, OTHER
from viewkeeper.store.tables import FolderTables

pytestmark = [
    pytest.mark.spark,
    pytest.mark.skipif("VIEWKEEPER_FUZZ" not in os.environ, reason="takes a minute; make fuzz runs it"),
]


@pytest.fixture
def bench(shared: Warehouse, tmp_path: Path) -> Iterator[Bench]:
    assert isinstance(shared.tables, FolderTables)
    before = {row[0] for row in shared.sql("SHOW SCHEMAS").collect()}
    yield Bench(shared, shared.tables.root, tmp_path, 0.002, print)
    shared.sql("USE default")
    for schema in {row[0] for row in shared.sql("SHOW SCHEMAS").collect()} - before:
        for view in [v for v in shared.registry.views() if v.startswith(f"{schema}.")]:
            shared.drop(view, cascade=True, if_exists=True)
        shared.sql(f"DROP SCHEMA {schema} CASCADE")


def measured(bench: Bench, case: Case) -> Counter[str]:
    """How often each action was measured."""
    samples = list(measure(case, bench))
    assert all(sample.seconds > 0 for sample in samples)
    return Counter(sample.action for sample in samples)


def test_a_sweep_measures_both_ways_and_the_job_by_hand(bench: Bench) -> None:
    found = measured(bench, Sweep(Share(0.01), ("v1", "w_q3", "w_q10"), rounds=1, by_hand=("v1", "w_q3", "w_q10")))
    assert found == {REFRESH: 3, OTHER: 3, RECOMPUTE: 3, HAND: 3}


@pytest.mark.parametrize(
    ("case", "samples"),
    [
        (SmallRefresh(1000, rounds=1), 8),
        (CommitGrowth((1, 3)), 2),
        (DepthGrowth((1, 2), rounds=1), 2),
        (Transactions(2), 3),
        (Writers((10,), rounds=1), 4),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_other_cases_run(bench: Bench, case: Case, samples: int) -> None:
    assert measured(bench, case).total() == samples
