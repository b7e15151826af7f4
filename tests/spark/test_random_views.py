"""Random views and random histories on real Delta tables, against recompute: a few here, more by `make fuzz`.

With VIEWKEEPER_FUZZ=n rounds of random examples follow each other for n minutes, each with a seed that is printed. A
failing example is shrunk. VIEWKEEPER_SEED=seed begins with that round.
"""

from __future__ import annotations

import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count

import pytest
from checks import FEED, rows, run
from hypothesis import HealthCheck, given, seed, settings
from hypothesis import strategies as st

from viewkeeper import Settings, Warehouse
from viewkeeper.algebra.relations import Relation
from viewkeeper.errors import NotIncrementalError
from viewkeeper.planner import build
from viewkeeper.sql.render import quote, string_literal
from viewkeeper.sql.unparse import unparse
from viewkeeper.testing.histories import SCHEMAS, History, histories
from viewkeeper.testing.strategies import views
from viewkeeper.testing.values import Row, Value

# An example of many views is long, and says so in the place of what is wrong with it.
pytestmark = [pytest.mark.spark, pytest.mark.filterwarnings("ignore:Generating overly large repr")]

MINUTES = float(os.environ.get("VIEWKEEPER_FUZZ", "0"))
SEED = os.environ.get("VIEWKEEPER_SEED")
EXAMPLES = 3 if MINUTES else 1  # in a round
VIEWS = 8 if MINUTES else 4  # that follow the same history
STEPS = 2


class Mirror:
    """Delta tables that follow a history by ordinary statements; a column of their own tells equal rows apart."""

    def __init__(self, wh: Warehouse) -> None:
        self.wh = wh
        self.ids: dict[str, dict[int, Row]] = {}
        self.last = 0

    def create(self, history: History) -> None:
        for table, columns in SCHEMAS.items():
            listed = ", ".join(f"{quote(name)} {type_}" for name, type_ in columns)
            feed = FEED if table != "u" else ""
            run(self.wh, f"CREATE OR REPLACE TABLE {table} ({listed}, rid BIGINT) USING DELTA {feed}")
            self.ids[table] = {}
            self.insert(table, list(history.versions[0][table]))

    def step(self, table: str, wanted: tuple[Row, ...]) -> None:
        """From what the table holds to what it should: some rows updated, others deleted and inserted."""
        spare = Counter(wanted)
        surplus = []
        for rid, row in self.ids[table].items():
            if spare[row]:
                spare[row] -= 1
            else:
                surplus.append(rid)
        missing = list(spare.elements())
        for rid, row in list(zip(surplus, missing, strict=False))[:2]:
            cells = ", ".join(f"{quote(n)} = {literal(v, t)}" for (n, t), v in zip(SCHEMAS[table], row, strict=True))
            run(self.wh, f"UPDATE {table} SET {cells} WHERE rid = {rid}")
            self.ids[table][rid] = row
            surplus.remove(rid)
            missing.remove(row)
        if surplus:
            run(self.wh, f"DELETE FROM {table} WHERE rid IN ({', '.join(map(str, surplus))})")
            for rid in surplus:
                del self.ids[table][rid]
        self.insert(table, missing)

    def insert(self, table: str, new: list[Row]) -> None:
        texts = []
        for row in new:
            self.last += 1
            self.ids[table][self.last] = row
            cells = [literal(v, t) for (_, t), v in zip(SCHEMAS[table], row, strict=True)]
            texts.append(f"({', '.join(cells)}, {self.last})")
        if texts:
            run(self.wh, f"INSERT INTO {table} VALUES {', '.join(texts)}")


def literal(value: Value, type_: str) -> str:
    text = "NULL" if value is None else string_literal(str(value))
    return f"CAST({text} AS {type_})"


def test_random_views_follow_random_histories(shared: Warehouse, capsys: pytest.CaptureFixture[str]) -> None:
    """By default one example, always the same."""
    ends, followed = time.monotonic() + 60 * MINUTES, 0

    @settings(
        max_examples=EXAMPLES, database=None, deadline=None, print_blob=True, suppress_health_check=list(HealthCheck)
    )
    @given(st.lists(views(), min_size=VIEWS, max_size=VIEWS), histories(steps=STEPS))
    def example(definitions: list[Relation], history: History) -> None:
        nonlocal followed
        with schema_of_its_own(shared):
            followed += follow(shared, [unparse(definition) for definition in definitions], history)

    first = int(SEED) if SEED else random.randrange(10**6) if MINUTES else 0
    for round_seed in count(first):
        seed(round_seed)(example)()
        if MINUTES:
            with capsys.disabled():
                print(f"\nseed {round_seed}: right; {followed} views x histories so far", flush=True)
        if time.monotonic() >= ends:
            break


@contextmanager
def schema_of_its_own(wh: Warehouse) -> Iterator[None]:
    wh.sql("CREATE SCHEMA IF NOT EXISTS random")
    wh.sql("USE random")
    try:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(build, "REPLACED", 0)  # however many of a view's few rows change
            yield
    finally:
        wh.settings = Settings()
        for name in [n for n in wh.registry.views() if n.startswith("random.")]:
            wh.drop(name, cascade=True, if_exists=True)
        wh.sql("USE default")


def follow(wh: Warehouse, queries: list[str], history: History) -> int:
    """Refresh and compare the views after each step, by this process, which replaces rows, and by Spark in turn.

    How many there are is returned.
    """
    mirror = Mirror(wh)
    mirror.create(history)
    names = []
    for number, query in enumerate(queries):
        if create(wh, f"v{number}", query):
            names.append(f"v{number}")
    for number, version in enumerate(history.versions[1:]):
        for table in SCHEMAS:
            mirror.step(table, version[table])
        wh.settings = Settings(rows_here=Settings.rows_here if number % 2 == 0 else 0, replace_from=-1)
        wh.refresh(*names)
        for name in names:
            text = wh.registry.get(("random", name)).query
            if any("double" in t for _, t in wh.registry.get(("random", name)).columns):
                report = wh.audit(name)
                assert report.equal, f"{text}\n{report}"
            else:
                shown, wanted = rows(wh, f"SELECT * FROM {name}"), rows(wh, text)
                assert shown == wanted, f"{text}\nmissing {wanted - shown}\nextra {shown - wanted}"
    return len(names)


def create(wh: Warehouse, name: str, query: str) -> bool:
    """Whether the view could be made; a query may divide by zero or overflow, as anybody's may."""
    from viewkeeper.errors import ViewkeeperError

    try:
        wh.sql(f"CREATE MATERIALIZED VIEW {name} REFRESH POLICY INCREMENTAL STRICT AS {query}")
    except NotIncrementalError as refused:
        known = ("floating", "plan", "without PARTITION BY")
        assert any(words in str(refused) for words in known), f"{query}\n{refused}"
        return False
    except ViewkeeperError as error:
        assert "OVERFLOW" in str(error) or "DIVIDE_BY_ZERO" in str(error) or "OUT_OF_RANGE" in str(error), (
            f"{query}\n{error}"
        )
        return False
    return True
