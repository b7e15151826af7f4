"""What a refresh finds before it decides: pinned versions, what changed since, how large everything is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from zoneinfo import ZoneInfo

from viewkeeper.algebra.clock import CLOCK
from viewkeeper.algebra.keys import Declared
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Scan
from viewkeeper.changes.own import OWN
from viewkeeper.changes.weights import ChangeKind
from viewkeeper.errors import SourceError, ViewkeeperError
from viewkeeper.here.compute import can_compute
from viewkeeper.planner.build import Situation
from viewkeeper.planner.cost import MEASURED_ONCE, ROW_BYTES, VALUE_BYTES, Rates, Sizes
from viewkeeper.planner.rates import Own, Sample, fitted_by_engine, shown
from viewkeeper.runtime.forms import maintained
from viewkeeper.runtime.measured import measured
from viewkeeper.sql.clock import clock_functions
from viewkeeper.store.changes import Feed, FeedFiles, Files, SourceChange, Unchanged, Unreadable, changes_between
from viewkeeper.store.declared import declarations, relied_on
from viewkeeper.store.leaves import Pin, PinnedLeaves
from viewkeeper.store.log import Metadata, Snapshot, TableLog
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import Covered, Covers, Standing, View, now, standing

Moments = tuple[int, int]  # microseconds since 1970, of the old and of the new state

_SMALL = 20  # times as many rows the largest table of a view has
_LOOKS = 5  # at tables that others keep writing to, before no common moment is expected


@dataclass
class Versions:
    """The version of each table that a whole refresh sees, fixed when a table is first looked at, and the moment."""

    registry: Registry
    pinned: dict[str, int] = field(default_factory=dict)
    moment: int = field(default_factory=lambda: time.time_ns() // 1000)
    at_once: frozenset[str] = frozenset()  # the tables that had their versions all at one moment

    @cached_property
    def rates(self) -> tuple[Rates, Rates]:
        """How fast Spark and this process are, as far as the history of the warehouse tells."""
        return fitted_by_engine([sample for samples in self.samples.values() for sample in samples])

    @cached_property
    def samples(self) -> Mapping[str, list[Sample]]:
        return measured(self.registry)

    def shown(self, view: View) -> Own:
        """What is known of the view's own refreshes."""
        return shown(self.samples.get(view.id, ()), *self.rates)

    def pin(self, tables: Iterable[str]) -> None:
        """Fix the versions of these tables, at one moment: when two looks in a row find the same."""
        seen: dict[str, int] | None = None
        for _ in range(_LOOKS):
            before, seen = seen, {t: self.registry.tables.log(t).version() for t in tables}
            if seen == before or len(seen) < 2:
                self.at_once = frozenset(seen)
                break
        self.pinned.update(seen or {})

    def of(self, table: str) -> int:
        if table not in self.pinned:
            self.pinned[table] = self.registry.tables.log(table).version()
        return self.pinned[table]

    def move(self, table: str) -> None:
        """The refresh itself has installed a new version of a view."""
        self.pinned[table] = self.registry.tables.log(table).version()


@dataclass(frozen=True)
class Expected:
    """For a plan that nobody has run: an upstream view will have changed by about so many rows."""

    change_rows: int


@dataclass(frozen=True)
class Look:
    """A view, where it stands, and the situation that decides what to do about it.

    started   when what is done about it began
    """

    view: View
    standing: Standing
    pins: Mapping[str, Pin]
    covers: Covers
    situation: Situation
    one_moment: bool
    started: int
    moments: Moments | None = None

    @property
    def from_now(self) -> Look:
        """The same, for another way: what was tried before is not part of what that takes."""
        return replace(self, started=now())

    @property
    def leaves(self) -> PinnedLeaves:
        own = f"{self.view.backing} VERSION AS OF {self.standing.version}"
        return PinnedLeaves(self.pins, self.moments, {OWN: own})


def look(view: View, registry: Registry, versions: Versions, expected: Mapping[str, Expected] | None = None) -> Look:
    """The view's situation, from the logs alone."""
    started = now()
    log = registry.log(view)
    stands = standing(log, view.id)
    pins: dict[str, Pin] = {}
    covers: dict[str, Covered] = {}
    sizes: dict[str, Sizes] = {}
    metadata: dict[str, Metadata] = {}
    for table in view.tables:
        pin, snapshot = _pin(view, table, stands, registry, versions)
        foreseen = (expected or {}).get(table)
        if foreseen is not None:
            pin = Pin(pin.old, pin.new, Feed(pin.new + 1, pin.new + 1, False, foreseen.change_rows))
        pins[table] = pin
        covers[table] = Covered(snapshot.metadata.id, pin.new)
        sizes[table] = replace(table_sizes(snapshot), change_rows=pin.change.rows, change_files=_files(pin.change))
        metadata[table] = snapshot.metadata
    own = log.snapshot()
    changed = {t: _kind(p.change) for t, p in pins.items() if isinstance(p.change, Feed | Files)}
    if changed:
        sizes = {t: replace(known, here=_read_here(registry, t, pins[t])) for t, known in sizes.items()}
    moments = clock_moments(view, stands.covers, versions.moment)
    clock_moved = moments is not None and is_later(view, moments)
    if moments is not None:
        covers[CLOCK] = Covered(CLOCK, moments[1])
    if clock_moved:
        changed[CLOCK] = "any"
    one_moment = versions.at_once.issuperset(view.base_tables)
    situation = Situation(
        view=view.name,
        policy=view.policy,
        kept=maintained(view),
        rows=_rows(own),
        sizes=sizes,
        changed=changed,
        declared=replace(
            _declared(view, registry, pins, metadata, one_moment=one_moment and stands.one_moment),
            small=_small(sizes),
        ),
        moved=clock_moved or any(p.old != p.new or t in (expected or {}) for t, p in pins.items()),
        obstacle=view.reason,
        lost=_lost(stands, pins, moments),
        unversioned=view.reads_unversioned,
        source_rows=sum(s.rows for s in sizes.values()),
        rates=versions.rates[0] if changed else MEASURED_ONCE,
        rates_here=versions.rates[1] if changed else MEASURED_ONCE,
        files=own.files,
        row_bytes=_row_bytes(own),
        gone=own.gone,
        replaces=bool(changed) and _replaces(log, own.version),
        own=versions.shown(view) if changed else Own(),
        known_here=can_compute,
    )
    return Look(view, stands, pins, covers, situation, one_moment, started, moments)


