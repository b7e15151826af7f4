"""The command `viewkeeper`."""

from __future__ import annotations

import sys
import traceback
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper.cli import output
from viewkeeper.cli.options import DebugOption, JsonOption, ProjectOption, Run, WarehouseOption, command
from viewkeeper.errors import InternalError, SqlError, ViewkeeperError
from viewkeeper.reports import PlanReport, RefreshReport
from viewkeeper.sql.statements import CreateView, parse_statement, split_statements

FAILED, MISUSED, DIFFERENT, UNEXPECTED, INTERRUPTED = 1, 2, 3, 70, 130

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Keeps materialized views on Apache Spark and Delta Lake right, at the least cost.",
)

_TEXT = {"ignore_unknown_options": True}  # a statement may begin with a comment: `-- …`
Names = Annotated[list[str] | None, typer.Argument(metavar="[NAME]...", help="Views; all, if none is named.")]
Name = Annotated[str, typer.Argument(metavar="NAME", help="The view.")]
Text = Annotated[str | None, typer.Argument(metavar="[SQL]", help="Statements; else --file, else standard input.")]
File = Annotated[Path | None, typer.Option("--file", "-f", metavar="FILE", help="Read the statements from a file.")]


def _version(wanted: bool) -> None:
    if wanted:
        print(f"viewkeeper {version('viewkeeper')}")
        raise typer.Exit


@app.callback()
def everywhere(
    ctx: typer.Context,
    *,
    warehouse: WarehouseOption = None,
    project: ProjectOption = None,
    json: JsonOption = False,
    debug: DebugOption = False,
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show it.")] = False,
) -> None:
    ctx.obj = {"warehouse": warehouse, "project": project, "json": json, "debug": debug}


@command(app)
def init(
    run: Run,
    folder: Annotated[Path, typer.Argument(metavar="[DIR]", help="Where; the current folder by default.")] = Path(),
    setup: Annotated[bool, typer.Option("--setup/--no-setup", help="Run the project's setup files.")] = True,
) -> None:
    """Start a project here, with an example; in a project: make its warehouse and run its setup files."""
    from viewkeeper.project.example import run_setup, write_example

    named = run.warehouse_folder
    written = write_example(folder, str(named.expanduser().absolute()) if named else "warehouse")
    run.project_folder = folder
    wh = run.warehouse(create=True)
    assert run.project is not None
    with run.watch.showing(()) as watch:
        count = run_setup(run.project, wh, watch) if setup else 0
    run.out.answer(output.Started(folder, tuple(written), run.folder, count))


@command(app, **_TEXT)
def sql(
    run: Run,
    text: Text = None,
    file: File = None,
    limit: Annotated[int, typer.Option(min=1, help="Show at most so many rows of a result.")] = 100,
) -> None:
    """Run SQL statements: Viewkeeper's own, and any that Spark knows."""
    statements = _statements(text, file)
    from viewkeeper.runtime.define import first_rows  # pyspark comes with it

    wh = run.warehouse(create=True)
    answers = []
    for number, statement in enumerate(statements, 1):
        with run.watch.busy(f"running statement {number} of {len(statements)}", plain=False):
            result = wh.sql(statement)
            answers.append(result if hasattr(result, "to_data") else output.Rows(*first_rows(result, limit)))
        if not run.json:
            run.out.show(answers[-1])
    run.out.data([a.to_data() for a in answers] if len(answers) > 1 else answers[0].to_data())


@command(app, **_TEXT)
def create(run: Run, text: Text = None, file: File = None) -> None:
    """Create materialized views by CREATE MATERIALIZED VIEW statements, and fill them."""
    parsed = [parse_statement(s) for s in _statements(text, file)]
    views = [s for s in parsed if isinstance(s, CreateView)]
    if len(views) < len(parsed):
        raise SqlError("not a CREATE MATERIALIZED VIEW statement", hint="`viewkeeper sql` runs any statement")
    wh = run.warehouse(create=True)
    names = [".".join(v.name) for v in views]
    made = []
    with run.watch.showing(names) as watch:
        for name, view in zip(names, views, strict=True):
            watch(name, "creating it")
            made.append(wh.create(view))
            watch(name, "created")
    for answer in made:
        run.out.text(str(answer))
    run.out.data([m.to_data() for m in made])


