"""The rules that explain names are the rules that the change is computed by."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from unittest.mock import patch

import pytest
from hypothesis import assume, given
from shop import LINES, ON_ORDER, ORDERS, equal, scan

from viewkeeper.algebra.node import walk
from viewkeeper.algebra.relations import Join, Relation, Values, Window
from viewkeeper.changes import propagate, refresh, rules
from viewkeeper.changes.kept import Kept, KeptBag
from viewkeeper.changes.refresh import maintenance
from viewkeeper.changes.rules import Rule, applied_rules
from viewkeeper.changes.stored import stored_form
from viewkeeper.changes.weights import Changed
from viewkeeper.testing.histories import SCHEMAS, History
from viewkeeper.testing.strategies import changing_views, views

pytestmark = pytest.mark.core

RULES = [value for value in vars(rules).values() if isinstance(value, Rule)]
WITHOUT = (rules.UNCHANGED, rules.APPENDED, rules.RESERVE, rules.KEYS_ALONE)
EVERYTHING: Changed = dict.fromkeys(SCHEMAS, "any")
FUNCTIONS = {f for rule in RULES for f in rule.functions}


@contextmanager
def watched() -> Iterator[set[str]]:
    """The names of the rules' functions that are called."""
    called: set[str] = set()

    def watching(function: Callable[..., object]) -> Callable[..., object]:
        def watch(*args: object) -> object:
            called.add(function.__name__)
            return function(*args)

        return watch

    modules = {propagate.__name__: propagate, refresh.__name__: refresh}
    patches = [patch.object(modules[f.__module__], f.__name__, watching(f)) for f in FUNCTIONS]
    for one in patches:
        one.start()
    try:
        yield called
    finally:
        for one in patches:
            one.stop()


def used(kept: Kept, changed: Changed) -> tuple[set[str], set[str]]:
    """The functions that explain names, and those that are called."""
    named = {f.__name__ for applied in applied_rules(kept, changed) for f in applied.rule.functions}
    refresh._worked_out.cache_clear()  # what was worked out before calls nothing
    with watched() as called:
        maintenance(kept, changed)
    return named, called


@given(changing_views())
def test_a_named_rule_is_used(case: tuple[Relation, History]) -> None:
    definition, history = case
    named, called = used(stored_form(definition, "__vk_v").kept, history.changed(0, 1))
    assert named <= called


@given(views())
def test_a_rule_that_is_used_is_named(definition: Relation) -> None:
    """Where every table changed; one that did not is asked too, and gives nothing.

    Of an outer join's side that is a window, flips look at the change of what is below it, terms only at its keys; and
    only at those of its columns that the condition reads, which may look back where the others do not.
    """
    assume(not any(isinstance(node, Values) for node in walk(definition)))
    kept, changed = stored_form(definition, "__vk_v").kept, EVERYTHING
    named, called = used(kept, changed)
    applied = list(applied_rules(kept, changed))
    others = [a.operator for a in applied if a.rule is rules.KEYS_ALONE]
    windows = [a.operator for a in applied if isinstance(a.operator, Window)]
    others += [replace(window, columns=(column,)) for window in windows for column in window.columns]
    assert named <= called <= named | {f.__name__ for rel in others for f in rules._rule(rel, changed)[0].functions}


def test_what_no_match_depends_on_follows_no_rule() -> None:
    """Whether an order has lines is seen in the lines: the outer join that they stand in is not followed."""
    padded = Join(LINES, ORDERS, "left", ON_ORDER)
    matched = Join(scan("orders", "own"), padded, "semi", equal("own_id", "l_ord"))
    named, called = used(KeptBag(matched), {"orders": "any", "lines": "any"})
    assert "_left" not in named | called


def test_what_only_changes_beside_a_match_is_no_change() -> None:
    """Whether an order is among those of a left join is not told by the join's right side."""
    padded = Join(ORDERS, LINES, "left", ON_ORDER)
    matched = Join(scan("orders", "own"), padded, "semi", equal("own_id", "o_id"))
    assert [applied.rule for applied in applied_rules(KeptBag(matched), {"lines": "any"})] == [rules.UNCHANGED]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.name)
def test_every_rule_has_its_equation(rule: Rule) -> None:
    assert all(rule.equations) and (rule.equations or rule in WITHOUT)
