"""A view at each stage of its path, from its text to the SQL that a refresh would run now; from the logs alone."""

from __future__ import annotations

from typing import Literal as OneOf
from typing import assert_never, get_args

from viewkeeper.algebra.clock import CLOCK
from viewkeeper.algebra.display import show, show_operator
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Scan
from viewkeeper.algebra.scalars import Clock
from viewkeeper.changes.kept import Kept
from viewkeeper.changes.merge import MergeBag, MergeGroups, MergeTop
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.rules import Applied, applied_rules
from viewkeeper.changes.weights import Changed
from viewkeeper.errors import SqlError, ViewkeeperError
from viewkeeper.overview import change_sql, installed_text, kept_text, planned, sql_by_parts, steps
from viewkeeper.planner.cost import Cost
from viewkeeper.planner.plan import Maintain, Nothing, Recompute, Refuse, Step, strategy
from viewkeeper.reports import Explanation
from viewkeeper.runtime import install
from viewkeeper.runtime.forms import content_query, form_of, maintained, public_relation
from viewkeeper.runtime.look import Look, Versions
from viewkeeper.runtime.reread import reread
from viewkeeper.settings import Settings
from viewkeeper.sql.pretty import pretty
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import View

Stage = OneOf["parsed", "bound", "normalized", "changes", "plan", "sql"]
STAGES: tuple[Stage, ...] = get_args(Stage)
Sections = dict[str, str]


def explain_stage(view: View, stage: str, registry: Registry, settings: Settings) -> Explanation:
    """One stage of the view's path, as texts by heading."""
    if stage not in STAGES:
        raise ViewkeeperError(f"there is no stage {stage}", hint=f"stages: {', '.join(STAGES)}")
    return Explanation(view.name, _sections(view, stage, registry, settings))


def _sections(view: View, stage: Stage, registry: Registry, settings: Settings) -> Sections:
    match stage:
        case "parsed":
            return _parsed(view)
        case "bound":
            return _bound(view, registry)
        case "normalized":
            return _normalized(view)
        case "changes":
            return _changes(view, *_now(view, registry, settings)[-1])
        case "plan":
            *first, now = _now(view, registry, settings)
            return {**_before(first), **_plan(*now)}
        case "sql":
            *first, now = _now(view, registry, settings)
            return {**_before(first), **_sql(*now, registry)}
        case _:
            assert_never(stage)


def _parsed(view: View) -> Sections:
    try:
        return {"Query as parsed": pretty(view.query)}
    except SqlError as error:
        return {"Query": view.query, "Not parsed": error.message}


def _bound(view: View, registry: Registry) -> Sections:
    if view.definition is None:
        return _unread(view)
    found = reread(view, registry)
    if isinstance(found, Reason):
        return {"Not read again": str(found)}
    return {"Algebra as read": show(found)}


def _unread(view: View) -> Sections:
    return {"Not read": str(view.reason or "it could not be read")}


def _normalized(view: View) -> Sections:
    form = form_of(view)
    if form is None or view.definition is None:
        return _unread(view)
    return {
        "Algebra as maintained": show(view.definition),
        "Kept as": kept_text(view),
        "Kept rows": show(form.kept.content),
        "Shown to readers": show(public_relation(view)),
    }


# Changes


def _changes(view: View, seen: Look, step: Step) -> Sections:
    kept = maintained(view)
    if kept is None or view.reason is not None:
        return {"Not incremental": str(view.reason)}
    pending = isinstance(step, Maintain)
    changed = seen.situation.changed if pending else _everything(kept)
    change = step.maintenance if isinstance(step, Maintain) else maintenance(kept, changed, seen.situation.declared)
    which = "of what is pending now" if pending else "if every source changed"
    sections = {
        f"Rules ({which})": "\n".join(_rule_text(applied) for applied in applied_rules(kept, changed)),
        f"Change ({which})": show(change.change),
        "Installed": installed_text(change),
    }
    if change.reasons:
        sections["Reasons"] = "\n".join(map(str, change.reasons))
    return sections


def _everything(kept: Kept) -> Changed:
    return {n.table if isinstance(n, Scan) else CLOCK: "any" for n in walk(kept.content) if isinstance(n, Scan | Clock)}


def _rule_text(applied: Applied) -> str:
    indent = "  " * applied.depth
    operator = f"{indent}{show_operator(applied.operator)}   [{applied.rule.name}]"
    return "\n".join([operator, *(f"{indent}    {line}" for line in (*applied.rule.equations, *applied.reasons))])


# The plan


