"""Deletion vectors: the places of a data file whose rows are gone, as Delta's protocol stores them.

A vector is a set of numbers as a roaring bitmap, in a file of its own beside the data files or within the log.
"""

from __future__ import annotations

import base64
import struct
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pyroaring import BitMap64

_MAGIC = struct.pack("<i", 1681511377)  # of a bitmap of numbers of 64 bits
_VERSION = b"\x01"  # of the file
# Delta numbers 85 digits in the order of Z85, where Python's a85 and b85 have others.
_DIGITS = b"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
_B85 = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
_TO_Z85, _FROM_Z85 = bytes.maketrans(_B85, _DIGITS), bytes.maketrans(_DIGITS, _B85)
_UUID = 20  # digits; what stands before them is a folder

Places = NDArray[np.int64]
NO_PLACES: Places = np.empty(0, np.int64)


@dataclass(frozen=True)
class Vector:
    """Where a deletion vector is stored, in the words of the protocol."""

    storageType: str
    pathOrInlineDv: str
    sizeInBytes: int
    cardinality: int
    offset: int | None = None

    @classmethod
    def of(cls, action: Mapping[str, Any]) -> Vector | None:
        """That of an action on a file, if it has one."""
        told = action.get("deletionVector")
        if not told:
            return None
        return cls(
            told["storageType"],
            told["pathOrInlineDv"],
            told["sizeInBytes"],
            told["cardinality"],
            told.get("offset"),
        )

    @property
    def action(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if value is not None}


def places(folder: Path, vector: Vector | None) -> Places:
    """The places that a vector of a table in this folder names, in order; none without a vector."""
    if vector is None:
        return NO_PLACES
    stored = vector.pathOrInlineDv
    match vector.storageType:
        case "i":
            return _parsed(_z85_decoded(stored))
        case "u":
            name = f"deletion_vector_{uuid.UUID(bytes=_z85_decoded(stored[-_UUID:]))}.bin"
            path = folder / stored[:-_UUID] / name
        case _:
            path = Path(stored.removeprefix("file:"))
    with path.open("rb") as file:
        file.seek(vector.offset or 0)
        (size,) = struct.unpack(">i", file.read(4))
        data = file.read(size)
        (checksum,) = struct.unpack(">I", file.read(4))
    if size != vector.sizeInBytes or zlib.crc32(data) != checksum:
        raise ValueError(f"the deletion vector {path.name} is not what the log says")
    return _parsed(data)


def write_vector(folder: Path, gone: Places) -> Vector:
    """A file in this folder that says which places are gone; no commit names it yet."""
    name = uuid.uuid4()
    data = _MAGIC + BitMap64(gone).serialize()
    stored = _VERSION + struct.pack(">i", len(data)) + data + struct.pack(">I", zlib.crc32(data))
    (folder / f"deletion_vector_{name}.bin").write_bytes(stored)
    return Vector("u", _z85_encoded(name.bytes), len(data), len(gone), offset=len(_VERSION))


def vector_file(folder: Path, vector: Vector) -> Path:
    """The file of a vector that was written here."""
    return folder / f"deletion_vector_{uuid.UUID(bytes=_z85_decoded(vector.pathOrInlineDv))}.bin"


def _parsed(data: bytes) -> Places:
    if not data.startswith(_MAGIC):
        raise ValueError("a deletion vector of an unknown format")
    return np.array(BitMap64.deserialize(data[len(_MAGIC) :]), dtype=np.int64)


def _z85_encoded(data: bytes) -> str:
    return base64.b85encode(data).translate(_TO_Z85).decode()


def _z85_decoded(text: str) -> bytes:
    return base64.b85decode(text.encode().translate(_FROM_Z85))
