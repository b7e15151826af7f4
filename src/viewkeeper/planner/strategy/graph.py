"""Graphs of views with their sizes and the sizes of their changes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter

from viewkeeper.errors import GraphError


@dataclass(frozen=True)
class Changed:
    """A view (without inputs: a base table) with its rows before and after, and the rows of its change."""

    name: str
    inputs: tuple[str, ...] = ()
    rows: float = 0.0
    new_rows: float = 0.0
    change_rows: float = 0.0

    def __post_init__(self) -> None:
        for value in (self.rows, self.new_rows, self.change_rows):
            if not (math.isfinite(value) and value >= 0):
                raise GraphError(f"{self.name}: {value} is not a number of rows")
        if abs(self.new_rows - self.rows) > self.change_rows * (1 + 1e-9) + 1e-9:
            raise GraphError(f"{self.name}: a change of {self.change_rows} rows cannot alter its size by so much")
        if len(set(self.inputs)) < len(self.inputs):
            raise GraphError(f"{self.name} lists an input twice")

    @property
    def growth(self) -> float:
        """|V'| - |V|: what every later reader of V pays for its change being installed."""
        return self.new_rows - self.rows


@dataclass(frozen=True)
class ChangedGraph:
    """Views over views; every input is one of them."""

    views: tuple[Changed, ...]

    def __post_init__(self) -> None:
        if len(self.by_name) < len(self.views):
            raise GraphError("two views of the graph have the same name")
        for view in self.views:
            for name in view.inputs:
                if name not in self.by_name:
                    raise GraphError(f"{view.name} reads {name}, which is not in the graph")
        try:
            TopologicalSorter({view.name: view.inputs for view in self.views}).prepare()
        except CycleError as circle:
            raise GraphError(f"views read each other in a circle: {' → '.join(circle.args[1])}") from None

    def __getitem__(self, name: str) -> Changed:
        return self.by_name[name]

    @cached_property
    def by_name(self) -> dict[str, Changed]:
        return {view.name: view for view in self.views}

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        readers: dict[str, list[str]] = {view.name: [] for view in self.views}
        for view in self.views:
            for name in view.inputs:
                readers[name].append(view.name)
        return {name: tuple(found) for name, found in readers.items()}

    @cached_property
    def bottom_up(self) -> tuple[str, ...]:
        """Every view after those it reads."""
        return tuple(TopologicalSorter({view.name: view.inputs for view in self.views}).static_order())

    @cached_property
    def levels(self) -> dict[str, int]:
        """The longest way from each view down to a base table."""
        levels: dict[str, int] = {}
        for name in self.bottom_up:
            levels[name] = max((levels[below] + 1 for below in self[name].inputs), default=0)
        return levels

    @property
    def is_tree(self) -> bool:
        """No view is read by more than one other."""
        return all(len(readers) <= 1 for readers in self.readers.values())

    @property
    def is_uniform(self) -> bool:
        """Every view reads views of the level right below its own only."""
        levels = self.levels
        return all(levels[below] == levels[view.name] - 1 for view in self.views for below in view.inputs)
