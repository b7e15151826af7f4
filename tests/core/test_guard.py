"""The lock of a table's folder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from viewkeeper.errors import StorageError
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
