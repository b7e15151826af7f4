"""A query as it was parsed, written for people."""

from __future__ import annotations

from viewkeeper.sql.dialect import ViewSpark
from viewkeeper.sql.parse import parse_query


def pretty(query: str) -> str:
    """The parsed query as Spark SQL, a clause a line; SqlError if it cannot be parsed."""
    return parse_query(query).sql(dialect=ViewSpark, pretty=True)
