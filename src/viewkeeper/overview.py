"""What can be said of views from the logs alone: plans, standings, histories, explanations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from typing import assert_never

from viewkeeper.algebra.clock import CLOCK
from viewkeeper.algebra.display import show, show_condition
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Changes, Relation, Scan
from viewkeeper.algebra.scalars import FALSE, TRUE, Scalar
from viewkeeper.changes.kept import KeptBag, KeptGroups, KeptTop
from viewkeeper.changes.merge import MergeBag, MergeTop
from viewkeeper.changes.parts import Computed, by_parts
from viewkeeper.changes.refresh import Maintenance, maintenance
from viewkeeper.changes.relevance import rows_that_matter
from viewkeeper.errors import SourceError, ViewkeeperError
from viewkeeper.planner.build import plan_view
from viewkeeper.planner.plan import Maintain, Nothing, Recompute, Refuse, Step, strategy
from viewkeeper.reports import Explanation, HistoryEntry, HistoryReport, PlannedStep, StatusReport, ViewStatus
from viewkeeper.runtime.forms import form_of, is_ansi, maintained, public_relation
from viewkeeper.runtime.look import Expected, Look, Versions, clock_moments, is_later, look
from viewkeeper.settings import Settings
from viewkeeper.sql.clock import clock_functions
from viewkeeper.sql.unparse import unparse
from viewkeeper.store.changes import Feed, Files, SourceChange, Unchanged, Unreadable
from viewkeeper.store.declared import Declarations, declarations
from viewkeeper.store.leaves import Pin, PinnedLeaves
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import Covers, View, refreshes, standing


def steps(
    views: Iterable[View], registry: Registry, versions: Versions, settings: Settings
) -> Iterator[tuple[Look, Step]]:
    """What a refresh would find and do for each view, after those that it reads: they will have changed by then."""
    expected: dict[str, Expected] = {}
    for view in views:
        seen = look(view, registry, versions, expected)
        step = plan_view(seen.situation, settings)
        if strategy(step) != "none":
            rows = sum(s.change_rows for s in seen.situation.sizes.values())
            expected[view.backing] = Expected(2 * seen.situation.rows if isinstance(step, Recompute) else rows)
        yield seen, step


def planned(step: Step, seen: Look) -> PlannedStep:
    """A step as people read it."""
    pending = {_source_name(seen.view, table): _pending(pin) for table, pin in seen.pins.items() if pin.old != pin.new}
    match step:
        case Nothing(view, reason):
            return PlannedStep(view, "none", reason, None, None, "", None, pending)
        case Maintain(view=view, reason=reason, install=install, cost=cost, recompute_cost=full):
            why = "; ".join([f"{reason}; {install}: {step.why_install}", *map(str, step.maintenance.reasons)])
            return PlannedStep(view, "incremental", why, cost.seconds, full.seconds, install, cost.rows_read, pending)
        case Recompute(view=view, reason=reason, cost=cost):
            return PlannedStep(
                view, "recompute", reason, cost.seconds, cost.seconds, "overwrite", cost.rows_read, pending
            )
        case Refuse(view, reason, hint):
            return PlannedStep(view, "none", f"would fail: {reason}; {hint}", None, None, "", None, pending)
        case _:
            assert_never(step)


def _pending(pin: Pin) -> str:
    commits = f"{pin.new - pin.old} commit" + ("s" if pin.new - pin.old != 1 else "")
    return f"{commits}, {_how_read(pin.change)}"


def _how_read(change: SourceChange) -> str:
    match change:
        case Unchanged():
            return "no data changed"
        case Feed(rows=rows, appended=appended):
            return f"about {rows:,} {'new' if appended else 'changed'} rows, from its change feed"
        case Files(rows=rows, appended=appended, added=added, removed=removed):
            return f"about {rows:,} rows in {len(added) + len(removed)} touched files" + (", appended" * appended)
        case Unreadable(why):
            return why
        case _:
            assert_never(change)


def status(registry: Registry) -> StatusReport:
    return StatusReport(tuple(_statuses(registry.views().values(), registry).values()))


def _statuses(views: Iterable[View], registry: Registry) -> dict[str, ViewStatus]:
    """Views that come after those they read, by the tables that hold them."""
    found: dict[str, ViewStatus] = {}
    for view in views:
        found[view.backing] = _status(view, registry, found)
    return found


def _status(view: View, registry: Registry, above: Mapping[str, ViewStatus]) -> ViewStatus:
    log = registry.log(view)
    last = next(refreshes(log, view.id), None)
    covers = standing(log, view.id).covers
    behind: dict[str, int] = {}
    state = "fresh"
    for table in view.tables:
        name = _source_name(view, table)
        try:
            behind[name] = registry.tables.log(table).version() - (covers[table].version if table in covers else -1)
        except SourceError:
            state = f"broken: {name} is gone"
    states = {above[t].state for t in view.tables if t in above}
    moments = clock_moments(view, covers, Versions(registry).moment)
    if state == "fresh" and moments is not None and is_later(view, moments):
        state = "stale"
    if state == "fresh" and (any(behind.values()) or states - {"fresh", "unknown"}):
        state = "stale"
    if state == "fresh" and (view.reads_unversioned or "unknown" in states):
        state = "unknown"
    how = "by recompute" if view.reason or view.policy == "FULL" else "from changes"
    return ViewStatus(
        view=view.name,
        state=state,
        policy=view.policy,
        maintained=how,
        rows=log.snapshot().rows,
        covers=by_source(view, covers),
        behind=behind,
        refreshed=_time(last.commit.timestamp) if last else None,
        last_strategy=last.note.strategy if last else None,
        last_seconds=last.seconds if last else None,
        last_predicted_seconds=last.note.predicted if last else None,
        reason=str(view.reason) if view.reason else None,
        comment=view.comment,
    )


def history(view: View, registry: Registry) -> HistoryReport:
    entries = []
    for found in refreshes(registry.log(view), view.id):
        commit, note = found.commit, found.note
        updated = commit.metrics.get("numTargetRowsUpdated", 0)
        inserted, deleted = note.rows_inserted, note.rows_deleted
        if inserted is None and not note.moves:
            by_merge = commit.metrics.get("numTargetRowsInserted")
            inserted = (
                by_merge + updated if by_merge is not None else commit.metrics.get("numOutputRows", commit.rows_added)
            )
        if deleted is None and not note.moves and "numTargetRowsDeleted" in commit.metrics:
            deleted = commit.metrics["numTargetRowsDeleted"] + updated
        entries.append(
            HistoryEntry(
                version=commit.version,
                at=_time(commit.timestamp),
                strategy=note.strategy,
                install=note.install,
                rows_inserted=inserted,
                rows_deleted=deleted,
                seconds=found.seconds,
                predicted_seconds=note.predicted,
                covers=by_source(view, note.covers),
                reason=note.reason,
            )
        )
    return HistoryReport(view.name, tuple(entries))


def describe(view: View, registry: Registry) -> Explanation:
    """The view as it was created, and how it stands."""
    now = _statuses(registry.with_sources([view]), registry)[view.backing]
    facts = {
        "state": now.state,
        "policy": view.policy,
        "maintained": now.maintained + (f" ({view.reason})" if view.reason else ""),
        "rows": f"{now.rows:,}" if now.rows is not None else "?",
        "reads": ", ".join(f"{s}@{v}" for s, v in now.covers.items()),
        "last refresh": f"{now.refreshed} ({now.last_strategy})" if now.refreshed else "never",
        "kept in": view.backing,
        "comment": view.comment or "",
        "clustered by": ", ".join(view.cluster_by),
    }
    columns = "\n".join(f"{name}  {type_}" for name, type_ in view.columns)
    return Explanation(
        view.name,
        {
            view.name: "\n".join(f"{k}: {v}" for k, v in facts.items() if v),
            "Columns": columns,
            "Query": view.text,
        },
    )


def explain(view: View, registry: Registry, settings: Settings, *, kept: bool = True) -> Explanation:
    """Strategy, algebra, kept form, change rules and the SQL they make; `kept` is false for a view not yet made."""
    sections = {"Query": view.text}
    if view.reason is not None:
        sections["Not incremental"] = str(view.reason)
    if view.definition is not None:
        sections["Algebra"] = show(view.definition)
        sections["Kept as"] = kept_text(view)
        sections["Readers see"] = unparse(public_relation(view))
    if keys := _keys_text(view, registry):
        sections["Declared keys"] = keys
    if view.definition is not None and view.reason is None:
        sections.update(_change_sections(view, registry))
    if kept:
        sections["Now"] = _now(view, registry, settings)
    return Explanation(view.name, sections)


def kept_text(view: View) -> str:
    """What the view's table holds, in words."""
    form = form_of(view)
    assert form is not None
    match form.kept:
        case KeptBag():
            return "rows as they are, duplicates as so many rows"
        case KeptGroups(key=key, states=states):
            lines = [f"one row per {', '.join(key)}" if key else "one row for everything"]
            for s in states:
                how = {
                    "add": "added up from changes",
                    "fresh": "its group computed afresh",
                    "drift": f"how far {s.drift_of} may be off; past 1e-9 of it, its group is computed afresh",
                }.get(s.merge, "kept from inserts; its group computed afresh after deletes")
                why = f" ({s.why_fresh})" if s.why_fresh else ""
                lines.append(f"  {s.name}: {s.measure.function}, {how}{why}")
            return "\n".join(lines)
        case KeptTop(wanted=wanted):
            return f"the first {form.kept.room:,} rows, of which {wanted:,} are wanted"
        case _:
            assert_never(form.kept)


