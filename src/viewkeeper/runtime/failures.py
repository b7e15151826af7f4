"""Spark's and Delta's errors as ours: a conflict, a history that is gone, a warehouse that cannot be written."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from viewkeeper.errors import ConflictError, SourceError, StorageError, ViewkeeperError
from viewkeeper.store.views import View

# What Spark says when files or versions that a change needs are gone.
_GONE = (
    "FILE_NOT_EXIST",
    "FileNotFoundException",
    "PATH_NOT_FOUND",
    "DELTA_FILE_NOT_FOUND",
    "DELTA_VERSION_NOT_FOUND",
    "DELTA_MISSING_CHANGE_DATA",
    "DELTA_CHANGE_DATA_FEED_INCOMPATIBLE",
    "DELTA_CHANGE_DATA_FILE_NOT_FOUND",
    "VersionNotFoundException",
)
_CONFLICT = (
    "DELTA_CONCURRENT",
    "DELTA_METADATA_CHANGED",
    "ConcurrentTransaction",
    "ConcurrentAppend",
    "MetadataChanged",
)

_NOT_WRITABLE = ("Permission denied", "Read-only file system", "Mkdirs failed", "DELTA_CANNOT_CREATE_LOG_PATH")

_CONDITION = re.compile(r"\[[A-Z][A-Z_0-9.]+\] ")  # Spark's name for what is wrong
_MESSAGES = 20  # of errors behind an error
_BARE = re.compile(r"\[(MULTIPLE_FAIL|TASK_WRITE_FAILED)")  # what does not say why


class NotThisTimeError(Exception):
    """The change could not be had or applied after all; nothing was written."""


@contextmanager
def translated(view: View) -> Iterator[None]:
    """Spark's and Delta's errors as ours: a conflict, a history that is gone, a warehouse that cannot be written."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        raise translate(error, view) from error


def translate(error: Exception, view: View, done: str = "refreshed") -> Exception:
    """Our error for Spark's: what was to be `done` to the view, and why it was not."""
    text = "\n".join([str(error), *_deeper_messages(error)])
    if any(word in text for word in _CONFLICT):
        return ConflictError(f"{view.name} was changed by another process at the same time; nothing was applied")
    if any(word in text for word in _GONE):
        gone = "files or versions that the change needs are gone (VACUUM or log cleaning)"
        return NotThisTimeError(f"its changes cannot be read: {gone}")
    if "TABLE_OR_VIEW_NOT_FOUND" in text or "DELTA_TABLE_NOT_FOUND" in text:
        return SourceError(f"a table that {view.name} needs is gone: {_first_line(text)}")
    if any(word in text for word in _NOT_WRITABLE):
        return StorageError(f"{view.name} cannot be written: {_first_line(text)}", hint="is the warehouse read-only?")
    return ViewkeeperError(f"{view.name} was not {done}: {_first_line(text)}")


def _deeper_messages(error: Exception) -> list[str]:
    """What the errors behind Spark's error say: where several tasks fail it only says how many."""
    messages: list[str] = []
    waiting = [getattr(error, "_origin", None) or getattr(error, "java_exception", None)]
    while waiting and len(messages) < _MESSAGES:
        java = waiting.pop(0)
        if java is not None:
            messages.append(str(java.getMessage()))
            waiting += [java.getCause(), *java.getSuppressed()]
    return messages


def _first_line(text: str) -> str:
    told = text.split("An error occurred while calling", 1)[-1].partition("\n: ")[2] or text
    lines = [line.strip() for line in told.splitlines() if line.strip() and not line.startswith("\tat ")]
    named = (line[at.start() :] for line in lines if (at := _CONDITION.search(line)) and not _BARE.match(at[0]))
    return next(named, lines[0] if lines else "Spark gave no message")[:500]
