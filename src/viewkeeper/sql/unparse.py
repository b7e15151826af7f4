"""Algebra to Spark SQL: neighbouring operators share one SELECT, every expression is fully parenthesised.

Sharing a SELECT keeps the text readable and the plan close to what a person's query gives, which the gate
relies on: the text of a definition's algebra must have the same plan as the definition.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import constants
from viewkeeper.algebra.relations import (
    WEIGHT,
    Aggregate,
    Changes,
    Filter,
    Generate,
    Item,
    Join,
    Measure,
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
    WindowColumn,
    names,
)
from viewkeeper.algebra.scalars import TRUE, Call, Outer, Scalar, subqueries
from viewkeeper.algebra.scalars import columns as columns_of
from viewkeeper.algebra.sessions import SESSION
from viewkeeper.algebra.settled import in_order
from viewkeeper.sql.block import Block, indent, is_constant
from viewkeeper.sql.leaves import CurrentTables, Leaves
from viewkeeper.sql.render import NO_ARGUMENT, direction, order_text, quote, render, render_measure, within_group

LONG_EXPRESSION = 2_000  # beyond this a computed column is named in a subquery rather than written out again


def unparse(rel: Relation, leaves: Leaves | None = None) -> str:
    """One Spark SQL query for the relation, its columns in order and under their names."""
    return _Writer(leaves or CurrentTables(), _column_names(rel)).query(rel)


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
                return self.block(rel).select({n: n for n in names(rel)})

    def operand(self, rel: Relation) -> str:
        """A query as one side of a set operation."""
        text = self.query(rel)
        bracketed = isinstance(rel, SetOperation) or any(isinstance(n, Top) for n in walk(rel))
        return f"({indent(text)})" if bracketed else text

    def block(self, rel: Relation) -> Block:
        match rel:
            case Scan(table, columns, state):
                alias = self.alias(table)
                return Block(
                    f"{self.leaves.state(table, state)} AS {alias}",
                    {c.name: f"{alias}.{quote(c.source)}" for c in columns},
                )
            case Changes(table, columns):
                alias = self.alias(f"{table}_changes")
                mapping = {c.name: f"{alias}.{quote(c.source)}" for c in columns}
                mapping[WEIGHT] = f"{alias}.{quote(WEIGHT)}"
                return Block(f"({indent(self.leaves.changes(table, columns))}) AS {alias}", mapping)
            case Values():
                return self.values(rel)
            case Filter(input, predicate):
                below = self.seen_from(self.next_to(input), predicate)
                text = self.render(predicate, below.columns)
                if below.aggregated:
                    return replace(below, having=(*below.having, text))
                return replace(below, where=(*below.where, text))
            case Project(input, items):
                below = self.seen_from(self.block(input), *(i.value for i in items))
                if below.aggregated and any(_asks_the_row(i.value) for i in items):
                    below = self.wrap(below)  # beside GROUP BY, Spark takes none
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
                return Block(f"({indent(self.query(rel))}) AS {alias}", {n: f"{alias}.{quote(n)}" for n in names(rel)})
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

    def next_to(self, rel: Relation) -> Block:
        """The block of an input that more can be written into."""
        below = self.block(rel)
        return self.wrap(below) if below.ended else below

    def seen_from(self, block: Block, *above: Scalar) -> Block:
        """The block, finished if what is above it can see what is computed there only from outside.

        window_time() sees the window of groups so, and a subquery aggregates and window functions.
        """
        computed = block.measured | block.windowed
        asked = [n for scalar in above for n in walk(scalar)] if block.aggregated or computed else []
        timed = block.aggregated and any(isinstance(n, Call) and n.name == "WINDOW_TIME" for n in asked)
        return self.wrap(block) if timed or any(isinstance(n, Outer) and n.name in computed for n in asked) else block

    def aggregate(self, rel: Aggregate) -> Block:
        if any(m.settled for m in rel.measures):
            return self.block(in_order(rel))
        below = self.next_to(rel.input)
        # An ordinal or a constant cannot stand in GROUP BY as itself.
        if below.aggregated or any(is_constant(below.columns[k]) for k in rel.group_by):
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

    def window(self, rel: Window) -> Block:
        below = self.block(rel.input)
        read = {*rel.partition_by, *(o.column for o in rel.order_by)}
        read = read.union(*(c.reads for c in rel.columns))
        if below.tail or below.windowed & read or (below.aggregated and not below.grouped_by_columns):
            below = self.wrap(below)
        parts = [f"PARTITION BY {', '.join(below.columns[c] for c in rel.partition_by)}"] if rel.partition_by else []
        if rel.order_by:
            parts.append(f"ORDER BY {order_text(rel.order_by, below.columns)}")
        computed = {}
        for column in rel.columns:
            args = ", ".join(self.render(a, below.columns) for a in column.args) or NO_ARGUMENT.get(column.function, "")
            nulls = " IGNORE NULLS" if column.ignore_nulls else ""
            over = " ".join([*parts, *([column.frame] if column.frame else [])])
            where = f" FILTER (WHERE {self.render(column.where, below.columns)})" if column.where else ""
            within = within_group(column.within, below.columns)
            computed[column.name] = f"{column.function}({args}){within}{where}{nulls} OVER ({over})"
        return replace(
            below, columns={**below.columns, **computed}, windowed=below.windowed | {c.name for c in rel.columns}
        )

    def top(self, rel: Top) -> Block:
        below = self.next_to(rel.input)
        # A constant orders nothing, and a number would be taken for the position of a column.
        texts = below.columns
        ordered = tuple(o for o in rel.order_by if not is_constant(texts[o.column]) or "(" in texts[o.column])
        tail = [f"LIMIT {rel.limit}"] if rel.limit is not None else []
        tail += [f"OFFSET {rel.offset}"] if rel.offset else []
        order_by = tuple((texts[o.column], direction(o)) for o in ordered)
        return replace(below, order_by=order_by, tail="\n".join(tail))

    def generate(self, rel: Generate) -> Block:
        if isinstance(rel.generator, Call) and rel.generator.name == "RANGE":  # to Spark, a table
            return self.numbers(rel)
        below = self.next_to(rel.input)
        if not below.source and not below.columns and not rel.outer:
            return self.made(rel)
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

    def made(self, rel: Generate) -> Block:
        """What a generator makes of nothing but its arguments, as a table."""
        alias = self.alias("made")
        listed = ", ".join(quote(f.name) for f in rel.fields)
        source = f"{self.render(rel.generator, {})} AS {alias}({listed})"
        return Block(source, {f.name: f"{alias}.{quote(f.name)}" for f in rel.fields})

    def numbers(self, rel: Generate) -> Block:
        below = self.block(rel.input)
        alias = self.alias("range")
        # With a name of its own for the column, which Spark's plan would not show otherwise (gate).
        made = f"{self.render(rel.generator, {})} AS {alias}(`n`)"
        if below.source or below.columns:
            below = below if below.plain else self.wrap(below)
            made = f"{below.source}\nCROSS JOIN {made}"
        columns = {**below.columns, rel.fields[0].name: f"{alias}.`n`"}
        return replace(below, source=made, columns=columns, joined=bool(below.source))

    def pivot(self, rel: Pivot) -> Block:
        below = self.block(rel.input)
        compared = {*rel.group_by, *rel.columns}
        constants = {n: text for n, text in _constants(rel.input).items() if n not in compared}
        read = replace(below, columns={n: text for n, text in below.columns.items() if n not in constants})
        labels = read.labels()
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
        return self.clause(read.select(labels), clause, dict(zip(names(rel), shown, strict=True)))

    def unpivot(self, rel: Unpivot) -> Block:
        rows = self.block(rel.input).select({n: n for n in names(rel.input)})
        listed = ", ".join(
            f"{_tuple([quote(c) for c in taken])} AS {quote(label)}"
            for taken, label in zip(rel.taken, rel.labels, strict=True)
        )
        label, *values = (quote(f.name) for f in rel.fields)
        nulls = "INCLUDE NULLS " if rel.include_nulls else ""
        clause = f"UNPIVOT {nulls}({_tuple(values)} FOR {label} IN ({listed}))"
        return self.clause(rows, clause, {n: n for n in names(rel)})

    def clause(self, rows: str, clause: str, made: Mapping[str, str]) -> Block:
        """A query and what follows it in FROM, as a source of the next SELECT."""
        alias = self.alias("q")
        source = f"(SELECT *\n  FROM ({indent(rows)}) {clause}) AS {alias}"
        return Block(source, {name: f"{alias}.{quote(label)}" for name, label in made.items()})

    def values(self, rel: Values) -> Block:
        if not rel.fields and len(rel.rows) == 1:
            return Block("", {})
        alias = self.alias("given")
        columns = ", ".join(quote(f.name) for f in rel.fields)
        if rel.rows:
            rows = ", ".join(f"({', '.join(self.render(cell, {}) for cell in row)})" for row in rel.rows)
            source = f"VALUES {rows} AS {alias}({columns})"
        else:
            cells = ", ".join(f"CAST(NULL AS {f.type}) AS {quote(f.name)}" for f in rel.fields)
            source = f"(SELECT {cells or '1'} WHERE FALSE) AS {alias}"
        return Block(source, {f.name: f"{alias}.{quote(f.name)}" for f in rel.fields})

    def join(self, rel: Join) -> Block:
        left, sent = self.block(rel.left), self.leaves.sent(rel)
        pinned = rel.kind == "full" or rel.lateral
        computed = rel.kind in ("inner", "full")
        if not left.plain or (pinned and left.where) or (computed and not left.bare):
            left = self.wrap(left)
        if sent == "left" and left.alias is None:
            left = self.wrap(left)
        right = self.lateral(rel.right, left) if rel.lateral else self.block(rel.right)
        computed = rel.kind in ("inner", "left", "full")
        if not right.plain or (right.where and rel.kind != "inner") or (computed and not right.bare):
            right = self.wrap(right)
        if sent == "right" and right.alias is None:
            right = self.wrap(right)
        told = {"left": left.alias, "right": right.alias}[sent] if sent else None
        columns = {**left.columns, **right.columns}
        opposite = f"({right.source})" if right.joined else right.source
        # With LATERAL, whether there is a condition decides how Spark plans it (algebra.laterals).
        if rel.kind == "inner" and rel.condition == TRUE and not rel.lateral:
            source = f"{left.source}\nCROSS JOIN {opposite}"
        else:
            source = f"{left.source}\n{_JOINS[rel.kind]} {opposite} ON {self.render(rel.condition, columns)}"
        return Block(
            source,
            {name: columns[name] for name in names(rel)},
            where=(*left.where, *right.where),
            joined=True,
            sent=(*left.sent, *right.sent, *filter(None, [told])),
        )

    def lateral(self, rel: Relation, left: Block) -> Block:
        """A subquery that may read the row on its left."""
        alias = self.alias("q")
        text = f"LATERAL {self.subquery(rel, left.columns)} AS {alias}"
        return Block(text, {n: f"{alias}.{quote(n)}" for n in names(rel)})

    def render(self, scalar: Scalar, columns: Mapping[str, str]) -> str:
        return render(scalar, columns, self)

    def subquery(self, rel: Relation, columns: Mapping[str, str]) -> str:
        """A query in an expression over these columns."""
        inner = _Writer(self.leaves, self.aliases, {**self.outer, **columns})
        return f"({indent(inner.query(rel))})"

    def moment(self, function: str, state: State) -> str:
        return self.leaves.moment(function, state)

    def wrap(self, block: Block) -> Block:
        """A finished SELECT as a source of the next."""
        alias = self.alias("q")
        labels = block.labels()
        text = block.select(labels)
        return Block(f"({indent(text)}) AS {alias}", {n: f"{alias}.{quote(labels[n])}" for n in block.columns})

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


def _asks_the_row(value: Scalar) -> bool:
    """Whether a subquery in it reads the row it is computed for."""
    return any(isinstance(n, Outer) for subquery in subqueries(value) for n in walk(subquery.relation))


def _column_names(rel: Relation) -> set[str]:
    """The names no table may have: in a subquery, the column of that name would be looked into first."""
    named = {node.name for node in walk(rel) if isinstance(node, Item | Measure | WindowColumn | ScanColumn)}
    return {name.lower() for name in named.union(n.source for n in walk(rel) if isinstance(n, ScanColumn))}


_JOINS = {
    "inner": "INNER JOIN",
    "left": "LEFT JOIN",
    "full": "FULL JOIN",
    "semi": "LEFT SEMI JOIN",
    "anti": "LEFT ANTI JOIN",
}


def _grouping(sets: tuple[tuple[str, ...], ...], keys: Mapping[str, str]) -> tuple[str, ...]:
    """The keys too where the sets do not tell their order, by which grouping_id() numbers them."""
    listed = ", ".join(f"({', '.join(keys[k] for k in one)})" for one in sets)
    told = list(dict.fromkeys(k for one in sets for k in one)) == list(keys)
    before = "" if told else f"{', '.join(keys.values())} "
    return (f"{before}GROUPING SETS ({listed})",)


def _constants(rel: Relation) -> dict[str, str]:
    """The texts of the columns that are the same in all rows."""
    return {name: render(value, {}) for name, value in constants(rel).items()}


def _tuple(texts: Sequence[str]) -> str:
    return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"
