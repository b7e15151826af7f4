"""Logs, names, notes and coverage, on log files written by hand: no Spark."""

from __future__ import annotations

import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
from hand_made import HandMade, add, note, remove

from viewkeeper.algebra.keys import ForeignKey
from viewkeeper.algebra.relations import ScanColumn
from viewkeeper.errors import SourceError, StorageError
from viewkeeper.runtime.look import Versions
from viewkeeper.store.changes import Feed, FeedFiles, Files, Unchanged, Unreadable, changes_between
from viewkeeper.store.declared import Declarations, declarations, relied_on
from viewkeeper.store.leaves import Pin, PinnedLeaves
from viewkeeper.store.log import FileLog, TableLog
from viewkeeper.store.names import backing_name, canonical, split
from viewkeeper.store.registry import Registry
from viewkeeper.store.tables import FolderTables
from viewkeeper.store.views import COVERS_PROPERTY, RefreshNote, refreshes, standing, transaction_id

pytestmark = pytest.mark.core


def test_names_are_one_however_they_are_written() -> None:
    assert canonical(("Sales", "Order Lines")) == "sales.`order lines`"
    assert split("a.`b.c`.`d``e`") == ("a", "b.c", "d`e")
    assert backing_name("sales.daily") == "sales.__vk_daily"
    tables = FolderTables(Path("."))
    assert {tables.canonical(n) for n in (("T",), ("default", "t"), ("spark_catalog", "Default", "t"))} == {"t"}


def test_folders_that_cannot_be_called_by_name_are_no_tables(tmp_path: Path) -> None:
    for folder in ("t", "s.db/u", "my table", "copy-of-t", "s.db/tick`s", "x y.db/t"):
        HandMade(tmp_path / folder)
    assert sorted(FolderTables(tmp_path).found()) == ["s.u", "t"]


