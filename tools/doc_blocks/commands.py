"""The command line, as its help has it."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from viewkeeper.cli.main import app


def commands() -> str:
    """Each command with its arguments and own options, as its help has them."""
    return "\n\n".join(_command(c.callback) for c in registered() if c.callback)


def shared_options() -> str:
    """The options that every command has."""
    callback = registered()[0].callback
    assert callback is not None
    return _table(o for o in _options(callback) if o.rich_help_panel)


def registered() -> list[Any]:
    return app.registered_commands


def _command(callback: Callable[..., object]) -> str:
    own = [o for o in _options(callback) if not o.rich_help_panel]
    arguments = [o for o in own if not o.param_decls]
    given = "".join(f" {o.metavar}" for o in arguments)
    parts = [f"### {callback.__name__}", f"`viewkeeper {callback.__name__}{given}`", inspect.getdoc(callback) or ""]
    parts += [f"`{o.metavar}`: {o.help}" for o in arguments]
    options = [o for o in own if o.param_decls]
    return "\n\n".join([*parts, *([_table(options)] if options else [])])


@dataclass(frozen=True)
class Option:
    """What typer knows of an argument or an option; an argument has no `param_decls`."""

    param_decls: tuple[str, ...]
    metavar: str
    help: str
    rich_help_panel: str | None


def _options(callback: Callable[..., object]) -> Iterator[Option]:
    for name, parameter in inspect.signature(callback).parameters.items():
        for found in getattr(parameter.annotation, "__metadata__", ()):
            named = type(found).__name__ == "OptionInfo"
            # Inside Annotated the first spelling stands where a default would.
            first = (found.default,) if isinstance(found.default, str) else ()
            spelled = (*first, *(found.param_decls or ())) or (f"--{name.replace('_', '-')}",)
            spelled = spelled if named else ()
            yield Option(spelled, found.metavar or name.upper(), found.help or "", found.rich_help_panel)


def _table(options: Iterable[Option]) -> str:
    rows = ["| Option | Meaning |", "|---|---|"]
    return "\n".join([*rows, *(f"| {', '.join(f'`{d}`' for d in o.param_decls)} | {o.help} |" for o in options)])
