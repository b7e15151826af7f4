"""What is kept with each view: its definition in its table's properties, what it covers in its commits."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any
from typing import Literal as OneOf

from viewkeeper.algebra.codec import decode, encode
from viewkeeper.algebra.node import room_to_walk
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Relation
from viewkeeper.errors import Position, StorageError
from viewkeeper.store.log import Commit, TableLog, commits_back

VIEW_PROPERTY = "viewkeeper.view"
COVERS_PROPERTY = "viewkeeper.covers"
FORMAT = 3

Policy = OneOf["AUTO", "INCREMENTAL", "INCREMENTAL STRICT", "FULL"]
SourceKind = OneOf["delta", "view", "other"]


@dataclass(frozen=True)
class SourceUse:
    """A table the definition reads: by which name, and where in the text each mention stands."""

    name: str
    kind: SourceKind
    table: str  # the Delta table whose versions count: the source itself, or a view's backing table
    mentions: tuple[tuple[int, int, str | None], ...]  # start, end, alias to add


@dataclass(frozen=True)
class View:
    """A materialized view as it was created.

    `query` is what it means, in tables and views of ours; `written` is the text as it was given.
    """

    id: str
    name: str
    backing: str
    query: str
    columns: tuple[tuple[str, str], ...]
    query_columns: tuple[str, ...]  # what the query itself calls them
    policy: Policy
    sources: tuple[SourceUse, ...]
    definition: Relation | None
    reason: Reason | None
    written: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)
    namespace: tuple[str, ...] = ()
    has_star: bool = False
    comment: str | None = None
    column_comments: Mapping[str, str] = field(default_factory=dict)
    cluster_by: tuple[str, ...] = ()
    properties: Mapping[str, str] = field(default_factory=dict)

    @property
    def text(self) -> str:
        """The query as it was given."""
        return self.written or self.query

    @property
    def tables(self) -> tuple[str, ...]:
        """The Delta tables whose versions decide whether the view is stale."""
        return tuple(s.table for s in self.sources if s.kind != "other")

    @property
    def base_tables(self) -> tuple[str, ...]:
        """Those of them that are no views."""
        return tuple(s.table for s in self.sources if s.kind == "delta")

    @property
    def reads_unversioned(self) -> tuple[str, ...]:
        """Sources that have no versions, so that nothing tells whether they changed."""
        return tuple(s.name for s in self.sources if s.kind == "other")

    def to_json(self) -> str:
        data = {**asdict_shallow(self), "format": FORMAT}
        data["definition"] = encode(self.definition) if self.definition else None
        data["sources"] = [asdict(s) for s in self.sources]
        data["reason"] = asdict(self.reason) if self.reason else None
        return json.dumps(data, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> View:
        room_to_walk()
        try:
            return cls._from_data(json.loads(text))
        except (KeyError, TypeError, ValueError) as error:
            raise StorageError(
                f"what is kept with a view cannot be read: {error!r}",
                hint="it was made by another version of Viewkeeper; drop its table __vk_… and create the view again",
            ) from error

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> View:
        if data.pop("format", None) != FORMAT:
            raise StorageError(
                "a view was made by another version of Viewkeeper",
                hint="upgrade, or drop the view and create it again",
            )
        definition, reason = data["definition"], data["reason"]
        if reason and reason["position"]:
            reason["position"] = Position(**reason["position"])
        data["definition"] = decode(definition) if definition else None
        data["reason"] = Reason(**reason) if reason else None
        data["columns"] = tuple((name, type_) for name, type_ in data["columns"])
        data["sources"] = tuple(
            SourceUse(s["name"], s["kind"], s["table"], tuple((a, b, c) for a, b, c in s["mentions"]))
            for s in data["sources"]
        )
        data["query_columns"] = tuple(data["query_columns"])
        data["namespace"] = tuple(data["namespace"])
        data["cluster_by"] = tuple(data["cluster_by"])
        return cls(**data)


def asdict_shallow(view: View) -> dict[str, Any]:
    return {name: getattr(view, name) for name in View.__dataclass_fields__}


@dataclass(frozen=True)
class Covered:
    """A source table at a version: what a view's rows were computed from."""

    id: str
    version: int


