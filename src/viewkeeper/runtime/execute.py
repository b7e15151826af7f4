"""Running the steps of a plan: each view is installed by one Delta commit that says what it covers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import assert_never

from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as f

from viewkeeper.algebra.relations import WEIGHT, Relation, names
from viewkeeper.changes.kept import WHOLE, KeptBag
from viewkeeper.changes.lookup import KNOWN_HERE, KNOWN_ROWS
from viewkeeper.changes.meeting import only_meeting
from viewkeeper.changes.merge import MergeBag, MergeGroups, MergeTop, found_by
from viewkeeper.changes.order import fewest_first
from viewkeeper.changes.own import OWN
from viewkeeper.changes.parts import by_parts
from viewkeeper.changes.refresh import DOUBTED, Doubt, Maintenance, maintenance, tables_read
from viewkeeper.changes.together import read_once
from viewkeeper.errors import NotIncrementalError
from viewkeeper.here.merge import came_and_went
from viewkeeper.here.rows import RowsHere
from viewkeeper.planner.build import can_replace, choose_install, is_scattered, is_to_be_compacted, seen_closer
from viewkeeper.planner.cost import QUERY, Cost
from viewkeeper.planner.plan import Install, Maintain, Nothing, Outcome, Recompute, Refuse, Step
from viewkeeper.runtime import install
from viewkeeper.runtime.checkpoints import checkpointed
from viewkeeper.runtime.commit import Commits
from viewkeeper.runtime.failures import NotThisTimeError, translated
from viewkeeper.runtime.first import read_first
from viewkeeper.runtime.forms import content_query, form_of
from viewkeeper.runtime.here import HereLeaves, computed_here, merged_here
from viewkeeper.runtime.install import Merge, Rows
from viewkeeper.runtime.look import Look
from viewkeeper.runtime.lookups import Tables
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.runtime.spark import SMALL_STEP, few_rows_step, known_step, settle
from viewkeeper.runtime.write import MOST_HERE, discard
from viewkeeper.settings import Settings
from viewkeeper.sql.render import quote
from viewkeeper.sql.unparse import unparse
from viewkeeper.store.commits import Mode, NewFiles
from viewkeeper.store.registry import Registry
from viewkeeper.store.rows import FileRows
from viewkeeper.store.views import RefreshNote, View

Tell = Callable[[str], None]
_MODES: Mapping[Install, Mode] = {"append": "append", "replace": "replace", "rewrite": "overwrite"}


@dataclass(frozen=True)
class Job:
    """The maintenance of one view under way: its change as SQL, in a session that has what the SQL reads.

    change     none if this process has computed it
    left       how much of the planned cost was left once the changes were read
    small      whether all that is left to do is about few rows
    computed   whether the change is there, and only read by the SQL
    """

    step: Maintain
    look: Look
    session: SparkSession
    leaves: ReadOnce
    change: str
    tell: Tell
    left: float
    small: bool
    computed: bool = False

    @property
    def table(self) -> str:
        return self.look.view.backing

    @property
    def old(self) -> str:
        """The view's rows before the change, as they stand in FROM."""
        return self.leaves.version(self.table, self.look.standing.version)


