"""The rows of TPC-H, made by tpchgen-cli: the same for the same scale, each time."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.errors import SetupError


@contextmanager
def generating(folder: Path, scale: float, tables: Iterable[str]) -> Iterator[None]:
    """Parquet files `<table>.parquet` in a folder, made while the body runs; they are there when it has ended."""
    with subprocess.Popen(
        [_generator(), "parquet", "-s", str(scale), "-o", str(folder), f"--tables={','.join(tables)}"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as generator:
        yield
        complaints = generator.communicate()[1]
        if generator.returncode:
            raise SetupError(f"tpchgen-cli failed: {complaints.strip()[-300:]}")


def _generator() -> str:
    beside = Path(sys.executable).parent / "tpchgen-cli"
    found = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if not found:
        raise SetupError("tpchgen-cli, which makes the rows of TPC-H, is missing", hint="pip install tpchgen-cli")
    return found
