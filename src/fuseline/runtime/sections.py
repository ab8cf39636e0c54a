"""The sections of an artifact's file: one behind the other, each on a page boundary and with a digest of its own."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, BinaryIO, TypeAlias

from fuseline.runtime import strict
from fuseline.runtime.memory import Bytes

PAGE = 4096
_CHUNK = 16 << 20

Row: TypeAlias = tuple[int, int, str]
"""Where a section begins, how many bytes it has, their digest."""


def write_sections(file: BinaryIO, blocks: Sequence[bytes | Bytes], position: int) -> tuple[list[Row], int]:
    """Write `blocks` from the first page behind `position` on, each byte once; answers their rows and where the last
    one ends."""
    rows: list[Row] = []
    for block in blocks:
        position += -position % PAGE
        file.seek(position)
        rows.append((position, len(block), _write_block(file, block)))
        position += len(block)
    file.truncate(position)
    return rows, position


def _write_block(file: BinaryIO, block: bytes | Bytes) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(block):
        digest.update(chunk)
        file.write(chunk)
    return digest.hexdigest()


def read_row(offset: Any, length: Any, digest: Any) -> Row:
    """A row of the header's JSON; raises ValueError for what is none."""
    return strict.whole(offset), strict.within(length, 0, strict.LARGEST), strict.text(digest)


def check_layout(rows: Sequence[Row], begin: int, end: int) -> None:
    """Raise ValueError unless the sections lie one behind the other, as they are written: each byte of the file belongs
    to one of them."""
    position = begin
    for offset, length, _ in rows:
        position += -position % PAGE
        if offset != position or offset + length > end:
            raise ValueError(f"a section of {length} bytes at {offset}, where {position} of {end} is next")
        position += length
    if position != end:
        raise ValueError(f"the sections end at {position}, the file at {end}")


def digest_of(body: Bytes) -> str:
    """The digest of a section."""
    digest = hashlib.sha256()
    for chunk in _chunks(body):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(body: bytes | Bytes) -> Iterator[memoryview]:
    view = memoryview(body) if isinstance(body, bytes) else body.data
    for start in range(0, len(view), _CHUNK):
        yield view[start : start + _CHUNK]
