"""Algebra to Spark SQL: neighbouring operators share one SELECT, every expression is fully parenthesised.

Sharing a SELECT keeps the text readable and the plan close to what a person's query gives, which the gate
relies on: the text of a definition's algebra must have the same plan as the definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, assert_never

from viewkeeper.algebra.display import INFIX
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import constants
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Filter,
    Generate,
    Join,
    Measure,
    Ordering,
    Pivot,
    Project,
    Relation,
    Scan,
    ScanColumn,
    SetOperation,
    State,
    Top,
    Union,
    Unpivot,
    Values,
    Window,
    names,
)
from viewkeeper.algebra.scalars import (
    TRUE,
    Call,
    Cast,
    Clock,
    Column,
    Literal,
    Outer,
    Scalar,
    Subquery,
    Verbatim,
    text_constant,
)
from viewkeeper.algebra.scalars import columns as columns_of
from viewkeeper.algebra.sessions import SESSION
from viewkeeper.algebra.settled import in_order
from viewkeeper.errors import InternalError

LONG_EXPRESSION = 2_000  # beyond this a computed column is named in a subquery rather than written out again


class Leaves(Protocol):
    """What stands in FROM for a table's states and changes."""

    def state(self, table: str, state: State) -> str:
        """A table reference without alias, such as `t VERSION AS OF 3`."""

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        """A query with the source columns, under their own names, and `__vk_weight`."""

    def moment(self, function: str, state: State) -> str:
        """What a function of the clock gives."""


class CurrentTables:
    """Leaves for a definition: every table as it is now."""

    def state(self, table: str, state: State) -> str:
        return table

    def changes(self, table: str, columns: tuple[ScanColumn, ...]) -> str:
        cols = "".join(f"{quote(c.source)}, " for c in columns)
        return f"SELECT {cols}{WEIGHT} FROM changes_of({table})"

    def moment(self, function: str, state: State) -> str:
        return f"{function}()"


def quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def string_literal(text: str) -> str:
    return text_constant(text).sql


def unparse(rel: Relation, leaves: Leaves | None = None) -> str:
    """One Spark SQL query for the relation, its columns in order and under their names."""
    return _Writer(leaves or CurrentTables()).query(rel)


@dataclass(frozen=True)
class _Block:
    """One SELECT under construction: what each column is, over what is in FROM."""

    source: str
    columns: Mapping[str, str]
    where: tuple[str, ...] = ()
    joined: bool = False
    group_by: tuple[str, ...] = ()
    having: tuple[str, ...] = ()
    aggregated: bool = False
    measured: frozenset[str] = frozenset()
    windowed: frozenset[str] = frozenset()  # columns over windows, which nothing else in this SELECT can read
    lateral: bool = False
    order_by: tuple[tuple[str, str], ...] = ()  # what by, and in which direction
    tail: str = ""  # LIMIT … OFFSET …

    @property
    def plain(self) -> bool:
        """Whether it can stand in another SELECT's FROM as it is."""
        return not (self.aggregated or self.windowed or self.lateral or self.tail) and bool(self.source)

    @property
    def ended(self) -> bool:
        """Whether what comes next must start a new SELECT."""
        return bool(self.windowed or self.tail)

    @property
    def bare(self) -> bool:
        """Whether its columns are those of FROM: anything computed must be so before an outer join pads it."""
        return all(_is_reference(text) for text in self.columns.values())