@command(app)
def refresh(
    run: Run,
    names: Names = None,
    full: Annotated[bool, typer.Option("--full", help="Compute the named views afresh, whatever changed.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would happen.")] = False,
) -> None:
    """Bring views up to date. In a project: create what is new in its files and replace what changed, too."""
    if dry_run:
        run.out.answer(_plan(run, names or []))
        return
    with _with_report(run):
        run.out.answer(_refresh_project(run, names or [], full) if run.project else _refresh(run, names or [], full))


@command(app)
def plan(run: Run, names: Names = None) -> None:
    """Show what a refresh would do, why, and what it is predicted to cost; nothing is touched."""
    run.out.answer(_plan(run, names or []))


@command(app)
def status(run: Run) -> None:
    """Show all views: whether they are up to date, how they are kept, and why in this way."""
    run.out.answer(run.warehouse().status())


@command(app)
def explain(
    run: Run,
    name: Name,
    stage: Annotated[
        str | None,
        typer.Option(metavar="STAGE", help="One stage of its path: parsed, bound, normalized, changes, plan or sql."),
    ] = None,
    sql: Annotated[bool, typer.Option("--sql", help="Only the SQL that computes the view's change.")] = False,
) -> None:
    """Show how a view is kept: its algebra, the rules for its change, the SQL they make, what a refresh would do."""
    if sql:
        run.out.change_sql(run.warehouse().explain(name))
    else:
        run.out.answer(run.warehouse().explain(name, stage))


@command(app)
def audit(run: Run, names: Names = None) -> None:
    """Compare views with a recompute of their queries, both ways. Exit code 3, if any differs."""
    wh = run.warehouse()
    with run.watch.showing(names or wh.registry.views()) as watch:
        report = wh.audit(*(names or ()), progress=watch)
    run.out.answer(report)
    if not report.equal:
        raise typer.Exit(DIFFERENT)


@command(app)
def history(run: Run, name: Name) -> None:
    """Show a view's refreshes, newest first."""
    run.out.answer(run.warehouse().history(name))


@command(app)
def drop(
    run: Run,
    name: Name,
    cascade: Annotated[bool, typer.Option("--cascade", help="Drop the views that read it, too.")] = False,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="A view that is not there is no error.")] = False,
) -> None:
    """Drop a view."""
    wh = run.warehouse()
    with run.watch.busy(f"dropping {name}", plain=False):
        done = wh.drop(name, cascade=cascade, if_exists=if_exists)
    run.out.answer(done)


@command(app)
def demo(
    run: Run,
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="Where.")] = Path("viewkeeper-demo"),
    scale: Annotated[float, typer.Option(min=0.001, max=10, help="TPC-H scale factor.")] = 0.3,
) -> None:
    """See Viewkeeper at work: TPC-H data, four views, changes, refreshes against recomputes."""
    from viewkeeper.cli.stage import Stage
    from viewkeeper.demo.play import commands, run_demo

    stage = Stage(run.watch, run.out)
    report = run_demo(folder, scale, stage)
    stage.farewell(commands(folder), report.seconds)
    run.out.data(report.to_data())


