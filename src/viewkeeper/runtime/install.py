"""What installs a change, or a whole content, each in one commit: rows to write, or a MERGE."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.identity import identity, is_comparable
from viewkeeper.algebra.relations import WEIGHT, Field
from viewkeeper.algebra.scalars import Column
from viewkeeper.changes.kept import COUNT, WHOLE
from viewkeeper.changes.merge import CHANGE, OLD, MergeBag, MergeGroups, MergeTop
from viewkeeper.changes.refresh import DOUBTED, Doubt
from viewkeeper.planner.plan import Install
from viewkeeper.sql.render import order_text, quote, render, string_literal
from viewkeeper.store.commits import Mode

CHANGE_VIEW = "__vk_change"  # temporary views of the refresh's own session
CONTENT_VIEW = "__vk_content"
HIT, WAS, KEEP = "__vk_hit", "__vk_was", "__vk_keep"
_GONE = "a change removes rows the view does not have: the view or a source was changed behind its history"
_THERE = "a change adds a row of a key that is there: the key does not hold, or a table was changed behind its history"
_RAISE = f"CAST(raise_error({string_literal(_GONE)}) AS BIGINT)"


@dataclass(frozen=True)
class Rows:
    """The rows of a query, to be added to a table or to take the place of all it holds."""

    table: str
    mode: Mode
    query: str

    @property
    def sql(self) -> str:
        return f"INSERT {'INTO' if self.mode == 'append' else 'OVERWRITE'} {self.table}\n{self.query}"


@dataclass(frozen=True)
class Merge:
    """A MERGE statement."""

    sql: str


def install_bag(way: Install, table: str, old: str, merge: MergeBag) -> Rows | Merge:
    """What brings the rows of the change into the table by Spark, of which `old` is what it was."""
    match way:
        case "append":
            return append_bag(table, merge)
        case "rewrite":
            return rewrite_bag(table, old, merge)
        case "merge" | "replace":
            return merge_keyed(table, merge) if merge.key else merge_bag(table, old, merge)


def append_bag(table: str, merge: MergeBag) -> Rows:
    cols = _columns(merge)
    return Rows(
        table, "append", f"SELECT {cols} FROM {CHANGE_VIEW}\nLATERAL VIEW explode(sequence(1L, {WEIGHT})) AS __vk_copy"
    )


def rewrite_bag(table: str, old: str, merge: MergeBag) -> Rows:
    """Old rows and change rows added up, each written as often as is left of it."""
    cols = _columns(merge)
    left = _checked(f"sum({WEIGHT})")
    return Rows(
        table,
        "overwrite",
        f"SELECT {cols} FROM (\n"
        f"  SELECT {_of_equal_rows(merge)}, sum({WEIGHT}) AS {WEIGHT} FROM (\n"
        f"    SELECT {cols}, 1L AS {WEIGHT} FROM {old}\n"
        f"    UNION ALL SELECT {cols}, {WEIGHT} FROM {CHANGE_VIEW})\n"
        f"  GROUP BY {_identities(merge)} HAVING {left} > 0)\n"
        f"LATERAL VIEW explode(sequence(1L, {WEIGHT})) AS __vk_copy",
    )


def merge_bag(table: str, old: str, merge: MergeBag) -> Merge:
    """Rows of which copies went are deleted altogether, and what is left of them is inserted again.

    MERGE cannot delete some of several equal rows. So a source row either finds (`__vk_find`) and deletes all
    copies, or finds nothing and is inserted.
    """
    cols = _columns(merge)
    left = f"count(t.__vk_one) + first(c.{WEIGHT})"
    return Merge(
        f"MERGE INTO {table} AS t USING (\n"
        f"  SELECT {cols}, true AS __vk_find FROM {CHANGE_VIEW} WHERE {WEIGHT} < 0\n"
        f"  UNION ALL\n"
        f"  SELECT {cols}, false FROM (\n"
        f"    SELECT {cols}, {WEIGHT} AS __vk_copies FROM {CHANGE_VIEW} WHERE {WEIGHT} > 0\n"
        f"    UNION ALL\n"
        f"    SELECT {_of_equal_rows(merge, 'c')}, {_checked(left)}\n"
        f"    FROM {CHANGE_VIEW} AS c LEFT JOIN (SELECT *, 1 AS __vk_one FROM {old}) AS t\n"
        f"      ON {_same_row(merge, 't', 'c')}\n"
        f"    WHERE c.{WEIGHT} < 0 GROUP BY {_identities(merge, 'c')})\n"
        f"  LATERAL VIEW explode(sequence(1L, __vk_copies)) AS __vk_copy WHERE __vk_copies > 0) AS s\n"
        f"ON {_same_row(merge, 't', 's')} AND s.__vk_find\n"
        f"WHEN MATCHED THEN DELETE\n"
        f"WHEN NOT MATCHED AND NOT s.__vk_find THEN INSERT ({cols}) VALUES ({_columns(merge, 's')})"
    )


def merge_keyed(table: str, merge: MergeBag) -> Merge:
    """Of the rows of a key, the one that comes takes the place of the one that goes."""
    names = tuple(f.name for f in merge.columns)
    cols, key = _list(names), _list(merge.key)
    found = " AND ".join(f"t.{quote(c)} <=> s.{quote(c)}" for c in merge.key)
    updates = ", ".join(f"t.{quote(c)} = s.{quote(c)}" for c in names)
    first = quote(names[0])
    gone, there = (f"raise_error({string_literal(message)})" for message in (_GONE, _THERE))
    # As in merge_groups, only the value of an impossible row may raise the error.
    return Merge(
        f"MERGE INTO {table} AS t USING (\n"
        f"  SELECT {cols}, {WEIGHT}, min({WEIGHT}) OVER (PARTITION BY {key}) < 0 AS __vk_was FROM {CHANGE_VIEW}\n"
        f"  QUALIFY row_number() OVER (PARTITION BY {key} ORDER BY {WEIGHT} DESC) = 1) AS s\n"
        f"ON {found}\n"
        f"WHEN MATCHED AND NOT s.__vk_was THEN UPDATE SET t.{first} = {there}\n"
        f"WHEN MATCHED AND s.{WEIGHT} < 0 THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {updates}\n"
        f"WHEN NOT MATCHED AND s.__vk_was THEN INSERT ({first}) VALUES ({gone})\n"
        f"WHEN NOT MATCHED THEN INSERT ({cols}) VALUES ({_list(names, 's')})"
    )


def _columns(merge: MergeBag, table: str | None = None) -> str:
    return _list(tuple(f.name for f in merge.columns), table)


def _identities(merge: MergeBag, table: str | None = None) -> str:
    """What two rows must share to be the same row."""
    return ", ".join(_identity(f, table) for f in merge.columns)


def _of_equal_rows(merge: MergeBag, table: str | None = None) -> str:
    """The columns of a row, of a group of rows that are the same."""
    columns = ((f, _list((f.name,), table)) for f in merge.columns)
    return ", ".join(c if is_comparable(f.type) else f"any_value({c}) AS {quote(f.name)}" for f, c in columns)


def _same_row(merge: MergeBag, left: str, right: str) -> str:
    return " AND ".join(f"{_identity(f, left)} <=> {_identity(f, right)}" for f in merge.columns)


def _identity(field: Field, table: str | None) -> str:
    return render(identity(Column(field.name), field.type), {field.name: _list((field.name,), table)})


def merged_top(old: str, merge: MergeTop, change: str) -> str:
    """The kept rows and the changed ones that can be placed among them, with how many there were and are of each.

    A changed row can be placed if all rows are kept, or if a kept row stands behind it in the order. Of the last kept
    row there may be more copies than are kept: if some of them go, nobody knows how many are left.
    """
    names = tuple(f.name for f in merge.columns)
    cols, order = _list(names), order_text(merge.order_by, {n: quote(n) for n in names})
    behind = f"coalesce(sum({WAS}) OVER (ORDER BY {order} ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING), 0L)"
    ahead = f"OVER (ORDER BY {order} ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)"
    known = f"__vk_all OR __vk_behind > 0 OR {WEIGHT} >= 0"
    room = f"{merge.room}L - coalesce(sum(__vk_now) {ahead}, 0L)"
    return (
        f"WITH counted AS (\n"
        f"  SELECT {cols}, sum({WAS}) AS {WAS}, sum({WEIGHT}) AS {WEIGHT}, bool_and({WHOLE}) AS {WHOLE} FROM (\n"
        f"    SELECT {cols}, 1L AS {WAS}, 0L AS {WEIGHT}, {WHOLE} FROM {old}\n"
        f"    UNION ALL SELECT {cols}, 0L, {WEIGHT}, NULL FROM (\n{change}))\n"
        f"  GROUP BY {cols}),\n"
        f"placed AS (\n"
        f"  SELECT {cols}, {WAS}, __vk_all AS {WHOLE},\n"
        f"    IF({known}, {_checked(f'{WAS} + {WEIGHT}')}, 0L) AS __vk_now FROM (\n"
        f"    SELECT *, coalesce(bool_and({WHOLE}) OVER (), true) AS __vk_all, {behind} AS __vk_behind\n"
        f"    FROM counted)\n"
        f"  WHERE __vk_all OR __vk_behind > 0 OR {WAS} > 0)\n"
        f"SELECT {cols}, {WAS}, greatest(0L, least(__vk_now, {room})) AS {KEEP},\n"
        f"  {WHOLE} AND sum(__vk_now) OVER () < {merge.room} AS {WHOLE}\n"
        f"FROM placed"
    )


def kept_top(table: str, merge: MergeTop) -> Rows:
    """What is left of the first rows, each as often as it is kept."""
    cols = _list(tuple(f.name for f in merge.columns))
    copies = f"LATERAL VIEW explode(sequence(1L, {KEEP})) AS __vk_copy"
    return Rows(
        table, "overwrite", f"SELECT {cols}, {WHOLE} FROM (SELECT * FROM {CONTENT_VIEW} WHERE {KEEP} > 0)\n{copies}"
    )


def merged_groups(old: str, merge: MergeGroups, change: str) -> str:
    """Every row of the view after the change, and how it came to be: touched, there before, still there."""
    values = _values(merge, "t", "c")
    hit = f"c.{HIT} IS NOT NULL"
    columns = ", ".join(
        f"IF({hit}, {values[item.name]}, t.{quote(item.name)}) AS {quote(item.name)}" for item in merge.columns
    )
    return (
        f"SELECT {columns},\n  {hit} AS {HIT}, t.{WAS} IS NOT NULL AS {WAS},\n"
        f"  IF({hit}, {_positive(merge, _checked(values[COUNT]))}, true) AS {KEEP}\n"
        f"FROM (SELECT *, true AS {WAS} FROM {old}) AS t\n"
        f"FULL OUTER JOIN (SELECT *, true AS {HIT} FROM (\n{change})) AS c ON {_on(merge)}"
    )


def merged_into(old: str, merge: MergeGroups) -> str:
    """The same, of a change of few rows that is there by its name: what it does not touch is neither sorted nor moved.

    (V ▷ □V) ⊎ (□V ⟕ (V ⋉ □V)), on a key.
    """
    values = _values(merge, "t", "c")
    kept = _list(tuple(item.name for item in merge.columns), "t")
    columns = ", ".join(f"{values[item.name]} AS {quote(item.name)}" for item in merge.columns)
    flags = f"{{}} AS {HIT}, {{}} AS {WAS}, {{}} AS {KEEP}"
    return (
        f"SELECT /*+ BROADCAST(c) */ {kept}, {flags.format('false', 'true', 'true')}\n"
        f"FROM {old} AS t LEFT ANTI JOIN {CHANGE_VIEW} AS c ON {_on(merge)}\n"
        f"UNION ALL\n"
        f"SELECT /*+ BROADCAST(t) */ {columns}, "
        f"{flags.format('true', f't.{WAS} IS NOT NULL', _positive(merge, _checked(values[COUNT])))}\n"
        f"FROM {CHANGE_VIEW} AS c LEFT JOIN (\n"
        f"  SELECT /*+ BROADCAST(c) */ t.*, true AS {WAS} FROM {old} AS t LEFT SEMI JOIN {CHANGE_VIEW} AS c\n"
        f"  ON {_on(merge)}) AS t ON {_on(merge)}"
    )


def doubted_keys(old: str, merge: MergeGroups, doubt: Doubt) -> str:
    """The keys of the changed groups that are in doubt."""
    keys = _list(merge.key, "c") or "1 AS __vk_all"
    condition = render(doubt.condition, _Sides("t", "c"))
    return f"SELECT {keys}\nFROM {CHANGE_VIEW} AS c LEFT JOIN {old} AS t ON {_on(merge)}\nWHERE {condition}"


def with_afresh(merge: MergeGroups, columns: tuple[str, ...], afresh: str) -> str:
    """The change, with the groups that were in doubt computed afresh."""
    same_key = " AND ".join(f"c.{quote(k)} <=> d.{quote(k)}" for k in merge.key) or "true"
    return (
        f"SELECT {_list(columns, 'c')} FROM {CHANGE_VIEW} AS c LEFT ANTI JOIN {DOUBTED} AS d ON {same_key}\n"
        f"UNION ALL\nSELECT {_list(columns)} FROM (\n{afresh})"
    )


def rewrite_groups(table: str, merge: MergeGroups) -> Rows:
    """What is left of `merged_groups` in the place of what was there."""
    columns = _list(tuple(item.name for item in merge.columns))
    return Rows(table, "overwrite", f"SELECT {columns} FROM {CONTENT_VIEW} WHERE {KEEP}")


def merge_groups(table: str, merge: MergeGroups) -> Merge:
    """V ⊔ □V as one MERGE."""
    matched = _values(merge, "t", "c")
    alone = _values(merge, None, "c")
    updates = ", ".join(f"t.{quote(i.name)} = {matched[i.name]}" for i in merge.columns if i.name not in merge.key)
    names = _list(tuple(i.name for i in merge.columns))
    inserted = ", ".join(alone[i.name] for i in merge.columns)
    # Conditions are evaluated for every pair of rows, so only the value of an impossible row may raise the error.
    return Merge(
        f"MERGE INTO {table} AS t USING {CHANGE_VIEW} AS c ON {_on(merge)}\n"
        f"WHEN MATCHED AND {_below_zero(matched[COUNT])} THEN UPDATE SET t.{quote(COUNT)} = {_RAISE}\n"
        f"WHEN MATCHED AND NOT ({_positive(merge, matched[COUNT])}) THEN DELETE\n"
        f"WHEN MATCHED THEN UPDATE SET {updates}\n"
        f"WHEN NOT MATCHED AND {_positive(merge, alone[COUNT])} THEN INSERT ({names}) VALUES ({inserted})\n"
        f"WHEN NOT MATCHED AND {_below_zero(alone[COUNT])} THEN INSERT ({quote(COUNT)}) VALUES ({_RAISE})"
    )


def _values(merge: MergeGroups, old: str | None, change: str) -> dict[str, str]:
    """Each column's new value as SQL; without an old row, its columns are NULL."""
    return {item.name: render(item.value, _Sides(old, change)) for item in merge.columns}


class _Sides(dict[str, str]):
    """`old.x` and `change.x` as columns of the two tables of a statement."""

    def __init__(self, old: str | None, change: str) -> None:
        super().__init__()
        self.old = old
        self.change = change

    def __missing__(self, name: str) -> str:
        if name.startswith(OLD):
            return f"{self.old}.{quote(name.removeprefix(OLD))}" if self.old else "NULL"
        return f"{self.change}.{quote(name.removeprefix(CHANGE))}"


def _checked(count: str) -> str:
    return f"IF({count} < 0, {_RAISE}, {count})"


def _positive(merge: MergeGroups, count: str) -> str:
    """Whether a group stays: its count is not 0. A global aggregate has its one row always."""
    return f"coalesce({count}, 0) > 0" if merge.key else "true"


def _below_zero(count: str) -> str:
    return f"coalesce({count}, 0) < 0"


def _on(merge: MergeGroups) -> str:
    return " AND ".join(f"t.{quote(k)} <=> c.{quote(k)}" for k in merge.key) or "true"


def _list(names: tuple[str, ...], table: str | None = None) -> str:
    return ", ".join(f"{table}.{quote(n)}" if table else quote(n) for n in names)