@dataclass
class _Writer:
    leaves: Leaves
    aliases: set[str] = field(default_factory=set)
    outer: Mapping[str, str] = field(default_factory=dict)  # the columns of the query around a subquery

    def query(self, rel: Relation) -> str:
        match rel:
            case Union(inputs):
                return "\nUNION ALL\n".join(map(self.operand, inputs))
            case SetOperation(left, right, kind, all_):
                return f"{self.operand(left)}\n{kind.upper()}{' ALL' if all_ else ''}\n{self.operand(right)}"
            case _:
                return self.select(self.block(rel), {n: n for n in names(rel)})

    def operand(self, rel: Relation) -> str:
        """A query as one side of a set operation."""
        text = self.query(rel)
        bracketed = isinstance(rel, SetOperation) or any(isinstance(n, Top) for n in walk(rel))
        return f"({_indent(text)})" if bracketed else text

    def select(self, block: _Block, labels: Mapping[str, str]) -> str:
        """The block as text; `labels` says which of its columns come out, and under which name."""
        items = [_aliased(block.columns[n], label) for n, label in labels.items()] or ["1 AS __vk_nothing"]
        text = f"SELECT {', '.join(items)}"
        if block.source:
            text += f"\nFROM {block.source}"
        if block.where:
            text += f"\nWHERE {' AND '.join(block.where)}"
        if block.group_by:
            text += f"\nGROUP BY {', '.join(block.group_by)}"
        if block.having:
            text += f"\nHAVING {' AND '.join(block.having)}"
        elif block.aggregated and not block.group_by and not block.measured.intersection(labels):
            text += "\nHAVING TRUE"  # nothing else says that this is one row for all
        if block.order_by:
            # By what is selected where possible: below LATERAL, Spark forgets an order by anything else.
            named = ((block.columns[n], label) for n, label in labels.items())
            selected = {value: quote(label) for value, label in named if _aliased(value, label) != value}
            text += f"\nORDER BY {', '.join(f'{selected.get(by, by)} {how}' for by, how in block.order_by)}"
        return text + (f"\n{block.tail}" if block.tail else "")

    def block(self, rel: Relation) -> _Block:
        match rel:
            case Scan(table, columns, state):
                alias = self.alias(table)
                return _Block(
                    f"{self.leaves.state(table, state)} AS {alias}",
                    {c.name: f"{alias}.{quote(c.source)}" for c in columns},
                )
            case Changes(table, columns):
                alias = self.alias(f"{table}_changes")
                mapping = {c.name: f"{alias}.{quote(c.source)}" for c in columns}
                mapping[WEIGHT] = f"{alias}.{WEIGHT}"
                return _Block(f"({_indent(self.leaves.changes(table, columns))}) AS {alias}", mapping)
            case Values():
                return self.values(rel)
            case Filter(input, predicate):
                below = self.untimed(self.next_to(input), predicate)
                text = self.render(predicate, below.columns)
                if below.aggregated:
                    return replace(below, having=(*below.having, text))
                return replace(below, where=(*below.where, text))
            case Project(input, items):
                below = self.untimed(self.block(input), *(i.value for i in items))
                mapping = {i.name: self.render(i.value, below.columns) for i in items}
                if any(len(text) > LONG_EXPRESSION for text in below.columns.values()):
                    below = self.wrap(below)
                    mapping = {i.name: self.render(i.value, below.columns) for i in items}
                measured = frozenset(i.name for i in items if columns_of(i.value) & below.measured)
                windowed = frozenset(i.name for i in items if columns_of(i.value) & below.windowed)
                return replace(below, columns=mapping, measured=measured, windowed=windowed)
            case Join():
                return self.join(rel)
            case Union() | SetOperation():
                alias = self.alias("q")
                return _Block(
                    f"({_indent(self.query(rel))}) AS {alias}", {n: f"{alias}.{quote(n)}" for n in names(rel)}
                )
            case Aggregate():
                return self.aggregate(rel)
            case Window():
                return self.window(rel)
            case Top():
                return self.top(rel)
            case Generate():
                return self.generate(rel)
            case Pivot() | Unpivot():
                return self.pivot(rel) if isinstance(rel, Pivot) else self.unpivot(rel)
            case _:
                assert_never(rel)

    def next_to(self, rel: Relation) -> _Block:
        """The block of an input that more can be written into."""
        below = self.block(rel)
        return self.wrap(below) if below.ended else below

    def untimed(self, block: _Block, *above: Scalar) -> _Block:
        """The block, finished if window_time() is asked above its groups: Spark knows the window only from outside."""
        calls = (n for scalar in above for n in walk(scalar) if isinstance(n, Call))
        return self.wrap(block) if block.aggregated and any(c.name == "WINDOW_TIME" for c in calls) else block

    def aggregate(self, rel: Aggregate) -> _Block:
        if any(m.settled for m in rel.measures):
            return self.block(in_order(rel))
        below = self.next_to(rel.input)
        # An ordinal or a constant cannot stand in GROUP BY as itself.
        if below.aggregated or any(_is_constant(below.columns[k]) for k in rel.group_by):
            below = self.wrap(below)
        keys = {name: below.columns[name] for name in rel.group_by}
        # Some functions take only constants for some arguments.
        values = {m.name: render_measure(m, {**below.columns, **_constants(rel.input)}) for m in rel.measures}
        return replace(
            below,
            columns={**keys, **values},
            group_by=_grouping(rel.sets, keys) if rel.sets else tuple(keys.values()),
            aggregated=True,
            measured=frozenset(values),
        )

    def window(self, rel: Window) -> _Block:
        below = self.block(rel.input)
        read = {*rel.partition_by, *(o.column for o in rel.order_by)}
        if below.tail or below.windowed & read.union(*(c.reads for c in rel.columns)):
            below = self.wrap(below)
        parts = [f"PARTITION BY {', '.join(below.columns[c] for c in rel.partition_by)}"] if rel.partition_by else []
        if rel.order_by:
            parts.append(f"ORDER BY {order_text(rel.order_by, below.columns)}")
        computed = {}
        for column in rel.columns:
            args = ", ".join(self.render(a, below.columns) for a in column.args) or _NO_ARGUMENT.get(
                column.function, ""
            )
            nulls = " IGNORE NULLS" if column.ignore_nulls else ""
            over = " ".join([*parts, *([column.frame] if column.frame else [])])
            where = f" FILTER (WHERE {self.render(column.where, below.columns)})" if column.where else ""
            computed[column.name] = f"{column.function}({args}){where}{nulls} OVER ({over})"
        return replace(
            below, columns={**below.columns, **computed}, windowed=below.windowed | {c.name for c in rel.columns}
        )

    def top(self, rel: Top) -> _Block:
        below = self.next_to(rel.input)
        # A constant orders nothing, and a number would be taken for the position of a column.
        texts = below.columns
        ordered = tuple(o for o in rel.order_by if not _is_constant(texts[o.column]) or "(" in texts[o.column])
        tail = [f"LIMIT {rel.limit}"] if rel.limit is not None else []
        tail += [f"OFFSET {rel.offset}"] if rel.offset else []
        order_by = tuple((texts[o.column], _direction(o)) for o in ordered)
        return replace(below, order_by=order_by, tail="\n".join(tail))

    def generate(self, rel: Generate) -> _Block:
        if isinstance(rel.generator, Call) and rel.generator.name == "RANGE":  # to Spark, a table
            return self.numbers(rel)
        below = self.next_to(rel.input)
        if below.aggregated or not below.source:
            below = self.wrap(below)
        if isinstance(rel.generator, Call) and rel.generator.name in ("WINDOW", SESSION):  # to Spark, values
            made_here = {f.name: self.render(rel.generator, below.columns) for f in rel.fields}
            return self.wrap(replace(below, columns={**below.columns, **made_here}))
        alias = self.alias("made")
        made = ", ".join(quote(f.name) for f in rel.fields)
        outer = "OUTER " if rel.outer else ""
        text = self.render(rel.generator, below.columns)
        view = f"LATERAL VIEW {outer}{text} {alias} AS {made}"
        if text.startswith("VARIANT_EXPLODE"):  # to Spark, only a table
            view = f"CROSS JOIN LATERAL {text} AS {alias}({made})"
        columns = {**below.columns, **{f.name: f"{alias}.{quote(f.name)}" for f in rel.fields}}
        return replace(below, source=f"{below.source}\n{view}", columns=columns, lateral=True)

    def numbers(self, rel: Generate) -> _Block:
        below = self.block(rel.input)
        alias = self.alias("range")
        # With a name of its own for the column, which Spark's plan would not show otherwise (gate).
        made = f"{self.render(rel.generator, {})} AS {alias}(`n`)"
        if below.source or below.columns:
            below = below if below.plain else self.wrap(below)
            made = f"{below.source}\nCROSS JOIN {made}"
        columns = {**below.columns, rel.fields[0].name: f"{alias}.`n`"}
        return replace(below, source=made, columns=columns, joined=bool(below.source))

    def pivot(self, rel: Pivot) -> _Block:
        below = self.block(rel.input)
        compared = {*rel.group_by, *rel.columns}
        constants = {n: text for n, text in _constants(rel.input).items() if n not in compared}
        read = replace(below, columns={n: text for n, text in below.columns.items() if n not in constants})
        labels = _labels(read)
        columns = {**{n: quote(label) for n, label in labels.items()}, **constants}
        # What is made is named by Spark: by the value alone, or with the result if there are several.
        suffixes = [f"__vk_m{i}" for i in range(len(rel.results))] if len(rel.results) > 1 else [""]
        measures = {m.name: render_measure(m, columns) for m in rel.measures}
        results = [
            self.render(r.value, measures) + (f" AS {suffix}" if suffix else "")
            for r, suffix in zip(rel.results, suffixes, strict=True)
        ]
        values = [_tuple([self.render(cell, {}) for cell in value]) for value in rel.values]
        listed = ", ".join(f"{value} AS __vk_v{i}" for i, value in enumerate(values))
        clause = f"PIVOT ({', '.join(results)} FOR {_tuple([columns[c] for c in rel.columns])} IN ({listed}))"
        made = [f"__vk_v{i}_{suffix}" if suffix else f"__vk_v{i}" for i in range(len(values)) for suffix in suffixes]
        shown = [*(labels[k] for k in rel.group_by), *made]
        return self.clause(self.select(read, labels), clause, dict(zip(names(rel), shown, strict=True)))

    def unpivot(self, rel: Unpivot) -> _Block:
        rows = self.select(self.block(rel.input), {n: n for n in names(rel.input)})
        listed = ", ".join(
            f"{_tuple([quote(c) for c in taken])} AS {quote(label)}"
            for taken, label in zip(rel.taken, rel.labels, strict=True)
        )
        label, *values = (quote(f.name) for f in rel.fields)
        nulls = "INCLUDE NULLS " if rel.include_nulls else ""
        clause = f"UNPIVOT {nulls}({_tuple(values)} FOR {label} IN ({listed}))"
        return self.clause(rows, clause, {n: n for n in names(rel)})

    def clause(self, rows: str, clause: str, made: Mapping[str, str]) -> _Block:
        """A query and what follows it in FROM, as a source of the next SELECT."""
        alias = self.alias("q")
        source = f"(SELECT *\n  FROM ({_indent(rows)}) {clause}) AS {alias}"
        return _Block(source, {name: f"{alias}.{quote(label)}" for name, label in made.items()})

    def values(self, rel: Values) -> _Block:
        if not rel.fields and len(rel.rows) == 1:
            return _Block("", {})
        alias = self.alias("given")
        columns = ", ".join(quote(f.name) for f in rel.fields)
        if rel.rows:
            rows = ", ".join(f"({', '.join(self.render(cell, {}) for cell in row)})" for row in rel.rows)
            source = f"VALUES {rows} AS {alias}({columns})"
        else:
            cells = ", ".join(f"CAST(NULL AS {f.type}) AS {quote(f.name)}" for f in rel.fields)
            source = f"(SELECT {cells or '1'} WHERE FALSE) AS {alias}"
        return _Block(source, {f.name: f"{alias}.{quote(f.name)}" for f in rel.fields})

    def join(self, rel: Join) -> _Block:
        left = self.block(rel.left)
        pinned = rel.kind == "full" or rel.lateral
        if not left.plain or (pinned and left.where) or (rel.kind == "full" and not left.bare):
            left = self.wrap(left)
        right = self.lateral(rel.right, left) if rel.lateral else self.block(rel.right)
        padded = rel.kind in ("left", "full")
        if not right.plain or (right.where and rel.kind != "inner") or (padded and not right.bare):
            right = self.wrap(right)
        columns = {**left.columns, **right.columns}
        opposite = f"({right.source})" if right.joined else right.source
        if rel.kind == "inner" and rel.condition == TRUE:
            source = f"{left.source}\nCROSS JOIN {opposite}"
        else:
            source = f"{left.source}\n{_JOINS[rel.kind]} {opposite} ON {self.render(rel.condition, columns)}"
        return _Block(
            source,
            {name: columns[name] for name in names(rel)},
            where=(*left.where, *right.where),
            joined=True,
        )

    def lateral(self, rel: Relation, left: _Block) -> _Block:
        """A subquery that may read the row on its left."""
        alias = self.alias("q")
        text = f"LATERAL {self.subquery(rel, left.columns)} AS {alias}"
        return _Block(text, {n: f"{alias}.{quote(n)}" for n in names(rel)})

    def render(self, scalar: Scalar, columns: Mapping[str, str]) -> str:
        return render(scalar, columns, self)

    def subquery(self, rel: Relation, columns: Mapping[str, str]) -> str:
        """A query in an expression over these columns."""
        inner = _Writer(self.leaves, self.aliases, {**self.outer, **columns})
        return f"({_indent(inner.query(rel))})"

    def wrap(self, block: _Block) -> _Block:
        """A finished SELECT as a source of the next."""
        alias = self.alias("q")
        labels = _labels(block)
        text = self.select(block, labels)
        return _Block(f"({_indent(text)}) AS {alias}", {n: f"{alias}.{quote(labels[n])}" for n in block.columns})

    def alias(self, base: str) -> str:
        name = (
            "".join(c if c.isalnum() or c == "_" else "_" for c in base.rsplit(".", maxsplit=1)[-1].strip("`")) or "t"
        )
        alias, count = name, 1
        while alias.lower() in self.aliases:
            count += 1
            alias = f"{name}_{count}"
        self.aliases.add(alias.lower())
        return quote(alias)


