"""The experiments of the paper on lazy maintenance: what writers pay for views, and changes that are combined."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from viewkeeper.bench.cases import Transactions, Writers, name
from viewkeeper.bench.mixes import NEXT_SEGMENT
from viewkeeper.bench.samples import REFRESH, Sample
from viewkeeper.bench.stand import Bench
from viewkeeper.bench.views import v1

UPDATE = "update"
EAGER, COMBINED = "one by one", "combined"
VIEW_COUNTS = (0, 1, 10)
_SEED = 2007


def writers(case: Writers, bench: Bench) -> Iterator[Sample]:
    """Three copies of customer with 0, 1 and 10 views on them, updated in turn."""
    bench.stand("writers")
    for count in VIEW_COUNTS:
        bench.sql(
            f"CREATE TABLE {_customer(count)} USING DELTA TBLPROPERTIES (delta.enableChangeDataFeed = true)"
            " AS SELECT * FROM customer"
        )
        for n in range(count):
            groups = f"SELECT c_nationkey + {n} AS nation, sum(c_acctbal) AS balance FROM {_customer(count)} GROUP BY 1"
            bench.create(f"of_{count}_{n}", v1(_customer(count)) if n == 0 else groups)
    for size in case.sizes:
        for number in range(-1, case.rounds):  # the first is not measured
            bench.tell(f"{size} customers, round {number + 1}")
            first = (number + 1) * size + 1
            for count in VIEW_COUNTS:
                statement = (
                    f"UPDATE {_customer(count)} SET c_nationkey = (c_nationkey + 1) % 25"
                    f" WHERE c_custkey BETWEEN {first} AND {first + size - 1}"
                )
                done = bench.timed(lambda: bench.sql(statement))  # noqa: B023 - run at once
                if number >= 0:
                    yield Sample(name(case), _subject(count), UPDATE, number, done.seconds, done.jobs, size)
            refreshed = bench.refresh("of_1_0")
            if number >= 0:
                yield Sample(name(case), _subject(1), REFRESH, number, refreshed.seconds, refreshed.jobs, size)
    bench.audit("of_1_0")


def _customer(views: int) -> str:
    return f"customer_{views}"


def _subject(views: int) -> str:
    return f"{views} view{'' if views == 1 else 's'}"


def skewed(count: int) -> Iterator[str]:
    """So many updates of 1 to 10 customers in a row, all among the first hundred."""
    random = Random(_SEED)
    for n in range(count):
        size = random.randint(1, 10)
        first = random.randint(1, 100 - size + 1)
        assigned = "c_nationkey = (c_nationkey + 1) % 25" if n % 2 else NEXT_SEGMENT
        yield f"UPDATE customer SET {assigned} WHERE c_custkey BETWEEN {first} AND {first + size - 1}"


def transactions(case: Transactions, bench: Bench) -> Iterator[Sample]:
    """Two views of the same definition: one is refreshed after each transaction, the other after the last."""
    bench.stand("transactions")
    for view in (EAGER, COMBINED):
        bench.create(_view(view), v1(), "INCREMENTAL")
    bench.sql("UPDATE customer SET c_nationkey = (c_nationkey + 1) % 25 WHERE c_custkey = 200")
    bench.wh.refresh(_view(EAGER), _view(COMBINED))  # not measured
    for number, statement in enumerate(skewed(case.count)):
        bench.tell(f"transaction {number + 1} of {case.count}")
        bench.sql(statement)
        done = bench.refresh(_view(EAGER))
        yield Sample(name(case), "v1", EAGER, number, done.seconds, done.jobs, strategy=done.value.strategy)
    done = bench.refresh(_view(COMBINED))
    yield Sample(name(case), "v1", COMBINED, 0, done.seconds, done.jobs, strategy=done.value.strategy)
    bench.audit(_view(EAGER), _view(COMBINED))


def _view(way: str) -> str:
    return "v1_" + way.replace(" ", "_")
