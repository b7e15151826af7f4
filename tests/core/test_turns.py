"""Views are worked on at the same time, each after those it reads."""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest

from viewkeeper.runtime.turns import in_turn
from viewkeeper.store.views import SourceUse, View

pytestmark = pytest.mark.core

VIEW = View("1", "v", "v", "SELECT 1", (), (), "AUTO", (), None, None)


def reading(name: str, *tables: str) -> View:
    sources = tuple(SourceUse(t, "delta", t, ()) for t in tables)
    return replace(VIEW, id=name, name=name, backing=name, sources=sources)


DIAMOND = [reading("a", "t"), reading("b", "a"), reading("c", "a"), reading("d", "b", "c"), reading("e", "t")]


@pytest.mark.parametrize("at_once", [1, 2, 8])
def test_each_after_those_it_reads(at_once: int) -> None:
    done: list[str] = []
    lock = threading.Lock()

    def work(view: View) -> str:
        with lock:
            assert all(t in done for t in view.tables if t != "t"), view.name
        with lock:
            done.append(view.name)
        return view.name.upper()

    assert in_turn(DIAMOND, work, at_once) == ["A", "B", "C", "D", "E"]
    assert sorted(done) == ["a", "b", "c", "d", "e"]


def test_those_that_do_not_depend_on_each_other_run_at_once() -> None:
    both = threading.Barrier(2, timeout=10)
    assert in_turn([reading("a", "t"), reading("b", "t")], lambda view: both.wait() >= 0, 2) == [True, True]


def test_an_error_comes_through() -> None:
    def work(view: View) -> None:
        raise KeyError(view.name)

    with pytest.raises(KeyError):
        in_turn(DIAMOND, work, 2)
