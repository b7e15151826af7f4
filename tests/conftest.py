"""How long the property tests look: HYPOTHESIS_PROFILE=long for a thorough run.

`make test-core` looks at one slice of the examples and another with each commit; SLICE=n repeats one.
"""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

from viewkeeper.algebra.node import room_to_walk

room_to_walk()  # the first definition that is read would do so, and Hypothesis warns of it inside a test

_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large]}

settings.register_profile("quick", max_examples=45, print_blob=True, **_COMMON)
settings.register_profile("long", max_examples=20_000, print_blob=True, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "quick"))


# Examples make and drop many small trees. Looking for circles among them, and each time among all that is imported too,
# took a fifth of the core tests' time.
gc.set_threshold(20_000, 20, 20)


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()
