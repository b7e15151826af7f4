"""Keys that are declared in the properties of source tables.

    viewkeeper.primaryKey         'o_orderkey'
    viewkeeper.unique.<name>      'l_orderkey, l_linenumber'
    viewkeeper.foreignKey.<name>  '(l_orderkey) REFERENCES orders (o_orderkey)'

What cannot be understood is not relied on, and told as a reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

from viewkeeper.algebra.keys import Declared, ForeignKey
from viewkeeper.algebra.reasons import Reason
from viewkeeper.store.log import Metadata, TableLog
from viewkeeper.store.names import split

PRIMARY_KEY = "viewkeeper.primarykey"
UNIQUE = "viewkeeper.unique."
FOREIGN_KEY = "viewkeeper.foreignkey."
_REFERENCES = re.compile(
    r"\((?P<columns>[^()]+)\)\s*REFERENCES\s+(?P<table>[^()]+?)\s*\((?P<key>[^()]+)\)", re.IGNORECASE
)
_FORM = "write it as '(column, …) REFERENCES table (column, …)'"

Canonical = Callable[[tuple[str, ...]], str]


@dataclass(frozen=True)
class Declarations:
    """What the tables of a view declare, and what of it cannot be relied on and why."""

    declared: Declared
    problems: tuple[Reason, ...] = ()


def declarations(
    tables: Mapping[str, Metadata], canonical: Canonical, exists: Callable[[str], bool] = lambda _: True
) -> Declarations:
    """The keys of these tables, and the foreign keys among them; `exists` is asked of any other table."""
    problems: list[Reason] = []
    keys = {table: frozenset(_keys(table, metadata, problems)) for table, metadata in tables.items()}
    references = []
    for table, metadata in tables.items():
        for found in _foreign_keys(table, metadata, canonical, problems):
            if found.parent in tables and (why := _unknown(found, keys, tables)):
                problems.append(Reason(str(found), why))
            elif found.parent in tables:
                references.append(found)
            elif not exists(found.parent):
                problems.append(Reason(str(found), f"there is no Delta table {found.parent}"))
    return Declarations(Declared({t: k for t, k in keys.items() if k}, tuple(references)), tuple(problems))


def relied_on(log: TableLog, version: int, metadata: Metadata) -> Metadata:
    """What the table declares now, if it did so at this version too: what is declared since need not have held then."""
    if not any(map(_ours, metadata.properties)):
        return metadata
    commits = (log.commit(v) for v in range(version + 1, log.version() + 1))
    since = any(commit is None or commit.metadata is not None for commit in commits)
    return replace(metadata, properties={}) if since else metadata


def _ours(name: str) -> bool:
    return name.lower() == PRIMARY_KEY or name.lower().startswith((UNIQUE, FOREIGN_KEY))


def _keys(table: str, metadata: Metadata, problems: list[Reason]) -> Iterator[frozenset[str]]:
    for name, text in sorted(metadata.properties.items()):
        if _ours(name) and not name.lower().startswith(FOREIGN_KEY):
            columns = _columns(text)
            missing = [c for c in columns if c not in metadata.columns]
            if missing or not columns:
                why = f"there is no column {missing[0]}" if missing else "it names no column"
                problems.append(Reason(f"{name} of {table}", f"{why}; set it to the columns of the key, as 'a, b'"))
            else:
                yield frozenset(columns)


def _foreign_keys(table: str, metadata: Metadata, canonical: Canonical, problems: list[Reason]) -> Iterator[ForeignKey]:
    for name, text in sorted(metadata.properties.items()):
        if not name.lower().startswith(FOREIGN_KEY):
            continue
        found = _REFERENCES.fullmatch(text.strip())
        if found is None:
            problems.append(Reason(f"{name} of {table}", f"it cannot be read: {text!r}; {_FORM}"))
            continue
        columns, key = _columns(found["columns"]), _columns(found["key"])
        missing = [c for c in columns if c not in metadata.columns]
        if missing:
            problems.append(Reason(f"{name} of {table}", f"there is no column {missing[0]}; {_FORM}"))
        elif len(columns) != len(key):
            problems.append(Reason(f"{name} of {table}", f"{len(columns)} columns refer to {len(key)}; {_FORM}"))
        else:
            yield ForeignKey(table, columns, _beside(table, found["table"], canonical), key)


def _unknown(
    foreign: ForeignKey, keys: Mapping[str, frozenset[frozenset[str]]], tables: Mapping[str, Metadata]
) -> str | None:
    """Why what a foreign key refers to is no key."""
    missing = [c for c in foreign.key if c not in tables[foreign.parent].columns]
    if missing:
        return f"{foreign.parent} has no column {missing[0]}"
    if frozenset(foreign.key) not in keys[foreign.parent]:
        columns = ", ".join(foreign.key)
        return f"{foreign.parent} declares no such key; set its viewkeeper.primaryKey = '{columns}' if it is one"
    return None


def _columns(text: str) -> tuple[str, ...]:
    names = (name.strip() for name in text.split(","))
    return tuple("".join(split(name)).lower() if name.startswith("`") else name.lower() for name in names if name)


def _beside(table: str, name: str, canonical: Canonical) -> str:
    """The table that a name means in the declaration of another: one part is in the same schema."""
    parts = split(name)
    schema = split(table)[:-1] or ("default",)
    return canonical((*schema, *parts) if len(parts) == 1 else parts)
