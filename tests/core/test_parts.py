"""A change computed by parts is the same change, and every part is computed once."""

from __future__ import annotations

import pytest
from fake_catalog import FakeCatalog
from hypothesis import given
from hypothesis import strategies as st

from viewkeeper.algebra.relations import Changes, Join, Relation, Scan, ScanColumn, Union, inputs, names
from viewkeeper.algebra.scalars import Column, Literal, call
from viewkeeper.changes.parts import Computed, Saved, Sizes, by_parts, mentions
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.stored import stored_form
from viewkeeper.sql.bind import Bound, bind
from viewkeeper.sql.parse import parse_query
from viewkeeper.testing.bags import Bag, TableStates, evaluate
from viewkeeper.testing.histories import History
from viewkeeper.testing.strategies import changing_views

pytestmark = pytest.mark.core


def operators(rel: Relation) -> float:
    """As if reading were what is dear."""
    return sum(isinstance(n, Scan) for n in mentions(rel).elements()) if inputs(rel) else 0


WAYS = [
    (Sizes(large=6, worth=3), lambda _: 0.0),
    (Sizes(large=6, worth=3, most=6), lambda _: 0.0),
    (Sizes(large=10_000), operators),
]


@given(changing_views(), st.sampled_from(WAYS))
def test_by_parts_it_is_the_same_change(case: tuple[Relation, History], how: tuple[Sizes, Saved]) -> None:
    (view, history), (sizes, saved) = case, how
    kept = stored_form(view, "__vk_v").kept
    whole = maintenance(kept, history.changed(0, 1)).change
    tables = dict(history.between(0, 1))
    computed: list[Relation] = []

    def compute(part: Relation) -> Computed:
        assert part not in computed
        computed.append(part)
        name, rows = f"part {len(computed)}", evaluate(part, tables)
        tables[name] = TableStates(names(part), Bag(), rows)
        return Computed(name, rows.total())

    by_part = by_parts(whole, compute, sizes, saved)
    left = [rel for rel, times in mentions(by_part).items() if times > 1]
    assert not any(map(saved, left))
    assert names(by_part) == names(whole)
    assert evaluate(by_part, tables) == evaluate(whole, history.between(0, 1))


NESTED = """
WITH p AS (SELECT a, max(b) AS m FROM r GROUP BY a),
     q AS (SELECT p.a, count(*) AS n FROM p JOIN t ON p.a = t.a WHERE p.m > 0 GROUP BY p.a),
     x AS (SELECT q.n, max(q.a) AS a FROM q JOIN p ON p.a = q.a GROUP BY q.n),
     y AS (SELECT x.a, max(x.n) AS n FROM x JOIN q ON q.n = x.n GROUP BY x.a)
SELECT y.a, y.n FROM y LEFT JOIN x ON x.a = y.a WHERE NOT EXISTS (SELECT 1 FROM q WHERE q.a = y.n)
"""


def test_nested_changes_do_not_grow_with_every_level() -> None:
    bound = bind(parse_query(NESTED), FakeCatalog(), ("a", "n"))
    assert isinstance(bound, Bound)
    whole = maintenance(stored_form(bound.relation, "v").kept, {"r": "any", "t": "any"}).change
    written_out = sum(mentions(whole).values())
    planned: list[int] = []

    def compute(part: Relation) -> Computed:
        planned.append(sum(mentions(part).values()))
        return Computed(f"part {len(planned)}", 1)

    last = by_parts(whole, compute)
    assert written_out > 2_500
    assert sum(planned) + sum(mentions(last).values()) < 1_000 and max(planned) <= Sizes().large


def test_states_that_are_read_again_and_again_are_parts_of_what_is_too_large() -> None:
    """As in TPC-DS 14: each of many changes meets the same rows of several tables."""
    met = "SELECT r.s FROM r JOIN u ON r.a = u.`Order` INTERSECT SELECT t.s FROM t JOIN u ON t.a = u.`Order`"
    state = bind(parse_query(met), FakeCatalog(), ("s",))
    assert isinstance(state, Bound)
    changed = Changes("t", (ScanColumn("s", "changed", "string"),))
    conditions = [call("=", call("CONCAT", Column("changed"), Literal(f"'{i}'")), Column("s")) for i in range(50)]
    whole = Union(tuple(Join(changed, state.relation, "inner", condition) for condition in conditions))

    def left(sizes: Sizes) -> int:
        return sum(mentions(by_parts(whole, lambda part: Computed(part.fingerprint, 1), sizes)).values())

    assert left(Sizes(most=10_000)) > Sizes().most >= left(Sizes())


def test_a_part_without_rows_takes_with_it_what_is_joined_to_it() -> None:
    bound = bind(parse_query(NESTED), FakeCatalog(), ("a", "n"))
    assert isinstance(bound, Bound)
    whole = maintenance(stored_form(bound.relation, "v").kept, {"r": "any", "t": "any"}).change
    asked: list[Relation] = []

    def compute(part: Relation) -> Computed:
        asked.append(part)
        return Computed(f"part {len(asked)}", 0)

    last = by_parts(whole, compute)
    assert sum(mentions(last).values()) <= Sizes().large and len(asked) < 5
