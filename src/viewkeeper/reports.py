"""What the warehouse answers: values that print as tables, show in notebooks, and turn into plain data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sized
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from viewkeeper.display import html_table, text_table

Progress = Callable[[str, str], None]  # told as it goes: a view, and what happens to it now

_NO_VIEWS = "There are no materialized views yet."


def _count(views: Sized) -> str:
    return "the view is" if len(views) == 1 else f"all {len(views)} views are"


class Report:
    """A titled table of records."""

    title: ClassVar[str]
    columns: ClassVar[tuple[str, ...]]
    numbers: ClassVar[frozenset[str]] = frozenset()

    def rows(self) -> list[list[object]]:
        raise NotImplementedError

    def to_data(self) -> Any:
        raise NotImplementedError

    def __str__(self) -> str:
        return text_table(self.title, self.columns, self.rows(), self.numbers)

    def _repr_html_(self) -> str:
        return html_table(self.title, self.columns, self.rows())


@dataclass(frozen=True)
class RefreshRecord:
    """What a refresh did to one view. `covers` gives the version of each source that the view now shows."""

    view: str
    strategy: str
    reason: str
    rows_inserted: int
    rows_deleted: int
    seconds: float
    covers: Mapping[str, int]
    install: str = ""
    predicted_seconds: float | None = None
    error: str | None = None


@dataclass(frozen=True)
class RefreshReport(Report):
    """One record per view, in the order in which they were refreshed."""

    records: tuple[RefreshRecord, ...] = ()
    title = "Refresh"
    columns = ("view", "strategy", "rows in", "rows out", "seconds", "install", "reason")
    numbers = frozenset({"rows in", "rows out", "seconds"})

    def __iter__(self) -> Iterator[RefreshRecord]:
        return iter(self.records)

    def __len__(self) -> int:
        return len(self.records)

    def __getitem__(self, view: str) -> RefreshRecord:
        return next(r for r in self.records if r.view == view)

    def rows(self) -> list[list[object]]:
        return [
            [
                r.view,
                "failed" if r.error else r.strategy,
                r.rows_inserted,
                r.rows_deleted,
                r.seconds,
                r.install,
                r.error or r.reason,
            ]
            for r in self.records
        ]

    def to_data(self) -> list[dict[str, Any]]:
        return [asdict(r) for r in self.records]

    def __str__(self) -> str:
        if not self.records:
            return _NO_VIEWS
        if all(r.reason == "up to date" for r in self.records):
            return f"Nothing to do: {_count(self.records)} up to date."
        return super().__str__()


@dataclass(frozen=True)
class PlannedStep:
    """What a refresh would do to one view, and why."""

    view: str
    strategy: str
    reason: str
    predicted_seconds: float | None
    recompute_seconds: float | None
    install: str
    rows_to_read: int | None
    pending: Mapping[str, str]


@dataclass(frozen=True)
class PlanReport(Report):
    """One step per view, in order; nothing has been touched."""

    steps: tuple[PlannedStep, ...] = ()
    title = "Plan"
    columns = ("view", "strategy", "predicted s", "recompute s", "install", "pending", "reason")
    numbers = frozenset({"predicted s", "recompute s"})

    def __iter__(self) -> Iterator[PlannedStep]:
        return iter(self.steps)

    def __len__(self) -> int:
        return len(self.steps)

    def __getitem__(self, view: str) -> PlannedStep:
        return next(s for s in self.steps if s.view == view)

    def rows(self) -> list[list[object]]:
        return [
            [
                s.view,
                s.strategy,
                s.predicted_seconds,
                s.recompute_seconds,
                s.install,
                "\n".join(f"{t}: {p}" for t, p in s.pending.items()),
                s.reason,
            ]
            for s in self.steps
        ]

    def to_data(self) -> list[dict[str, Any]]:
        return [asdict(s) for s in self.steps]

    def __str__(self) -> str:
        if not self.steps:
            return _NO_VIEWS
        if all(s.reason == "up to date" for s in self.steps):
            return f"A refresh would do nothing: {_count(self.steps)} up to date."
        return super().__str__()


@dataclass(frozen=True)
class ViewStatus:
    """How one view stands against its sources."""

    view: str
    state: str
    policy: str
    maintained: str
    rows: int | None
    covers: Mapping[str, int]
    behind: Mapping[str, int]
    refreshed: str | None
    last_strategy: str | None
    last_seconds: float | None
    last_predicted_seconds: float | None
    reason: str | None
    comment: str | None = None


@dataclass(frozen=True)
class StatusReport(Report):
    """All views of a warehouse."""

    views: tuple[ViewStatus, ...] = ()
    title = "Views"
    columns = (
        "view",
        "state",
        "policy",
        "maintained",
        "rows",
        "commits behind",
        "last refresh",
        "how",
        "seconds",
        "predicted s",
        "reason",
    )
    numbers = frozenset({"rows", "seconds", "predicted s"})

    def __iter__(self) -> Iterator[ViewStatus]:
        return iter(self.views)

    def __len__(self) -> int:
        return len(self.views)

    def __getitem__(self, view: str) -> ViewStatus:
        return next(v for v in self.views if v.view == view)

    def rows(self) -> list[list[object]]:
        return [
            [
                v.view,
                v.state,
                v.policy,
                v.maintained,
                v.rows,
                "\n".join(f"{t}: {n}" for t, n in v.behind.items() if n),
                v.refreshed,
                v.last_strategy,
                v.last_seconds,
                v.last_predicted_seconds,
                v.reason,
            ]
            for v in self.views
        ]

    def to_data(self) -> list[dict[str, Any]]:
        return [asdict(v) for v in self.views]

    def __str__(self) -> str:
        return super().__str__() if self.views else _NO_VIEWS


@dataclass(frozen=True)
class HistoryEntry:
    """One refresh of a view, as its commit tells."""

    version: int
    at: str
    strategy: str
    install: str
    rows_inserted: int | None
    rows_deleted: int | None
    seconds: float | None
    predicted_seconds: float | None
    covers: Mapping[str, int]
    reason: str


@dataclass(frozen=True)
class HistoryReport(Report):
    """A view's refreshes, newest first."""

    view: str = ""
    entries: tuple[HistoryEntry, ...] = ()
    title = "History"
    columns = (
        "version",
        "at",
        "strategy",
        "install",
        "rows in",
        "rows out",
        "seconds",
        "predicted s",
        "covers",
        "reason",
    )
    numbers = frozenset({"version", "rows in", "rows out", "seconds", "predicted s"})

    def __iter__(self) -> Iterator[HistoryEntry]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def rows(self) -> list[list[object]]:
        return [
            [
                e.version,
                e.at,
                e.strategy,
                e.install,
                e.rows_inserted,
                e.rows_deleted,
                e.seconds,
                e.predicted_seconds,
                "\n".join(f"{t}@{v}" for t, v in e.covers.items()),
                e.reason,
            ]
            for e in self.entries
        ]

    def to_data(self) -> dict[str, Any]:
        return {"view": self.view, "history": [asdict(e) for e in self.entries]}


