"""Sketches: summaries of many values in few bytes. Two merge into one; what went into one cannot be taken out."""

from __future__ import annotations

from dataclasses import dataclass

from viewkeeper.algebra.scalars import ZERO, Call, Scalar, call


@dataclass(frozen=True)
class Sketch:
    """How sketches merge: by a function of two of them and of the aggregate's own arguments from `settings` on.

    One that `counts` is another if a row is there twice. An empty one is left out where an `estimate` is named: Spark
    makes it of a size of its own, which the others need not have.
    """

    merge: str
    settings: int | None = None
    counts: bool = False
    estimate: str | None = None

    def merged(self, old: Scalar, new: Scalar, args: tuple[Scalar, ...]) -> Scalar:
        """The sketch of the rows behind both; `old` is NULL if there were none."""
        both: Scalar = Call(self.merge, (old, new, *(args[self.settings :] if self.settings is not None else ())))
        if self.estimate is not None:
            both = call("IF", call("=", call(self.estimate, old), ZERO), new, both)
            both = call("IF", call("=", call(self.estimate, new), ZERO), old, both)
        return call("IF", call("IS NULL", old), new, both)


_NUMBERS = ("bigint", "double", "float")
_SUMMARIES = ("double", "integer")

SKETCHES = {
    "hll_sketch_agg": Sketch("HLL_UNION"),
    "hll_union_agg": Sketch("HLL_UNION", settings=1, estimate="HLL_SKETCH_ESTIMATE"),
    "theta_sketch_agg": Sketch("THETA_UNION", settings=1),
    "theta_union_agg": Sketch("THETA_UNION", settings=1),
    **{f"kll_sketch_agg_{t}": Sketch(f"KLL_SKETCH_MERGE_{t.upper()}", counts=True) for t in _NUMBERS},
    **{f"kll_merge_agg_{t}": Sketch(f"KLL_SKETCH_MERGE_{t.upper()}", counts=True) for t in _NUMBERS},
    **{f"tuple_sketch_agg_{t}": Sketch(f"TUPLE_UNION_{t.upper()}", settings=2, counts=True) for t in _SUMMARIES},
    **{f"tuple_union_agg_{t}": Sketch(f"TUPLE_UNION_{t.upper()}", settings=1, counts=True) for t in _SUMMARIES},
}

# What they keep of many values they draw at random.
DRAWN = frozenset(name for name in SKETCHES if name.startswith("kll"))
