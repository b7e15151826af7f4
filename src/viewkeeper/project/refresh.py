"""Bringing a warehouse in line with a project's files."""

from __future__ import annotations

import dataclasses

from viewkeeper.errors import ProjectError, ViewkeeperError
from viewkeeper.project.plan import NOT_IN_PROJECT, Item, ProjectPlan
from viewkeeper.reports import Progress, RefreshRecord, RefreshReport
from viewkeeper.warehouse import Warehouse

Records = dict[str, RefreshRecord]


def refresh_project(plan: ProjectPlan, wh: Warehouse, progress: Progress, *, full: bool = False) -> RefreshReport:
    """Create what is new, replace what changed, refresh the rest; views in no file are only named.

    One view that fails does not keep the others from being refreshed; the first error is raised in the end, and
    has the whole report as its `report`.
    """
    records: Records = {}
    errors: list[ViewkeeperError] = []
    for item in (i for i in plan.items if i.action in ("create", "replace")):
        try:
            records[item.name] = _carry_out(item, plan, wh, records, progress)
        except ViewkeeperError as error:
            progress(item.name, "failed")
            errors.append(item.definition.script.located(error))
            records[item.name] = RefreshRecord(item.name, "none", error.message, 0, 0, 0.0, {}, error=str(error))
    records.update({i.name: _record(i, wh, 0.0) for i in plan.items if i.action == "rebuild"})
    for name, record in _refresh_rest(plan, wh, progress, errors, full=full).items():
        records.setdefault(name, record)
    for name in plan.orphans:
        records.setdefault(name, RefreshRecord(name, "none", NOT_IN_PROJECT, 0, 0, 0.0, {}))
    report = RefreshReport(tuple(records.values()))
    if errors:
        errors[0].report = report  # type: ignore[attr-defined]
        raise errors[0]
    return report


def _refresh_rest(
    plan: ProjectPlan, wh: Warehouse, progress: Progress, errors: list[ViewkeeperError], *, full: bool
) -> Records:
    kept = plan.names("keep")
    if not kept:
        return {}
    try:
        report = wh.refresh(*kept, full=full, progress=progress)
    except ViewkeeperError as error:
        errors.append(error)
        report = getattr(error, "report", RefreshReport())
    return {record.view: record for record in report}


def _carry_out(item: Item, plan: ProjectPlan, wh: Warehouse, done: Records, progress: Progress) -> RefreshRecord:
    for source in item.definition.reads:
        if source in done and done[source].error and wh.registry.find(source) is None:
            raise ProjectError(f"{item.name} was not created, since {source}, which it reads, was not")
    new = item.action == "create"
    progress(item.name, "creating it" if new else "replacing it")
    statement = dataclasses.replace(item.definition.statement, or_replace=not new, cascade=True)
    created = wh.create(statement, leave=_replaced_later(item, plan, wh, done))
    progress(item.name, "created" if new else "replaced")
    return _record(item, wh, getattr(created, "seconds", 0.0), getattr(created, "content", ""))


def _replaced_later(item: Item, plan: ProjectPlan, wh: Warehouse, done: Records) -> set[str]:
    """Views that will yet be replaced, and their readers: to build those again before that would be in vain."""
    pending = [n for n in plan.names("replace") if n not in done and n != item.name]
    views = [view for n in pending if (view := wh.registry.find(n))]
    return {v.name for view in views for v in (view, *wh.registry.readers(view))}


def _record(item: Item, wh: Warehouse, seconds: float, content: str = "") -> RefreshRecord:
    last = next(iter(wh.history(item.name)))
    what = "created" if item.action == "create" else "replaced"
    reason = f"{what}: {item.why}" + (f"; its rows were {content}" if content else "")
    return RefreshRecord(
        item.name, last.strategy, reason, last.rows_inserted or 0, 0, seconds, last.covers, last.install
    )