Covers = Mapping[str, Covered]


def now() -> int:
    """Milliseconds since 1970, as commits tell the time."""
    return int(time.time() * 1000)


@dataclass(frozen=True)
class RefreshNote:
    """What a refresh writes into its commit: what the view covers now, how and why.

    `moves` marks a note without data: the sources' changes did not touch the view. It counts only if no refresh
    with data came between the version it was decided on (`base`) and its own commit. `one_moment` says that all
    covered tables had their covered versions at the same moment.
    """

    view: str
    sequence: int
    refresh: str
    covers: Covers
    strategy: str
    reason: str
    base: int
    moves: bool = False
    started: int = 0
    rows_inserted: int | None = None
    rows_deleted: int | None = None
    predicted: float | None = None
    cost: Mapping[str, float] | None = None  # the parts of what was predicted
    left: float | None = None  # of the predicted cost of the change, once the change was read
    install: str = ""
    one_moment: bool = False

    def to_json(self) -> str:
        return json.dumps({"viewkeeper": asdict(self)}, ensure_ascii=False, separators=(",", ":"))

    @classmethod
    def of(cls, text: str | None) -> RefreshNote | None:
        """The note in a commit's userMetadata, or None if it is not one of ours."""
        if not text or '"viewkeeper"' not in text:
            return None
        try:
            data = json.loads(text)["viewkeeper"]
            covers = {name: Covered(**c) for name, c in data.pop("covers").items()}
            return cls(covers=covers, **data)
        except (ValueError, KeyError, TypeError):
            return None


@dataclass(frozen=True)
class Refreshed:
    """A refresh found in the log."""

    commit: Commit
    note: RefreshNote

    @property
    def seconds(self) -> float | None:
        """How long it took, up to its commit."""
        return (self.commit.timestamp - self.note.started) / 1000 if self.note.started else None


def refreshes(log: TableLog, view_id: str) -> Iterator[Refreshed]:
    """The view's refreshes, newest first."""
    for commit in commits_back(log):
        note = RefreshNote.of(commit.user_metadata)
        if note is not None and note.view == view_id:
            yield Refreshed(commit, note)


@dataclass(frozen=True)
class Standing:
    """Where a view stands: its table's version, the last note that counts, and whether a stranger wrote since."""

    version: int
    note: RefreshNote | None
    foreign: Commit | None = None

    @property
    def covers(self) -> Covers:
        return self.note.covers if self.note else {}

    @property
    def one_moment(self) -> bool:
        return self.note is not None and self.note.one_moment

    @property
    def next_sequence(self) -> int:
        return self.note.sequence + 1 if self.note else 1


def standing(log: TableLog, view_id: str) -> Standing:
    """What the view covers: the last refresh with data, or the last move decided on that state or a later one."""
    version = log.version()
    moved: RefreshNote | None = None
    foreign: Commit | None = None
    for commit in commits_back(log):
        note = RefreshNote.of(commit.user_metadata)
        if note is None or note.view != view_id:
            foreign = foreign or (commit if commit.changes_data else None)
        elif note.moves:
            moved = moved or note
        else:
            counts = moved is not None and moved.base >= commit.version
            return Standing(version, moved if counts else note, foreign)
    return Standing(version, moved or _durable_note(log, view_id), foreign)


def _durable_note(log: TableLog, view_id: str) -> RefreshNote | None:
    """The copy in the table's properties, once the log has been cleaned; good only if nothing came after it."""
    note = RefreshNote.of(log.snapshot().metadata.properties.get(COVERS_PROPERTY))
    last = log.last_transaction(transaction_id(view_id))
    return note if note is not None and (last is None or note.sequence >= last) else None


def transaction_id(view_id: str) -> str:
    """The application id under which a view's refreshes are numbered in its log."""
    return f"viewkeeper:{view_id}"
