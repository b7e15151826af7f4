"""Pictures of the algorithms at work."""

from __future__ import annotations

from collections.abc import Callable

from doc_blocks.example_tables import reading
from doc_blocks.markdown import fenced, sql
from viewkeeper.algebra.display import show_condition
from viewkeeper.algebra.reasons import Reason
from viewkeeper.changes.relevance import rows_that_matter
from viewkeeper.changes.stored import stored_form
from viewkeeper.planner.strategy.graph import ChangedGraph
from viewkeeper.planner.strategy.order import min_work, min_work_single, one_way
from viewkeeper.planner.strategy.picture import expressions, gantt, numbered_steps
from viewkeeper.planner.strategy.schedule import schedule
from viewkeeper.planner.strategy.search import best_one_way, view_strategies
from viewkeeper.planner.strategy.steps import Comp, Strategy, VersionedStrategy
from viewkeeper.planner.strategy.versions import with_versions
from viewkeeper.planner.strategy.window import leave_out
from viewkeeper.planner.strategy.work import Metric, work
from viewkeeper.selection.choice import Budget
from viewkeeper.selection.choose import choose
from viewkeeper.selection.costs import tau
from viewkeeper.selection.graph import Arc, View, ViewGraph
from viewkeeper.selection.methods import (
    Annealing,
    AOGreedy,
    AStar,
    Exact,
    Greedy,
    GreedyInterchange,
    GuessOne,
    InnerLevel,
    InvertedTree,
    Method,
    MultiLevel,
    RGreedy,
)
from viewkeeper.selection.picture import mermaid
from viewkeeper.testing.update_graphs import figure_6, tpcd
from viewkeeper.testing.view_graphs import figure_2_2, figure_3_1


def chosen(graph: ViewGraph, budget: Budget, method: Method, *, only_used: bool = False) -> str:
    """The graph with what the method keeps in it, and its trace."""
    choice = choose(graph, budget, method)
    before = tau(graph, with_upkeep=budget.counts_upkeep)
    rows = [
        f"| {k} | {', '.join(step.added)} | {', '.join(step.dropped)} | {step.benefit:g} | {step.reason} |"
        for k, step in enumerate(choice.trace, 1)
    ]
    return "\n".join(
        [
            "```mermaid",
            mermaid(graph, choice, only_used=only_used),
            "```",
            "",
            f"`{method}` with `{budget}`: from {before:g} to {choice.cost:g}, space {choice.space:g}, maintenance "
            f"{choice.maintenance:g}; no choice within the budget costs less than {choice.bound:g}.",
            "",
            "| step | comes | goes | benefit | why |",
            "|---|---|---|---|---|",
            *rows,
        ]
    )


def middle_view() -> ViewGraph:
    """Three views for four queries; the middle one looks best alone."""
    nodes = [View("b", reading=10.0), *(View(f"v{k}", (Arc(("b",)),)) for k in range(3))]
    for k, served in enumerate((("v0",), ("v0", "v1"), ("v1", "v2"), ("v2",))):
        ways = (Arc((v,), 5.0 if v == "v1" else 9.0) for v in served)
        nodes.append(View(f"q{k}", (Arc(("b",), 100.0), *ways), queries=1.0, keepable=False))
    return ViewGraph(tuple(nodes))


def crumb_and_cake() -> ViewGraph:
    """A small thing of high density, and a large one that is worth more."""
    gains = {"crumb": (1.0, 2.0), "cake": (100.0, 100.0)}
    nodes = [View("b"), *(View(name, (Arc(("b",), 200.0),), size=size) for name, (size, _) in gains.items())]
    for name, (_, gain) in gains.items():
        arcs = (Arc(("b",), 200.0), Arc((name,), 200.0 - gain))
        nodes.append(View(f"q {name}", arcs, queries=1.0, keepable=False))
    return ViewGraph(tuple(nodes))


def joins() -> ViewGraph:
    """Two ways to compute r⋈s⋈t, of which r⋈s also helps r⋈s⋈u."""
    bases = [View(name, reading=20.0) for name in "rstu"]
    pairs = [View(a + b, (Arc((a, b), 30.0),), size=4.0, reading=15.0) for a, b in ("rs", "st")]
    three = (Arc(("rs", "t"), 10.0), Arc(("r", "st"), 10.0))
    tops = [
        View("rst", three, size=9.0, reading=5.0, queries=2.0),
        View("rsu", (Arc(("rs", "u"), 10.0),), size=9.0, reading=5.0, queries=3.0),
    ]
    return ViewGraph((*bases, *pairs, *tops))


