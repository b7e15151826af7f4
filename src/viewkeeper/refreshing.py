"""One refresh of several views: what each needs is looked at, decided and done, and told as a record."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from viewkeeper import overview
from viewkeeper.errors import ConflictError, ViewkeeperError
from viewkeeper.planner.build import plan_view, recompute_cost
from viewkeeper.planner.plan import Nothing, Outcome, Recompute
from viewkeeper.reports import Progress, RefreshRecord, RefreshReport
from viewkeeper.runtime.look import Look, Versions, look
from viewkeeper.runtime.turns import in_turn
from viewkeeper.settings import Settings
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import View

if TYPE_CHECKING:
    from viewkeeper.runtime.execute import Executor


def silent(view: str, event: str) -> None:
    """Nobody watches."""


@dataclass(frozen=True)
class Refreshing:
    """All its views see the same versions of the tables they read.

    executor   gives what runs steps, and starts Spark: nobody asks for it if there is nothing to do
    failed     errors by the tables of the views that had them
    """

    registry: Registry
    settings: Settings
    versions: Versions
    executor: Callable[[], Executor]
    progress: Progress = silent
    failed: dict[str, ViewkeeperError] = field(default_factory=dict)

    def run(self, views: Sequence[View], forced: Collection[str] = ()) -> RefreshReport:
        """Views in dependency order, of which some are recomputed whatever they need.

        One that fails stops only those that read it. The first error is raised in the end, with the report.
        """
        records = in_turn(
            views, lambda view: self.record(view, forced=view.name in forced), self.settings.views_at_once
        )
        report = RefreshReport(tuple(records))
        if self.failed:
            first = next(iter(self.failed.values()))
            first.report = report  # type: ignore[attr-defined]
            raise first
        return report

    def record(self, view: View, *, forced: bool) -> RefreshRecord:
        started = time.monotonic()
        seen: Look | None = None
        try:
            blocked = [b for b in view.tables if b in self.failed]
            if blocked:
                raise ViewkeeperError(f"{view.name} was not refreshed, since {blocked[0]}, which it reads, was not")
            seen, outcome = self._refreshed(view, forced=forced)
        except ViewkeeperError as error:
            self.failed[view.backing] = error
            self.progress(view.name, "failed")
            covers = overview.by_source(view, seen.covers) if seen else {}
            seconds = time.monotonic() - started
            return RefreshRecord(view.name, "none", error.message, 0, 0, seconds, covers, error=str(error))
        self.versions.move(view.backing)
        self.progress(view.name, outcome.strategy)
        return RefreshRecord(
            view.name,
            outcome.strategy,
            outcome.reason,
            outcome.rows_inserted,
            outcome.rows_deleted,
            time.monotonic() - started,
            overview.by_source(view, seen.covers),
            outcome.install,
            outcome.predicted,
        )

    def _refreshed(self, view: View, *, forced: bool) -> tuple[Look, Outcome]:
        """Decide and do; a conflict with another process is looked at afresh, as often as the settings say."""

        def tell(event: str) -> None:
            self.progress(view.name, event)

        for tries_left in range(self.settings.retries, -1, -1):
            view = self.registry.current(view) or view  # another process may have replaced it
            seen = look(view, self.registry, self.versions)
            step = plan_view(seen.situation, self.settings)
            if forced:
                step = Recompute(view.name, "asked for", recompute_cost(seen.situation))
            if isinstance(step, Nothing) and not step.record:
                return seen, Outcome("none", step.reason, 0, 0)
            try:
                return seen, self.executor().run_or_recompute(step, seen, tell)
            except ConflictError:
                if not tries_left:
                    raise
        raise AssertionError("unreachable")