@dataclass(frozen=True)
class Audit:
    """A view against a recompute of its query at the versions it covers, as bags, both ways."""

    view: str
    equal: bool
    rows: int
    missing: int
    extra: int
    seconds: float
    covers: Mapping[str, int]
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class AuditReport(Report):
    """One audit per view."""

    audits: tuple[Audit, ...] = ()
    title = "Audit: view = recompute, both ways"
    columns = ("view", "equal", "rows", "missing", "extra", "seconds", "examples")
    numbers = frozenset({"rows", "missing", "extra", "seconds"})

    def __iter__(self) -> Iterator[Audit]:
        return iter(self.audits)

    def __len__(self) -> int:
        return len(self.audits)

    def __getitem__(self, view: str) -> Audit:
        return next(a for a in self.audits if a.view == view)

    @property
    def equal(self) -> bool:
        return all(a.equal for a in self.audits)

    def rows(self) -> list[list[object]]:
        return [[a.view, a.equal, a.rows, a.missing, a.extra, a.seconds, "\n".join(a.examples)] for a in self.audits]

    def to_data(self) -> list[dict[str, Any]]:
        return [asdict(a) for a in self.audits]

    def __str__(self) -> str:
        return super().__str__() if self.audits else _NO_VIEWS


@dataclass(frozen=True)
class Created:
    """A view that was made, and whether changes can maintain it."""

    view: str
    policy: str
    incremental: bool
    reason: str | None
    seconds: float
    action: str = "created"
    warnings: tuple[str, ...] = ()
    content: str = ""

    def to_data(self) -> dict[str, Any]:
        return asdict(self)

    def __str__(self) -> str:
        kept = "kept from changes" if self.incremental else f"kept by recompute: {self.reason}"
        lines = [f"View {self.view} {self.action} in {self.seconds:.1f} s; {kept}."]
        if self.content:
            lines.append(f"Its rows were {self.content}.")
        return "\n".join([*lines, *(f"Warning: {w}" for w in self.warnings)])


@dataclass(frozen=True)
class Done:
    """A statement that has nothing to show but that it was carried out."""

    message: str

    def to_data(self) -> dict[str, str]:
        return {"message": self.message}

    def __str__(self) -> str:
        return self.message


@dataclass(frozen=True)
class Explanation:
    """Texts by heading: how a view is kept, and why in this way."""

    view: str
    sections: Mapping[str, str] = field(default_factory=dict)

    def to_data(self) -> dict[str, Any]:
        return {"view": self.view, "sections": dict(self.sections)}

    def __str__(self) -> str:
        return "\n\n".join(f"{heading}\n{'-' * len(heading)}\n{text}" for heading, text in self.sections.items())
