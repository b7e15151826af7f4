"""What every Spark test ends with: the view equals a recompute, both ways."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from viewkeeper import Warehouse
from viewkeeper.reports import RefreshReport

FEED = "TBLPROPERTIES (delta.enableChangeDataFeed = true)"


def run(wh: Warehouse, *statements: str) -> None:
    for statement in statements:
        wh.sql(statement)


def rows(wh: Warehouse, query: str) -> Counter[tuple[object, ...]]:
    return Counter(tuple(map(_hashable, row)) for row in wh.spark.sql(query).collect())


def both(wh: Warehouse, one: str, other: str) -> tuple[Counter[tuple[object, ...]], Counter[tuple[object, ...]]]:
    """The rows of two queries with the same columns, in one job."""
    found = rows(wh, f"SELECT 1, * FROM ({one})\nUNION ALL SELECT 2, * FROM ({other})")
    sides: dict[object, Counter[tuple[object, ...]]] = {1: Counter(), 2: Counter()}
    for row, count in found.items():
        sides[row[0]][row[1:]] += count
    return sides[1], sides[2]


def _hashable(cell: object) -> object:
    return tuple(cell) if isinstance(cell, list) else cell


def assert_right(wh: Warehouse, *names: str) -> None:
    """Each view equals its query now, read as anybody would; by the audit where its values need more than =."""
    for name in names:
        view = wh.registry.get((wh.spark.catalog.currentDatabase(), name))
        if any(kind in type_ for _, type_ in view.columns for kind in ("double", "float", "array", "map", "variant")):
            report = wh.audit(name)
            assert report.equal, str(report)
        else:
            shown, wanted = both(wh, f"SELECT * FROM {name}", view.query)
            assert shown == wanted, f"{name}: missing {wanted - shown}, extra {shown - wanted}"


def strategies(report: RefreshReport) -> dict[str, str]:
    return {record.view.split(".")[-1]: record.strategy for record in report}


def refresh_and_check(wh: Warehouse, names: Iterable[str]) -> dict[str, str]:
    names = tuple(names)
    report = wh.refresh(*names)
    assert_right(wh, *names)
    return strategies(report)
