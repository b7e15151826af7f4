"""Which step a view needs: nothing, its change, or all of it afresh."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from viewkeeper.algebra.keys import NOTHING, Declared
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Relation
from viewkeeper.changes.counts import RowCounts
from viewkeeper.changes.kept import Kept, KeptGroups
from viewkeeper.changes.lookup import KNOWN_ROWS
from viewkeeper.changes.merge import Merge, MergeBag, MergeTop, found_by
from viewkeeper.changes.order import fewest_first
from viewkeeper.changes.own import OWN
from viewkeeper.changes.refresh import Maintenance, maintenance
from viewkeeper.changes.weights import ChangeKind
from viewkeeper.planner.cost import (
    APPEND,
    ASK,
    COMPUTE_HERE,
    INSTALL_HERE,
    LOOKED_UP,
    MEASURED_ONCE,
    MERGE,
    MERGE_JOINS,
    ONE_READ,
    OVERWRITE,
    OWN_HERE,
    QUERY,
    READS_OF_A_TERM,
    REWRITE,
    ROW_BYTES,
    SOME_COLUMNS,
    WRITTEN_HERE,
    Cost,
    Rates,
    Sizes,
    netted_here,
    reading,
    reading_here,
)
from viewkeeper.planner.plan import Install, Maintain, Nothing, Recompute, Refuse, Step, Way
from viewkeeper.planner.rates import Own
from viewkeeper.settings import Settings

MANY_FILES = 50  # with more, opening them takes longer than writing a view of this size again
ROWS_OF_A_FILE = 200_000  # so many or more: a view that has many of those does not have too many
REPLACED = 4  # times as many rows as change: else all are written again
LOOK_UP_TO = 5  # times the cost of a recompute: changes that are predicted to be dearer are not looked at first
# Times the cost of the way that is known: then the other is tried once, unless that is a large change by Spark, which
# is rather dearer than predicted. Of a recompute, CREATE has told more.
TRY_UP_TO = 1.5
TRY_RECOMPUTE_UP_TO = 1.2
LOOKED_AT = 50_000  # changed rows for each second of a recompute: to read more of them costs too much for a look


def _nothing(_: Relation) -> bool:
    return False


@dataclass(frozen=True)
class Situation:
    """All a decision about one view needs, from the logs and from the view's definition.

    obstacle      why the definition cannot be maintained from changes, if so
    lost          why changes cannot be had this time (unreadable history, unknown coverage), if so
    moved         whether any source has a newer version at all
    seen          whether the sizes of changes are those of rows that were read
    files         of how many files the view's table is made
    row_bytes     what a row of it takes there
    gone          how many rows are in these files that are no longer the view's
    replaces      whether single rows of its table can be replaced by this process
    own           what was seen of refreshes of this view
    known_here    whether this process knows what a change means, were its rows here
    """

    view: str
    policy: str
    kept: Kept | None
    rows: int
    sizes: Mapping[str, Sizes]
    changed: Mapping[str, ChangeKind]
    moved: bool
    declared: Declared = NOTHING
    obstacle: Reason | None = None
    lost: Reason | None = None
    unversioned: tuple[str, ...] = ()
    source_rows: int = field(default=0)
    rates: Rates = MEASURED_ONCE
    rates_here: Rates = MEASURED_ONCE
    seen: bool = False
    files: int = 1
    row_bytes: float = ROW_BYTES
    gone: int = 0
    replaces: bool = False
    own: Own = field(default_factory=Own)
    known_here: Callable[[Relation], bool] = _nothing

    def priced(self, cost: Cost, way: Way, left: float = 1.0) -> Cost:
        """The same cost at the rates of this view, if so much of it is left in the end."""
        rates = self.rates_of(way)
        return cost.at(rates.times(left * self.own.factor(way, cost.at(rates).seconds * left)))

    def is_new(self, cost: Cost, way: Way, left: float = 1.0) -> bool:
        """Whether a refresh about as large never took this way, though one took the other."""
        return self.own.is_new(way, cost.at(self.rates_of(way)).seconds * left)

    def own_read(self, times: int) -> Cost:
        """All rows of the view, read so many times."""
        size = int(self.rows * self.row_bytes)
        return Cost(reads=times, files=times * self.files, rows_read=times * self.rows, bytes_read=times * size)

    def written(self, rows: int) -> Cost:
        """So many rows of the view, written."""
        return Cost(rows_written=rows, bytes_written=int(rows * self.row_bytes))

    def rates_of(self, way: Way) -> Rates:
        return self.rates_here if way == "here" else self.rates


def plan_view(situation: Situation, settings: Settings) -> Step:
    """The step for one view, by its policy and by cost."""
    s = situation
    if s.lost is None and not s.unversioned:
        if not s.moved:
            return Nothing(s.view, "up to date")
        if not s.changed:
            return Nothing(s.view, "no data changed in its sources", record=True)
    full = recompute_cost(s)
    if s.policy == "FULL":
        return Recompute(s.view, "its policy is FULL", full)
    if s.kept is None or s.obstacle is not None:
        obstacle = s.obstacle or Reason("this query", "it could not be read")
        return Recompute(s.view, f"not incremental: {obstacle}", full, obstacle=obstacle)
    if s.lost is not None:
        if s.policy.startswith("INCREMENTAL"):
            hint = f"REFRESH MATERIALIZED VIEW {s.view} FULL recomputes it"
            return Refuse(s.view, f"its changes cannot be read: {s.lost}", hint)
        return Recompute(s.view, f"its changes cannot be read: {s.lost}", full, obstacle=s.lost)
    return _by_cost(s, s.kept, full, settings)


def _by_cost(s: Situation, kept: Kept, full: Cost, settings: Settings) -> Step:
    change = choose_reading(kept, s, settings)
    if change.nothing:
        return Nothing(s.view, "the changes do not reach it", record=True)
    return decided(change, s, full, settings)


def decided(change: Maintenance, s: Situation, full: Cost, settings: Settings) -> Maintain | Recompute:
    """The change, or all of it where that is cheaper and the policy leaves the choice."""
    computing, way = _computing(change, s, settings)
    here = way == "here"
    install, why = choose_install(change, s, settings, here=here)
    parts = computing + (install_here_cost if here else install_cost)(install, s)
    known = None if s.seen else s.own.left
    left = 1.0 if known is None else known
    cost = s.priced(parts, way, left)
    compared = f"predicted {cost.seconds:.1f} s against {full.seconds:.1f} s for a recompute"
    forced = "" if s.policy == "AUTO" else f"its policy is {s.policy}; "
    small = parts.rows_read + parts.rows_written <= settings.small_rows
    step = Maintain(s.view, f"{forced}{compared}", change, install, why, cost, full, small, here)
    if s.policy != "AUTO":
        return step
    ahead = cost.seconds - (s.priced(_done(s), way).seconds if here else 0)
    if ahead <= full.seconds:
        if full.seconds <= TRY_RECOMPUTE_UP_TO * ahead and s.is_new(full, "recompute"):
            return Recompute(s.view, f"tried once: {compared}", full, instead_of=step)
        return step
    if ahead <= TRY_UP_TO * full.seconds and (here or small) and s.is_new(cost, way, left):
        return replace(step, reason=f"tried once: {compared}")
    changed = sum(sizes.change_rows for sizes in s.sizes.values())
    few = changed <= LOOKED_AT * max(1.0, full.seconds)
    look = not s.seen and known is None and cost.seconds <= LOOK_UP_TO * full.seconds and few
    unless = ", unless its changes turn out to be less to it" if look else ""
    return Recompute(s.view, f"cheaper: {compared}{unless}", full, instead_of=step, look=look)


def seen_closer(
    found: Maintenance, s: Situation, rows: Mapping[str, int], full: Cost, settings: Settings
) -> Maintain | Recompute:
    """The same decision, once changes were read: so many rows they have as far as the view sees."""
    sizes = {
        table: replace(known, change_rows=rows.get(table, known.change_rows), pending_rows=known.pending)
        for table, known in s.sizes.items()
    }
    return decided(found, replace(s, sizes=sizes, seen=True), full, settings)


def _done(s: Situation) -> Cost:
    """What a recompute could not save any more."""
    return sum((netted_here(known) for known in s.sizes.values()), Cost()) if s.seen else Cost()


def _computing(change: Maintenance, s: Situation, settings: Settings) -> tuple[Cost, Way]:
    """What the rows of a change cost by this process, if it can tell them, else by Spark."""
    sizes = _with_own(s)
    rows, changed = ({t: known.rows for t, known in sizes.items()}, {t: z.change_rows for t, z in sizes.items()})
    ordered = fewest_first(change.change, RowCounts(rows, changed, s.declared))
    known = settings.rows_here > 0 and s.known_here(ordered)
    here = reading_here(ordered, sizes, settings.rows_here, s.declared) if known else None
    if here is not None:
        return COMPUTE_HERE + here, "here"
    read = reading(ordered, sizes, s.declared, KNOWN_ROWS)
    many = any(rows > KNOWN_ROWS for rows in changed.values())
    return QUERY + read + Cost(reads=(READS_OF_A_TERM - 1) * read.reads if many else 0), "incremental"


def choose_reading(kept: Kept, s: Situation, settings: Settings) -> Maintenance:
    """The change from the tables alone, or with a look into what is kept where that reads less, or may do so."""
    alone, own = (maintenance(kept, s.changed, s.declared, look) for look in (False, True))
    answers = {q.table: q.kind for q in own.questions if q not in alone.questions}
    hoped = maintenance(kept, {**s.changed, **answers}, s.declared, own=True) if answers else own
    if own.change == hoped.change == alone.change:
        return alone
    costs = (_computing(change, s, settings) for change in (alone, own, hoped))
    tables, view, best = (cost.at(s.rates_of(way)) for cost, way in costs)
    asked = answers and (best + ASK).seconds < tables.seconds
    return own if view.seconds < tables.seconds or asked else alone


def _with_own(s: Situation) -> Mapping[str, Sizes]:
    return {**s.sizes, OWN: Sizes(s.rows, here=s.rows <= OWN_HERE, files=s.files)}


def choose_install(change: Maintenance, s: Situation, settings: Settings, *, here: bool) -> tuple[Install, str]:
    """How the change, which this process has or Spark, gets into the view's table, and why in this way."""
    if isinstance(change.merge, MergeTop):
        return "rewrite", f"at most {change.merge.room:,} rows are kept"
    if isinstance(change.merge, MergeBag) and change.insert_only:
        if not is_scattered(s, settings):
            return "append", "rows only came"
        return "rewrite", _compacts(s)
    if is_scattered(s, settings):
        return "rewrite", _compacts(s)
    if here and can_replace(change.merge, s, _change_rows(s), settings):
        return "replace", f"few of its {s.rows:,} rows change"
    if s.rows <= settings.rewrite_rows:
        return "rewrite", f"{s.rows:,} rows are written faster than merged into"
    return "merge", f"{s.rows:,} rows: only the touched files are written again"


