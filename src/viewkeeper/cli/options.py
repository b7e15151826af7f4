"""What every command is given: the warehouse, the project, and how to answer."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

import typer

from viewkeeper import Warehouse
from viewkeeper.cli.output import Output
from viewkeeper.cli.progress import Watch
from viewkeeper.project.files import Project, find_project, load_project

WAREHOUSE_VARIABLE = "VIEWKEEPER_WAREHOUSE"
_PANEL = "Options of every command"

WarehouseOption = Annotated[
    Path | None,
    typer.Option(
        "--warehouse",
        "-w",
        metavar="DIR",
        rich_help_panel=_PANEL,
        help=f"Folder of Delta tables. Else ${WAREHOUSE_VARIABLE}, else that of the project, else ./warehouse.",
    ),
]
ProjectOption = Annotated[
    Path | None,
    typer.Option(
        "--project",
        "-p",
        metavar="DIR",
        rich_help_panel=_PANEL,
        help="Folder with viewkeeper.toml. Else the current one or one above, unless a warehouse is named.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", rich_help_panel=_PANEL, help="Answer with JSON.")]
DebugOption = Annotated[bool, typer.Option("--debug", rich_help_panel=_PANEL, help="Show where errors come from.")]
_SHARED: dict[str, tuple[Any, Any]] = {
    "warehouse": (WarehouseOption, None),
    "project": (ProjectOption, None),
    "json": (JsonOption, False),
    "debug": (DebugOption, False),
}


@dataclass
class Run:
    """One call of the command line."""

    warehouse_folder: Path | None = None
    project_folder: Path | None = None
    json: bool = False
    watch: Watch = field(init=False)
    out: Output = field(init=False)

    def __post_init__(self) -> None:
        self.watch = Watch(quiet=self.json)
        self.out = Output(json=self.json)

    @property
    def named_warehouse(self) -> Path | None:
        """The warehouse that an option or the environment names."""
        from_environment = os.environ.get(WAREHOUSE_VARIABLE)
        return self.warehouse_folder or (Path(from_environment) if from_environment else None)

    @cached_property
    def project(self) -> Project | None:
        if self.project_folder is not None:
            return load_project(self.project_folder)
        found = find_project(Path.cwd())
        named = self.named_warehouse
        if found is None or named is None or named.expanduser().absolute() == found.warehouse:
            return found
        return None

    @cached_property
    def folder(self) -> Path:
        """Where the warehouse is."""
        if self.named_warehouse is not None:
            return self.named_warehouse.expanduser().absolute()
        return self.project.warehouse if self.project else Path("warehouse").absolute()

    def warehouse(self, *, create: bool = False) -> Warehouse:
        """The warehouse; `create`: a missing one is made."""
        settings = self.project.settings if self.project else None
        if create and not self.folder.exists():
            self.watch.say(f"making the warehouse {self.folder}")
        wh = Warehouse.local(self.folder, settings, create=create)
        wh.starting = lambda: self.watch.busy("starting Spark…")
        return wh


def command(app: typer.Typer, **settings: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a function of a Run and of its own options; the options of every command are added to those."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(function)
        def run(ctx: typer.Context, **given: Any) -> None:
            before: dict[str, Any] = ctx.obj or {}
            shared = {name: given.pop(name) or before.get(name) for name in _SHARED}
            function(Run(shared["warehouse"], shared["project"], bool(shared["json"])), **given)

        context = inspect.Parameter("ctx", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
        own = list(inspect.signature(function, eval_str=True).parameters.values())[1:]
        added = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            for name, (annotation, default) in _SHARED.items()
        ]
        run.__signature__ = inspect.Signature([context, *own, *added])  # type: ignore[attr-defined]
        run.__annotations__ = {}
        return app.command(context_settings=settings)(run)

    return register
