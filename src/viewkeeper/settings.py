"""What can be set, once, for a whole warehouse."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """Everything a warehouse can be told; the defaults fit one machine.

    small_rows        a step that reads and writes fewer rows than this runs with the settings for small steps
    rewrite_rows      views up to this size are rewritten in one job rather than merged into
    replace_from      of views of more rows than this, few rows are replaced rather than all rewritten
    retries           how often a refresh that met a concurrent one is tried again
    views_at_once     how many views are refreshed at the same time
    rows_here         a change of at most so many rows at a time is computed by this process; of more, by Spark
    kept_bytes        how much of the data files that were read by this process is kept for other refreshes
    """

    small_rows: int = 200_000
    rewrite_rows: int = 1_000_000
    replace_from: int = 50_000
    retries: int = 3
    views_at_once: int = 2
    rows_here: int = 4_000_000
    kept_bytes: int = 4_000_000_000

    @property
    def kept_here(self) -> int:
        """The bytes that are kept on this machine, which has to have memory for others, too."""
        return min(self.kept_bytes, memory() // _KEPT_SHARE)


_KEPT_SHARE = 6  # of the machine's memory; the local Spark has a quarter


def memory() -> int:
    """The bytes that this machine has, as far as it says."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return 2**33
