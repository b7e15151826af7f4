"""What can be set, once, for a whole warehouse."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Everything a warehouse can be told; the defaults fit one machine.

    small_rows        a step that reads and writes fewer rows than this runs with the settings for small steps
    rewrite_rows      views up to this size are rewritten in one job rather than merged into
    retries           how often a refresh that met a concurrent one is tried again
    views_at_once     how many views are refreshed at the same time
    kept_bytes        how much of the data files that were read by this process is kept for other refreshes
    """

    small_rows: int = 200_000
    rewrite_rows: int = 1_000_000
    retries: int = 3
    views_at_once: int = 2
    kept_bytes: int = 2_000_000_000
