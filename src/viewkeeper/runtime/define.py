"""From a CREATE statement to a view: what Spark says of it, what it reads, and whether changes can maintain it."""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import StructField, StructType

from viewkeeper.algebra.fusion import fused
from viewkeeper.algebra.orders import without_ties
from viewkeeper.algebra.pivots import without_pivots
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Relation, State
from viewkeeper.algebra.sessions import without_sessions
from viewkeeper.changes.stored import stored_form, why_not_maintainable
from viewkeeper.errors import Position, SqlError
from viewkeeper.runtime.forms import public_relation
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.catalog import DeltaTable, KeptView, Source, Unmaintainable
from viewkeeper.sql.clock import at_moment, moment_value
from viewkeeper.sql.expansion import Expanded
from viewkeeper.sql.expressions import Refusal
from viewkeeper.sql.gate import optimized_plan
from viewkeeper.sql.leaves import CurrentTables
from viewkeeper.sql.names import table_uses
from viewkeeper.sql.parse import Tree, function_calls, parse_query, selects_star
from viewkeeper.sql.statements import CreateView
from viewkeeper.sql.typing import with_types
from viewkeeper.sql.unparse import unparse
from viewkeeper.store.names import backing_name, canonical, split
from viewkeeper.store.registry import Registry
from viewkeeper.store.rows import DECLARED_TYPE
from viewkeeper.store.views import SourceUse, View

# Plans are shown with every column, and without what Spark does only where it sees a column and not the call that makes
# it, or the other way round: tell a parser of JSON or CSV which fields are read, skip what explode makes no rows of.
_SHOWN = {
    "spark.sql.debug.maxToStringFields": str(2**31 - 1),
    "spark.sql.optimizer.enableJsonExpressionOptimization": "false",
    "spark.sql.optimizer.enableCsvExpressionOptimization": "false",
    "spark.sql.optimizer.excludedRules": "org.apache.spark.sql.catalyst.optimizer.InferFiltersFromGenerate",
}
# Settings that change what a query means; a view keeps those it was created with.
MEANING = ("spark.sql.session.timeZone", "spark.sql.ansi.enabled", "spark.sql.caseSensitive")
_PLAN_TABLE = re.compile(r"SubqueryAlias ((?:`[^`]+`|[\w$]+)(?:\.(?:`[^`]+`|[\w$]+)){2})$", re.MULTILINE)
_RESERVED = "__vk_"
_SOME_MOMENT = 1_700_000_000_000_000
_builtin: set[str] = set()


class _AtOnce(CurrentTables):
    """Every table as it is now, the clock at some moment."""

    def moment(self, function: str, state: State) -> str:
        return moment_value(function, _SOME_MOMENT)


@dataclass(frozen=True)
class SourceCatalog:
    """Tables as binding wants them, by what a session and the registry know."""

    session: SparkSession
    registry: Registry

    def resolve(self, parts: tuple[str, ...]) -> Source:
        tables = self.registry.tables
        name = tables.canonical(parts)
        view = self.registry.find(name)
        if view is not None:
            return KeptView(name, public_relation(view), view.columns)
        try:
            schema = self.session.table(canonical(parts)).schema
        except PySparkException as error:
            raise sql_error(error) from error
        columns = tuple((f.name, _stored_type(f)) for f in schema.fields)
        if tables.has_delta(name):
            return DeltaTable(name, columns)
        return Unmaintainable(name, self._why_not(canonical(parts)), columns)

    def columns(self, query: str) -> tuple[str, ...]:
        try:
            return tuple(self.session.sql(query).schema.names)
        except PySparkException:
            return ()

    def _why_not(self, name: str) -> str:
        try:
            kind = self.session.catalog.getTable(name).tableType
        except PySparkException:
            kind = "?"
        if kind in ("VIEW", "TEMPORARY"):
            return "the text of this view cannot be read"
        return "not a Delta table, so there is no history of its changes"


def _stored_type(column: StructField) -> str:
    """The type of a table's column. Spark calls CHAR a string, but pads the constants it is compared with."""
    declared = str(column.metadata.get(DECLARED_TYPE, ""))
    return declared if declared.startswith("char(") else column.dataType.simpleString()