def clock_moments(view: View, covers: Covers, moment: int) -> Moments | None:
    """The moment that the view covers and this one, if its text looks at the clock."""
    if not clock_functions(view.query):
        return None
    return (covers[CLOCK].version if CLOCK in covers else moment, moment)


def is_later(view: View, moments: Moments) -> bool:
    """Whether the clock shows the view another time than it did: another day, if it looks at the date alone."""
    if clock_functions(view.query) != {"CURRENT_DATE"}:
        return moments[0] != moments[1]
    zone = ZoneInfo(view.settings.get("spark.sql.session.timeZone") or "UTC")
    before, after = (datetime.fromtimestamp(m / 1_000_000, zone).date() for m in moments)
    return before != after


def _pin(view: View, table: str, stands: Standing, registry: Registry, versions: Versions) -> tuple[Pin, Snapshot]:
    try:
        log = registry.tables.log(table)
        new = versions.of(table)
        snapshot = log.snapshot(new)
    except SourceError as error:
        raise SourceError(
            f"{view.name} reads {table}, which is gone: {error.message}",
            hint=f"create {table} again, or DROP MATERIALIZED VIEW {view.name}",
        ) from error
    covered = stands.covers.get(table)
    if covered is None:
        return Pin(new, new, Unreadable("what the view covers of it is not known")), snapshot
    if covered.id == snapshot.metadata.id and covered.version > new and log.version() >= covered.version:
        # Another process has refreshed the view to a newer version than this refresh has pinned.
        return Pin(covered.version, covered.version, Unchanged()), log.snapshot(covered.version)
    columns = _columns_read(view, table)
    change = changes_between(log, covered.id, covered.version, new, columns)
    return Pin(covered.version, new, change), snapshot


def _declared(
    view: View, registry: Registry, pins: Mapping[str, Pin], metadata: Mapping[str, Metadata], *, one_moment: bool
) -> Declared:
    """What held of the view's base tables at the covered and holds at the pinned versions.

    A foreign key holds at every moment, but not between tables as they were at different moments.
    """
    tables = registry.tables
    relied = {t: relied_on(tables.log(t), pins[t].old, metadata[t]) for t in view.base_tables}
    found = declarations(relied, tables.canonical).declared
    return found if one_moment else Declared(found.keys)


def _read_here(registry: Registry, table: str, pin: Pin) -> bool:
    """Whether this process can read the table's files; one that cannot be opened is left to Delta."""
    try:
        return registry.tables.log(table).files(pin.new) is not None
    except ViewkeeperError:
        return False


def _replaces(log: TableLog, version: int) -> bool:
    """Whether rows of a view's table can be taken out by this process."""
    try:
        files = log.files(version)
    except ViewkeeperError:
        return False
    return files is not None and files.writable and files.vectors


def _small(sizes: Mapping[str, Sizes]) -> frozenset[str]:
    most = max((known.rows for known in sizes.values()), default=0)
    return frozenset(table for table, known in sizes.items() if known.rows * _SMALL <= most)


def _columns_read(view: View, table: str) -> frozenset[str]:
    if view.definition is None:
        return frozenset()
    scans = (n for n in walk(view.definition) if isinstance(n, Scan) and n.table == table)
    return frozenset(c.source.lower() for scan in scans for c in scan.columns)


def _kind(change: SourceChange) -> ChangeKind:
    return "appended" if isinstance(change, Feed | Files) and change.appended else "any"


def _lost(stands: Standing, pins: Mapping[str, Pin], moments: Moments | None) -> Reason | None:
    if stands.foreign is not None:
        commit = stands.foreign
        return Reason("its own table", f"something else wrote into it ({commit.operation}, version {commit.version})")
    for table, pin in pins.items():
        if isinstance(pin.change, Unreadable):
            return Reason(table, pin.change.why)
    if moments is not None and CLOCK not in stands.covers:
        return Reason("the clock", "the moment that the view covers is not known")
    return None


def table_sizes(snapshot: Snapshot) -> Sizes:
    """What a log tells of a table."""
    rows = _rows(snapshot)
    values = (rows + snapshot.gone) * len(snapshot.metadata.columns)
    return Sizes(rows, value_bytes=snapshot.size / values if values else VALUE_BYTES, files=snapshot.files)


def _rows(snapshot: Snapshot) -> int:
    return snapshot.rows if snapshot.rows is not None else int(snapshot.size / ROW_BYTES)


def _row_bytes(snapshot: Snapshot) -> float:
    written = _rows(snapshot) + snapshot.gone
    return snapshot.size / written if written else ROW_BYTES


def _files(change: SourceChange) -> int:
    """Of how many files a change is made: without their names, one for each commit."""
    match change:
        case Feed(files=None):
            return change.last - change.first + 1
        case Feed(files=FeedFiles() as files):
            return files.count
        case Files(added, removed):
            return len(added) + len(removed)
        case _:
            return 0
