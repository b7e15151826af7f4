"""Rows of data files that are replaced by deletion vectors: what is there afterwards, and what changed."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hand_made import HandMade, add
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.algebra.relations import WEIGHT
from viewkeeper.errors import ConflictError, StorageError
from viewkeeper.runtime.reads import ReadOnce
from viewkeeper.store import commits
from viewkeeper.store.changes import Feed, changes_between
from viewkeeper.store.columns import FileColumns
from viewkeeper.store.commits import NewFiles, commit_files
from viewkeeper.store.leaves import Pin, PinnedLeaves
from viewkeeper.store.log import FileLog
from viewkeeper.store.rows import FileRows
from viewkeeper.store.vectors import Vector, places, write_vector

pytestmark = pytest.mark.core

READ = FileRows(FileColumns(0))
KEYS = st.lists(st.integers(0, 9), max_size=6)
# For each step the keys whose rows go, and those of new rows; or a rewrite by new rows alone.
STEPS = st.lists(st.tuples(st.booleans(), st.sets(st.integers(0, 9), max_size=4), KEYS), min_size=1, max_size=4)


@given(st.sets(st.integers(0, 200_000)))
def test_a_vector_is_read_as_it_was_written(tmp_path_factory: pytest.TempPathFactory, gone: set[int]) -> None:
    folder = tmp_path_factory.mktemp("vectors")
    wanted = np.array(sorted(gone), np.int64)
    vector = write_vector(folder, wanted)
    assert (places(folder, vector) == wanted).all() and vector.cardinality == len(gone)
    assert Vector.of({"deletionVector": vector.action}) == vector


def test_a_vector_within_the_log_is_read() -> None:
    """The example of Delta's protocol."""
    inline = Vector("i", "^Bg9^0rr910000000000iXQKl0rr91000f55c8Xg0@@D72lkbi5=-{L", 44, 6)
    assert places(Path(), inline).tolist() == [3, 4, 7, 11, 18, 29]


def test_a_vector_that_is_not_what_the_log_says_is_refused(tmp_path: Path) -> None:
    vector = write_vector(tmp_path, np.arange(5))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(ValueError, match="not what the log says"):
        places(tmp_path, vector)


def table(keys: list[int]) -> pa.Table:
    return pa.table({"k": pa.array(keys, pa.int64()), "x": pa.array([10 * key for key in keys], pa.int64())})


def made(folder: Path, keys: list[int]) -> FileLog:
    """A table with deletion vectors and a feed, at version 0 but for a first one that made it."""
    hand_made = HandMade(folder)
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    properties = {"delta.enableDeletionVectors": "true"}
    pq.write_table(table(keys), folder / "first.parquet")
    hand_made.commit(
        {"protocol": protocol}, hand_made.metadata(True, ("k", "x"), **properties), add("first.parquet", len(keys))
    )
    return hand_made.log


def rows(found: pa.Table | None) -> Counter[int]:
    assert found is not None
    assert all(x == 10 * k for k, x in zip(found["k"].to_pylist(), found["x"].to_pylist(), strict=True))
    return Counter(found["k"].to_pylist())


@settings(max_examples=settings().max_examples // 2)
@given(first=KEYS, steps=STEPS)
def test_what_is_there_and_what_changed(
    tmp_path_factory: pytest.TempPathFactory, first: list[int], steps: list[tuple[bool, set[int], list[int]]]
) -> None:
    folder = tmp_path_factory.mktemp("tables") / "t"
    log = made(folder, first)
    states = [Counter(first)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(commits, "CHECKPOINT_EVERY", 3)
        for version, (rewrites, gone, new) in enumerate(steps, 1):
            step(folder, version, rewrites, gone, new)
            stay = Counter() if rewrites else Counter({k: n for k, n in states[-1].items() if k not in gone})
            states.append(stay + Counter(new))
    for version, state in enumerate(states, 1):
        files = log.files(version)
        assert files is not None and rows(READ.rows_of(files, ("k", "x"))) == state
        assert log.snapshot(version).rows == state.total()
    for old, then in enumerate(states[:-1], 1):
        assert changed(log, old, len(states)) == difference(then, states[-1])


def step(folder: Path, version: int, rewrites: bool, gone: set[int], new: list[int]) -> None:
    name = f"after-{version}.parquet"
    pq.write_table(table(new), folder / name)
    if rewrites:
        commit_files(NewFiles(folder, "overwrite", {name: len(new)}), version, "")
        return
    files = FileLog(folder).files(version)
    assert files is not None
    placed = READ.placed_with(files, ("k",), {"k": sorted(gone)}, 100)
    assert placed is not None
    at = placed.at(np.ones(len(placed.rows), bool))
    commit_files(NewFiles(folder, "replace", {name: len(new)}, at), version, "", ("v", version))


def changed(log: FileLog, old: int, new: int) -> dict[int, int]:
    found = changes_between(log, log.snapshot(new).metadata.id, old, new, frozenset({"k", "x"}))
    if not isinstance(found, Feed):
        return {}
    leaves = ReadOnce(None, PinnedLeaves({"t": Pin(old, new, found)}), {}, lambda _: log, READ)  # type: ignore[arg-type]
    parts = leaves.parts("t")
    net = READ.net_change(parts, ("k", "x")) if parts else None
    if not parts:
        assert not found.rows or found.files is not None
        return {}
    assert net is not None
    return {k: w for k, w in zip(net["k"].to_pylist(), net[WEIGHT].to_pylist(), strict=True) if w}


def difference(old: Counter[int], new: Counter[int]) -> dict[int, int]:
    return {k: new[k] - old[k] for k in old | new if new[k] != old[k]}


def test_rows_are_replaced_once_and_only_in_the_version_they_were_looked_up_in(tmp_path: Path) -> None:
    folder = tmp_path / "t"
    log = made(folder, [1, 2])
    path = str(folder / "first.parquet")
    files = NewFiles(folder, "replace", {}, {path: np.array([0])})
    commit_files(files, 1, "note", ("v", 1))
    commit = log.commit(2)
    assert commit is not None and (commit.user_metadata, commit.transactions) == ("note", {"v": 1})
    assert (commit.rows_changed, commit.rows_added, log.snapshot().rows, log.snapshot().gone) == (1, 0, 1, 1)
    with pytest.raises(ConflictError, match="nothing was applied"):
        commit_files(files, 1, "note", ("v", 1))
    with pytest.raises(StorageError, match="cannot be written"):
        commit_files(NewFiles(folder, "replace", {}, {"gone.parquet": np.array([0])}), 2, "note")
    assert log.version() == 2 and not list((folder / "_delta_log").glob(".*"))
    commit_files(NewFiles(folder, "replace", {}, {path: np.array([1])}), 2, "note")
    assert (log.snapshot().rows, log.snapshot().files) == (0, 0)  # a file without rows is no longer named
