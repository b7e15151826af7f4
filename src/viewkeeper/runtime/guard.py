"""One installer at a time per view, among the processes of one machine.

Delta's commit on a plain file system looks whether a version exists and then renames a file into place; two
processes can do both at the same moment. The lock lasts only as long as an install, and ends with the process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from viewkeeper.errors import StorageError

try:
    import fcntl

    LOCKS = True
except ImportError:  # pragma: no cover - not a POSIX system
    LOCKS = False


@contextmanager
def only_installer(folder: Path | None) -> Iterator[None]:
    """Hold the lock of a table's folder; without a local folder its storage must see to it."""
    if not LOCKS or folder is None or not folder.exists():
        yield
        return
    try:
        lock = (folder / ".viewkeeper.lock").open("w")
    except OSError as error:
        raise StorageError(
            f"{folder} cannot be written: {error.strerror}", hint="is the warehouse read-only?"
        ) from error
    with lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
