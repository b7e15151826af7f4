"""What a project's files ask of its warehouse, decided without Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal as OneOf

from viewkeeper.errors import ProjectError
from viewkeeper.project.definitions import Definition, read_definitions
from viewkeeper.project.files import FILE, Project
from viewkeeper.reports import PlannedStep, PlanReport
from viewkeeper.sql.parse import tokenize
from viewkeeper.sql.statements import CreateView
from viewkeeper.store.names import split
from viewkeeper.store.views import View
from viewkeeper.warehouse import Warehouse

NOT_IN_PROJECT = "not in the project; `viewkeeper drop` drops it"
# Files that Spark reads by path: SELECT … FROM parquet.`some/folder`
_FORMATS = frozenset({"avro", "binaryfile", "csv", "delta", "json", "orc", "parquet", "text", "xml"})

Action = OneOf["create", "replace", "rebuild", "keep"]


@dataclass(frozen=True)
class Item:
    """What happens to one view of the project, and why."""

    name: str
    action: Action
    why: str
    definition: Definition


@dataclass(frozen=True)
class ProjectPlan:
    """Views in dependency order, and the warehouse's views that are in no file."""

    items: tuple[Item, ...]
    orphans: tuple[str, ...] = ()

    def names(self, action: Action) -> tuple[str, ...]:
        return tuple(i.name for i in self.items if i.action == action)


def plan_project(project: Project, wh: Warehouse, names: Iterable[str] = ()) -> ProjectPlan:
    """Compare the files with the warehouse: all views, or the named ones and what they read."""
    definitions = read_definitions(project, wh.tables)
    views = wh.registry.views()
    orphans = tuple(name for name in views if name not in {d.name for d in definitions})
    chosen = [wh.tables.canonical(split(n)) for n in names]
    if chosen:
        definitions, orphans = _with_sources(definitions, chosen, project), ()
    _check_sources(definitions, wh)
    rebuilt: dict[str, str] = {}
    items = []
    for d in definitions:
        item = _compared(d, views.get(d.name), rebuilt)
        if item.action == "replace":
            rebuilt.update({r.name: d.name for r in wh.registry.readers(views[d.name])})
        items.append(item)
    return ProjectPlan(tuple(items), orphans)


def _compared(definition: Definition, view: View | None, rebuilt: Mapping[str, str]) -> Item:
    if view is None:
        return Item(definition.name, "create", f"new in {definition.place}", definition)
    changed = differences(definition.statement, view)
    if changed:
        return Item(definition.name, "replace", f"{', '.join(changed)} changed in {definition.place}", definition)
    if view.name in rebuilt:
        return Item(definition.name, "rebuild", f"it reads {rebuilt[view.name]}, which is replaced", definition)
    return Item(definition.name, "keep", "", definition)


def differences(statement: CreateView, view: View) -> list[str]:
    """In what a statement and a view differ; layout and comments in the query do not count."""
    pairs: dict[str, tuple[object, object]] = {
        "query": (_words(statement.query), _words(view.text)),
        "policy": (statement.policy, view.policy),
        "columns": (statement.columns or view.query_columns, tuple(name for name, _ in view.columns)),
        "column comments": (statement.column_comments, dict(view.column_comments)),
        "comment": (statement.comment, view.comment),
        "CLUSTER BY": (_lower(statement.cluster_by), _lower(view.cluster_by)),
        "properties": (statement.properties, dict(view.properties)),
    }
    return [what for what, (wanted, kept) in pairs.items() if wanted != kept]


def _words(query: str) -> list[tuple[str, str]]:
    return [(str(t.token_type), t.text) for t in tokenize(query)]


def _lower(names: Iterable[str]) -> list[str]:
    return [n.lower() for n in names]


def _with_sources(definitions: list[Definition], names: list[str], project: Project) -> list[Definition]:
    by_name = {d.name: d for d in definitions}
    for name in names:
        if name not in by_name:
            known = ", ".join(by_name) or "none"
            raise ProjectError(f"view {name} is not in the project {project.root}", hint=f"views in it: {known}")
    needed: set[str] = set()
    pending = list(names)
    while pending:
        name = pending.pop()
        if name in by_name and name not in needed:
            needed.add(name)
            pending.extend(by_name[name].reads)
    return [d for d in definitions if d.name in needed]


def _check_sources(definitions: list[Definition], wh: Warehouse) -> None:
    known = {d.name for d in definitions} | set(wh.registry.views())
    for definition in (d for d in definitions if d.certain):
        for table in definition.reads:
            by_path = "." in table and table.split(".")[0] in _FORMATS
            if not (table in known or by_path or wh.tables.has_delta(table)):
                raise ProjectError(
                    f"{definition.place}: view {definition.name} reads {table}, which is neither in the project"
                    " nor in the warehouse",
                    hint=f"create the table by `viewkeeper sql`, or list the file that does under `setup` in {FILE}"
                    " and run `viewkeeper init`",
                )


def plan_report(plan: ProjectPlan, wh: Warehouse) -> PlanReport:
    """What a refresh of the project would do, view by view."""
    kept = plan.names("keep")
    refreshed = {step.view: step for step in wh.plan(*kept)} if kept else {}
    changed = {
        i.name: _step(i.name, "create" if i.action == "create" else "replace", i.why)
        for i in plan.items
        if i.action != "keep"
    }
    steps = {**refreshed, **changed}
    order = dict.fromkeys(i.name for i in plan.items)
    orphans = [_step(name, "none", NOT_IN_PROJECT) for name in plan.orphans if name not in steps]
    unlisted = [step for name, step in steps.items() if name not in order]
    return PlanReport((*unlisted, *(steps[name] for name in order), *orphans))


def _step(view: str, strategy: str, reason: str) -> PlannedStep:
    return PlannedStep(view, strategy, reason, None, None, "", None, {})