def define(statement: CreateView, expanded: Expanded, session: SparkSession, registry: Registry) -> View:
    """The view that the statement describes; SqlError if Spark rejects its query."""
    query = expanded.text
    schema = analyse(session, query, statement, expanded)
    columns = _output_columns(statement, schema)
    name = registry.tables.canonical(statement.name)
    catalog = SourceCatalog(session, registry)
    definition, places, reason = _read(query, schema, tuple(n for n, _ in columns), session, catalog)
    if definition is not None:
        reason = why_not_maintainable(stored_form(definition, backing_name(name)), places)
    return View(
        id=uuid.uuid4().hex,
        name=name,
        backing=backing_name(name),
        query=query,
        written=statement.query,
        columns=columns,
        query_columns=tuple(schema.names),
        has_star=_has_star(query),
        policy=statement.policy,
        sources=_sources(query, session, catalog, registry),
        definition=definition if reason is None else None,  # a recompute needs no columns beside its own
        reason=_moved(reason, statement.query_start, expanded),
        settings={key: session.conf.get(key) or "" for key in MEANING},
        namespace=(session.catalog.currentCatalog(), session.catalog.currentDatabase()),
        comment=statement.comment,
        column_comments=dict(statement.column_comments),
        cluster_by=statement.cluster_by,
        properties=dict(statement.properties),
    )


def analyse(session: SparkSession, query: str, statement: CreateView, expanded: Expanded) -> StructType:
    """The query's schema, by Spark's analysis."""
    try:
        return session.sql(query).schema
    except (PySparkException, Py4JJavaError) as error:
        raise sql_error(error, statement.query_start, expanded) from error


def run_as_it_is(session: SparkSession, text: str) -> DataFrame:
    """A statement that is Spark's own business."""
    try:
        return session.sql(text)
    except (PySparkException, Py4JJavaError) as error:
        raise sql_error(error) from error


def first_rows(frame: DataFrame, limit: int) -> tuple[list[str], list[tuple[object, ...]], bool]:
    """The columns and first rows of a result, and whether there are more; only here does Spark compute it."""
    try:
        rows = frame.limit(limit + 1).collect()
    except (PySparkException, Py4JJavaError) as error:
        raise sql_error(error) from error
    return frame.columns, [tuple(row) for row in rows[:limit]], len(rows) > limit


def sql_error(error: Exception, start: Position | None = None, expanded: Expanded | None = None) -> SqlError:
    """Spark's complaint about a text, in one line, with its position."""
    said = str(error.java_exception.getMessage()) if isinstance(error, Py4JJavaError) else str(error)
    message = said.split("\nSearch path")[0].split(";\n")[0].split("\n\nJVM")[0]
    found = re.search(r"\(line (\d+), pos (\d+)\)|line (\d+),? pos (\d+)", str(error))
    where = None
    if found:
        line, column = int(found[1] or found[3]), int(found[2] or found[4]) + 1
        where = Position(line, column)
        where = _shift(expanded.origin(where) if expanded else where, start)
    hint = None
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    if condition == "TABLE_OR_VIEW_NOT_FOUND" and start is not None:
        hint = (
            "a temporary view made of a DataFrame cannot be read by a materialized view: other sessions do not have it"
        )
    if "COLUMN_IS_NOT_VARIANT_TYPE" in said:  # Spark has no words for it
        message, hint = "a path by colon can be taken of a VARIANT only", "parse_json(x):a.b reads it from text"
    first = next((line for line in message.splitlines() if line.strip()), "Spark rejects the query")
    return SqlError(first.strip(), position=where, hint=hint)


def schema_columns(schema: StructType) -> tuple[tuple[str, str], ...]:
    return tuple((f.name, f.dataType.simpleString()) for f in schema.fields)


def _output_columns(statement: CreateView, schema: StructType) -> tuple[tuple[str, str], ...]:
    types = [f.dataType.simpleString() for f in schema.fields]
    names = list(statement.columns) or [f.name for f in schema.fields]
    if len(names) != len(types):
        raise SqlError(f"the view names {len(names)} columns, but its query gives {len(types)}")
    seen: set[str] = set()
    for name in names:
        if name.lower() in seen:
            raise SqlError(f"the view would have two columns named {name}", hint="give one of them another name by AS")
        if name.lower().startswith(_RESERVED):
            raise SqlError(f"column {name}: names that begin with {_RESERVED} are Viewkeeper's own")
        seen.add(name.lower())
    void = next((n for n, t in zip(names, types, strict=True) if t == "void"), None)
    if void is not None:
        raise SqlError(f"column {void} is NULL without a type", hint="CAST(NULL AS …) gives it one")
    missing = [c for c in statement.cluster_by if c.lower() not in seen]
    if missing:
        raise SqlError(f"CLUSTER BY names a column the view does not have: {missing[0]}")
    return tuple(zip(names, types, strict=True))


