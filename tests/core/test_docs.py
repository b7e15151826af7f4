"""The documentation says what the code does: generated parts are current, everything public is in it, links lead somewhere."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

import pytest

from doc_blocks.commands import registered
from doc_blocks.constructs import CONSTRUCTS
from doc_blocks.pictures import PICTURES
from doc_blocks.support import functions, support
from docs import BLOCKS, documents, regenerate
from viewkeeper import Settings, Warehouse, errors, reports
from viewkeeper.algebra.aggregates import ADDITIVE, EXTREMES, REPEATABLE
from viewkeeper.algebra.reasons import Reason
from viewkeeper.algebra.relations import Changes, Pivot, Relation, SetOperation, Unpivot
from viewkeeper.selection.methods import Method
from viewkeeper.sql import bind
from viewkeeper.sql.functions import AGGREGATES

pytestmark = pytest.mark.core

ROOT = Path(__file__).resolve().parents[2]
OPERATORS = ROOT / "docs" / "operators"
ALGORITHM_HEADINGS = ("## Idea", "## Picture", "## Guarantee", "## Cost", "## When to use it", "## Erratum")
HEADINGS = ("## Example", "## Change rule", "## SQL", "## Limits")


PAGES: list[Path] = documents()


def page_id(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def text(page: str) -> str:
    return (ROOT / page).read_text("utf-8")


def has_heading(page: str, heading: str) -> bool:
    return re.search(rf"^#+ {re.escape(heading)}$", text(page), re.MULTILINE) is not None


# Generated parts


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_generated_blocks_are_current(page: Path) -> None:
    shown = page.read_text("utf-8")
    assert regenerate(shown) == shown, "run: python tools/docs.py"


def test_every_block_that_can_be_made_is_known_and_closed() -> None:
    for page in PAGES:
        shown = page.read_text("utf-8")
        begun, ended = (re.findall(rf"<!-- ([\w-]+):{word} -->", shown) for word in ("begin", "end"))
        assert begun == ended, page
        assert set(begun) <= set(BLOCKS), page


@pytest.mark.parametrize("construct", CONSTRUCTS, ids=lambda c: c.name)
def test_the_support_table_says_how_exactly_where_there_is_a_how(construct) -> None:  # type: ignore[no-untyped-def]
    """A construct that becomes supported, or ceases to be, must get another text."""
    refused = isinstance(construct.verdict, Reason)
    assert refused != bool(construct.how), construct.verdict


def test_every_refused_clause_is_in_the_support_table() -> None:
    table = support()
    assert [clause for clause in bind._CLAUSES.values() if clause not in table] == []


def test_every_aggregate_is_in_the_lists_of_functions() -> None:
    listed = functions()
    assert [name for name in sorted(AGGREGATES | REPEATABLE | ADDITIVE | EXTREMES) if f"`{name}`" not in listed] == []


# Completeness


@pytest.mark.parametrize(
    "operator",
    [cls for cls in get_args(Relation) if cls not in (Changes, SetOperation, Pivot, Unpivot)],
    ids=lambda c: c.__name__,
)
def test_every_operator_has_a_page_of_the_same_shape(operator: type) -> None:
    page = OPERATORS / f"{operator.__name__.lower()}.md"
    assert page.exists(), f"docs/operators/{page.name} is missing"
    shown = page.read_text("utf-8")
    assert [h for h in HEADINGS if h not in shown] == []
    assert f"{page.stem}-example:begin" in shown and f"{page.stem}-change:begin" in shown
    assert f"({page.name})" in text("docs/operators/index.md")


@pytest.mark.parametrize("name", PICTURES)
def test_every_algorithm_has_a_page_of_the_same_shape(name: str) -> None:
    shown = text(f"docs/algorithms/{name}.md")
    assert [h for h in ALGORITHM_HEADINGS if f"\n{h}\n" not in shown] == []
    assert f"{name}-picture:begin" in shown
    assert f"({name}.md)" in text("docs/algorithms/index.md")


@pytest.mark.parametrize("method", get_args(Method), ids=lambda m: m.__name__)
def test_every_method_of_choosing_is_on_a_page(method: type) -> None:
    heads = {name: text(f"docs/algorithms/{name}.md").split("##")[0] for name in PICTURES}
    assert len([name for name, head in heads.items() if re.search(rf"\b{method.__name__}\(", head)]) == 1


def test_the_example_of_choosing_runs() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", text("docs/algorithms/index.md"), re.DOTALL)
    names: dict[str, object] = {}
    exec(code, names)
    assert names["choice"].views == ("monthly",)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "name", [n for n, c in vars(errors).items() if isinstance(c, type) and issubclass(c, Exception)]
)
def test_every_error_is_documented(name: str) -> None:
    assert has_heading("docs/errors.md", name)


@pytest.mark.parametrize("field", dataclasses.fields(Settings), ids=lambda f: f.name)
def test_every_setting_is_documented_with_its_default(field: dataclasses.Field[int]) -> None:
    section = re.search(rf"^## {field.name}\n\nDefault: ([\d,]+)\.", text("docs/settings.md"), re.MULTILINE)
    assert section is not None, field.name
    assert int(section[1].replace(",", "")) == field.default


@pytest.mark.parametrize("name", [n for n in vars(Warehouse) if not n.startswith("_")])
def test_every_public_method_is_documented(name: str) -> None:
    assert re.search(rf"\*\*`(Warehouse|wh)\.{name}\b", text("docs/python.md"))


@pytest.mark.parametrize(
    "cls",
    [c for _, c in inspect.getmembers(reports, dataclasses.is_dataclass) if c.__module__ == reports.__name__],
    ids=lambda c: c.__name__,
)
def test_every_field_of_a_report_is_documented(cls: type) -> None:
    page = text("docs/python.md")
    containers = {"records", "steps", "views", "entries", "audits"}
    assert [f.name for f in dataclasses.fields(cls) if f.name not in containers and f"`{f.name}`" not in page] == []


# Links and commands


def prose_and_code(page: str) -> str:
    return re.sub(r"<!--.*?-->", "", page, flags=re.DOTALL)


def links(page: Path) -> Iterator[str]:
    without_code = re.sub(r"```.*?```|`[^`\n]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    yield from re.findall(r"\]\(([^)\s]+)\)", without_code)


def anchors(page: Path) -> set[str]:
    headings = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_relative_links_resolve(page: Path) -> None:
    for link in links(page):
        if link.startswith("https://"):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), f"{page_id(page)}: {link}"
        assert not anchor or anchor in anchors(target), f"{page_id(page)}: {link}"


def test_every_command_that_is_named_exists_and_every_command_is_named() -> None:
    known = {command.callback.__name__ for command in registered()}
    for page in PAGES:
        named = set(re.findall(r"(?:`|^)viewkeeper ([a-z]+)", prose_and_code(page.read_text("utf-8")), re.MULTILINE))
        assert named <= known, page_id(page)
    assert all(has_heading("docs/cli.md", command) for command in known)


def test_nothing_that_make_does_not_have_is_promised() -> None:
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.MULTILINE))
    for page in PAGES:
        named = set(re.findall(r"(?:`|^)make ([a-z-]+)", page.read_text("utf-8"), re.MULTILINE))
        assert named <= targets, page_id(page)