@dataclass(frozen=True)
class Executor:
    """Runs steps for one warehouse."""

    spark: SparkSession
    registry: Registry
    settings: Settings
    file_rows: FileRows

    @property
    def commits(self) -> Commits:
        return Commits(self.spark, self.registry)

    def run_or_recompute(self, step: Step, look: Look, tell: Tell) -> Outcome:
        """Run a step; where its changes turn out not to do, recompute if the policy lets us."""
        try:
            return self.run(step, look, tell)
        except NotThisTimeError as why:
            reason = str(why)
            if look.view.policy != "AUTO" or not isinstance(step, Maintain | Recompute):
                raise NotIncrementalError(
                    f"{look.view.name} was not refreshed: {reason}",
                    hint=f"REFRESH MATERIALIZED VIEW {look.view.name} FULL recomputes it",
                ) from why
            full = step.recompute_cost if isinstance(step, Maintain) else step.cost
            return self.recompute(reason, look.from_now, tell, full)

    def run(self, step: Step, look: Look, tell: Tell) -> Outcome:
        match step:
            case Nothing(record=False):
                return Outcome("none", step.reason, 0, 0)
            case Nothing():
                tell("recording the covered versions")
                self.commits.record(look, self.commits.note(look, "none", step.reason))
                return Outcome("none", step.reason, 0, 0)
            case Maintain():
                outcome = self.maintain(step, look, tell)
                if is_to_be_compacted(look.situation, self.settings):
                    tell("putting its files together")
                    self.commits.compact(look.view, found_by(step.maintenance.merge)[:1])
                return outcome
            case Recompute(instead_of=Maintain() as change, look=True):
                return self.maintain(change, look, tell)
            case Recompute():
                return self.recompute(step.reason, look, tell, step.cost)
            case Refuse():
                raise NotIncrementalError(f"{step.view} was not refreshed: {step.reason}", hint=step.hint)
            case _:
                assert_never(step)

    # From changes

    def maintain(self, step: Maintain, look: Look, tell: Tell) -> Outcome:
        session = self.session(look.view, SMALL_STEP)
        tell("computing its change")
        with translated(look.view):
            questions = (q.against for q in step.maintenance.questions)
            known = KNOWN_HERE if step.here else KNOWN_ROWS
            leaves = self.leaves(look, session, step.maintenance.change, *questions, known=known)
            settle(session, self.spark, few_rows_step(self.spark, leaves.most_first))
            found = known_better(step.maintenance, look, leaves)
            if found.nothing:
                note = self.commits.note(look, "incremental", step.reason, QUERY, QUERY.times(step.cost))
                return self.untouched(look, note)
            closer = seen_closer(found, look.situation, leaves.rows_first, step.recompute_cost, self.settings)
            if isinstance(closer, Recompute):
                left = closer.instead_of.cost.times(step.cost) if closer.instead_of else None
                return self.recompute(closer.reason, look.from_now, tell, closer.cost, left)
            left, step = closer.cost.times(step.cost), closer
            leaves.mention([found.change])
            if OWN in tables_read(found.change):
                leaves.give(OWN, leaves.version(look.view.backing, look.standing.version))
            change = self.change(found.change, look, leaves)
            if step.here and not isinstance(change, RowsHere):  # it is Spark's, after all
                by_spark = replace(self.settings, rows_here=0)
                closer = seen_closer(found, look.situation, leaves.rows_first, step.recompute_cost, by_spark)
                if isinstance(closer, Recompute):
                    return self.recompute(closer.reason, look.from_now, tell, closer.cost, left)
                step = closer
            job = Job(step, look, session, leaves, "", tell, left, step.small)
            if isinstance(change, RowsHere):
                if (done := self.install_here(job, found.merge, change)) is not None:
                    return done
                change = leaves.scan_of(change.table, found.change)
                way, why = choose_install(found, look.situation, self.settings, here=False)
                job = replace(job, step=replace(step, install=way, why_install=why))
            settle(session, self.spark, SMALL_STEP if step.small else known_step(self.spark, leaves.shuffled(change)))
            change = by_parts(change, leaves.compute, saved=leaves.saved)
            job = replace(job, change=unparse(change, leaves))
            match found.merge:
                case MergeBag() as merge:
                    return self.maintain_bag(job, merge)
                case MergeGroups() as merge:
                    settled = self.without_doubt(job, merge, found.doubt, names(found.change)) if found.doubt else job
                    return self.maintain_groups(settled, merge)
                case MergeTop() as merge:
                    return self.maintain_top(job, merge)

    def change(self, change: Relation, look: Look, leaves: ReadOnce) -> Relation | RowsHere:
        """The same change, by what is known of its rows: which are few, and where those are that they can meet.

        If this process can tell its rows, these.
        """
        counts = leaves.measure(look.situation.declared, look.situation.rows)
        change = fewest_first(leaves.netted(change), counts)
        settle(leaves.session, self.spark, SMALL_STEP)  # what is asked of found rows is answered without a job
        tables, here = Tables(leaves), HereLeaves(leaves, look, self.settings.rows_here)
        if here.knows(change) and (rows := computed_here(tables.look_up(change), here)) is not None:
            return rows
        found = tables.look_up(read_once(change, lambda rows: leaves.saved(rows) > 0))
        if leaves.has(found):
            return found
        # Values stand only in the conditions on tables that Spark reads: without them, what was compiled for one
        # refresh serves the next.
        near = only_meeting(change, leaves.spreads)
        return tables.look_up(read_once(near, lambda rows: leaves.saved(rows) > 0))

    def install_here(self, job: Job, merge: MergeBag | MergeGroups | MergeTop, rows: RowsHere) -> Outcome | None:
        """Install a change that this process has, if it can tell and write the view's new rows as well."""
        way, situation = job.step.install, job.look.situation
        if not is_scattered(situation, self.settings):
            if can_replace(merge, situation, rows.count, self.settings):
                way = "replace"
            if isinstance(merge, MergeBag) and not came_and_went(rows)[1]:
                way = "append"
        written = merged_here(merge, rows, way, HereLeaves(job.leaves, job.look, self.settings.rows_here))
        if written is None:
            return None
        if not written.came and not written.went:
            return self.untouched(job.look, self.note_of(job))
        files = self.commits.written_here(job.look, written.rows, _MODES[way], written.gone)
        seen = {"came": written.came, "went": written.went}
        return self.installed(job, seen, way, files) if files is not None else None

    def ahead(self, job: Job) -> Job:
        """The job with its change computed, where what is left to do is so much less that it wants other settings."""
        rows = job.look.situation.rows
        if job.small or job.computed or rows > self.settings.small_rows:
            return job
        found = self.compute(job, job.change, install.CHANGE_VIEW, f.count(f.lit(1)).alias("rows"))["rows"]
        few = rows + found <= self.settings.small_rows
        if few:
            settle(job.session, self.spark, few_rows_step(self.spark, rows + found))
        return replace(job, change=f"SELECT * FROM {install.CHANGE_VIEW}", small=few, computed=True)

    def maintain_bag(self, job: Job, merge: MergeBag) -> Outcome:
        weight = f.col(WEIGHT)
        came = f.coalesce(f.sum(f.when(weight > 0, weight)), f.lit(0)).alias("came")
        went = f.coalesce(f.sum(f.when(weight < 0, -weight)), f.lit(0)).alias("went")
        seen = self.compute(job, job.change, install.CHANGE_VIEW, came, went)
        appends = not seen["went"] and not is_scattered(job.look.situation, self.settings)
        way = "append" if appends else job.step.install
        if (done := self.replaced_bag(job, merge, seen["came"] + seen["went"], way)) is not None:
            return done
        written = seen["came"] + seen["went"] + (job.look.situation.rows if way != "append" else 0)
        if not job.small and written <= self.settings.small_rows:
            settle(job.session, self.spark, few_rows_step(self.spark, written))
            job = replace(job, small=True)
        return self.installed(job, seen, way, install.install_bag(way, job.table, job.old, merge))

    def replaced_bag(self, job: Job, merge: MergeBag, changed: int, way: Install) -> Outcome | None:
        """Few rows that Spark has computed, brought here to replace others, where that is less than a merge."""
        few = 0 < changed <= min(MOST_HERE, self.settings.rows_here)
        if way == "append" or not few or not can_replace(merge, job.look.situation, changed, self.settings):
            return None
        rows = RowsHere.of(job.session.table(install.CHANGE_VIEW).toArrow())
        return self.install_here(job, merge, rows)

    def maintain_groups(self, job: Job, merge: MergeGroups) -> Outcome:
        if job.step.install == "merge":
            return self.merge_groups(job, merge)
        job = self.ahead(job)
        there = job.computed and job.small and merge.key
        content = install.merged_into(job.old, merge) if there else install.merged_groups(job.old, merge, job.change)
        hit, was, keep = f.col(install.HIT), f.col(install.WAS), f.col(install.KEEP)
        measures = (f.count_if(hit & keep).alias("came"), f.count_if(hit & was).alias("went"))
        if job.small:
            counted = Observation()
            rows = job.session.sql(content).observe(counted, *measures).where(keep)
            kept = rows.select(*(quote(item.name) for item in merge.columns))
            files = self.commits.written(job.look, kept, "overwrite", few=True)
            if files is not None:
                return self.installed(job, _numbers(counted), "rewrite", files)
        seen = self.compute(job, content, install.CONTENT_VIEW, *measures)
        return self.installed(job, seen, "rewrite", install.rewrite_groups(job.table, merge))

    def without_doubt(self, job: Job, merge: MergeGroups, doubt: Doubt, columns: tuple[str, ...]) -> Job:
        """The change once more, with the groups whose sums drifted too far computed afresh."""
        rows = f.count(f.lit(1)).alias("rows")
        self.compute(job, job.change, install.CHANGE_VIEW, rows)
        if self.compute(job, install.doubted_keys(job.old, merge, doubt), DOUBTED, rows)["rows"]:
            job.leaves.give(DOUBTED, DOUBTED)
            job.leaves.mention([doubt.afresh])
            afresh = unparse(doubt.afresh, job.leaves)
            self.compute(job, install.with_afresh(merge, columns, afresh), install.CHANGE_VIEW, rows)
        return replace(job, change=f"SELECT * FROM {install.CHANGE_VIEW}", computed=True)

    def merge_groups(self, job: Job, merge: MergeGroups) -> Outcome:
        seen = self.compute(job, job.change, install.CHANGE_VIEW, f.count(f.lit(1)).alias("touched"))
        note = self.note_of(job)
        if not seen["touched"]:
            return self.untouched(job.look, note)
        settle(job.session, self.spark)
        job.tell("installing by merge")
        commit = self.commits.install(
            job.session, job.look, replace(note, install="merge"), install.merge_groups(job.table, merge)
        )
        updated = commit.metrics.get("numTargetRowsUpdated", 0)
        came = commit.metrics.get("numTargetRowsInserted", 0) + updated
        went = commit.metrics.get("numTargetRowsDeleted", 0) + updated
        return Outcome("incremental", job.step.reason, came, went, "merge", note.predicted)

    def maintain_top(self, job: Job, merge: MergeTop) -> Outcome:
        job = self.ahead(job)
        was, kept, none = f.col(install.WAS), f.col(install.KEEP), f.lit(0)
        seen = self.compute(
            job,
            install.merged_top(job.old, merge, job.change),
            install.CONTENT_VIEW,
            f.sum(f.greatest(kept - was, none)).alias("came"),
            f.sum(f.greatest(was - kept, none)).alias("went"),
            f.sum(kept).alias("kept"),
            f.count_if(f.col(WHOLE)).alias("whole"),
        )
        changed = seen["came"] or seen["went"]
        if changed and not seen["whole"] and seen["kept"] < merge.wanted:
            raise NotThisTimeError(f"of the first rows, {merge.wanted:,} are wanted and only {seen['kept']:,} are left")
        return self.installed(job, seen, "rewrite", install.kept_top(job.table, merge))

    def installed(self, job: Job, seen: Mapping[str, int], way: Install, what: Rows | Merge | NewFiles) -> Outcome:
        """Install what was computed, if any rows came or went."""
        came, went, note = seen["came"], seen["went"], self.note_of(job)
        if not came and not went:
            if isinstance(what, NewFiles):
                discard(what)
            return self.untouched(job.look, note)
        job.tell(f"installing by {way}")
        note = replace(note, rows_inserted=came, rows_deleted=went, install=way)
        self.commits.install(job.session, job.look, note, what, few=job.small)
        return Outcome("incremental", job.step.reason, came, went, way, note.predicted)

    def leaves(self, look: Look, session: SparkSession, *read: Relation, known: int = KNOWN_ROWS) -> ReadOnce:
        rows = {table: sizes.rows for table, sizes in look.situation.sizes.items()}
        return ReadOnce(session, look.leaves, rows, self.registry.tables.log, self.file_rows, *read, known=known)

    def untouched(self, look: Look, note: RefreshNote) -> Outcome:
        reason = "the changes of its sources do not change it"
        self.commits.record(look, replace(note, strategy="none", reason=reason))
        return Outcome("none", reason, 0, 0, predicted=note.predicted)

    def compute(self, job: Job, query: str, view: str, *measures: object) -> Mapping[str, int]:
        """Run a query once, keep its rows under a temporary name, and return what was counted on the way."""
        counted = Observation()
        frame: DataFrame = job.session.sql(query).observe(counted, *measures)  # type: ignore[arg-type]
        checkpointed(frame).createOrReplaceTempView(view)
        return _numbers(counted)

    # All of it

    def recompute(self, reason: str, look: Look, tell: Tell, cost: Cost, left: float | None = None) -> Outcome:
        small = look.situation.source_rows + look.situation.rows <= self.settings.small_rows
        session, one_file = self.session(look.view, SMALL_STEP if small else {}), small
        tell("recomputing it")
        before = look.situation.rows
        note = self.commits.note(look, "recompute", reason, cost, left)
        note = replace(note, install="overwrite", rows_deleted=before)
        with translated(look.view):
            form = form_of(look.view)
            leaves = self.leaves(look, session, form.kept.content) if form is not None else look.leaves
            query = content_query(look.view, leaves, self.registry.find)
            if not small and form is not None and before <= self.settings.small_rows:
                one_file = True
                # Groups and first rows are made by one last step of few rows; other rows come from many tasks.
                query = f"SELECT /*+ REPARTITION(1) */ * FROM (\n{query})" if isinstance(form.kept, KeptBag) else query
            rows = Rows(look.view.backing, "overwrite", query)
            # Were there many more rows now than before, all would be computed once more.
            few = one_file and 0 < before <= MOST_HERE // 4
            commit = self.commits.install(session, look, note, rows, small=one_file, few=few, may_be_empty=True)
        return Outcome("recompute", reason, commit.rows_added or 0, before, "overwrite", note.predicted)

    def note_of(self, job: Job) -> RefreshNote:
        return self.commits.note(job.look, "incremental", job.step.reason, job.step.cost, job.left)

    def session(self, view: View, more: Mapping[str, str]) -> SparkSession:
        return self.commits.session(view, more)


def known_better(planned: Maintenance, look: Look, leaves: ReadOnce) -> Maintenance:
    """What was planned, or what reads less, by what the changes turn out to be and by the answers to questions."""
    kept, declared, changed = look.situation.kept, look.situation.declared, look.situation.changed
    if kept is None:
        return planned
    left = read_first(kept.content, changed, leaves)
    found = planned if left == changed else maintenance(kept, left, declared, planned.own)
    asked = {(q.table, q.kind) for q in found.questions}
    against = {(q.table, q.kind) for q in found.questions if leaves.speaks_against(q)}
    if asked == against:
        return found
    return maintenance(kept, {**left, **dict(sorted(asked - against))}, declared, planned.own)


def _numbers(counted: Observation) -> dict[str, int]:
    return {name: int(value or 0) for name, value in counted.get.items()}
