"""Conditions on rows that this process has, as far as they mean here just what they mean to Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pyarrow as pa

from viewkeeper.algebra.scalars import TRUE, Scalar, conjuncts
from viewkeeper.here.types import is_here
from viewkeeper.here.values import truth
from viewkeeper.store.columns import NotHereError


def fulfilling(
    rows: pa.Table, types: Mapping[str, str], conditions: Sequence[Scalar]
) -> tuple[pa.Table, tuple[Scalar, ...]]:
    """Rows with columns of these types, without some that do not fulfil the conditions; and those left to ask."""
    left = []
    for term in (term for condition in conditions for term in conjuncts(condition) if term != TRUE):
        try:
            met = truth(term, {name: rows[name] for name, type_ in types.items() if is_here(rows[name].type, type_)})
        except NotHereError:
            left.append(term)
        else:
            rows = rows.filter(met) if not isinstance(met, pa.Scalar) else rows if met.as_py() else rows.slice(0, 0)
    return rows, tuple(left)
