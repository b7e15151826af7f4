"""Real processes: killed at random moments, and racing each other. VIEWKEEPER_KILLS sets how many kills."""

from __future__ import annotations

import itertools
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.spark

WORKER = Path(__file__).with_name("worker.py")
KILLS = int(os.environ.get("VIEWKEEPER_KILLS", "2"))
RACES = 1  # that the process which only refreshes must have won


def start(folder: Path, *mode: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(WORKER), str(folder), *mode],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
        env={**os.environ, "JDK_JAVA_OPTIONS": "-XX:TieredStopAtLevel=1"},  # what lives for seconds starts faster so
    )


def kill(process: subprocess.Popen[str]) -> str:
    """kill -9 of the process and its JVM."""
    os.killpg(process.pid, signal.SIGKILL)
    return process.communicate()[0]


def wait_for(process: subprocess.Popen[str], word: str, seconds: float = 240) -> list[str]:
    lines: list[str] = []
    assert process.stdout is not None
    end = time.monotonic() + seconds
    for line in process.stdout:
        lines.append(line)
        if line.startswith(word):
            return lines
        if time.monotonic() > end:
            break
    raise AssertionError(f"{word!r} was not seen: {''.join(lines)}")


def test_killed_at_random_moments_then_raced(tmp_path: Path) -> None:
    """Whenever it is killed, the next opening finds every view consistent, and a refresh makes it right.

    Then two processes refresh at once while one of them writes: nothing is applied twice, and in the end every view is
    right.
    """
    chance = random.Random(int(os.environ.get("VIEWKEEPER_SEED", str(time.time_ns()))))
    for moment in ["creating best", *itertools.islice(itertools.cycle(["replaced", "refreshed"]), KILLS - 1)]:
        process = start(tmp_path / "wh", "check")
        wait_for(process, moment)
        time.sleep(chance.uniform(0.05, 3.0))
        kill(process)
    writer = start(tmp_path / "wh", "write")
    wait_for(writer, "consistent")
    refresher = start(tmp_path / "wh", "refresh")
    for _ in range(RACES):
        wait_for(refresher, "refreshed incremental")
    (tmp_path / "wh.enough").touch()
    refresher.communicate()
    printed = writer.communicate("check\n")[0]
    assert (refresher.returncode, writer.returncode) == (0, 0) and "consistent" in printed, printed
