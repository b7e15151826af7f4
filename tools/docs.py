"""Writes the parts of the documentation that code can tell: the support table, change rules, generated SQL.

    python tools/docs.py           rewrite every generated block in README.md and docs/
    python tools/docs.py --check   change nothing, fail if a block is out of date

A block stands between `<!-- NAME:begin -->` and `<!-- NAME:end -->`; BLOCKS below says what is in it, and
`doc_blocks` makes it. Everything is found by asking the code: each row of the support table is a query that is bound
here, and each page of docs/operators shows what `changes.maintenance` makes of its example. No Spark is needed.
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable
from pathlib import Path

from doc_blocks.commands import commands, shared_options
from doc_blocks.examples import EXAMPLES
from doc_blocks.markdown import fenced, sql
from doc_blocks.operators import KEYED, algebra, change, example, installed, kept, readers, rule
from doc_blocks.pictures import PICTURES
from doc_blocks.support import additive_limits, functions, reasons, support
from viewkeeper.changes import drift
from viewkeeper.runtime import install

ROOT = Path(__file__).resolve().parent.parent

BLOCKS: dict[str, Callable[[], str]] = {
    "support": support,
    "reasons": reasons,
    "cli-commands": commands,
    "cli-options": shared_options,
    "functions": functions,
    "additive-limits": additive_limits,
    "install-append": lambda: installed("filter", "append"),
    "install-rewrite": lambda: installed("filter", "rewrite"),
    "install-merge": lambda: installed("filter", "merge"),
    "drift": lambda: fenced("text", str(inspect.getdoc(drift))),
    "install-merge-keyed": lambda: sql(install.merge_keyed("__vk_v", KEYED).sql),
    "install-merge-groups": lambda: installed("aggregate", "merge"),
    "install-top": lambda: installed("top", "rewrite"),
    "install-rewrite-groups": lambda: installed("distinct", "rewrite"),
    "aggregate-kept": lambda: kept("aggregate"),
    "aggregate-readers": lambda: readers("aggregate"),
    "distinct-kept": lambda: kept("distinct"),
    "distinct-readers": lambda: readers("distinct"),
    "except-kept": lambda: kept("except"),
    "except-readers": lambda: readers("except"),
    "top-groups-readers": lambda: readers("top-groups"),
}
BLOCKS |= {f"{name}-picture": draw for name, draw in PICTURES.items()}
for _name in EXAMPLES:
    for _part in (example, algebra, rule, change):
        BLOCKS[f"{_name}-{_part.__name__}"] = lambda name=_name, part=_part: part(name)  # type: ignore[misc]

_BLOCK = re.compile(r"(<!-- ([\w-]+):begin -->\n).*?(<!-- \2:end -->)", re.DOTALL)


def documents() -> list[Path]:
    return sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


def regenerate(text: str) -> str:
    """The text of a page with every block as the code would have it now."""
    return _BLOCK.sub(lambda m: f"{m[1]}{BLOCKS[m[2]]()}\n{m[3]}", text)


def main(arguments: list[str]) -> int:
    stale = []
    for page in documents():
        text = page.read_text("utf-8")
        fresh = regenerate(text)
        if fresh != text:
            stale.append(page.relative_to(ROOT).as_posix())
            if "--check" not in arguments:
                page.write_text(fresh, "utf-8")
    word = "out of date" if "--check" in arguments else "rewritten"
    print("\n".join(f"{name}: {word}" for name in stale) or "docs: up to date")
    return 1 if stale and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