def _now(view: View, registry: Registry, settings: Settings) -> list[tuple[Look, Step]]:
    """What a refresh would find and do: for the views that this one reads, then for itself."""
    return list(steps(registry.with_sources([view]), registry, Versions(registry), settings))


def _before(first: list[tuple[Look, Step]]) -> Sections:
    """The views that would be refreshed before this one, and so be at later versions than can be shown."""
    done = [seen.view.name for seen, step in first if strategy(step) != "none"]
    return {"First": f"refresh of {', '.join(done)}; how much that changes is an estimate"} if done else {}


def _plan(seen: Look, step: Step) -> Sections:
    shown = planned(step, seen)
    sections = {"Step": f"{shown.strategy}: {step.reason}"}
    match step:
        case Maintain():
            sections["Computed"] = _computed_by(step)
            sections["Install"] = f"{step.install}: {step.why_install}"
            if step.maintenance.reasons:
                sections["Reasons"] = "\n".join(map(str, step.maintenance.reasons))
            sections["Cost"] = f"change: {_cost_text(step.cost)}\nrecompute: {_cost_text(step.recompute_cost)}"
        case Recompute():
            change = f"change: {_cost_text(step.instead_of.cost)}\n" if step.instead_of else ""
            sections["Install"] = "overwrite: all of it is computed"
            sections["Cost"] = f"{change}recompute: {_cost_text(step.cost)}"
        case Refuse():
            sections["Step"] = shown.reason
        case Nothing():
            pass
        case _:
            assert_never(step)
    if shown.pending:
        sections["Pending"] = "\n".join(f"{table}: {what}" for table, what in shown.pending.items())
    return sections


def _computed_by(step: Maintain) -> str:
    if step.here:
        return "by this process, without a Spark job, if its rows turn out to be few; else by Spark"
    return "by Spark"


def _cost_text(cost: Cost) -> str:
    parts = (
        f"{cost.rows_read:,} rows, {_size(cost.bytes_read)} and {cost.files:,} files in {cost.reads} reads, "
        f"{cost.rows_moved:,} rows moved, {cost.rows_written:,} rows, {_size(cost.bytes_written)} written, "
        f"{cost.fixed:.2f} s fixed"
    )
    return f"{cost.seconds:.2f} s ({parts})"


def _size(size: int) -> str:
    return f"{size / 1_000_000:,.1f} MB" if size >= 100_000 else f"{size / 1_000:,.1f} kB"


# The SQL


def _sql(seen: Look, step: Step, registry: Registry) -> Sections:
    """The texts that a refresh would run, in this order; where nothing is to be done, those of any change."""
    view = seen.view
    match step:
        case Maintain(maintenance=change):
            text = sql_by_parts(change.change, seen.leaves)
            return {"SQL of the change": text, **_install_sections(seen, step)}
        case Recompute():
            query = content_query(view, seen.leaves, registry.find)
            return {"SQL of the recompute": install.Rows(view.backing, "overwrite", query).sql}
        case Nothing(_, reason) | Refuse(_, reason):
            nothing = {"Now": f"nothing would run: {reason}"}
            kept = maintained(view)
            if kept is None or view.reason is not None:
                return nothing
            change = maintenance(kept, _everything(kept), seen.situation.declared)
            return {**nothing, "SQL of the change (if every source changed)": change_sql(change, view, registry)}
        case _:
            assert_never(step)


def _install_sections(seen: Look, step: Maintain) -> Sections:
    table = seen.view.backing
    old = f"{table} VERSION AS OF {seen.standing.version}"
    doubt, sections = step.maintenance.doubt, {}
    if doubt is not None and isinstance(step.maintenance.merge, MergeGroups):
        sections["SQL of the groups whose sums may be off"] = install.doubted_keys(old, step.maintenance.merge, doubt)
    match step.maintenance.merge:
        case MergeBag() as merge:
            return {"SQL of the install": install.install_bag(step.install, table, old, merge).sql}
        case MergeGroups() as merge if step.install == "merge":
            return {**sections, "SQL of the install": install.merge_groups(table, merge).sql}
        case MergeGroups() as merge:
            change = f"SELECT * FROM {install.CHANGE_VIEW}"
            return {
                **sections,
                "SQL of the rows after it": install.merged_groups(old, merge, change),
                "SQL of the install": install.rewrite_groups(table, merge).sql,
            }
        case MergeTop() as merge:
            change = f"SELECT * FROM {install.CHANGE_VIEW}"
            return {
                "SQL of the rows after it": install.merged_top(old, merge, change),
                "SQL of the install": install.kept_top(table, merge).sql,
            }
        case _:
            assert_never(step.maintenance.merge)
