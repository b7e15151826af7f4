"""One Spark for all tests; each test has a schema of its own in the shared warehouse."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from viewkeeper import Settings, Warehouse
from viewkeeper.algebra.relations import Scan, State
from viewkeeper.changes.lookup import Found
from viewkeeper.runtime import execute, lookups
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.runtime.spark import SMALL_STEP

_numbers = itertools.count(1)
# The longest first, so that no worker is left alone with one of them at the end.
_FIRST = ("test_crash", "test_every_commit_kind", "test_every_shape", "test_the_tour", "test_all_commands")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    def place(item: pytest.Item) -> int:
        return next((n for n, start in enumerate(_FIRST) if start in item.nodeid), len(_FIRST))

    items.sort(key=place)


@pytest.fixture(scope="session")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Warehouse]:
    with Warehouse.local(tmp_path_factory.mktemp("warehouse")) as warehouse:
        for key, value in {**SMALL_STEP, "spark.sql.session.timeZone": "UTC"}.items():
            warehouse.spark.conf.set(key, value)
        yield warehouse


@pytest.fixture
def wh(shared: Warehouse) -> Iterator[Warehouse]:
    """The shared warehouse, in a new empty schema."""
    schema = f"t{next(_numbers)}"
    shared.sql(f"CREATE SCHEMA {schema}")
    shared.sql(f"USE {schema}")
    yield shared
    shared.settings = Settings()
    shared.sql("USE default")
    for name in reversed(list(shared.registry.views())):
        if name.startswith(f"{schema}."):
            shared.drop(name, cascade=True, if_exists=True)
    shared.sql(f"DROP SCHEMA {schema} CASCADE")


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tables that refreshes read as they were or are, not only their changes: all of them, or rows of them."""
    tables: list[str] = []
    state, answer = execute.ReadOnce.state, lookups.Tables.__call__

    def recorded(leaves: ReadOnce, table: str, at: State) -> str:
        if not table.startswith("__vk_part"):
            tables.append(table)
        return state(leaves, table, at)

    def looked_up(tables_of_change: lookups.Tables, scan: Scan, *asked: Any) -> Found | None:
        found = answer(tables_of_change, scan, *asked)
        if found is not None:
            tables.append(scan.table)
        return found

    monkeypatch.setattr(execute.ReadOnce, "state", recorded)
    monkeypatch.setattr(lookups.Tables, "__call__", looked_up)
    return tables
