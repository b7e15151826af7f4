"""How many matches a key has and had: which rows of semi, anti and outer joins flip, by one read of the right side."""

from __future__ import annotations

from viewkeeper.algebra.keys import equal_columns_alike
from viewkeeper.algebra.relations import (
    WEIGHT,
    WEIGHT_FIELD,
    Aggregate,
    Filter,
    Item,
    Join,
    Measure,
    Project,
    Relation,
    pass_through,
)
from viewkeeper.algebra.scalars import ONE, ZERO, Column, call, conjunction, conjuncts
from viewkeeper.algebra.types import BIGINT
from viewkeeper.changes.groups import near

_KEY, _CAME, _MATCHES = "__vk_match_", "__vk_came", "__vk_matches"


def flips_by_key(rel: Join, change: Relation) -> Relation | None:
    """L_old ⋈ σ_{w ≠ 0} π_{k; w = min(n, 1) − min(n − c, 1)}(γ_{k; c = Σ weight}(δR) ⟕ γ_{k; n = count}(R_new ⋉ δR))

    How many matches a key had is how many it has, less those that came. `rel` joins L_old and R_new; None where its
    condition asks for more than equal columns of the same type.
    """
    types = {f.name: f.type for f in (*rel.left.schema, *rel.right.schema)}
    equal = list(equal_columns_alike(rel))
    if not equal or len(equal) < len(conjuncts(rel.condition)):
        return None
    keys = {theirs: f"{_KEY}{n}" for n, theirs in enumerate(dict.fromkeys(theirs for _, theirs in equal))}
    renamed = tuple(Item(key, Column(theirs), types[theirs]) for theirs, key in keys.items())
    came = Aggregate(
        Project(change, (*renamed, *pass_through((WEIGHT_FIELD,)))),
        tuple(keys.values()),
        (Measure(_CAME, "sum", (WEIGHT,), BIGINT),),
    )
    there = near(rel.right, change, [(theirs, theirs) for theirs in keys])
    counted = Aggregate(there, tuple(keys), (Measure(_MATCHES, "count", (), BIGINT),))
    both = Join(came, counted, "left", conjunction([call("=", Column(key), Column(own)) for own, key in keys.items()]))
    n = call("COALESCE", Column(_MATCHES), ZERO)
    flipped = call("-", call("LEAST", n, ONE), call("LEAST", call("-", n, Column(_CAME)), ONE))
    shown = tuple(Item(key, Column(key), types[theirs]) for theirs, key in keys.items())
    turned = Filter(Project(both, (*shown, Item(WEIGHT, flipped, BIGINT))), call("<>", Column(WEIGHT), ZERO))
    met = conjunction([call("=", Column(ours), Column(keys[theirs])) for ours, theirs in equal])
    return Project(Join(rel.left, turned, "inner", met), pass_through((*rel.left.schema, WEIGHT_FIELD)))
