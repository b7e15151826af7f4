"""What small changes are read first for: which rows of them can matter to a view."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa
import pytest

from viewkeeper.algebra.relations import WEIGHT, Filter, Join, Scan, ScanColumn, Union
from viewkeeper.algebra.scalars import ONE, TRUE, ZERO, Clock, Column, call
from viewkeeper.runtime.first import what_matters
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.runtime.seen import Few, FirstRead, Here, Many
from viewkeeper.store.leaves import PinnedLeaves

pytestmark = pytest.mark.core

SALES = Scan("sales", (ScanColumn("id", "s_id", "int"), ScanColumn("price", "s_price", "int")))
STORES = Scan("stores", (ScanColumn("id", "t_id", "int"),))
DEAR, OLD = call(">", Column("s_price"), ONE), call("<", Column("s_id"), ZERO)
TODAY = call("<", Column("s_id"), Clock("CURRENT_DATE"))


def test_rows_must_pass_the_filters_right_above_a_table() -> None:
    joined = Join(Filter(Filter(SALES, DEAR), OLD), STORES, "inner", call("=", Column("s_id"), Column("t_id")))
    dear, old = call(">", Column("price"), ONE), call("<", Column("id"), ZERO)
    assert what_matters(joined, "sales") == call("AND", dear, old)
    assert what_matters(Filter(joined, DEAR), "stores") == TRUE
    assert what_matters(Union((Filter(SALES, DEAR), Filter(SALES, OLD))), "sales") == call("OR", dear, old)


def test_where_any_mention_takes_all_rows_all_matter() -> None:
    assert TRUE in call("OR", what_matters(SALES, "sales"), ZERO).args
    both = what_matters(Union((Filter(SALES, DEAR), SALES)), "sales")
    assert both == call("OR", call(">", Column("price"), ONE), TRUE)


def test_what_looks_at_the_clock_is_not_asked() -> None:
    assert what_matters(Filter(SALES, TODAY), "sales") == TRUE


class Frame:
    """Stands for rows that were read; tells the name they got."""

    def __init__(self, names: list[str]) -> None:
        self.names = names

    def createOrReplaceTempView(self, name: str) -> None:
        self.names.append(name)


class Slow(dict[tuple[str, ...], str]):
    """Lets other threads run wherever somebody counts what is there."""

    def __len__(self) -> int:
        counted = super().__len__()
        time.sleep(0.001)
        return counted


def test_what_is_read_at_the_same_time_gets_names_of_its_own() -> None:
    """Else one table's rows would stand in the place of another's."""
    leaves, names = ReadOnce(None, PinnedLeaves({}), {}, lambda *_: None, None), []  # type: ignore[arg-type,var-annotated]
    leaves.held = Slow()
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda n: leaves.hold((f"t{n}", "came"), lambda: Frame(names)), range(20)))  # type: ignore[arg-type,return-value]
    assert len(set(names)) == 20


def test_keys_that_stay_are_seen_in_what_was_read() -> None:
    """The same of rows that this process has and of those that Spark's driver has."""
    k, x, weights = [1, 1, 2, None], [5, 6, 7, 7], [1, -1, -1, 2]
    table = pa.table({"k": pa.array(k, pa.int32()), "x": pa.array(x, pa.int32()), WEIGHT: pa.array(weights)})
    for seen in (Here(table, {"k": "int", "x": "int"}, table, ("k", "x")), Few(weights, {"k": k, "x": x})):
        first = FirstRead("first", frozenset("kx"), 4, 2, True, seen)
        assert first.stays(("k",)) is True and first.stays(("k", "x")) is False and first.stays(("x",)) is True
        assert first.stays(("other",)) is None and first.stays(()) is None
    assert FirstRead("first", frozenset("kx"), 4, 2, True, Many({})).stays(("k",)) is None