def _read(
    query: str, schema: StructType, output: tuple[str, ...], session: SparkSession, catalog: SourceCatalog
) -> tuple[Relation | None, Mapping[str, Position], Reason | None]:
    """The definition as typed algebra, if it can be read and Spark agrees with the reading; else why not.

    With it comes where in the text its columns come from.
    """
    try:
        tree = parse_query(query)
    except SqlError as error:
        return None, {}, Reason("this query", f"its text cannot be read: {error.message}", error.position)
    foreign = _own_function(tree, session)
    if foreign is not None:
        return None, {}, foreign
    bound = bind(tree, catalog, output)
    if not isinstance(bound, Bound):
        return None, {}, bound

    def ask(text: str) -> tuple[str, ...]:
        return tuple(type_ for _, type_ in schema_columns(session.sql(text).schema))

    try:
        relation = fused(without_ties(without_sessions(without_pivots(with_types(bound.relation, ask)))))
        # Both texts at one moment: what the clock gives is in Spark's plans.
        text, query = unparse(bound.as_read, _AtOnce()), at_moment(query, _SOME_MOMENT)
        if [f.dataType for f in session.sql(text).schema.fields] != [f.dataType for f in schema.fields]:
            return None, {}, Reason("this query", "Spark gives other types for it than for how it was read")
        if not same_plan(session, query, text):
            return None, {}, Reason("this query", "Spark's plan for it differs from the plan for how it was read")
    except PySparkException as error:
        return None, {}, Reason("this query", f"Spark does not accept how it was read: {sql_error(error).message}")
    return relation, bound.places, None


def _own_function(tree: Tree, session: SparkSession) -> Reason | None:
    """The first function that is not Spark's own: its body may depend on anything."""
    for name, where in function_calls(tree):
        if name not in _builtin:
            try:
                found = session.catalog.getFunction(name)
            except PySparkException:
                continue  # part of the syntax rather than a function
            if not found.isTemporary:
                return Reason(f"{name}()", "only SQL functions of their arguments alone are looked into", where)
            _builtin.add(name)
    return None


def same_plan(session: SparkSession, original: str, reading: str) -> bool:
    if session.sql(original).sameSemantics(session.sql(reading)):
        return True
    return explained(session, original) == explained(session, reading)


def explained(session: SparkSession, query: str) -> str:
    return optimized_plan(_explained(session, query))


def _explained(session: SparkSession, query: str) -> str:
    """Spark's plans for the query, with every column of every operator."""
    for key, value in _SHOWN.items():
        session.conf.set(key, value)
    return "\n".join(row[0] for row in session.sql(f"EXPLAIN EXTENDED {query}").collect())


def _sources(query: str, session: SparkSession, catalog: SourceCatalog, registry: Registry) -> tuple[SourceUse, ...]:
    """Every table the query reads, with the places to pin; by Spark's plan where the text cannot be read."""
    try:
        uses = table_uses(parse_query(query), catalog)
    except (SqlError, Refusal):
        return _sources_by_plan(query, session, catalog, registry)
    mentions: dict[str, list[tuple[int, int, str | None]]] = {}
    found: dict[str, Source] = {}
    for use in uses:
        found[use.source.name] = use.source
        mention = use.mention
        alias = None if mention.aliased else mention.parts[-1]
        mentions.setdefault(use.source.name, []).append((mention.start, mention.end, alias))
    return tuple(_source_use(source, tuple(mentions[name])) for name, source in found.items())


def _sources_by_plan(
    query: str, session: SparkSession, catalog: SourceCatalog, registry: Registry
) -> tuple[SourceUse, ...]:
    plan = _explained(session, query)
    analysed = plan.split("== Analyzed Logical Plan ==")[-1].split("== Optimized Logical Plan ==")[0]
    names = dict.fromkeys(_PLAN_TABLE.findall(analysed))
    sources = [catalog.resolve(split(name)) for name in names]
    if not sources:
        return (SourceUse("?", "other", "", ()),)
    return tuple(_source_use(source, ()) for source in sources)


def _source_use(source: Source, mentions: tuple[tuple[int, int, str | None], ...]) -> SourceUse:
    match source:
        case DeltaTable(name):
            return SourceUse(name, "delta", name, mentions)
        case KeptView(name):
            return SourceUse(name, "view", backing_name(name), mentions)
        case Unmaintainable(name):
            return SourceUse(name, "other", "", mentions)


def _has_star(query: str) -> bool:
    try:
        return selects_star(parse_query(query))
    except SqlError:
        return False


def _moved(reason: Reason | None, start: Position, expanded: Expanded) -> Reason | None:
    """A reason whose position counts from the start of the whole statement."""
    if reason is None or reason.position is None:
        return reason
    return Reason(reason.construct, reason.why, _shift(expanded.origin(reason.position), start))


def _shift(position: Position, start: Position | None) -> Position:
    if start is None:
        return position
    column = position.column + start.column - 1 if position.line == 1 else position.column
    return Position(position.line + start.line - 1, column)