def test_a_log_tells_versions_rows_and_what_each_commit_did(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(add("a", 5), add("b", 7), numOutputRows=12)
    table.commit(remove("a"), add("c", 4), operation="DELETE", numDeletedRows=1)
    assert table.log.version() == 2
    assert (table.log.snapshot().rows, table.log.snapshot().files) == (11, 2)
    assert table.log.snapshot(1).rows == 12
    first, second = table.log.commit(1), table.log.commit(2)
    assert first is not None and second is not None
    assert (first.only_adds, first.rows_changed, second.only_adds, second.rows_changed) == (True, 12, False, 1)
    assert table.log.commit(9) is None


def test_a_table_made_again_is_not_taken_for_the_old_one(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(add("a", 5))
    assert table.log.snapshot().rows == 5
    for file in (tmp_path / "t" / "_delta_log").iterdir():
        file.unlink()
    os.rmdir(tmp_path / "t" / "_delta_log")
    again = HandMade(tmp_path / "t")
    again.commit(add("b", 9, data=True))
    assert table.log.snapshot().rows == 9


@pytest.mark.parametrize("content", ['{"commitInfo": {', "not json at all"])
def test_corrupt_and_missing_tables_are_said_to_be_so(tmp_path: Path, content: str) -> None:
    table = HandMade(tmp_path / "t")
    (tmp_path / "t" / "_delta_log" / f"{1:020}.json").write_text(content)
    with pytest.raises(StorageError, match="cannot be read"):
        table.log.commit(1)
    with pytest.raises(StorageError, match="cannot be read"):
        table.log.snapshot()
    with pytest.raises(SourceError):
        FileLog(tmp_path / "nowhere").version()
    with pytest.raises(StorageError, match="no warehouse"):
        FolderTables(tmp_path / "nothing").found()


def test_how_changes_can_be_read(tmp_path: Path) -> None:
    columns = frozenset({"k"})

    def between(old: int, new: int | None = None, table_id: str = "table-1") -> object:
        return changes_between(table.log, table_id, old, table.version if new is None else new, columns)

    table = HandMade(tmp_path / "t")
    assert between(0) == Unchanged()
    table.commit(add("a", 3))
    assert between(0) == Feed(1, 1, True, 3, FeedFiles(came=("a",)))
    table.commit(remove("a", data=False), add("b", 3, data=False), operation="OPTIMIZE")
    assert between(1) == Unchanged()
    table.commit(remove("b"), add("c", 2), {"cdc": {"path": "x", "size": 1}}, operation="UPDATE", numUpdatedRows=2)
    assert between(0) == Feed(1, 3, False, 7, FeedFiles(("x",), ("a",)))  # what the feed tells, no other file does
    table.commit(table.metadata(True, ("k", "x", "more")), operation="ADD COLUMNS")
    assert between(3) == Unchanged()
    table.commit(add("d", 1))
    assert between(3) == Feed(5, 5, True, 1)  # columns came in between
    # A column nobody reads goes: only the files can tell. One that is read goes: nothing can.
    table.commit(table.metadata(True, ("k", "more")), operation="DROP COLUMNS")
    table.commit(remove("d"), add("e", 1))
    assert between(5) == Files(("e",), ("d",), False, 2)
    table.commit(table.metadata(True, ("more",)), operation="DROP COLUMNS")
    table.commit(table.metadata(True, ("more", "k")), operation="ADD COLUMNS")
    assert isinstance(between(7), Unreadable)
    assert between(0, table_id="another") == Unreadable("the table was replaced by another one")
    (tmp_path / "t" / "_delta_log" / f"{2:020}.json").unlink()
    assert between(0, 3) == Unreadable("version 2 is no longer in the log")


def test_a_column_that_had_another_name_for_a_while_is_the_same(tmp_path: Path) -> None:
    def named(**names: str) -> dict:
        """The columns by the names that the files know them by."""
        action = table.metadata(True, tuple(names))
        schema = json.loads(action["metaData"]["schemaString"])
        for field in schema["fields"]:
            field["metadata"] = {"delta.columnMapping.physicalName": names[field["name"]]}
        action["metaData"]["schemaString"] = json.dumps(schema)
        return action

    table = HandMade(tmp_path / "t")
    table.commit(named(k="1", x="2"), operation="RENAME COLUMN")
    table.commit(named(j="1", x="2"), operation="RENAME COLUMN")
    table.commit(add("a", 3))
    table.commit(named(k="1", x="2"), operation="RENAME COLUMN")
    read = frozenset({"k"})
    assert changes_between(table.log, "table-1", 1, 4, read) == Files(("a",), (), True, 3)
    assert changes_between(table.log, "table-1", 1, 3, read) == Unreadable("column k was dropped or renamed")
    table.commit(named(x="2"), operation="DROP COLUMNS")
    table.commit(named(k="3", x="2"), operation="ADD COLUMNS")
    assert changes_between(table.log, "table-1", 4, 6, read) == Unreadable("column k was dropped or renamed")
    table.commit(named(k="2", x="3"), operation="RENAME COLUMN")
    assert changes_between(table.log, "table-1", 6, 7, read) == Unreadable("column k was changed")


def test_without_a_feed_every_touched_file_counts(tmp_path: Path) -> None:
    """A compaction moves changed rows into files whose commit changed no data: those belong to the change too."""
    table = HandMade(tmp_path / "t", feed=False)
    table.commit(add("p=1/old%20name", 3), add("keep", 5))
    table.commit(add("new", 1))
    table.commit(
        remove("p=1/old%20name", data=False),
        remove("new", data=False),
        add("packed", 4, data=False),
        operation="OPTIMIZE",
    )
    table.commit(remove("keep"))
    found = changes_between(table.log, "table-1", 1, 4, frozenset({"k"}))
    assert found == Files(("new", "packed"), ("keep", "new", "old name"), False, found.rows)
    read = PinnedLeaves({"t": Pin(1, 4, found)}).changes("t", (ScanColumn("k", "k", "int"),))
    assert "VERSION AS OF 4" in read and "VERSION AS OF 1" in read and "'old name'" in read
    only_gone = PinnedLeaves({"t": Pin(1, 4, Files((), ("keep",), False, 1))}).changes("t", ())
    assert "IN ()" not in only_gone and "UNION" not in only_gone


def test_without_a_feed_compacted_rows_did_not_come(tmp_path: Path) -> None:
    """Rows only came, but the compaction's file holds older ones as well."""
    table = HandMade(tmp_path / "t", feed=False)
    table.commit(add("old", 3))
    table.commit(add("new", 1))
    assert changes_between(table.log, "table-1", 1, 2, frozenset({"k"})) == Files(("new",), (), True, 1)
    table.commit(
        remove("old", data=False), remove("new", data=False), add("packed", 4, data=False), operation="OPTIMIZE"
    )
    found = changes_between(table.log, "table-1", 1, 3, frozenset({"k"}))
    assert found == Files(("new", "packed"), ("new", "old"), False, found.rows)


# Declared keys


def declared(tmp_path: Path, **properties: str) -> Declarations:
    """What a table of lines with these properties declares, beside orders with the key k."""
    lines = HandMade(tmp_path / "lines", columns=("k", "x"))
    lines.commit(lines.metadata(True, ("k", "x"), **{n.replace("_", "."): p for n, p in properties.items()}))
    orders = HandMade(tmp_path / "orders", columns=("k", "x"))
    orders.commit(orders.metadata(True, ("k", "x"), **{"viewkeeper.primaryKey": "K"}))
    metadata = {name: t.log.snapshot().metadata for name, t in (("lines", lines), ("orders", orders))}
    return declarations(metadata, FolderTables(tmp_path).canonical, exists=lambda name: name in metadata)


def test_declared_keys(tmp_path: Path) -> None:
    found = declared(
        tmp_path, viewkeeper_unique_both="k, `X`", viewkeeper_foreignKey_order="( X ) references ORDERS(k)"
    )
    assert found.problems == ()
    assert found.declared.keys == {"lines": frozenset({frozenset("kx")}), "orders": frozenset({frozenset("k")})}
    assert found.declared.references == (ForeignKey("lines", ("x",), "orders", ("k",)),)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("x -> orders.k", "cannot be read: 'x -> orders.k'; write it as '(column, …) REFERENCES table (column, …)'"),
        ("(y) REFERENCES orders (k)", "there is no column y"),
        ("(x, k) REFERENCES orders (k)", "2 columns refer to 1"),
        ("(x) REFERENCES orders (y)", "orders has no column y"),
        ("(x) REFERENCES orders (x)", "orders declares no such key; set its viewkeeper.primaryKey = 'x' if it is one"),
        ("(x) REFERENCES bills (k)", "there is no Delta table bills"),
    ],
)
def test_foreign_keys_that_cannot_be_relied_on(tmp_path: Path, text: str, why: str) -> None:
    found = declared(tmp_path, viewkeeper_foreignKey_order=text)
    assert found.declared.references == ()
    (problem,) = found.problems
    assert why in str(problem)