def can_replace(merge: Merge, s: Situation, changed: int, settings: Settings) -> bool:
    """Whether it is best to replace the rows that change: they are few of many, and can be looked up."""
    few = s.rows > settings.replace_from and changed * REPLACED <= s.rows
    return s.replaces and few and bool(found_by(merge))


def is_scattered(s: Situation, settings: Settings) -> bool:
    """Whether small appends have left so many files, or so many rows are gone, that it is time to write it as one."""
    return (s.files > MANY_FILES or s.gone > s.rows) and s.rows <= settings.rewrite_rows


def is_to_be_compacted(s: Situation, settings: Settings) -> bool:
    """The same of a view that is too large to be written as one."""
    many = MANY_FILES + s.rows // ROWS_OF_A_FILE
    return (s.files > many or s.gone * REPLACED > s.rows) and s.rows > settings.rewrite_rows


def _compacts(s: Situation) -> str:
    gone = f", {s.gone:,} of which are gone," if s.gone else ""
    return f"{s.files:,} files of {s.rows + s.gone:,} rows{gone} become few"


def install_cost(install: Install, s: Situation) -> Cost:
    match install:
        case "append" | "replace":
            return APPEND + s.written(_change_rows(s))
        case "rewrite":
            return REWRITE + s.own_read(1) + s.written(s.rows)
        case "merge":
            return MERGE + s.own_read(MERGE_JOINS) + Cost(rows_moved=MERGE_JOINS * s.rows) + s.written(s.rows)


