"""Leaves that a refresh reads at little cost, and once, however often its change mentions them.

A pinned table is read by its files where the log names them (`store/files.py`). Where it does not, a table that is
mentioned several times is analysed once, since each analysis loads a snapshot. Either way it is read once if it is
small. Changes that are mentioned several times, or joined, are read first, unless they are very many
(`runtime/first.py`): Spark then knows how few they are, and sends them to the other side of a join instead of shuffling
both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from math import isfinite

import pyarrow as pa
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from viewkeeper.algebra.keys import Declared
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Join,
    Relation,
    Scan,
    ScanColumn,
    Side,
    State,
    Window,
)
from viewkeeper.algebra.scalars import TRUE, Scalar, own_columns
from viewkeeper.changes.counts import FEW, RowCounts
from viewkeeper.changes.lookup import FOUND, KNOWN_ROWS
from viewkeeper.changes.meeting import Spreads, compared
from viewkeeper.changes.own import OWN
from viewkeeper.changes.parts import Computed, mentions, replaced
from viewkeeper.changes.references import Question
from viewkeeper.changes.weights import net
from viewkeeper.errors import ViewkeeperError
from viewkeeper.runtime import spreads
from viewkeeper.runtime.checkpoints import checkpointed
from viewkeeper.runtime.few import FETCHED_ROWS, PLANNED_ROWS, fetched, given, set_down
from viewkeeper.runtime.frames import rows_of
from viewkeeper.runtime.seen import Asked, FirstRead, Here, few, here, many
from viewkeeper.sql.render import quote
from viewkeeper.sql.unparse import unparse
from viewkeeper.store.changes import CHANGE_TYPE, Feed, FeedFiles, Files
from viewkeeper.store.files import DataFiles
from viewkeeper.store.leaves import SIGN, PinnedLeaves
from viewkeeper.store.log import Masked, TableLog
from viewkeeper.store.rows import FileRows, Part

MOST_READ_ALONE = 5_000_000  # where Spark has other machines, they read more than this sooner
FIRST_ROWS = 1_000_000  # a change of more rows is not read before its use


class ReadOnce:
    """Leaves of one change and of the questions before it, in one private session."""

    def __init__(
        self,
        session: SparkSession,
        pinned: PinnedLeaves,
        rows: Mapping[str, int],
        logs: Callable[[str], TableLog],
        file_rows: FileRows,
        *read: Relation,
        known: int = KNOWN_ROWS,
    ) -> None:
        self.session = session
        self.pinned = pinned
        self.rows = rows
        self.logs = logs
        self.file_rows = file_rows
        self.known = known
        self.held: dict[tuple[str, ...], str] = {}  # by what was read, with its columns if not all
        self.first: dict[str, FirstRead] = {}
        self.put_there: set[str] = set()
        self.here: dict[str, pa.Table] = {}
        self.numbers = count(1)  # changes are read first by several threads: no two names may be the same
        self.counts: RowCounts | None = None  # what is to be reckoned with
        self.likely: RowCounts | None = None
        self.mention(read)

    @property
    def local(self) -> bool:
        """Whether Spark has no other machines."""
        return (self.session.conf.get("spark.master", "") or "").startswith("local")

    def mention(self, read: Iterable[Relation]) -> None:
        """From now on these are read; what is held stays so."""
        nodes: Counter[Relation] = Counter()
        for rel in read:
            nodes += mentions(rel)
        self.joined = any(isinstance(n, Join) for n in nodes)
        self.mentions: Counter[tuple[str, str]] = Counter()
        for n, times in nodes.items():
            if isinstance(n, Scan | Changes):
                self.mentions[n.table, n.state if isinstance(n, Scan) else "changes"] += times
        self.changed = [n for n in nodes if isinstance(n, Changes)]
        self.states = [n for n in nodes if isinstance(n, Scan)]
        self.compared = compared(nodes)

    def measure(self, declared: Declared, own: int) -> RowCounts:
        """What is known of sizes once the small changes are read: from now on, joins are told which side is small."""
        changes = {table: pin.change.rows for table, pin in self.pinned.pins.items()}
        self.counts = RowCounts({**self.rows, OWN: own}, {**changes, **self.rows_first}, declared)
        self.likely = replace(self.counts, guessing=True, known={})
        return self.counts

    @property
    def rows_first(self) -> dict[str, int]:
        """The rows of each change that was read first."""
        return {table: first.rows for table, first in self.first.items()}

    @property
    def most_first(self) -> int:
        """The rows of the largest change that is read first."""
        return max((self.pinned.pins[t].change.rows for t in self.pinned.pins if self.reads_first(t)), default=0)

    def shuffled(self, change: Relation) -> float | None:
        """About how many rows are shuffled at once; None where all is not few, and a join has no side that is small."""
        if self.counts is None:
            return None
        read = sum(self.counts.rows(n) for n in walk(change) if isinstance(n, Scan | Changes))
        if read <= FEW:
            return read
        if any(self.counts.sent(n) is None for n in walk(change) if isinstance(n, Join)):
            return None
        shuffled = max(
            (self.counts.rows(n.input) for n in walk(change) if isinstance(n, Aggregate | Window)), default=0
        )
        return shuffled if isfinite(shuffled) else None

    def saved(self, part: Relation) -> float:
        """How many rows of large tables need not be read again, if a part of likely few rows is computed once."""
        return self.likely.saved(part) if self.likely is not None else 0

    def sent(self, join: Join) -> Side | None:
        return self.counts.sent(join) if self.counts is not None else None

    def netted(self, change: Relation) -> Relation:
        """The same change; what was read first is net by itself."""
        for leaf in {n for n in walk(change) if isinstance(n, Changes)}:
            first = self.first.get(leaf.table)
            sources = [c.source for c in leaf.columns]
            if first is not None and first.columns == set(sources) and len(sources) == len(first.columns):
                change = replaced(change, net(leaf), leaf)
        return change

    def compute(self, part: Relation) -> Computed:
        """The rows of a part of the change, under a temporary name."""
        counted = Observation()
        frame = checkpointed(self.session.sql(unparse(part, self)).observe(counted, f.count(f.lit(1)).alias("rows")))
        rows = counted.get["rows"]
        return Computed(self.put(fetched(frame) if rows <= PLANNED_ROWS else frame, rows), rows)

    def has(self, change: Relation) -> bool:
        """Whether all that a change reads is there now."""
        read = (n for n in walk(change) if isinstance(n, Scan | Changes))
        return all(n.table in (self.first if isinstance(n, Changes) else self.put_there) for n in read)

    def put(self, frame: DataFrame, rows: int) -> str:
        """The temporary name of so many rows that are there now."""
        name = self._named(rows)
        frame.createOrReplaceTempView(name)
        self.give(name, name)
        return name

    def put_here(self, rows: pa.Table) -> str:
        """The temporary name of rows of this process, which are given to Spark when a query mentions them."""
        name = self._named(len(rows))
        self.here[name] = rows
        return name

    def scan_of(self, rows: pa.Table, rel: Relation) -> Scan:
        """Rows of this process in the place of the relation that they are of."""
        name = self.put_here(rows)
        scan = Scan(name, tuple(ScanColumn(field.name, field.name, field.type) for field in rel.schema))
        self.mention([scan])
        return scan

    def _named(self, rows: int) -> str:
        name = f"__vk_part_{next(self.numbers)}"
        self.put_there.add(name)
        if self.counts is not None:
            self.counts.tables[name] = rows
        return name

    def _of_here(self, table: str) -> str:
        """Rows of this process with the columns that are read of them, or with one: else nobody knows how many."""
        rows = self.here[table]
        columns = self.columns(table) or (rows.column_names[0],)
        return self.hold(
            (table, "columns", *columns), lambda: set_down(given(self.session, rows.select(list(columns))), len(rows))
        )

    def give(self, table: str, name: str) -> None:
        """A table that there is only now, under a temporary name."""
        self.held[table, "new"] = name

    def state(self, table: str, state: State) -> str:
        if (table, state) in self.held:
            return self.held[table, state]
        if table in self.here:
            return self._of_here(table)
        pin = self.pinned.pins[table]
        files = self.few_files(table, pin.old if state == "old" else pin.new)
        text = self.pinned.state(table, state)
        several = self.mentions[table, state] > 1
        if files is None and not several:
            return text
        small = several and self.rows[table] <= FETCHED_ROWS
        columns = self.columns(table) if small else ()  # Spark leaves out by itself what a plan does not use

        def read() -> DataFrame:
            rows = self.file_rows.rows_of(files, columns) if small and files is not None else None
            if rows is not None:
                return given(self.session, rows)
            frame = self.session.sql(f"SELECT * FROM {text}") if files is None else rows_of(self.session, files)
            return fetched(frame.select(*map(quote, columns))) if small else frame

        return self.hold((table, state, *columns), read)

    def version(self, table: str, version: int) -> str:
        """A table at a version, as it stands in FROM."""
        files = self.few_files(table, version)
        if files is None:
            return f"{table} VERSION AS OF {version}"
        return self.hold((table, str(version)), lambda: rows_of(self.session, files))

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        first = self.first.get(table)
        if first is None or not first.columns.issuperset(c.source for c in columns):
            return self.changed_rows(table, columns)
        name = self._given(table, first.seen) if isinstance(first.seen, Here) else first.name
        return f"SELECT {_listed(columns)}{WEIGHT} FROM {name}"

    def net_change(self, parts: Sequence[Part], columns: Sequence[str]) -> pa.Table | None:
        return self.file_rows.net_change(parts, columns, self.most_found)

    @property
    def most_found(self) -> int:
        """How many rows, or values that are looked for, are brought here."""
        return FOUND * self.known

    def reads_only(self, first: FirstRead, table: str) -> bool:
        """Whether all that a change mentions of a table's changed rows was read first."""
        return all(first.columns.issuperset(c.source for c in n.columns) for n in self.changed if n.table == table)

    def _given(self, table: str, here: Here) -> str:
        """Changed rows of this process: a question is about all of them, the change about those that may matter."""
        asking = self.counts is None
        rows = here.rows if asking else here.matter
        return self.hold((table, "changes", str(asking)), lambda: set_down(given(self.session, rows), len(rows)))

    def reads_first(self, table: str) -> bool:
        """Whether the table's changes are few, and needed more than once or for a join."""
        mentions = self.mentions[table, "changes"]
        few = mentions > 0 and self.pinned.pins[table].change.rows <= FIRST_ROWS
        return few and (mentions > 1 or self.joined)

    def read_first(self, table: str, matters: Scalar) -> FirstRead:
        """Read the net change of a table, and see in it how many rows go, and whether any of them matter."""
        read = {c.source: c.type for n in self.changed if n.table == table for c in n.columns}
        compared = {c.source for n in self.changed for c in n.columns if c.name in self.compared}
        known = own_columns(matters) <= read.keys()
        asked = Asked(
            f"__vk_first_{list(self.pinned.pins).index(table) + 1}",
            read,
            matters if known else TRUE,
            tuple(name for name in spreads.told(read) if name in compared),
        )
        self.first[table] = self._read_first(table, read, asked)
        return self.first[table]

    def _read_first(self, table: str, read: Mapping[str, str], asked: Asked) -> FirstRead:
        pending = self.pinned.pins[table].change
        if pending.rows <= self.known and (parts := self.parts(table)):
            rows = self.net_change(parts, asked.columns)
            if rows is not None:
                return here(self.session, rows, asked)
        change = Changes(table, tuple(ScanColumn(name, name, type_) for name, type_ in read.items()))
        appended = isinstance(pending, Feed | Files) and pending.appended
        frame = self.session.sql(unparse(change if appended else net(change), self))
        return (few if pending.rows <= FETCHED_ROWS else many)(frame, asked)

    def speaks_against(self, question: Question) -> bool:
        """Whether there is any row that a question is about: by what was read first, or by a query."""
        first = self.first.get(question.table)
        stays = first.stays(question.key) if first is not None else None
        return not self.session.sql(unparse(question.against, self)).isEmpty() if stays is None else stays

    @property
    def spreads(self) -> Spreads:
        """The values that the changes which were read first have."""
        return {(table, c): spread for table, first in self.first.items() for c, spread in first.seen.spreads.items()}

    def changed_rows(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        """The query of a table's changes: by the files that tell of them, where these can be read as they are."""
        texts = []
        parts = self.parts(table)
        for part in parts if all(part.files.few_places for part in parts) else ():
            held = self.hold((table, str(part.weight)), partial(rows_of, self.session, part.files))
            weight = SIGN if part.weight is None else f"{part.weight}L"
            texts.append(f"SELECT {_listed(columns)}{weight} AS {WEIGHT} FROM {held}")
        return "\nUNION ALL\n".join(texts) or self.pinned.changes(table, columns)

    def parts(self, table: str) -> list[Part]:
        """The files that tell of a table's changes; none if Delta has to read them."""
        pin, log = self.pinned.pins[table], self.logs(table)
        found: list[tuple[DataFiles | None, int | None]] = []
        match pin.change:
            case Feed(files=FeedFiles(own, came, went, masked)):
                told = log.named(pin.new, own) if own else None
                found = [(told.with_text(CHANGE_TYPE) if told else None, None)] if own else []
                found += [(log.named(pin.new, names), weight) for names, weight in ((came, 1), (went, -1)) if names]
                found += [(_masked(log, pin.new, masked, weight), weight) for weight in (1, -1) if masked]
            case Files(added, removed):
                found = [
                    (files.only(names) if (files := self.files(table, version)) else None, weight)
                    for version, names, weight in ((pin.new, added, 1), (pin.old, removed, -1))
                    if names
                ]
            case _:
                pass
        parts = [Part(files, weight) for files, weight in found if files is not None]
        return [part for part in parts if not part.files.none] if len(parts) == len(found) else []

    def files(self, table: str, version: int) -> DataFiles | None:
        """The files of a version; where it cannot be opened, Delta will say why."""
        try:
            return self.logs(table).files(version)
        except ViewkeeperError:
            return None

    def few_files(self, table: str, version: int) -> DataFiles | None:
        """The same, if Spark reads them sooner than Delta does."""
        files = self.files(table, version)
        return files if files is not None and files.few else None

    @property
    def moments(self) -> tuple[int, int] | None:
        return self.pinned.moments

    def moment(self, function: str, state: State) -> str:
        return self.pinned.moment(function, state)

    def hold(self, what: tuple[str, ...], read: Callable[[], DataFrame]) -> str:
        """The temporary name of what was read before, or is read now."""
        if what not in self.held:
            self.held[what] = f"__vk_read_{next(self.numbers)}"
            read().createOrReplaceTempView(self.held[what])
        return self.held[what]

    def columns(self, table: str) -> tuple[str, ...]:
        """What any mention of the table reads."""
        return tuple(dict.fromkeys(c.source for n in self.states if n.table == table for c in n.columns))

    def compared_of(self, table: str) -> tuple[str, ...]:
        """Of these, those that something is compared with, and whose values can be told."""
        read = {c.source: c.type for n in self.states if n.table == table for c in n.columns if c.name in self.compared}
        return tuple(spreads.told(read))


def _masked(log: TableLog, version: int, files: Sequence[Masked], weight: int) -> DataFiles | None:
    try:
        return log.masked(version, files, came=weight > 0)
    except ViewkeeperError:  # Delta will say why
        return None


def _listed(columns: tuple[ScanColumn, ...]) -> str:
    return "".join(f"{quote(c.source)}, " for c in columns)
