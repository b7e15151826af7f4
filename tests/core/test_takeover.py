"""Whether a replaced view can be filled from what is there: what the logs and the definitions say."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hand_made import add_rows, make_table, make_view

from viewkeeper.algebra.reasons import Reason
from viewkeeper.errors import Position
from viewkeeper.runtime.takeover import Takeover, takeover, told
from viewkeeper.store.registry import Registry
from viewkeeper.store.tables import FolderTables
from viewkeeper.store.views import Covered, View

pytestmark = pytest.mark.core

DAILY = "CREATE MATERIALIZED VIEW daily AS SELECT day, sum(price) AS total FROM sales GROUP BY day"


@pytest.fixture
def registry(tmp_path: Path) -> Registry:
    """A warehouse whose view is behind its table by a commit."""
    make_table(tmp_path, "sales")
    make_view(tmp_path, DAILY)
    add_rows(tmp_path, "sales", version=1)
    return Registry(FolderTables(tmp_path))


def old(registry: Registry) -> View:
    return registry.get(("daily",))


def new(tmp_path_factory: pytest.TempPathFactory, text: str) -> View:
    """The view of another definition, as it would be made."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    make_table(elsewhere, "sales")
    return replace(make_view(elsewhere, text), id="another")


def test_what_is_kept_covers_what_it_has_covered(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> None:
    found = takeover(old(registry), new(tmp_path_factory, f"{DAILY} HAVING sum(price) > 3"), registry)
    assert isinstance(found, Takeover) and found.in_place
    assert found.covers == {"sales": Covered("id-sales", 0)}, "the table is at version 1 by now"
    assert found.standing.version == 0 and told(found) == "kept from what was there: unchanged"


def test_another_layout_is_written_again(registry: Registry, tmp_path_factory: pytest.TempPathFactory) -> None:
    for clause in ("CLUSTER BY (day)", "TBLPROPERTIES ('team' = 'a')"):
        found = takeover(
            old(registry), new(tmp_path_factory, DAILY.replace(" AS SELECT", f" {clause} AS SELECT")), registry
        )
        assert isinstance(found, Takeover) and not found.in_place
    for clause in ("COMMENT 'x'", "REFRESH POLICY FULL"):
        found = takeover(
            old(registry), new(tmp_path_factory, DAILY.replace(" AS SELECT", f" {clause} AS SELECT")), registry
        )
        assert isinstance(found, Takeover) and found.in_place


def test_other_settings_may_mean_other_rows(registry: Registry) -> None:
    view = old(registry)
    found = takeover(view, replace(view, settings={"spark.sql.ansi.enabled": "false"}), registry)
    assert told(found) == "rebuilt: spark.sql.ansi.enabled: it was None, now false"


def test_a_definition_that_was_not_read_is_not_compared(registry: Registry) -> None:
    view = old(registry)
    unread = replace(view, definition=None, reason=Reason("rand()", "gives another value each time"))
    for pair in ((view, unread), (unread, view)):
        assert told(takeover(*pair, registry)) == "rebuilt: rand(): gives another value each time"


def test_a_table_that_something_else_wrote_is_not_trusted(registry: Registry, tmp_path: Path) -> None:
    add_rows(tmp_path, "__vk_daily", version=1)
    assert "something else wrote into it" in told(takeover(old(registry), old(registry), registry))


def test_changes_that_can_no_longer_be_read(registry: Registry, tmp_path: Path) -> None:
    """The view could never follow its sources again."""
    first = tmp_path / "sales" / "_delta_log" / f"{0:020}.json"
    entries = [json.loads(line) for line in first.read_text().splitlines()]
    for entry in entries:
        if "metaData" in entry:
            entry["metaData"]["id"] = "made again"
    first.write_text("\n".join(map(json.dumps, entries)))
    assert told(takeover(old(registry), old(registry), registry)).startswith("rebuilt: sales: ")


def test_a_source_that_is_gone(registry: Registry, tmp_path: Path) -> None:
    (tmp_path / "sales" / "_delta_log").rename(tmp_path / "gone")
    assert "rebuilt: its sources: daily reads sales, which is gone" in told(
        takeover(old(registry), old(registry), registry)
    )


def test_a_view_reads_back_as_it_was_written(registry: Registry) -> None:
    """Whether readers have been told of a definition is found by comparing the two."""
    view = replace(old(registry), settings={"a": "b"}, namespace=("c", "s"), reason=Reason("x", "y", Position(1, 2)))
    assert View.from_json(view.to_json()) == view