def declared_keys(view: View, registry: Registry) -> Declarations:
    """What the view's base tables declare now, and what of it is not relied on."""
    tables = registry.tables
    metadata = {t: tables.log(t).snapshot().metadata for t in view.base_tables if tables.has_delta(t)}
    return declarations(metadata, tables.canonical, tables.has_delta)


def _keys_text(view: View, registry: Registry) -> str:
    found = declared_keys(view, registry)
    keys = [f"{t} ({', '.join(sorted(k))})" for t, known in found.declared.keys.items() for k in known]
    not_relied_on = [f"not relied on: {problem}" for problem in found.problems]
    return "\n".join([*sorted(keys), *map(str, found.declared.references), *not_relied_on])


def _change_sections(view: View, registry: Registry) -> dict[str, str]:
    """The change of the view if every source had changed, between the covered and the current versions."""
    kept = maintained(view)
    assert kept is not None and view.definition is not None
    tables = {n.table for n in walk(view.definition) if isinstance(n, Scan)}
    clock = {CLOCK} if clock_functions(view.query) else set()
    declared = declared_keys(view, registry).declared
    change = maintenance(kept, dict.fromkeys(tables | clock, "any"), declared)
    notes = "\n".join(map(str, change.reasons))
    return {
        "Rows that matter": _relevance_text(view),
        "Change (if every source changed)": show(change.change) + (f"\n{notes}" if notes else ""),
        "Installed": installed_text(change),
        "SQL of the change": change_sql(change, view, registry),
    }


