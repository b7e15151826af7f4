"""Mixes of changes as data, and the statements that make them happen.

Orders come and go in ranges of keys, as the refresh functions of TPC-H do it; what is updated is spread over its table.
Every batch takes other rows than those before it, and the same ones in each run. Declared keys hold after every
statement: an order comes before its lines, and goes after them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from viewkeeper.tpch.tables import TABLES


@dataclass(frozen=True)
class NewOrders:
    """So many orders are inserted with their lines."""

    orders: int


@dataclass(frozen=True)
class Share:
    """A share of all tables: orders inserted, and as many deleted, with their lines; rows of the others updated."""

    share: float


@dataclass(frozen=True)
class Updates:
    """A share of one table is updated."""

    table: str
    share: float


Mix = NewOrders | Share | Updates


def title(mix: Mix) -> str:
    match mix:
        case NewOrders(orders):
            return f"{orders} orders"
        case Share(share):
            return percent(share)
        case Updates(table):
            return f"update {table}"


def percent(share: float) -> str:
    return f"{share * 100:g}%"


@dataclass(frozen=True)
class Cursor:
    """How far the batches on one copy of the data have come."""

    batch: int = 0
    inserted: int = 0
    deleted: int = 0


def batch(mix: Mix, scale: float, at: Cursor) -> tuple[tuple[str, ...], Cursor]:
    """The statements of the next batch, and where the one after it begins."""
    following = replace(at, batch=at.batch + 1)
    match mix:
        case NewOrders(orders):
            return tuple(_inserts(scale, at, orders)), replace(following, inserted=at.inserted + orders)
        case Share(share):
            orders = max(1, round(TABLES["orders"].rows_at(scale) * share))
            inserts, deletes = _inserts(scale, at, orders), _deletes(at, orders)
            updates = (_update(table, share, scale, at) for table in _UPDATED if table not in ("orders", "lineitem"))
            moved = replace(following, inserted=at.inserted + orders, deleted=at.deleted + orders)
            return (*inserts, *deletes, *filter(None, updates)), moved
        case Updates(table, share):
            return tuple(filter(None, [_update(table, share, scale, at)])), following


def order_key(number: int) -> int:
    """The key of the n-th order, counted from 1: of every 32 keys TPC-H uses the first 8, new orders the next 8."""
    return number // 8 * 32 + number % 8


_NEW_BY = 8


def _from_the_start(key: str) -> str:
    """No order that a batch has inserted."""
    return f"({key} & 31) < 8"


def _inserts(scale: float, at: Cursor, orders: int) -> Iterator[str]:
    """Copies of the orders at the upper end of the keys, each batch below the one before."""
    last = TABLES["orders"].rows_at(scale) - at.inserted
    keys = f"BETWEEN {order_key(last - orders + 1)} AND {order_key(last)}"
    for table, key in (("orders", "o_orderkey"), ("lineitem", "l_orderkey")):
        yield (
            f"INSERT INTO {table} SELECT {key} + {_NEW_BY}, * EXCEPT ({key}) FROM {table}"
            f" WHERE {key} {keys} AND {_from_the_start(key)}"
        )


def _deletes(at: Cursor, orders: int) -> Iterator[str]:
    """The orders at the lower end of the keys, each batch above the one before."""
    keys = f"BETWEEN {order_key(at.deleted + 1)} AND {order_key(at.deleted + orders)}"
    for table, key in (("lineitem", "l_orderkey"), ("orders", "o_orderkey")):
        yield f"DELETE FROM {table} WHERE {key} {keys} AND {_from_the_start(key)}"


_SEGMENTS = ("AUTOMOBILE", "BUILDING", "FURNITURE", "HOUSEHOLD", "MACHINERY")
_PRIORITIES = ("1-URGENT", "2-HIGH", "3-MEDIUM", "4-NOT SPECIFIED", "5-LOW")


def _next_of(column: str, values: tuple[str, ...]) -> str:
    """Each value becomes the one after it, so that all stay as frequent as they were."""
    turned = zip(values, (*values[1:], values[0]), strict=True)
    return f"{column} = CASE {column} " + " ".join(f"WHEN '{old}' THEN '{new}'" for old, new in turned) + " END"


NEXT_SEGMENT = _next_of("c_mktsegment", _SEGMENTS)
# What is set, by table, and the number of a row from which those to update are picked, if not two by name.
_UPDATED = {
    "lineitem": ("l_extendedprice = l_extendedprice + 1, l_quantity = l_quantity % 50 + 1", "l_orderkey"),
    "orders": (f"o_totalprice = o_totalprice + 1, {_next_of('o_orderpriority', _PRIORITIES)}", "o_orderkey"),
    "customer": (f"c_acctbal = c_acctbal + 1, {NEXT_SEGMENT}", "c_custkey"),
    "supplier": ("s_acctbal = s_acctbal + 1, s_nationkey = (s_nationkey + 1) % 25", "s_suppkey"),
    "part": ("p_retailprice = p_retailprice + 1, p_size = p_size % 50 + 1", "p_partkey"),
    "partsupp": ("ps_supplycost = ps_supplycost + 1, ps_availqty = ps_availqty % 9999 + 1", "ps_partkey"),
    "nation": (_next_of("n_name", ("FRANCE", "GERMANY")), ""),
    "region": (_next_of("r_name", ("ASIA", "EUROPE")), ""),
}
UPDATED = tuple(_UPDATED)
_NAMED = {"nation": "n_name IN ('FRANCE', 'GERMANY')", "region": "r_name IN ('ASIA', 'EUROPE')"}
# Lines are picked with their order, supplies with their part.
_COUNTED = {"lineitem": "orders", "partsupp": "part"}
_STRIDE, _STEP = 7919, 104_729  # primes: the first spreads the rows of one batch, the second sets batches apart


def _update(table: str, share: float, scale: float, at: Cursor) -> str | None:
    """An update of a share of a table; None if that is less than a row."""
    assigned, key = _UPDATED[table]
    rows = TABLES[_COUNTED.get(table, table)].rows_at(scale)
    count = round(rows * share)
    if not count:
        return None
    if table in _NAMED:
        return f"UPDATE {table} SET {assigned} WHERE {_NAMED[table]}"
    number = f"((({key} >> 5) << 3) + ({key} & 7))" if key.endswith("_orderkey") else key
    picked = f"pmod({number} * {_STRIDE} + {at.batch * _STEP}, {rows}) < {count}"
    base = f" AND {_from_the_start(key)}" if key.endswith("_orderkey") else ""
    return f"UPDATE {table} SET {assigned} WHERE {picked}{base}"
