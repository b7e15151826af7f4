"""Data files that are read and committed without Delta's own reader and writer."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hand_made import HandMade, add, note, remove

from viewkeeper.errors import ConflictError, StorageError
from viewkeeper.store.commits import CHECKPOINT_EVERY, NewFiles, commit_files
from viewkeeper.store.files import FEW_FILES, MOST_FILES
from viewkeeper.store.log import FileLog
from viewkeeper.store.views import COVERS_PROPERTY, standing, transaction_id

pytestmark = pytest.mark.core


def test_the_files_of_a_version_are_named_where_delta_would_just_read_them(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(add("a", 3), add("b", 2))
    table.commit(remove("a"), add("c", 1))
    then, now = table.log.files(1), table.log.files(2)
    assert then is not None and now is not None
    assert {Path(p).name for p in then.whole} == {"a", "b"} and {Path(p).name for p in now.whole} == {"b", "c"}
    assert [Path(p).name for p in now.only(("a", "c")).whole] == ["c"]
    assert now.writable and json.loads(now.schema)["fields"][0]["name"] == "k"
    many = HandMade(tmp_path / "many")
    many.commit(*(add(f"f{n}") for n in range(FEW_FILES + 1)))
    found = many.log.files(1)
    assert found is not None and not found.few and now.few
    too_many = HandMade(tmp_path / "too_many")
    too_many.commit(*(add(f"f{n}") for n in range(MOST_FILES + 1)))
    assert too_many.log.files(1) is None
    pattern = HandMade(tmp_path / "a[b]")
    pattern.commit(add("a"))
    assert pattern.log.files(1) is None
    mapped = HandMade(tmp_path / "mapped")
    mapped.commit(mapped.metadata(True, ("k", "x"), **{"delta.columnMapping.mode": "name"}), add("a"))
    assert mapped.log.files(1) is None


def test_files_are_committed_once_and_only_after_the_version_they_were_made_for(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    table.commit(add("a", 3), note=note(1, 1, 0))
    for name, rows in (("b", 2), ("c", 1)):
        pq.write_table(pa.table({"k": range(rows), "x": range(rows)}), tmp_path / "t" / name)
    second = note(2, 2, 1)
    commit_files(NewFiles(tmp_path / "t", "overwrite", {"b": 2}), 1, second.to_json(), (transaction_id("v"), 2))
    found = table.log.commit(2)
    assert found is not None and found.rows_added == 2 and found.transactions == {transaction_id("v"): 2}
    assert standing(table.log, "v").note == second
    files = table.log.files(2)
    assert files is not None and [Path(p).name for p in files.whole] == ["b"]
    assert json.loads(found.added[0]["stats"])["maxValues"] == {"k": 1, "x": 1}
    with pytest.raises(ConflictError, match="nothing was applied"):
        commit_files(NewFiles(tmp_path / "t", "overwrite", {"c": 1}), 1, second.to_json(), (transaction_id("v"), 2))
    moved = note(3, 5, 2, moves=True)
    commit_files(NewFiles(tmp_path / "t", "append", {}), 2, moved.to_json())
    assert (table.log.version(), standing(table.log, "v").note) == (3, moved)
    with pytest.raises(StorageError, match="cannot be written"):
        commit_files(NewFiles(tmp_path / "nowhere", "append", {}), 2, moved.to_json())


def test_what_the_log_says_outlives_a_checkpoint(tmp_path: Path) -> None:
    table = HandMade(tmp_path / "t")
    kept = note(1, 1, 0).to_json()
    table.commit(table.metadata(True, ("k", "x"), **{COVERS_PROPERTY: kept}), add("a", 3), note=note(1, 1, 0))
    for version in range(1, CHECKPOINT_EVERY):
        pq.write_table(pa.table({"k": [1, 2], "x": [3, 4]}), tmp_path / "t" / f"b{version}")
        new = NewFiles(tmp_path / "t", "overwrite", {f"b{version}": 2})
        commit_files(new, version, note(version + 1, 2, 1).to_json(), (transaction_id("v"), version + 1))
    log = tmp_path / "t" / "_delta_log"
    assert list(log.glob("*.checkpoint.parquet"))
    for version in range(CHECKPOINT_EVERY):
        (log / f"{version:020}.json").unlink()
    again = FileLog(tmp_path / "t")
    assert (again.snapshot().rows, again.snapshot().metadata.properties[COVERS_PROPERTY]) == (2, kept)
    assert again.last_transaction(transaction_id("v")) == CHECKPOINT_EVERY