def test_keys_that_cannot_be_relied_on(tmp_path: Path) -> None:
    found = declared(tmp_path, viewkeeper_primaryKey="k, id")
    assert "lines" not in found.declared.keys
    assert [str(p) for p in found.problems] == [
        "viewkeeper.primaryKey of lines: there is no column id; set it to the columns of the key, as 'a, b'"
    ]


def test_what_is_declared_since_is_not_relied_on(tmp_path: Path) -> None:
    """Before that the table may have held anything. What is withdrawn is not relied on at once."""
    table = HandMade(tmp_path / "t")
    table.commit(add("a"))
    key = {"viewkeeper.primaryKey": "k"}
    declared_at = table.commit(table.metadata(True, ("k", "x"), **key))
    table.commit(add("b"))

    def relied(version: int) -> Mapping[str, str]:
        return relied_on(table.log, version, table.log.snapshot().metadata).properties

    assert "viewkeeper.primaryKey" not in relied(declared_at - 1)
    assert "viewkeeper.primaryKey" in relied(declared_at)
    table.commit(table.metadata(True, ("k", "x")))
    assert "viewkeeper.primaryKey" not in relied(declared_at)


def test_versions_of_one_moment(tmp_path: Path) -> None:
    """A table that is written to between two looks is looked at again."""
    tables = FolderTables(tmp_path)
    one, two = HandMade(tmp_path / "one"), HandMade(tmp_path / "two")
    writes = iter([True, False, False, False, False])

    class Busy(FolderTables):
        def log(self, name: str) -> TableLog:
            if name == "two" and next(writes):
                one.commit(add("a"))
                two.commit(add("b"))
            return tables.log(name)

    versions = Versions(Registry(Busy(tmp_path)))
    versions.pin(["one", "two"])
    assert versions.pinned == {"one": 1, "two": 1}
    assert versions.at_once == {"one", "two"}
    writes = itertools.repeat(True)
    versions = Versions(Registry(Busy(tmp_path)))
    versions.pin(["one", "two"])
    assert versions.pinned.keys() == {"one", "two"}
    assert versions.at_once == frozenset()


