"""View graphs to test selection with: the thesis' figures, and random ones of the shapes its bounds are about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from math import prod
from random import Random
from typing import Literal as OneOf

from viewkeeper.selection.graph import Arc, Layout, View, ViewGraph

Shape = OneOf["tree", "density", "edges"]
StudyShape = OneOf["chains", "density", "edges"]


def figure_2_2(views: str = "12345") -> ViewGraph:
    """Five views with layouts of size 1; queries cost 100 from base tables. `views` says in which order they stand."""
    ways: dict[str, list[tuple[str, float]]] = {f"A{k}": [("I1,1", 90.0)] for k in range(1, 10)}
    for k in range(1, 9):
        ways[f"A{k}"].append((f"I2,{k}", 50.0))
    ways["A9"].append(("V3", 96.0))
    ways |= {f"D{k}": [(f"I3,{k}", 60.0 if k <= 2 else 73.0)] for k in range(1, 5)}
    ways |= {"E0": [("V4", 94.0)], "E1": [("I4,1", 64.0)]} | {f"E{k}": [(f"I4,{k}", 79.0)] for k in range(2, 5)}
    ways |= {"F0": [("V5", 93.0)]} | {f"F{k}": [(f"I5,{k}", 93.0)] for k in range(1, 5)}
    layouts = {"1": 1, "2": 8, "3": 4, "4": 4, "5": 4}
    nodes: list[View | Layout] = [View("base")]
    for v in views:
        nodes.append(View(f"V{v}", (Arc(("base",), 100.0),)))
        nodes += [Layout(f"I{v},{k}", f"V{v}") for k in range(1, layouts[v] + 1)]
    for query, arcs in ways.items():
        answers = (Arc(("base",), 100.0), *(Arc((name,), cost) for name, cost in arcs))
        nodes.append(View(query, answers, queries=1.0, keepable=False))
    return ViewGraph(tuple(nodes))


def figure_3_1() -> ViewGraph:
    """Graph G: simple greedy gets 5 of 11."""
    return ViewGraph(
        (
            View("B", reading=12.0, queries=1.0),
            _maintained("V1", 7.0, "B", 4.0),
            _maintained("V2", 11.0, "B", 4.0),
            _maintained("V3", 8.0, "V2", 0.0),
            _maintained("V4", 10.0, "V2", 0.0),
            _maintained("V5", 8.0, "V4", 0.0),
        )
    )


def figure_3_2(n: int) -> ViewGraph:
    """Graph H(n): simple greedy gets 9 of 9·(n - 1)."""
    nodes = [View("B", reading=12.0, queries=1.0), _maintained("V1", 3.0, "B", 4.0), _maintained("V2", 12.0, "B", 4.0)]
    for k in range(1, n):
        nodes.append(_maintained(f"V{2 * k + 1}", 3.0, f"V{2 * k}", 0.0))
        nodes.append(_maintained(f"V{2 * k + 2}", 12.0, f"V{2 * k}", 0.0))
    return ViewGraph(tuple(nodes))


def _maintained(name: str, reading: float, source: str, maintenance: float) -> View:
    return View(name, (Arc((source,), maintenance=maintenance),), reading=reading, queries=1.0, updates=1.0)


def random_or_graph(
    rng: Random, n: int, shape: Shape = "density", density: float = 0.25, *, updates: bool = True, cheap: float = 1.0
) -> ViewGraph:
    """The thesis' random OR graphs: a view is smaller than all it is computed from; answering u from v costs |v|.

    Maintaining u from v costs |u| + |v|; with `cheap` below 1 that much less where v is no base table.
    """
    below: list[set[int]] = [set()]
    for i in range(1, n):
        match shape:
            case "tree":
                below.append({(i - 1) // 2})
            case "density":
                below.append({j for j in range(i) if rng.random() < density} or {rng.randrange(i)})
            case "edges":
                below.append({rng.randrange(i) for _ in range(2)})
    return _or_graph(rng, below, updates=updates, cheap=cheap)


def study_graph(rng: Random, n: int, shape: StudyShape, density: float = 0.0) -> ViewGraph:
    """The graphs of the thesis' study [3.6], as it describes them: n views of one base table, edges by a coin.

    A view without an edge is computed from the base table. In its balanced trees ("chains") each view has two others it
    can be computed from: only so are there as few inverted trees as the thesis counts, O(n²), for only those on the way
    to the top of the tree are above a view.
    """
    below: list[set[int]] = [set() for _ in range(n + 1)]
    match shape:
        case "chains":
            for k in range(n):
                below[n - k] = {n - child for child in (2 * k + 1, 2 * k + 2) if child < n}
        case "density":
            for i in range(1, n + 1):
                below[i] = {j for j in range(1, i) if rng.random() < density}
        case "edges":
            pairs = [(i, j) for i in range(1, n + 1) for j in range(1, i)]
            for i, j in rng.sample(pairs, min(2 * n, len(pairs))):
                below[i].add(j)
    return _or_graph(rng, [set(), *(some or {0} for some in below[1:])], updates=True, cheap=1.0)


def _or_graph(rng: Random, below: list[set[int]], *, updates: bool, cheap: float) -> ViewGraph:
    """Node i is computed from any of those below it; the first is the base table."""
    sizes = [1000.0]
    nodes = [View("v0", size=sizes[0], reading=sizes[0], change=sizes[0])]
    for i in range(1, len(below)):
        size = max(1.0, round(min(sizes[j] for j in below[i]) * rng.uniform(0.3, 0.99), 3))
        sizes.append(size)
        nodes.append(
            View(
                f"v{i}",
                tuple(Arc((f"v{j}",)) for j in sorted(below[i])),
                size=size,
                reading=size,
                queries=round(rng.uniform(0.0, 1.0), 3),
                updates=round(rng.uniform(0.05, 1.0), 3) if updates else 0.0,
                maintenance=size * cheap,
                change=size * cheap,
            )
        )
    return ViewGraph(tuple(nodes))


def random_cube(rng: Random, dimensions: int) -> ViewGraph:
    """A data cube without updates: a view per set of dimensions, computed from those with one dimension more."""
    values = [rng.choice([2, 5, 10, 50, 100]) for _ in range(dimensions)]
    nodes = []
    for group in sorted(range(1 << dimensions), key=lambda g: (-g.bit_count(), g)):
        size = 1.0
        for d, count in enumerate(values):
            size = min(size * (count if group >> d & 1 else 1), 1e6)
        arcs = tuple(Arc((f"c{group | 1 << d}",)) for d in range(dimensions) if not group >> d & 1)
        nodes.append(View(f"c{group}", arcs, size=size, reading=size, queries=round(rng.uniform(0.1, 1.0), 3)))
    return ViewGraph(tuple(nodes))


def random_layouts(rng: Random, views: int, queries: int, *, unit: bool) -> ViewGraph:
    """An OR graph with layouts: queries answered from the base, from a view, or from one of its layouts."""
    nodes: list[View | Layout] = [View("base")]
    usable: list[tuple[str, float]] = []
    for v in range(views):
        nodes.append(View(f"V{v}", (Arc(("base",), 100.0),), size=1.0 if unit else float(rng.randint(1, 6))))
        usable.append((f"V{v}", rng.choice([60.0, 80.0, 99.0])))
        for k in range(rng.randint(0, 3)):
            nodes.append(Layout(f"I{v},{k}", f"V{v}", size=1.0 if unit else float(rng.randint(1, 6))))
            usable.append((f"I{v},{k}", rng.choice([5.0, 30.0, 60.0])))
    for q in range(queries):
        ways = rng.sample(usable, min(len(usable), rng.randint(1, 3)))
        arcs = (Arc(("base",), 100.0), *(Arc((name,), round(cost * rng.uniform(0.8, 1.2), 2)) for name, cost in ways))
        nodes.append(View(f"q{q}", arcs, queries=float(rng.randint(1, 3)), keepable=False))
    return ViewGraph(tuple(nodes))


def random_and_layouts(rng: Random, views: int, queries: int) -> ViewGraph:
    """An AND graph with layouts: a query needs several views, each read plainly or by one of its layouts.

    "q reads v" is a node of its own that cannot be kept: its arcs are the ways to read v for q.
    """
    nodes: list[View | Layout] = [View("base", reading=10.0)]
    layouts: dict[str, list[str]] = {}
    for v in range(views):
        name = f"V{v}"
        nodes.append(View(name, (Arc(("base",), float(rng.randint(20, 90))),), reading=5.0))
        layouts[name] = [f"I{v},{k}" for k in range(rng.randint(0, 3))]
        nodes += [Layout(layout, name) for layout in layouts[name]]
    for q in range(queries):
        needed = rng.sample(list(layouts), rng.randint(1, min(2, views)))
        for name in needed:
            plain = float(rng.randint(10, 60))
            by_layout = [Arc((layout,), round(plain * rng.random(), 2)) for layout in layouts[name]]
            nodes.append(View(f"q{q} reads {name}", (Arc((name,), plain), *by_layout), keepable=False))
        arc = Arc(tuple(f"q{q} reads {name}" for name in needed))
        nodes.append(View(f"q{q}", (arc,), queries=float(rng.randint(1, 3)), keepable=False))
    return ViewGraph(tuple(nodes))


def random_and_graph(rng: Random, n: int, *, updates: bool) -> ViewGraph:
    """An AND graph in which reading is never dearer than computing; with updates, never more of them than queries,
    and carrying a change through an arc never dearer than the arc itself."""
    bases = 2
    nodes = [View(f"b{i}", reading=round(rng.uniform(5.0, 10.0), 2)) for i in range(bases)]
    for i in range(n):
        below = rng.sample(nodes, min(len(nodes), rng.randint(1, 3)))
        cost = round(rng.uniform(1.0, 20.0), 2)
        maintenance = round(cost * rng.random(), 3) if updates else 0.0
        often = round(rng.uniform(0.1, 1.0), 3)
        nodes.append(
            View(
                f"v{i}",
                (Arc(tuple(view.name for view in below), cost, maintenance),),
                size=float(rng.randint(1, 9)),
                reading=round(min(view.reading for view in below) * rng.random(), 3),
                queries=often,
                updates=round(often * rng.random(), 3) if updates else 0.0,
            )
        )
    return ViewGraph(tuple(nodes))


def random_and_or_graph(rng: Random, n: int, *, updates: bool = False, layouts: bool = False) -> ViewGraph:
    """Any graph at all: alternatives of one to three inputs, an input used twice now and then, layouts."""
    nodes: list[View | Layout] = [View("b0", reading=20.0, change=2.0), View("b1", reading=30.0, change=1.0)]
    for i in range(n):
        names = [node.name for node in nodes]
        views = [node.name for node in nodes if isinstance(node, View)]
        arcs = [_random_arc(rng, views)] + [_random_arc(rng, names) for _ in range(rng.randint(0, 2))]
        nodes.append(
            View(
                f"v{i}",
                tuple(arcs),
                size=float(rng.randint(1, 9)),
                reading=round(rng.uniform(0.0, 30.0), 2),
                queries=round(rng.uniform(0.0, 1.0), 3),
                updates=round(rng.uniform(0.0, 1.0), 3) if updates else 0.0,
                maintenance=round(rng.uniform(0.0, 3.0), 2),
                change=round(rng.uniform(0.0, 3.0), 2),
                keepable=rng.random() < 0.9,
            )
        )
        if layouts and nodes[-1] != nodes[0] and rng.random() < 0.4 and _keepable(nodes[-1]):
            layout = Layout(f"l{i}", f"v{i}", size=float(rng.randint(1, 5)), reading=round(rng.uniform(0.0, 5.0), 2))
            nodes.append(replace(layout, maintenance=round(rng.uniform(0.0, 2.0), 2)))
    return ViewGraph(tuple(nodes))


def random_memo(rng: Random, n: int, *, updates: bool = False) -> ViewGraph:
    """What an optimizer knows of aggregates over joins, until there are n views: every connected set of a query's
    tables is a view, and so is the aggregate; a set is joined from any two that make it up.

    A snowflake of twelve tables, a thousand to a million rows each; a join keeps 0.2 to 1 of the larger one. A change
    is a hundredth of what it is a change of.
    """
    rows = sorted((10 ** rng.uniform(3, 6) for _ in range(12)), reverse=True)
    joins = {table: rng.randrange(table) for table in range(1, 12)}  # each with a larger one, which refers to it
    left = {table: rng.uniform(0.2, 1.0) for table in joins}

    def size(tables: frozenset[int]) -> float:
        return round(rows[min(tables)] * prod(left[table] for table in tables - {min(tables)}))

    names = {frozenset((table,)): f"t{table}" for table in range(12)}
    nodes = [View(name, size=size(s), reading=size(s), change=size(s) / 100) for s, name in names.items()]

    def add(name: str, size: float, arcs: tuple[Arc, ...], queries: float = 0.0) -> None:
        often = round(rng.uniform(0.0, 1.0), 3) if updates else 0.0
        nodes.append(View(name, arcs, size, size, queries, often, maintenance=size / 100, change=size / 100))

    while len(nodes) < n + len(rows):
        asked = {rng.randrange(12)}
        for _ in range(rng.randint(1, 4)):
            asked.add(rng.choice(sorted(_beside(asked, joins))))
        for tables in _connected(frozenset(asked), joins):
            if tables not in names:
                names[tables] = "".join(f"t{table}" for table in sorted(tables))
                halves = ((half, tables - half) for half in names if half < tables and min(tables) in half)
                made = [(names[a], names[b]) for a, b in halves if b in names]
                add(names[tables], size(tables), tuple(Arc(two, size(tables), size(tables) / 100) for two in made))
        read = size(frozenset(asked))
        groups = max(1.0, round(read * 10 ** rng.uniform(-4, -1)))
        arc = Arc((names[frozenset(asked)],), groups, groups / 100)
        add(f"q{len(nodes)}", groups, (arc,), round(rng.uniform(0.1, 1.0), 3))
    return ViewGraph(tuple(nodes))


def _beside(tables: Iterable[int], joins: Mapping[int, int]) -> set[int]:
    """The tables that are joined with one of these."""
    return {b for pair in joins.items() for a, b in (pair, pair[::-1]) if a in tables} - set(tables)


def _connected(tables: frozenset[int], joins: Mapping[int, int]) -> list[frozenset[int]]:
    """All connected subsets, smaller ones first."""
    found = larger = {frozenset((table,)) for table in tables}
    while larger:
        larger = {some | {b} for some in larger for b in _beside(some, joins) & tables}
        found = found | larger
    return sorted(found, key=lambda some: (len(some), sorted(some)))


def _keepable(node: View | Layout) -> bool:
    return isinstance(node, View) and node.keepable


def _random_arc(rng: Random, names: list[str]) -> Arc:
    inputs = tuple(rng.choice(names) for _ in range(rng.randint(1, 3)))
    return Arc(inputs, round(rng.uniform(0.0, 10.0), 2), round(rng.uniform(0.0, 4.0), 2))


def _layouts(rng: Random, n: int) -> ViewGraph:
    return random_layouts(rng, n // 3, n, unit=False)


def _and_layouts(rng: Random, n: int) -> ViewGraph:
    return random_and_layouts(rng, n // 3, n)


FAMILIES: dict[str, Callable[[Random, int], ViewGraph]] = {
    "balanced tree": partial(random_or_graph, shape="tree"),
    **{f"density {d} %": partial(random_or_graph, density=d / 100) for d in (10, 15, 25, 40)},
    "2n edges": partial(random_or_graph, shape="edges"),
    "2n edges, view-to-view maintenance next to nothing": partial(random_or_graph, shape="edges", cheap=0.01),
    "2n edges without updates": partial(random_or_graph, shape="edges", updates=False),
    "OR with layouts": _layouts,
    "AND": partial(random_and_graph, updates=False),
    "AND with updates": partial(random_and_graph, updates=True),
    "AND with layouts": _and_layouts,
    "AND-OR": random_and_or_graph,
    "AND-OR with updates": partial(random_and_or_graph, updates=True),
    "AND-OR, joins": random_memo,
    "AND-OR, joins, with updates": partial(random_memo, updates=True),
    "AND-OR with updates and layouts": partial(random_and_or_graph, updates=True, layouts=True),
}
