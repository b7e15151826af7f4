"""Lines, orders and customers as relations, and what joins them."""

from __future__ import annotations

from viewkeeper.algebra.relations import Scan, ScanColumn
from viewkeeper.algebra.scalars import Column, Scalar, call
from viewkeeper.testing.references import SCHEMAS


def scan(table: str, prefix: str = "") -> Scan:
    """A table, its columns named by its first letter or by a prefix."""
    short = prefix or table[0]
    return Scan(table, tuple(ScanColumn(c, f"{short}_{c}", t) for c, t in SCHEMAS[table]))


def equal(a: str, b: str) -> Scalar:
    return call("=", Column(a), Column(b))


LINES, ORDERS, CUSTOMERS = scan("lines"), scan("orders"), scan("customers")
ON_ORDER, ON_CUSTOMER = equal("l_ord", "o_id"), equal("c_id", "o_cust")
