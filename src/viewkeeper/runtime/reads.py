"""Leaves that a refresh reads once, however often its change mentions them.

A pinned table that is mentioned several times is analysed once, since each analysis loads a snapshot, and read once
if it is small, since each scan asks the log which files to read. Changes that are mentioned several times, or joined,
are read first, if they are few: Spark then knows how few they are, and sends them to the other side of a join instead
of shuffling both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping

from pyspark.sql import DataFrame, SparkSession

from viewkeeper.algebra.identity import is_comparable
from viewkeeper.algebra.relations import WEIGHT, Changes, Join, Relation, Scan, ScanColumn, State, inputs
from viewkeeper.sql.unparse import quote
from viewkeeper.store.leaves import PinnedLeaves

FETCHED_ROWS = 10_000  # more rows than this are not brought to the driver


class ReadOnce:
    """Leaves of one change and of the questions before it, in one private session."""

    def __init__(self, session: SparkSession, pinned: PinnedLeaves, rows: Mapping[str, int], *read: Relation) -> None:
        self.session = session
        self.pinned = pinned
        self.rows = rows
        self.held: dict[tuple[str, str], str] = {}
        self.mention(read)

    def mention(self, read: Iterable[Relation]) -> None:
        """From now on these are read; what is held stays so."""
        nodes = [n for rel in read for n in _mentioned(rel)]
        self.joined = any(isinstance(n, Join) for n in nodes)
        self.mentions = Counter(
            (n.table, n.state if isinstance(n, Scan) else "changes") for n in nodes if isinstance(n, Scan | Changes)
        )
        self.changed = [n for n in nodes if isinstance(n, Changes)]
        self.states = [n for n in nodes if isinstance(n, Scan)]

    def state(self, table: str, state: State) -> str:
        text = self.pinned.state(table, state)
        if self.mentions[table, state] == 1:
            return text
        few = self.rows[table] <= FETCHED_ROWS

        def read() -> DataFrame:
            frame = self.session.sql(f"SELECT {self.columns(table)} FROM {text}")
            return self.fetched(frame) if few else frame

        return self.hold((table, state), read)

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        few = self.pinned.pins[table].change.rows <= FETCHED_ROWS
        if not few or (self.mentions[table, "changes"] == 1 and not self.joined):
            return self.pinned.changes(table, columns)

        def read() -> DataFrame:
            wanted = {c.source: c for n in self.changed if n.table == table for c in n.columns}
            return self.fetched(self.session.sql(self.pinned.changes(table, tuple(wanted.values()))))

        name = self.hold((table, "changes"), read)
        return f"SELECT {''.join(f'{quote(c.source)}, ' for c in columns)}{WEIGHT} FROM {name}"

    def moment(self, function: str, state: State) -> str:
        return self.pinned.moment(function, state)

    def hold(self, what: tuple[str, str], read: Callable[[], DataFrame]) -> str:
        """The temporary name of what was read before, or is read now."""
        if what not in self.held:
            self.held[what] = f"__vk_read_{len(self.held) + 1}"
            read().createOrReplaceTempView(self.held[what])
        return self.held[what]

    def fetched(self, frame: DataFrame) -> DataFrame:
        """The rows of a query, held by Spark's driver."""
        java = getattr(frame, "_jdf", None)
        plain = all(_is_plain(f.dataType.simpleString()) for f in frame.schema.fields)
        if java is None or not plain:  # Spark Connect keeps its driver to itself
            return frame.localCheckpoint()
        rows = self.session._jsparkSession.createDataFrame(java.collectAsList(), java.schema())
        return DataFrame(rows, self.session)

    def columns(self, table: str) -> str:
        """What any mention of the table reads."""
        names = dict.fromkeys(c.source for n in self.states if n.table == table for c in n.columns)
        return ", ".join(map(quote, names)) or "1 AS __vk_nothing"


def _is_plain(type_: str) -> bool:
    """Whether values of the type survive the way to the driver and back."""
    return is_comparable(type_) and "interval" not in type_ and "void" not in type_


def _mentioned(rel: Relation) -> Iterator[Relation]:
    """Every operator as often as the text will have it."""
    yield rel
    for below in inputs(rel):
        yield from _mentioned(below)