def in_steps(graph: ChangedGraph, strategy: Strategy | VersionedStrategy) -> str:
    """The graph with the steps in it, and the steps."""
    steps = "\n".join(f"{k:2} {step}" for k, step in enumerate(strategy, 1))
    return "\n".join([fenced("mermaid", numbered_steps(graph, strategy)), "", fenced("text", steps)])


def thirteen() -> str:
    """Q3 with its best strategy in it, and the work of all of them."""
    graph = tpcd("Q3")
    metric = Metric(compute=1.0, install=0.0)
    works = sorted(
        (work(graph, strategy, metric), ", ".join("+".join(sorted(s.changed)) for s in strategy if isinstance(s, Comp)))
        for strategy in view_strategies(graph, "Q3")
    )
    rows = [f"| {order} | {cost / works[0][0]:.3f} |" for cost, order in works]
    drawn = fenced("mermaid", numbered_steps(graph, min_work_single(graph, "Q3")))
    return "\n".join([drawn, "", "| order | work ÷ best |", "|---|---|", *rows])


def too_short() -> str:
    graph = tpcd("Q3", "Q5", "Q10")
    window = schedule(graph, with_versions(graph), 2).makespan / 2
    reduced = leave_out(graph, window, {"Q3": 5.0, "Q5": 1.0, "Q10": 2.0}, workers=2)
    found = f"left out {', '.join(reduced.left_out)}: harm {reduced.harm:g}, no less than {reduced.bound:g}"
    return "\n".join(
        [fenced("mermaid", gantt(reduced.schedule, f"half the window, {found}")), "", f"Half the window: {found}."]
    )


def figure_6_order() -> tuple[str, ...]:
    return min_work(figure_6()).order


def relevant_rows() -> str:
    """The rows that matter to three views."""
    views = {
        "SELECT sales.id, city FROM sales JOIN stores ON store = stores.id\n"
        "WHERE day >= DATE '2024-01-01' AND stores.id < 10": ("id", "city"),
        "SELECT id, city FROM stores\n"
        "WHERE id > 5 AND NOT EXISTS (SELECT 1 FROM sales WHERE store = stores.id AND price < 1)": ("id", "city"),
        "SELECT a.id, b.id AS following FROM sales a JOIN sales b ON b.id = a.id + 1\n"
        "WHERE a.id > 100 AND b.note = 'returned'": ("id", "following"),
    }
    shown = []
    for query, output in views.items():
        definition = reading(query, output)
        assert not isinstance(definition, Reason), definition
        found = rows_that_matter(stored_form(definition, "__vk_v").kept, ansi=True)
        rows = "\n".join(f"{table}: {show_condition(condition)}" for table, condition in found.items())
        shown += [sql(query), fenced("text", rows)]
    return "\n\n".join(shown)


PICTURES: dict[str, Callable[[], str]] = {
    "greedy": lambda: chosen(joins(), Budget(space=9.0), Greedy()),
    "greedy-interchange": lambda: chosen(middle_view(), Budget(space=2.0), GreedyInterchange()),
    "r-greedy": lambda: chosen(figure_2_2(), Budget(space=7.0, overshoot=True), RGreedy(2), only_used=True),
    "inner-level": lambda: chosen(figure_2_2(), Budget(space=7.0, overshoot=True), InnerLevel(), only_used=True),
    "ao-greedy": lambda: chosen(joins(), Budget(space=9.0), AOGreedy()),
    "multi-level": lambda: chosen(figure_2_2(), Budget(space=7.0, overshoot=True), MultiLevel(1), only_used=True),
    "inverted-tree": lambda: chosen(figure_3_1(), Budget(maintenance=4.0), InvertedTree()),
    "a-star": lambda: chosen(figure_3_1(), Budget(maintenance=4.0), AStar()),
    "guess-one": lambda: chosen(crumb_and_cake(), Budget(space=100.0), GuessOne()),
    "annealing": lambda: chosen(figure_3_1(), Budget(maintenance=4.0), Annealing()),
    "exact": lambda: chosen(figure_3_1(), Budget(space=3.0, maintenance=4.0), Exact()),
    "min-work-single": thirteen,
    "min-work": lambda: fenced("mermaid", expressions(figure_6(), one_way(figure_6(), figure_6_order()))),
    "versions": lambda: in_steps(figure_6(), with_versions(figure_6())),
    "schedule": lambda: fenced(
        "mermaid", gantt(schedule(tpcd("Q3", "Q5"), with_versions(tpcd("Q3", "Q5")), 3), "Q3 and Q5 on three workers")
    ),
    "window": too_short,
    "relevance": relevant_rows,
    "search": lambda: in_steps(figure_6(), best_one_way(figure_6()).strategy),
}
