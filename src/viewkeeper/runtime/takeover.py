"""What a new definition takes over from the view that it replaces, decided from the logs alone."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.clock import CLOCK
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Relation, Scan
from viewkeeper.changes.adopt import adopt, describe_adoption
from viewkeeper.errors import SourceError
from viewkeeper.runtime.forms import form_of
from viewkeeper.runtime.look import Versions, look
from viewkeeper.sql.clock import clock_functions
from viewkeeper.store.registry import Registry
from viewkeeper.store.views import Covers, Standing, View


@dataclass(frozen=True)
class Takeover:
    """The new content over the old table where that stands, and the source versions which it shows."""

    content: Relation
    standing: Standing
    covers: Covers
    rows: int
    in_place: bool  # the table stays as it is: only what is written about the view changes


def told(found: Takeover | Reason) -> str:
    """What becomes of the rows of a replaced view, in the words of reports and histories."""
    if isinstance(found, Reason):
        return f"rebuilt: {found}"
    return f"kept from what was there: {describe_adoption(found.content)}"


def takeover(old: View, new: View, registry: Registry) -> Takeover | Reason:
    """How to fill the new view from what the old one has kept, or why it must be computed from its sources."""
    was, wanted = form_of(old), form_of(new)
    if was is None or wanted is None:
        return (old.reason if was is None else new.reason) or Reason("this query", "it could not be read")
    for key, value in new.settings.items():
        if old.settings.get(key) != value:
            return Reason(key, f"it was {old.settings.get(key)}, now {value}")
    content = adopt(was.kept, wanted.kept, old.backing)
    if isinstance(content, Reason):
        return content
    try:
        seen = look(old, registry, Versions(registry))
    except SourceError as error:
        return Reason("its sources", error.message)
    if seen.situation.lost is not None:
        return seen.situation.lost
    covered = seen.standing.covers
    sources = (*new.tables, *([CLOCK] if clock_functions(new.query) else []))
    unknown = [t for t in sources if t not in covered]
    if unknown:
        return Reason(unknown[0], "what the view covers of it is not known")
    covers = {t: covered[t] for t in sources}
    in_place = isinstance(content, Scan) and _layout(old) == _layout(new)
    return Takeover(content, seen.standing, covers, seen.situation.rows, in_place)


def _layout(view: View) -> tuple[list[str], dict[str, str]]:
    """What the table has besides its rows, and what a change of the definition alone cannot change."""
    return [c.lower() for c in view.cluster_by], dict(view.properties)
