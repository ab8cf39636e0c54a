"""What the code of an image takes: its entries, the words to fix, and for each kernel the sizes, buffers and grid it
was compiled for.

The table travels inside the image, behind the code, so that what a program asks of the code can be checked against the
code's own word.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from fuseline.runtime import strict
from fuseline.runtime.sizes import Size, size_from_json

COUNT = "count"
"""The name under which a kernel of any number of sizes knows how many it is given."""

_TRAILER = 8


class SizeBounds(NamedTuple):
    """A size that a kernel takes: the name that `Buffer.bytes` and the grid know it by, and inclusive bounds (None:
    none)."""

    name: str
    low: int = 0
    high: int | None = None


class Buffer(NamedTuple):
    """What a kernel touches of a binding: at most `bytes` from its start, which is a multiple of `alignment` bytes;
    `written`: it writes."""

    bytes: Size
    written: bool = False
    alignment: int = 1


class Signature(NamedTuple):
    """What a kernel is launched on. `sizes` None: any number of sizes, whose number is the size `count`."""

    sizes: tuple[SizeBounds, ...] | None
    buffers: tuple[Buffer, ...]
    workgroups: Size
    scratch_bytes: int = 0


class CodeTable(NamedTuple):
    """What stands behind the code of an image. `kernels` by offset (one piece of code may have been compiled for
    several signatures); None: nothing is known of them, as of kernels written by hand. `program` is the digest of the
    program that the code was linked for."""

    entries: Mapping[str, int]
    fixups: Sequence[tuple[int, int]] = ()
    kernels: Mapping[int, Sequence[Signature]] | None = MappingProxyType({})
    program: str = ""


def with_table(code: bytes, table: CodeTable) -> bytes:
    """The image as it is stored: the code, the table, and how long the table is."""
    kernels = (
        None
        if table.kernels is None
        else [[offset, [_to_json(one) for one in found]] for offset, found in table.kernels.items()]
    )
    rows = [dict(table.entries), [list(fixup) for fixup in table.fixups], kernels, table.program]
    text = json.dumps(rows, separators=(",", ":")).encode()
    return b"".join([code, text, len(text).to_bytes(_TRAILER, "little")])


def split_table(image: bytes) -> tuple[bytes, CodeTable]:
    """The code and the table of a stored image; raises ValueError (or KeyError, TypeError) where there is none."""
    length = int.from_bytes(image[-_TRAILER:], "little")
    end = len(image) - _TRAILER - length
    if end < 0:
        raise ValueError("the image has no table of its code")
    entries, fixups, kernels, program = json.loads(image[end : len(image) - _TRAILER])
    known = {name: strict.whole(offset) for name, offset in strict.mapping(entries).items()}
    words = tuple((strict.whole(offset), strict.whole(target)) for offset, target in fixups)
    signatures = None if kernels is None else {strict.whole(at): _read(found) for at, found in kernels}
    return image[:end], CodeTable(known, words, signatures, strict.text(program))


def _read(data: Sequence[Any]) -> tuple[Signature, ...]:
    return tuple(_from_json(one) for one in data)


def _to_json(one: Signature) -> list[Any]:
    return [one.sizes, one.buffers, one.workgroups, one.scratch_bytes]


def _from_json(data: Sequence[Any]) -> Signature:
    sizes, buffers, workgroups, scratch_bytes = data
    return Signature(
        sizes=None if sizes is None else tuple(_bounds(*size) for size in sizes),
        buffers=tuple(
            Buffer(size_from_json(bytes_), strict.flag(written), strict.whole(alignment))
            for bytes_, written, alignment in buffers
        ),
        workgroups=size_from_json(workgroups),
        scratch_bytes=strict.whole(scratch_bytes),
    )


def _bounds(name: Any, low: Any, high: Any) -> SizeBounds:
    return SizeBounds(strict.text(name), strict.whole(low), None if high is None else strict.whole(high))
