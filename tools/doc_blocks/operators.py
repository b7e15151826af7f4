"""The operators' pages: an example's algebra, its change rule and the SQL made of it."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

from doc_blocks.examples import EXAMPLES
from doc_blocks.markdown import fenced, sql
from viewkeeper.algebra.display import show
from viewkeeper.algebra.relations import Field, Measure, Project
from viewkeeper.algebra.scalars import Column
from viewkeeper.changes.kept import KeptGroups
from viewkeeper.changes.merge import MergeBag, MergeGroups, MergeTop
from viewkeeper.runtime import install
from viewkeeper.sql.unparse import unparse

KEYED = MergeBag((Field("id", "bigint"), Field("price", "decimal(10,2)")), ("id",))


def example(name: str) -> str:
    return sql(EXAMPLES[name].query)


def algebra(name: str) -> str:
    return fenced("text", show(EXAMPLES[name].relation))


def rule(name: str) -> str:
    """The equation, as the rule's own docstring gives it."""
    return fenced("text", str(inspect.getdoc(EXAMPLES[name].rule)))


def change(name: str) -> str:
    shown = EXAMPLES[name]
    return sql(unparse(shown.maintenance.change, shown.leaves))


def kept(name: str) -> str:
    """The columns of the backing table, with what is done to each."""
    form = EXAMPLES[name].form
    assert isinstance(form.kept, KeptGroups)
    words = {
        "add": "added up",
        "least": "LEAST",
        "greatest": "GREATEST",
        "fresh": "computed afresh",
        "drift": "added up, as a bound",
    }
    rows = ["| Kept column | Holds | A change is |", "|---|---|---|"]
    rows += [f"| `{k}` | the group | its key |" for k in form.kept.key]
    for state in form.kept.states:
        measure = state.measure
        holds = f"{measure.function}({', '.join(_arguments(form.kept, measure)) or '*'})"
        rows.append(f"| `{state.name}` | `{holds}` | {words[state.merge]} |")
    return "\n".join(rows)


def _arguments(form: KeptGroups, measure: Measure) -> Iterator[str]:
    """The argument columns by the names they have in the source."""
    assert isinstance(form.input, Project)
    given = {i.name: i.value for i in form.input.items}
    for name in measure.args:
        value = given[name]
        yield value.name if isinstance(value, Column) else name


def readers(name: str) -> str:
    return sql(unparse(EXAMPLES[name].form.public))


def installed(name: str, way: str) -> str:
    """The statement that puts the example's change into the view's table."""
    shown, old = EXAMPLES[name], "__vk_v VERSION AS OF 4"
    match shown.maintenance.merge:
        case MergeBag() as merge if way == "append":
            return sql(install.append_bag("__vk_v", merge).sql)
        case MergeBag() as merge if way == "rewrite":
            return sql(install.rewrite_bag("__vk_v", old, merge).sql)
        case MergeBag() as merge:
            return sql(install.merge_bag("__vk_v", old, merge).sql)
        case MergeGroups() as groups if way == "rewrite":
            change_sql = unparse(shown.maintenance.change, shown.leaves)
            return sql(install.merged_groups(old, groups, change_sql))
        case MergeGroups() as groups:
            return sql(install.merge_groups("__vk_v", groups).sql)
        case MergeTop() as top:
            return sql(install.merged_top(old, top, unparse(shown.maintenance.change, shown.leaves)))
