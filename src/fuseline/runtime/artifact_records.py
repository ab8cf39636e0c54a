"""The records of an artifact, whatever its format version and machine: where they lie has never changed."""

from __future__ import annotations

import hashlib
import json
import os
import struct
from typing import Any

from fuseline.errors import FuselineError
from fuseline.runtime.artifact import MAGIC

_PREAMBLE = struct.Struct("<8sIIQQ")
_DIGEST_BYTES = 32


def artifact_records(path: str | os.PathLike[str]) -> bytes:
    """The bytes of the records; of a version that keeps them elsewhere E0402 is raised. Raises FuselineError: E0401 for
    a file that is no artifact, is truncated, or whose records were changed."""
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            data = file.read()
    except OSError as error:
        raise FuselineError("E0401", f"cannot be read: {error.strerror or error}", node=name) from error
    if len(data) < _PREAMBLE.size or not data.startswith(MAGIC):
        raise FuselineError("E0401", "not a fuseline artifact", node=name)
    _, version, _, header_bytes, _ = _PREAMBLE.unpack_from(data)
    row = _row(data[_PREAMBLE.size + _DIGEST_BYTES :][:header_bytes])
    if row is None:
        message = f"records of format version {version} are not found"
        raise FuselineError("E0402", message, node=name, hint="compile the model again")
    offset, length, digest = row
    records = data[offset : offset + length]
    if hashlib.sha256(records).hexdigest() != digest:
        raise FuselineError("E0401", "checksum of records differs", node=name)
    return records


def _row(header: bytes) -> tuple[int, int, str] | None:
    """Where the records lie, by a header."""
    try:
        found: Any = json.loads(header)["records"]
        offset, length, digest = found
    except (ValueError, KeyError, TypeError):
        return None
    known = isinstance(offset, int) and isinstance(length, int) and isinstance(digest, str)
    return (offset, length, digest) if known and offset >= 0 and length >= 0 else None
