"""The views that a project's SQL files define, each after those it reads."""

from __future__ import annotations

import dataclasses
import graphlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from viewkeeper.errors import ProjectError, SqlError, ViewkeeperError
from viewkeeper.project.files import FILE, Project
from viewkeeper.sql.catalog import Source, Unmaintainable
from viewkeeper.sql.expressions import Refusal
from viewkeeper.sql.names import table_uses
from viewkeeper.sql.parse import parse_query, tokenize
from viewkeeper.sql.statements import CreateView, parse_statement, split_statements
from viewkeeper.store.tables import Tables


@dataclass(frozen=True)
class Script:
    """One statement of a file, and the line in which its text begins."""

    text: str
    file: str
    line: int

    @cached_property
    def place(self) -> str:
        """File and line of its first word; comments may stand before."""
        return f"{self.file}:{self.line + tokenize(self.text)[0].line - 1}"

    def located(self, error: ViewkeeperError) -> ViewkeeperError:
        """The error with its place in the file, instead of its place in the statement."""
        where = error.position
        place = f"{self.file}:{self.line + where.line - 1}:{where.column}" if where else self.place
        return type(error)(f"{place}: {error.message}", hint=error.hint)


def statements(files: Iterable[Path], project: Project) -> Iterator[Script]:
    """Every statement of the files, in order."""
    for file in files:
        name = file.relative_to(project.root).as_posix()
        try:
            text = file.read_text("utf-8")
            parts = split_statements(text)
        except (OSError, UnicodeDecodeError) as error:
            raise ProjectError(f"{name} cannot be read: {error}") from error
        except SqlError as error:
            raise ProjectError(f"{name}: {error.message}") from error
        at = 0
        for part in parts:
            at = text.index(part, at)
            yield Script(part, name, text.count("\n", 0, at) + 1)
            at += len(part)


@dataclass(frozen=True)
class Definition:
    """A view as a file of the project defines it.

    reads     the tables its query names; where the query could not be read, all its words, and `certain` is false
    """

    name: str
    statement: CreateView
    script: Script
    reads: tuple[str, ...]
    certain: bool = True

    @property
    def place(self) -> str:
        return self.script.place


def read_definitions(project: Project, tables: Tables) -> list[Definition]:
    """The views of a project's files, each after those it reads."""
    found: dict[str, Definition] = {}
    for script in statements(project.view_files(), project):
        definition = _definition(script, tables)
        if definition.name in found:
            first = found[definition.name].place
            raise ProjectError(f"{definition.place}: view {definition.name} is defined twice, first in {first}")
        found[definition.name] = definition
    return _in_order(found)


def _definition(script: Script, tables: Tables) -> Definition:
    try:
        statement = parse_statement(script.text)
    except SqlError as error:
        raise script.located(error) from error
    if not isinstance(statement, CreateView):
        raise ProjectError(
            f"{script.place}: not a CREATE MATERIALIZED VIEW statement",
            hint=f"other statements go into files listed under `setup` in {FILE}; `viewkeeper init` runs those",
        )
    plain = dataclasses.replace(statement, or_replace=False, if_not_exists=False, cascade=False)
    try:
        uses = table_uses(parse_query(plain.query), _AnyTable(tables))
        reads, certain = [u.source.name for u in uses], True
    except (SqlError, Refusal):
        reads, certain = [tables.canonical((t.text,)) for t in tokenize(plain.query) if t.text], False
    return Definition(tables.canonical(plain.name), plain, script, tuple(dict.fromkeys(reads)), certain)


@dataclass(frozen=True)
class _AnyTable:
    """Takes every table name as it is, for those who only want the names."""

    tables: Tables

    def resolve(self, parts: tuple[str, ...]) -> Source:
        return Unmaintainable(self.tables.canonical(parts), "", ())


def _in_order(definitions: dict[str, Definition]) -> list[Definition]:
    graph = {
        name: [r for r in d.reads if r in definitions and (d.certain or r != name)] for name, d in definitions.items()
    }
    try:
        return [definitions[name] for name in graphlib.TopologicalSorter(graph).static_order()]
    except graphlib.CycleError as error:
        circle: list[str] = error.args[1][::-1]
        shown = " → ".join(f"{name} ({definitions[name].place})" for name in circle[:-1])
        raise ProjectError(f"views read each other in a circle: {shown} → {circle[-1]}") from error
