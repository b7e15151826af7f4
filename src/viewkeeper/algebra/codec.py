"""Nodes to plain data and back, so that a bound definition can be kept with its view."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, cast

from viewkeeper.algebra import relations, scalars
from viewkeeper.algebra.node import Node
from viewkeeper.algebra.relations import Relation
from viewkeeper.errors import StorageError

_CLASSES: dict[str, type[Node]] = {
    cls.__name__: cls
    for cls in (
        relations.Field,
        relations.ScanColumn,
        relations.Scan,
        relations.Changes,
        relations.Values,
        relations.Filter,
        relations.Item,
        relations.Project,
        relations.Join,
        relations.Union,
        relations.Measure,
        relations.Aggregate,
        relations.Ordering,
        relations.WindowColumn,
        relations.Window,
        relations.Top,
        relations.Generate,
        scalars.Column,
        scalars.Literal,
        scalars.Call,
        scalars.Cast,
        scalars.Verbatim,
        scalars.Clock,
    )
}


def encode(value: Any) -> Any:
    """A node as JSON-ready data: {"is": class, field: value …}; tuples as lists."""
    if isinstance(value, Node):
        return {"is": type(value).__name__, **{f.name: encode(getattr(value, f.name)) for f in fields(value)}}
    if isinstance(value, tuple):
        return [encode(item) for item in value]
    return value


def decode(data: Any) -> Relation:
    """The relation that `encode` made the data from."""
    return cast(Relation, _decode(data))


def _decode(data: Any) -> Any:
    if isinstance(data, dict):
        cls = _CLASSES.get(data.get("is", ""))
        if cls is None:
            raise StorageError(
                f"the stored definition holds an operator this version does not know: {data.get('is')!r}",
                hint="upgrade Viewkeeper, or drop the view and create it again",
            )
        return cls(**{k: _decode(v) for k, v in data.items() if k != "is"})
    if isinstance(data, list):
        return tuple(_decode(item) for item in data)
    return data
