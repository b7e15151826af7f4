"""Tidying, writing down and telling apart relations keeps what they mean."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from viewkeeper.algebra.codec import decode, encode
from viewkeeper.algebra.node import walk
from viewkeeper.algebra.normalize import collapse, drop_empty, prune, sunk
from viewkeeper.algebra.relations import (
    Aggregate,
    Field,
    Filter,
    Item,
    Join,
    JoinKind,
    Measure,
    Project,
    Relation,
    Scan,
    ScanColumn,
    Union,
    empty,
    is_empty,
    names,
    pass_through,
)
from viewkeeper.algebra.scalars import TRUE, Column, Literal, Scalar, call
from viewkeeper.changes.propagate import change
from viewkeeper.errors import InternalError, StorageError
from viewkeeper.testing.bags import evaluate
from viewkeeper.testing.choices import Choices
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import ANY_VIEW, ANYTHING, LENGTH, changing_relations, relation, relations

pytestmark = pytest.mark.core

Case = tuple[Relation, History]


@given(changing_relations(ANYTHING))
def test_tidying_keeps_the_meaning(case: Case) -> None:
    rel, history = case
    tables = history.between(0, 1)
    expected = evaluate(rel, tables)
    for tidy in (prune, collapse, drop_empty, sunk):
        tidied = tidy(rel)
        assert names(tidied) == names(rel)
        assert evaluate(tidied, tables) == expected, tidy.__name__


@given(changing_relations(ANYTHING), st.integers(0, 255))
def test_pruned_to_some_columns(case: Case, mask: int) -> None:
    rel, history = case
    tables = history.between(0, 1)
    needed = tuple(f for i, f in enumerate(rel.schema) if mask >> i & 1)
    pruned = prune(rel, frozenset(f.name for f in needed))
    assert set(names(pruned)) >= {f.name for f in needed}
    only = pass_through(needed)
    assert evaluate(Project(pruned, only), tables) == evaluate(Project(rel, only), tables)


@given(relations(ANYTHING))
def test_nothing_empty_is_left(rel: Relation) -> None:
    """Below anything that an empty input makes empty there is no empty input."""
    tidied = drop_empty(rel)
    for node in walk(tidied):
        match node:
            case Filter(input) | Project(input):
                assert not is_empty(input)
            case Union(inputs):
                assert len(inputs) > 1 and not any(is_empty(i) for i in inputs)
            case Join(left, right, "inner" | "semi"):
                assert not is_empty(left) and not is_empty(right)
            case Join(left, _, "left" | "anti"):
                assert not is_empty(left)
            case Aggregate(input, group_by):
                assert not (group_by and is_empty(input))


@given(relations(ANYTHING))
def test_codec_round_trip(rel: Relation) -> None:
    assert decode(json.loads(json.dumps(encode(rel)))) == rel


@settings(max_examples=settings().max_examples // 3)
@given(relations())
def test_codec_round_trip_of_changes(rel: Relation) -> None:
    delta = change(rel, dict.fromkeys(SCHEMAS, "any"))
    again = decode(json.loads(json.dumps(encode(delta))))
    assert again == delta
    assert repr(again) == repr(delta)


def test_codec_names_what_it_does_not_know() -> None:
    with pytest.raises(StorageError, match="'Pivot'"):
        decode({"is": "Pivot", "input": None})


@given(st.binary(min_size=LENGTH, max_size=LENGTH), st.integers(0, LENGTH - 1), st.integers(0, 255))
def test_fingerprints_are_equal_where_the_content_is(data: bytes, at: int, other: int) -> None:
    one = relation(Choices(data), ANY_VIEW)
    two = relation(Choices(data[:at] + bytes([other]) + data[at + 1 :]), ANY_VIEW)
    assert (one.fingerprint == two.fingerprint) == (repr(one) == repr(two))
    assert (one == two) == (repr(one) == repr(two))
    assert len({one, two}) == (1 if one == two else 2)


def test_fingerprints_tell_fields_apart() -> None:
    a, b = ScanColumn("a", "b", "int"), ScanColumn("b", "a", "int")
    assert a != b
    assert Scan("t", (a,)) != Scan("t", (a,), "old")
    assert Item("x", Column("a"), "int") != Measure("x", "a", (), "int")
    assert Field("a", "b,c") != Field("a,b", "c")


R = Scan("r", (ScanColumn("a", "a", "int"), ScanColumn("b", "b", "int")))
S = Scan("s", (ScanColumn("c", "c", "int"), ScanColumn("d", "d", "int")))
T = Scan("t", (ScanColumn("e", "e", "int"),))


@pytest.mark.parametrize(
    "broken",
    [
        lambda: Filter(R, Column("z")),
        lambda: Project(R, (Item("x", Column("z"), "int"),)),
        lambda: Project(R, (Item("x", Column("a"), "int"), Item("X", Column("b"), "int"))),
        lambda: Join(R, R, "inner", TRUE),
        lambda: Join(R, S, "inner", Column("z")),
        lambda: Union((R, T)),
        lambda: Aggregate(R, ("z",), ()),
        lambda: Aggregate(R, ("a",), (Measure("A", "count", (), "bigint"),)),
        lambda: Aggregate(R, (), (Measure("x", "sum", ("z",), "bigint"),)),
        lambda: Aggregate(R, (), (Measure("x", "sum", ("a",), "bigint", where="z"),)),
    ],
)
def test_operators_check_their_columns(broken: object) -> None:
    with pytest.raises(InternalError):
        broken()  # type: ignore[operator]


def test_a_global_aggregate_of_nothing_is_a_row() -> None:
    counted = Aggregate(empty(R.schema), (), (Measure("n", "count", (), "bigint"),))
    assert evaluate(drop_empty(counted), {}) == {(0,): 1}
    assert is_empty(drop_empty(Aggregate(empty(R.schema), ("a",), ())))


def padded(kind: JoinKind, condition: Scalar) -> Relation:
    return Filter(Join(R, S, kind, call("=", Column("a"), Column("c"))), condition)


def kinds(rel: Relation) -> list[JoinKind]:
    return [n.kind for n in walk(sunk(rel)) if isinstance(n, Join)]


def test_outer_joins_whose_padded_rows_are_left_out_are_none() -> None:
    ours, theirs = call("=", Column("b"), Literal("1")), call("<", Literal("1"), call("+", Column("d"), Column("a")))
    assert kinds(padded("left", theirs)) == ["inner"]
    assert kinds(padded("left", ours)) == ["left"]
    assert kinds(padded("left", call("IS NULL", Column("d")))) == ["left"]
    assert kinds(padded("left", call("OR", theirs, ours))) == ["left"]
    assert kinds(padded("full", call("AND", ours, theirs))) == ["inner"]
    assert kinds(padded("full", ours)) == ["left"]
    turned = sunk(padded("full", call("IS NOT NULL", Column("d"))))
    assert kinds(turned) == ["left"] and names(turned) == ("a", "b", "c", "d")
    nested = Join(
        Join(R, S, "left", call("=", Column("a"), Column("c"))), T, "inner", call("=", Column("d"), Column("e"))
    )
    assert kinds(nested) == ["inner", "inner"], "what is not there meets nothing"
    assert kinds(replace(nested, kind="semi")) == ["semi", "inner"]
    assert kinds(replace(nested, kind="anti")) == ["anti", "left"]
