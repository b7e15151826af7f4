"""The lock of a table's folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hand_made import make_table, make_view

from viewkeeper.errors import StorageError
from viewkeeper.runtime.failures import translate
from viewkeeper.runtime.guard import only_installer

pytestmark = pytest.mark.core

# For root no permission counts, so the folder is mounted read-only in a mount space of its own.
_MOUNTED = "mount --bind {folder} {folder} && mount -o remount,ro,bind {folder} && exec {python} {script}"
_SCRIPT = """
from pathlib import Path
from viewkeeper.errors import StorageError
from viewkeeper.runtime.guard import only_installer
try:
    with only_installer(Path({folder!r})):
        print("locked")
except StorageError as error:
    print(error.message, "|", error.hint)
"""


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    folder = tmp_path / "table"
    folder.mkdir()
    if os.geteuid() != 0:
        folder.chmod(0o500)
        with pytest.raises(StorageError, match="cannot be written"), only_installer(folder):
            pass
        return
    script = tmp_path / "script.py"
    script.write_text(_SCRIPT.format(folder=str(folder)))
    command = _MOUNTED.format(folder=folder, python=sys.executable, script=script)
    done = subprocess.run(["unshare", "-m", "sh", "-c", command], capture_output=True, text=True, check=False)
    if "unshare" in done.stderr or "mount" in done.stderr:
        pytest.skip(f"no read-only mount here: {done.stderr.strip()}")
    assert done.stdout.strip().endswith("cannot be written: Read-only file system | is the warehouse read-only?"), done


def test_a_table_elsewhere_needs_no_lock(tmp_path: Path) -> None:
    with only_installer(None), only_installer(tmp_path / "nowhere"):
        pass


def test_an_error_says_why_rather_than_where(tmp_path: Path) -> None:
    make_table(tmp_path, "sales")
    view = make_view(tmp_path, "CREATE MATERIALIZED VIEW v AS SELECT id FROM sales")
    failed = Exception("[TASK_WRITE_FAILED] Task failed while writing rows to file:/x. SQLSTATE: 58030")
    failed.java_exception = _Java("[DIVIDE_BY_ZERO] Division by zero.")  # type: ignore[attr-defined]
    assert str(translate(failed, view, "created")) == f"{view.name} was not created: [DIVIDE_BY_ZERO] Division by zero."


class _Java:
    """An error of the JVM, as far as it is asked."""

    def __init__(self, message: str) -> None:
        self.message = message

    def getMessage(self) -> str:
        return self.message

    def getCause(self) -> None:
        return None

    def getSuppressed(self) -> list[_Java]:
        return []