def _relevance_text(view: View) -> str:
    """For each source what a row must meet to matter."""
    form = form_of(view)
    assert form is not None
    found = rows_that_matter(form.kept, ansi=is_ansi(view))
    return "\n".join(f"{_source_name(view, table)}: {_matters(rows)}" for table, rows in found.items())


def _matters(rows: Scalar) -> str:
    if rows == FALSE:
        return "none, its conditions contradict each other"
    return "all" if rows == TRUE else show_condition(rows)


def installed_text(change: Maintenance) -> str:
    by_weight = isinstance(change.merge, MergeBag | MergeTop)
    return "rows of weight +n come, of weight −n go" if by_weight else "merged by key"


def change_sql(change: Maintenance, view: View, registry: Registry) -> str:
    """The SQL of a change of any of the view's tables, between the covered and the current versions."""
    tables = {n.table for n in walk(change.change) if isinstance(n, Scan | Changes)}
    return sql_by_parts(change.change, PinnedLeaves({t: _example_pin(view, t, registry) for t in tables}))


def sql_by_parts(change: Relation, leaves: PinnedLeaves) -> str:
    """The SQL of a change; of a large one that of the parts first which are computed before it."""
    texts: list[str] = []
    given = dict(leaves.given)

    def written(rel: Relation) -> str:
        return unparse(rel, replace(leaves, given=given))

    def write(part: Relation) -> Computed:
        name = f"__vk_part_{len(texts) + 1}"
        texts.append(f"-- {name}, computed before the rest\n{written(part)}")
        given[name] = name
        return Computed(name, rows=1)

    last = by_parts(change, write)
    return "\n\n".join([*texts, written(last)])


def _example_pin(view: View, table: str, registry: Registry) -> Pin:
    now = registry.tables.log(table).version()
    covered = 0
    if registry.tables.has_delta(view.backing):
        covers = standing(registry.log(view), view.id).covers
        covered = covers[table].version if table in covers else now
    first = min(covered + 1, now) if now else now
    return Pin(min(covered, now), now, Feed(first, now, False, 0))


def _now(view: View, registry: Registry, settings: Settings) -> str:
    try:
        versions = Versions(registry)
        versions.pin(view.base_tables)
        seen = look(view, registry, versions)
    except ViewkeeperError as error:
        return str(error)
    step = plan_view(seen.situation, settings)
    shown = planned(step, seen)
    lines = [f"a refresh would do: {strategy(step)}", f"why: {shown.reason}"]
    lines += [f"pending in {t}: {p}" for t, p in shown.pending.items()]
    return "\n".join(lines)


def by_source(view: View, covers: Covers) -> dict[str, int]:
    """Covered versions by the names the query uses."""
    return {_source_name(view, table): c.version for table, c in covers.items() if table != CLOCK}


def covered_versions(view: View, registry: Registry) -> Mapping[str, int]:
    return by_source(view, standing(registry.log(view), view.id).covers)


def _source_name(view: View, table: str) -> str:
    return next((s.name for s in view.sources if s.table == table), table)


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
