"""A view's kept form and the texts made from it: what fills it, what readers see, its query at given versions."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Protocol

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Measure, Relation, Scan, ScanColumn, Top, Window
from viewkeeper.changes.kept import Kept, KeptBag
from viewkeeper.changes.relevance import narrowed
from viewkeeper.changes.stored import StoredForm, storable_names, stored_form
from viewkeeper.errors import InternalError
from viewkeeper.sql.clock import at_moment
from viewkeeper.sql.leaves import Leaves
from viewkeeper.sql.names import names_schemas
from viewkeeper.sql.parse import parse_query
from viewkeeper.sql.render import quote
from viewkeeper.sql.unparse import unparse
from viewkeeper.store.views import View

FindView = Callable[[str], View | None]


def form_of(view: View) -> StoredForm | None:
    """How the view is kept, if its definition was read."""
    return stored_form(view.definition, view.backing) if view.definition is not None else None


def maintained(view: View) -> Kept | None:
    """What the view keeps, read from only those rows of its tables that can matter to it."""
    return _narrowed(view.definition, view.backing, is_ansi(view)) if view.definition is not None else None


@lru_cache(maxsize=512)
def _narrowed(definition: Relation, backing: str, ansi: bool) -> Kept:
    """Found out once for all refreshes of one process."""
    return narrowed(stored_form(definition, backing).kept, ansi=ansi)


def is_ansi(view: View) -> bool:
    """Whether integers that overflow are an error in the view's query, as they are unless somebody chose otherwise."""
    return view.settings.get("spark.sql.ansi.enabled") == "true"


def public_relation(view: View) -> Relation:
    """What readers of the view see, over its backing table."""
    form = form_of(view)
    if form is not None:
        return form.public
    stored = storable_names(tuple(name for name, _ in view.columns))
    columns = tuple(ScanColumn(s, name, type_) for s, (name, type_) in zip(stored, view.columns, strict=True))
    return Scan(view.backing, columns)


class MomentLeaves(Leaves, Protocol):
    """Leaves that know at which two moments, before and now, the clock is read, if it is."""

    @property
    def moments(self) -> tuple[int, int] | None: ...


def content_query(view: View, leaves: MomentLeaves, find: FindView) -> str:
    """The query that fills the view's table: where that holds the view's own rows, its own text, as Spark knows it."""
    form = form_of(view)
    if form is not None and (not _is_told_by_text(form.kept) or _names_schemas(view.query)):
        return unparse(form.kept.content, leaves)
    stored = storable_names(tuple(name for name, _ in view.columns))
    return named_query(view, stored, leaves, find)


def _is_told_by_text(kept: Kept) -> bool:
    """Whether the text gives the very rows that are kept: of several right answers, the settled one."""
    if not isinstance(kept, KeptBag):
        return False
    return not any(isinstance(n, Top | Window) or (isinstance(n, Measure) and n.settled) for n in walk(kept.content))


@lru_cache(maxsize=512)
def _names_schemas(query: str) -> bool:
    """Then tables that are pinned, and are in no schema, do not have the columns by the names they are called."""
    return names_schemas(parse_query(query))


def named_query(view: View, names: tuple[str, ...], leaves: MomentLeaves, find: FindView) -> str:
    """The view's own text under these column names; columns that SELECT * gives since its creation are left out."""
    text = pinned_query(view, leaves, find)
    own = view.query_columns
    if len({name.lower() for name in own}) < len(own):
        return f"SELECT * FROM (\n{text}\n) AS __vk_query({', '.join(map(quote, names))})"
    items = ", ".join(f"{quote(o)} AS {quote(n)}" for o, n in zip(own, names, strict=True))
    return f"SELECT {items} FROM (\n{text}\n)"


def pinned_query(view: View, leaves: MomentLeaves, find: FindView) -> str:
    """The view's own text, word for word, with every table it names pinned to a version, the clock to a moment."""
    text = view.query
    mentions = [(start, end, alias, source) for source in view.sources for start, end, alias in source.mentions]
    for start, end, alias, source in sorted(mentions, reverse=True, key=lambda m: m[0]):
        if source.kind == "other":
            continue
        if source.kind == "view":
            read = find(source.name)
            if read is None:
                raise InternalError(f"view {source.name} is gone")
            pinned = f"({unparse(public_relation(read), leaves)})"
        else:
            pinned = leaves.state(source.table, "new")
        text = text[:start] + pinned + (f" AS {quote(alias)}" if alias else "") + text[end:]
    return text if leaves.moments is None else at_moment(text, leaves.moments[1])