_NO_ARGUMENT = {"COUNT": "*"}
_JOINS = {
    "inner": "INNER JOIN",
    "left": "LEFT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}


def render(scalar: Scalar, columns: Mapping[str, str], around: _Writer | None = None) -> str:
    """Spark SQL of an expression, its columns replaced by the given texts."""

    def text(part: Scalar) -> str:
        return render(part, columns, around)

    match scalar:
        case Column(name):
            return columns[name]
        case Literal(sql):
            return sql
        case Call(name, (left, right)) if name in INFIX:
            # A chain without parentheses, as which it is mostly written: Spark puts it together in a way of its own.
            chain = name in ("AND", "OR") and isinstance(left, Call) and left.name == name
            return f"({text(left)[1:-1] if chain else text(left)} {name} {text(right)})"
        case Call("IS NULL" | "IS NOT NULL" as name, (arg,)):
            return f"({text(arg)} {name})"
        case Call("NOT" | "-" as name, (arg,)):
            return f"({name} {text(arg)})"
        case Call("IN", (arg, *listed)):
            return f"({text(arg)} IN ({', '.join(map(text, listed))}))"
        case Call(name, args):
            return f"{name}({', '.join(map(text, args))})"
        case Cast(arg, type_):
            return f"CAST({text(arg)} AS {type_})"
        case Verbatim(parts, args):
            return parts[0] + "".join(text(a) + part for a, part in zip(args, parts[1:], strict=True))
        case Outer(name) if around is not None:
            return around.outer[name]
        case Subquery("exists", _, rel) if around is not None:
            return f"EXISTS {around.subquery(rel, columns)}"
        case Subquery("in", args, rel) if around is not None:
            tested = ", ".join(map(text, args))
            return f"({tested if len(args) == 1 else f'({tested})'} IN {around.subquery(rel, columns)})"
        case Subquery(_, _, rel) if around is not None:
            return around.subquery(rel, columns)
        case Clock(function, state) if around is not None:
            return around.leaves.moment(function, state)
        case Outer() | Subquery() | Clock():
            raise InternalError("a subquery or the clock outside of a query")
        case _:
            assert_never(scalar)


def _grouping(sets: tuple[tuple[str, ...], ...], keys: Mapping[str, str]) -> tuple[str, ...]:
    listed = ", ".join(f"({', '.join(keys[k] for k in one)})" for one in sets)
    return (f"GROUPING SETS ({listed})",)


def order_text(order_by: tuple[Ordering, ...], columns: Mapping[str, str]) -> str:
    return ", ".join(f"{columns[o.column]} {_direction(o)}" for o in order_by)


def _direction(order: Ordering) -> str:
    return f"{'DESC' if order.descending else 'ASC'} NULLS {'FIRST' if order.nulls_first else 'LAST'}"


def render_measure(measure: Measure, columns: Mapping[str, str]) -> str:
    args = ", ".join(columns[a] for a in measure.args) or _NO_ARGUMENT.get(measure.function.upper(), "")
    within = f" WITHIN GROUP (ORDER BY {order_text(measure.order_by, columns)})" if measure.order_by else ""
    where = f" FILTER (WHERE {columns[measure.where]})" if measure.where else ""
    nulls = " IGNORE NULLS" if measure.ignore_nulls else ""
    return f"{measure.function.upper()}({'DISTINCT ' if measure.distinct else ''}{args}){within}{where}{nulls}"


def _constants(rel: Relation) -> dict[str, str]:
    """The texts of the columns that are the same in all rows."""
    return {name: render(value, {}) for name, value in constants(rel).items()}


def _tuple(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"


def _labels(block: _Block) -> dict[str, str]:
    """Names for a subquery's columns: a plain reference keeps the name it has, so that Spark sees no rename."""
    labels: dict[str, str] = {}
    for name, expression in block.columns.items():
        own = expression.split("`")[3] if _is_reference(expression) else name
        taken = {label.lower() for label in labels.values()} | {c.lower() for c in block.columns if c != name}
        labels[name] = own if own.lower() not in taken else name
    return labels


def _aliased(expression: str, name: str) -> str:
    """`t`.`a` AS `a` says no more than `t`.`a`, and hides from Spark that two plans are the same."""
    return (
        expression
        if expression.endswith(f".{quote(name)}") and _is_reference(expression)
        else (f"{expression} AS {quote(name)}")
    )


def _is_reference(expression: str) -> bool:
    return expression.startswith("`") and expression.count("`") == 4 and "(" not in expression


def _is_constant(expression: str) -> bool:
    return "`" not in expression


def _indent(text: str) -> str:
    return text.replace("\n", "\n  ")
