"""The support table, the reasons for a recompute, and the lists of functions."""

from __future__ import annotations

from doc_blocks.constructs import CONSTRUCTS, ORDERED
from viewkeeper.algebra.aggregates import (
    ADDITIVE,
    AMBIGUOUS,
    EXTREMES,
    KEPT_SCALE,
    REPEATABLE,
    SYNONYMS,
    WIDEST_AVERAGE,
    WIDEST_WEIGHTED_DECIMAL,
    why_not_additive,
)
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.sketches import SKETCHES
from viewkeeper.sql.functions import AGGREGATES, CLOCK, GENERATORS, RANDOM, SESSION, WINDOW_ONLY


def support() -> str:
    """The support table of the README; what is recomputed for the same reason shares a row."""
    rows = ["| SQL | How it is kept | Page |", "|---|---|---|"]
    recomputed: dict[tuple[str, str], list[str]] = {}
    for construct in CONSTRUCTS:
        verdict = construct.verdict
        if isinstance(verdict, Reason):
            recomputed.setdefault((verdict.why, construct.page), []).append(construct.name)
        else:
            rows.append(f"| {construct.name} | {construct.how} | {_link(construct.page)} |")
    for (why, page), names in recomputed.items():
        rows.append(f"| {', '.join(names)} | recomputed: {why} | {_link(page)} |")
    return "\n".join(rows)


def reasons() -> str:
    """What Viewkeeper says of each construct that leads to a recompute."""
    rows = ["| Construct | Example | Reason given |", "|---|---|---|"]
    for construct in CONSTRUCTS:
        if isinstance(verdict := construct.verdict, Reason):
            rows.append(f"| {construct.name} | `{construct.query}` | {verdict.construct}: {verdict.why} |")
    return "\n".join(rows)


def _link(page: str) -> str:
    return f"[{page.rsplit('/', 1)[-1].split('.md', maxsplit=1)[0]}]({page})"


def functions() -> str:
    """Functions by name, and why a view that uses them is recomputed."""
    afresh, grouping = REPEATABLE - ADDITIVE - EXTREMES, {"grouping", "grouping_id"}
    rows = (
        ("Aggregates added up from changes", ADDITIVE | {k for k, v in SYNONYMS.items() if v in ADDITIVE}),
        (
            "Aggregates merged from rows that come; else the touched groups are computed afresh",
            EXTREMES | SKETCHES.keys(),
        ),
        ("Aggregates whose touched groups are computed afresh", afresh),
        (
            "Aggregates whose touched groups are computed afresh, below another operator in an order of their own",
            ORDERED,
        ),
        ("Which columns a row is grouped by", grouping),
        ("Aggregates that lead to a recompute", AGGREGATES - REPEATABLE - AMBIGUOUS - set(SYNONYMS) - grouping),
        ("Rows from rows", GENERATORS),
        ("Only over windows: the touched partitions are computed afresh", WINDOW_ONLY),
        ("Another value each time: recompute", RANDOM),
        ("The clock: recompute, but for a filter that compares it with a column", CLOCK),
        ("The session: recompute", SESSION),
    )
    return "\n\n".join(f"**{title}.** {', '.join(f'`{name}`' for name in sorted(found))}" for title, found in rows)


def additive_limits() -> str:
    """Which aggregates are not added up from changes, by the type of their argument, and why."""
    cases = (
        ("sum", f"decimal({WIDEST_WEIGHTED_DECIMAL + 1},{KEPT_SCALE + 1})", False),
        ("avg", f"decimal({WIDEST_AVERAGE + 1},2)", False),
        ("count", "int", True),
        ("max", "int", False),
        ("stddev", "int", False),
    )
    rows = ["| Aggregate | Why its touched groups are computed afresh |", "|---|---|"]
    for function, type_, distinct in cases:
        shown = f"{function}(DISTINCT x)" if distinct else f"{function}(x)"
        rows.append(f"| `{shown}`, x {type_} | {why_not_additive(function, type_, distinct)} |")
    return "\n".join(rows)