def test_coverage_is_that_of_the_last_refresh_with_data(tmp_path: Path) -> None:
    view = HandMade(tmp_path / "v")
    assert standing(view.log, "v").note is None
    first = view.commit(add("a"), note=note(1, covered=5, base=-1))
    view.commit(remove("a", data=False), add("b", data=False), operation="OPTIMIZE")
    assert standing(view.log, "v").covers["t"].version == 5
    view.commit(note=note(2, covered=6, base=first, moves=True))
    assert standing(view.log, "v").covers["t"].version == 6
    assert standing(view.log, "v").next_sequence == 3


def test_a_move_decided_before_a_refresh_with_data_is_void(tmp_path: Path) -> None:
    view = HandMade(tmp_path / "v")
    first = view.commit(add("a"), note=note(1, covered=5, base=-1))
    data = view.commit(add("b"), note=note(2, covered=8, base=first))
    view.commit(note=note(2, covered=6, base=first, moves=True))
    assert standing(view.log, "v").covers["t"].version == 8
    view.commit(note=note(3, covered=9, base=data, moves=True))
    assert standing(view.log, "v").covers["t"].version == 9
    assert [r.note.sequence for r in refreshes(view.log, "v")] == [3, 2, 2, 1]


def test_a_stranger_is_noticed_and_other_notes_are_not_ours(tmp_path: Path) -> None:
    view = HandMade(tmp_path / "v")
    view.commit(add("a"), note=note(1, covered=5, base=-1))
    assert standing(view.log, "v").foreign is None
    view.commit(add("b"), operation="RESTORE")
    foreign = standing(view.log, "v").foreign
    assert foreign is not None and foreign.operation == "RESTORE"
    assert RefreshNote.of('{"viewkeeper": {"view": 1}}') is None
    assert RefreshNote.of("somebody else's") is None


def test_coverage_outlives_the_log_only_while_it_is_the_last(tmp_path: Path) -> None:
    """Log cleaning takes commits with their notes; the copy in the properties counts if no refresh came after it."""
    view = HandMade(tmp_path / "v")
    copy = note(4, covered=7, base=0)
    properties = {COVERS_PROPERTY: copy.to_json()}
    view.commit(view.metadata(True, ("k",), **properties), operation="SET TBLPROPERTIES")
    assert standing(view.log, "v").covers["t"].version == 7
    view.commit({"txn": {"appId": transaction_id("v"), "version": 5, "lastUpdated": 0}}, add("x"))
    assert standing(view.log, "v").note is None
