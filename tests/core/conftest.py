"""A database that binding is compared with."""

from __future__ import annotations

from collections.abc import Iterator

import duckdb
import pytest
from duck import Connection, fill, make_tables

pytest.register_assert_rewrite("reading")


@pytest.fixture(scope="module")
def duck() -> Iterator[Connection]:
    from reading import TABLES  # whose assertions are rewritten only now

    with duckdb.connect(config={"threads": 1}) as connection:
        make_tables(connection)
        fill(connection, TABLES)
        yield connection
