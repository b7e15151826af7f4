"""A database that binding is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from duck import Connection

pytest.register_assert_rewrite("reading")


@pytest.fixture(scope="module")
def duck() -> Iterator[Connection]:
    # Imported only now: a module that lives as long as pytest itself must not hold on to DuckDB.
    from reading import filled

    with filled() as connection:
        yield connection
