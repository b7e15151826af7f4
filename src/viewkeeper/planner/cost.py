"""What steps cost, in named parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import astuple, dataclass, field, replace
from math import ceil, exp, isinf, log, prod
from operator import add, mul

from viewkeeper.algebra.keys import NOTHING, Declared, ForeignKey
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Aggregate, Changes, Filter, Join, Relation, Scan, ScanColumn, Top, Window
from viewkeeper.changes.counts import MATCHES, RowCounts, left_by
from viewkeeper.changes.lookup import (
    FOUND,
    KNOWN_HERE,
    KNOWN_ROWS,
    MOST_LOOKED_THROUGH,
    Changed,
    ChangedValues,
    Conditions,
    Found,
    Told,
    Values,
    looked_up,
)
from viewkeeper.changes.meeting import can_spread
from viewkeeper.changes.together import read_once


@dataclass(frozen=True)
class Rates:
    """What the parts of a cost take: a multiple of the fixed seconds, and seconds for each of what is counted."""

    fixed: float = 0.6
    per_read: float = 0.07
    per_file: float = 0.002
    per_row_read: float = 0.4e-7
    per_byte_read: float = 5e-9
    per_row_moved: float = 1.3e-7
    per_row_written: float = 1.0e-6
    per_byte_written: float = 1e-8

    def times(self, factor: float) -> Rates:
        return Rates(*(rate * factor for rate in astuple(self)))


MEASURED_ONCE = Rates()  # on two cores and a local disk
COUNTED = ("reads", "files", "rows_read", "bytes_read", "rows_moved", "rows_written", "bytes_written")  # as rates are


@dataclass(frozen=True)
class Cost:
    """What is read, moved and written, and the seconds that it is predicted to take at some rates.

    Rows are *moved* where they are grouped, sorted, or joined with others that are not few. A *read* is of a table or
    of its change, by any number of files. Bytes are those of the columns that are read, as files have them.
    """

    fixed: float = 0.0
    reads: int = 0
    files: int = 0
    rows_read: int = 0
    bytes_read: int = 0
    rows_moved: int = 0
    rows_written: int = 0
    bytes_written: int = 0
    rates: Rates = field(default=MEASURED_ONCE, kw_only=True)

    @property
    def counts(self) -> tuple[int, ...]:
        return tuple(getattr(self, part) for part in COUNTED)

    def __add__(self, other: Cost) -> Cost:
        return Cost(self.fixed + other.fixed, *map(add, self.counts, other.counts), rates=self.rates)

    def at(self, rates: Rates) -> Cost:
        return replace(self, rates=rates)

    def times(self, other: Cost) -> float:
        """How many times as much as another cost it is, at the same rates."""
        return self.at(MEASURED_ONCE).seconds / other.at(MEASURED_ONCE).seconds

    @property
    def by_part(self) -> tuple[float, ...]:
        """The seconds of each part."""
        return tuple(map(mul, (self.fixed, *self.counts), astuple(self.rates)))

    @property
    def seconds(self) -> float:
        return sum(self.by_part)


ONE_READ = Cost(reads=1)
QUERY = Cost(fixed=0.15)
ASK = Cost(fixed=0.15)
APPEND = Cost(fixed=0.15)
REWRITE = Cost(fixed=0.45)
MERGE = Cost(fixed=0.75)
OVERWRITE = Cost(fixed=0.45)
COMPUTE_HERE = Cost(fixed=0.06)  # by this process, where that can be done
LEAF_HERE = Cost(fixed=0.002)
READ_HERE = 2  # times as many rows are read by this process, which keeps columns of them
INSTALL_HERE = Cost(fixed=0.04)
OPENED_HERE = 4  # times as many files are opened by this process
WRITTEN_HERE = 5  # times as many rows are written by this process as by Spark in the same time
OWN_HERE = 100_000  # rows of a view that this process rewrites
# To read and net a changed row by this process, and what becomes of one that is left, matched and added up, takes as
# long as so many rows that are only moved. At 5 % and 10 % of all tables of the benchmark that was 1 to 4 microseconds
# a row by this process.
NETTED_HERE = 8
FOLLOWED_HERE = 12
FOUND_HERE = 4  # the same of a row that was looked up
FOLLOWED = 24  # of a changed row by Spark
# Where a change has more rows than this process knows, each of its terms is several Spark jobs. In the median of 17
# changes of 5 % and 10 %, of 2 to 23 reads, they took 0.45 seconds for each read, some of it for their rows.
READS_OF_A_TERM = 5
LOOKED_UP = 10  # times as many rows are looked through for values as are read and joined in the same time
# MERGE joins all rows of a view with the change, once to find the touched files and once to write these anew. Keys that
# are spread over the view touch all of them.
MERGE_JOINS = 2


VALUE_BYTES = 4.0  # of one column of a row, as files have it; a guess where nothing is known
ROW_BYTES = 50.0  # the same of all columns
SOME_COLUMNS = 4  # that a query reads of a table, if nobody knows which


@dataclass(frozen=True)
class Sizes:
    """What is known of a table: its rows, how many change rows there are, and whether its files can be read here.

    pending_rows   how many change rows the log tells of, once it is known how many are left of them
    value_bytes    what one column of a row takes on average
    files          of how many files it is made
    change_files   of how many its change
    """

    rows: int
    change_rows: int = 0
    here: bool = False
    value_bytes: float = VALUE_BYTES
    files: int = 1
    change_files: int = 1
    pending_rows: int | None = None

    @property
    def pending(self) -> int:
        """The rows of its change that are to be read."""
        return self.change_rows if self.pending_rows is None else self.pending_rows

    def read(self, columns: int, times_less: int = 1) -> Cost:
        """Of all rows so many columns, or as if there were so many times less of it."""
        return _read(self.rows // times_less, columns, self.value_bytes, self.files // times_less)

    def read_changed(self, columns: int, files_less: int = 1) -> Cost:
        """Of its change all rows, as if it were made of so many times less files."""
        return _read(self.pending, columns, self.value_bytes, self.change_files // files_less)


def _read(rows: int, columns: int, value_bytes: float, files: int) -> Cost:
    return Cost(files=files, rows_read=rows, bytes_read=int(rows * columns * value_bytes))


UNKNOWN = Sizes(0, files=0, change_files=0)


def reading(rel: Relation, sizes: Mapping[str, Sizes], declared: Declared = NOTHING, known: int = KNOWN_ROWS) -> Cost:
    """Every leaf, whole tables and changes, read as often as a refresh by Spark would; what is done with their rows.

    The values of changes are known up to so many rows.
    """
    tables = {table: size.rows for table, size in sizes.items()}
    changes = {table: size.change_rows for table, size in sizes.items()}
    counts = RowCounts(tables, changes, declared, guessing=True)
    once, found = read_once(rel, lambda rows: counts.saved(rows) > 0), _Lookups(sizes, tables, known, declared)
    total = Cost()
    for node in walk(looked_up(once, found.changed(once), found)):
        match node:
            case Scan(table, columns) if table in found.among:
                total += found.among[table].read(len(columns), LOOKED_UP) + ONE_READ
            case Scan(table, columns):
                total += sizes.get(table, UNKNOWN).read(len(columns)) + ONE_READ
            case Changes(table, columns):
                changed = sizes.get(table, UNKNOWN)
                total += changed.read_changed(len(columns)) + ONE_READ
                total += Cost(rows_moved=FOLLOWED * changed.change_rows)
            case Aggregate(input) | Window(input) | Top(input):
                total += Cost(rows_moved=_finite(counts.rows(input)))
            case Join(left, right) if counts.sent(node) is None:
                total += Cost(rows_moved=_finite(counts.rows(left) + counts.rows(right)))
            case _:
                pass
    return total


def reading_here(rel: Relation, sizes: Mapping[str, Sizes], most: int, declared: Declared = NOTHING) -> Cost | None:
    """The same by this process, of at most so many rows each; None where not all can be brought.

    What several leaves read of the same rows is read once, and changes are netted once.
    """
    tables = {table: size.rows for table, size in sizes.items()}
    found, total = _Lookups(sizes, tables, KNOWN_HERE, declared), Cost()
    nodes = list(walk(looked_up(rel, found.changed(rel), found)))
    filtered = {node.input for node in nodes if isinstance(node, Filter)}
    changed, met = _columns(nodes, Changes), _columns(nodes, Scan)
    for name in found.among.keys() & met:
        if found.about[name] > most:
            return None
        total += found.among[name].read(len(met[name]), LOOKED_UP) + LEAF_HERE
        total += Cost(rows_moved=FOUND_HERE * found.about[name])
    for table in changed:
        size = sizes.get(table, UNKNOWN)
        if not size.here or size.change_rows > KNOWN_HERE:
            return None
        total += size.read_changed(len(changed[table]), OPENED_HERE) + LEAF_HERE
        total += netted_here(size) + Cost(rows_moved=FOLLOWED_HERE * size.change_rows)
    for node in nodes:
        match node:
            case Scan(table, columns) if table not in found.among:
                asked, size = node in filtered, sizes.get(table, UNKNOWN)
                if not size.here or size.rows > (max(most, MOST_LOOKED_THROUGH) if asked else most):
                    return None
                total += size.read(len(columns), LOOKED_UP if asked else READ_HERE) + LEAF_HERE
            case _:
                pass
    return total


def _columns(nodes: Iterable[object], kind: type[Scan | Changes]) -> dict[str, set[str]]:
    """The columns that leaves of a kind read, by their tables."""
    read: dict[str, set[str]] = {}
    for node in nodes:
        if isinstance(node, kind):
            read.setdefault(node.table, set()).update(c.source for c in node.columns)
    return read


def netted_here(changed: Sizes) -> Cost:
    """Every row of a change, read and netted by this process: done once it is known how many are left."""
    return Cost(rows_moved=NETTED_HERE * changed.pending)


_GRAIN = 1.25


def _about(number: float) -> Told:
    """So many values that nobody knows before the change is read: of two such sets the smaller is part of the other."""
    values: Values = frozenset(range(1 + ceil(log(max(number, 1.0), _GRAIN))))
    return lambda: values


def _number(values: Values) -> float:
    return float(_GRAIN ** (len(values - {None}) - 1))


@dataclass(frozen=True)
class _Lookups:
    """What a refresh would look up.

    tables   the rows of tables, to which it adds about how many would be found
    most     rows of a change whose values are known
    names    of what it would find, by what is asked for
    among    by these names, the table in which it would look
    about    how many rows it would find there
    """

    sizes: Mapping[str, Sizes]
    tables: dict[str, int]
    most: int
    declared: Declared = NOTHING
    names: dict[tuple[object, ...], str] = field(default_factory=dict)
    among: dict[str, Sizes] = field(default_factory=dict)
    about: dict[str, int] = field(default_factory=dict)

    def changed(self, change: Relation) -> Changed:
        """The columns of changes whose values will be known."""
        few = {table for table, known in self.sizes.items() if known.here and known.change_rows <= self.most}
        leaves = [node for node in walk(change) if isinstance(node, Changes) and node.table in few]
        known: dict[str, dict[str, Told]] = {leaf.table: {} for leaf in leaves}
        for leaf in leaves:
            rows = self.sizes[leaf.table].change_rows
            known[leaf.table] |= self.values(leaf.table, leaf.columns, rows, self.changed_values)
        return lambda table, _: ChangedValues(known.get(table, {}), exact=True)

    def __call__(self, scan: Scan, asked: Mapping[str, Values], where: Conditions) -> Found | None:
        table = self.sizes.get(scan.table)
        if table is None or not table.here or self.rows_with(scan.table, asked) > FOUND * self.most:
            return None
        question = (scan.table, scan.state, frozenset(asked.items()), where)
        name = self.names.setdefault(question, f"found {len(self.names)} in {scan.table}")
        found = self.rows_with(scan.table, asked) * prod(map(left_by, where))
        self.among[name], self.about[name], self.tables[name] = table, int(found), min(table.rows, self.most)
        values = self.values(scan.table, scan.columns, found, self.some_values)
        return Found(name, {c: _are(asked[c]) if c in asked else told for c, told in values.items()}, fulfil=True)

    def values(
        self, table: str, columns: tuple[ScanColumn, ...], rows: float, of: Callable[[str, str, float], float]
    ) -> dict[str, Told]:
        """About how many values so many rows of a table have in each column."""
        return {c.source: _about(of(table, c.source, rows)) for c in columns if can_spread(c.type)}

    def some_values(self, table: str, column: str, rows: float) -> float:
        """Of so many rows, which are spread over the rows that they refer to, if that is known."""
        values = self.most_values(table, column)
        if values < self.sizes[table].rows:
            return values * (1 - exp(-rows / max(values, 1)))
        return min(rows, values)

    def changed_values(self, table: str, column: str, rows: float) -> float:
        """Of so many changed rows: those that are part of a row of another table come and go with it."""
        found = self.some_values(table, column, rows)
        if not any(column.lower() in key for key in self.declared.keys.get(table, ())):
            return found
        parts = [self.sizes[r.parent] for r in self.references(table, column) if r.parent in self.sizes]
        with_it = [max(p.change_rows, rows * p.rows / max(self.sizes[table].rows, 1)) for p in parts if p.change_rows]
        return min([found, *with_it])

    def most_values(self, table: str, column: str) -> int:
        """As many as there are rows that it refers to, if that is known."""
        parents = [self.sizes[r.parent].rows for r in self.references(table, column) if r.parent in self.sizes]
        return min(parents, default=self.sizes[table].rows)

    def rows_with(self, table: str, asked: Mapping[str, Values]) -> float:
        """About how many rows of a table have these values."""
        numbers = {column.lower(): _number(values) for column, values in asked.items()}
        found = [self.sizes[table].rows, *(n * self.rows_for_each(table, column) for column, n in numbers.items())]
        if any(key <= numbers.keys() for key in self.declared.keys.get(table, ())):
            found.append(max(numbers.values()))
        return min(found)

    def rows_for_each(self, table: str, column: str) -> float:
        """About how many rows have the same value in a column."""
        if frozenset((column,)) in self.declared.keys.get(table, ()):
            return 1
        if self.references(table, column):
            return self.sizes[table].rows / max(self.most_values(table, column), 1)
        return MATCHES

    def references(self, table: str, column: str) -> list[ForeignKey]:
        return [r for r in self.declared.references if r.child == table and r.columns == (column.lower(),)]


def _are(values: Values) -> Told:
    return lambda: values


def _finite(rows: float) -> int:
    """Of a table that nobody knows, nothing is known."""
    return 0 if isinf(rows) else int(rows)