def install_here_cost(install: Install, s: Situation) -> Cost:
    """The same, of a change that this process has."""
    match install:
        case "append":
            return INSTALL_HERE + s.written(_change_rows(s) // WRITTEN_HERE)
        case "replace":
            looked_through = Cost(rows_read=s.rows // LOOKED_UP)
            return INSTALL_HERE + looked_through + s.written(_change_rows(s) // WRITTEN_HERE)
        case "rewrite" if s.rows <= OWN_HERE:
            return INSTALL_HERE + Cost(rows_read=s.rows) + s.written(s.rows // WRITTEN_HERE)
        case _:
            return install_cost(install, s)


def recompute_cost(s: Situation) -> Cost:
    return s.priced(content_cost(s.kept, s.sizes, s.declared) + s.written(s.rows), "recompute")


def content_cost(kept: Kept | None, sizes: Mapping[str, Sizes], declared: Declared = NOTHING) -> Cost:
    """To compute all of a view; how many rows are written is not known here."""
    if kept is not None:
        return QUERY + OVERWRITE + reading(kept.content, sizes, declared)
    return sum((known.read(SOME_COLUMNS) + ONE_READ for known in sizes.values()), QUERY + OVERWRITE)


def _change_rows(s: Situation) -> int:
    pending = sum(s.sizes[t].change_rows for t in s.changed if t in s.sizes)
    return min(pending, s.rows) if isinstance(s.kept, KeptGroups) and s.rows else pending