@command(app)
def bench(
    run: Run,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Few cases, at scale 0.1.")] = False,
    large: Annotated[bool, typer.Option("--large", help="Few cases at scale 10.")] = False,
    scale: Annotated[float | None, typer.Option(min=0.001, help="Another TPC-H scale factor.")] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(metavar="PATTERN", help="Only cases that fit it, as 'growth-*' or '0.1%/v1'; may be given again."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="DIR", help="Where the report goes; what a run has finished there is not measured again."),
    ] = None,
    data: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Where TPC-H tables are kept for other runs.")
    ] = None,
) -> None:
    """Measure refreshes against recomputes on TPC-H, and write a report."""
    from viewkeeper.bench.data import default_folder
    from viewkeeper.bench.grid import chosen, grid, mode
    from viewkeeper.bench.report import Written, write_report
    from viewkeeper.bench.run import Setup, run_cases
    from viewkeeper.cli.meter import Meter

    kind = mode(quick=quick, large=large)
    setup = Setup.of(kind, scale)
    folder = out or Path("bench-results") / f"{kind}-{setup.scale:g}"
    with Meter(run.watch).showing() as meter:
        finished = run_cases(chosen(grid(kind), only or []), setup, folder, data or default_folder(), meter)
    run.out.answer(Written(finished, tuple(write_report(finished, folder))))


@command(app)
def doctor(run: Run) -> None:
    """Check Java, Spark, Delta, the disk and the warehouse. Exit code 1, if something is wrong."""
    from viewkeeper.cli.doctor import examine

    report = examine(run)
    run.out.answer(report)
    if not report.well:
        raise typer.Exit(FAILED)


def _statements(text: str | None, file: Path | None) -> list[str]:
    if text is not None and file is not None:
        raise typer.BadParameter("give statements or --file, not both")
    if file is not None:
        try:
            text = file.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ViewkeeperError(f"{file} cannot be read: {error}") from error
    if text is None:
        if sys.stdin.isatty():
            raise typer.BadParameter("give statements, --file FILE, or pipe them in")
        text = sys.stdin.read()
    found = split_statements(text)
    if not found:
        raise SqlError("there is no statement")
    return found


def _refresh(run: Run, names: Sequence[str], full: bool) -> RefreshReport:
    wh = run.warehouse()
    chosen = names or list(wh.registry.views())
    with run.watch.showing(chosen) as watch:
        return wh.refresh(*chosen, full=full, progress=watch)


def _refresh_project(run: Run, names: Sequence[str], full: bool) -> RefreshReport:
    from viewkeeper.project.plan import plan_project
    from viewkeeper.project.refresh import refresh_project

    assert run.project is not None
    wh = run.warehouse(create=True)
    asked = plan_project(run.project, wh, names)
    with run.watch.showing(i.name for i in asked.items) as watch:
        return refresh_project(asked, wh, watch, full=full)


def _plan(run: Run, names: Sequence[str]) -> PlanReport:
    wh = run.warehouse()
    if run.project is None:
        return wh.plan(*names)
    from viewkeeper.project.plan import plan_project, plan_report

    return plan_report(plan_project(run.project, wh, names), wh)


@contextmanager
def _with_report(run: Run) -> Iterator[None]:
    """Where some views failed, what became of the others is shown before the error."""
    try:
        yield
    except ViewkeeperError as error:
        report = getattr(error, "report", None)
        if report is not None:
            run.out.answer(report)
        raise


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; errors become a line on standard error and an exit code."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json, debug = "--json" in given, "--debug" in given
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is part of the answers
            code = app(given or ["--help"], prog_name="viewkeeper", standalone_mode=False)
        return code if isinstance(code, int) else 0
    except typer.Abort:
        return INTERRUPTED
    except Exception as error:
        if debug:
            traceback.print_exc()
        message, hint, kind, code = _described(error)
        output.complain(message, hint, kind, as_json=as_json)
        return code


def _described(error: Exception) -> tuple[str, str | None, str, int]:
    kind = type(error).__name__
    if isinstance(error, ViewkeeperError):
        where = f" ({error.position})" if error.position else ""
        code = UNEXPECTED if isinstance(error, InternalError) else FAILED
        return error.message + where, error.hint, kind, code
    usage: Any = error
    if hasattr(usage, "format_message"):
        path = getattr(getattr(usage, "ctx", None), "command_path", "viewkeeper")
        return usage.format_message(), f"{path} --help", "UsageError", MISUSED
    return (
        f"{kind}: {error}",
        "this is a bug: please report it, with what `--debug` shows",
        "UnexpectedError",
        UNEXPECTED,
    )
