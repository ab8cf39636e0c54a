"""The artifact: a compiled model as one value, and as one file that is verified before anything in it is trusted.

File layout (little-endian):

    0    magic "FUSELINE", u32 format version, u32 0, u64 header bytes, u64 file bytes
    32   SHA-256 of bytes 0..31 and of the header
    64   header: JSON (program, entries, fixups, machine, CPU features, and offset, length, digest of each section)
         sections, each on a page boundary: image, records, constants

Header, image and records are always verified; each constant carries its own digest, verified on request.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from io import BytesIO
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from fuseline.errors import FuselineError
from fuseline.runtime.abi import FORMAT_VERSION
from fuseline.runtime.cpu import check_machine
from fuseline.runtime.files import write_file
from fuseline.runtime.memory import Bytes
from fuseline.runtime.program import Program, program_from_json, program_to_json
from fuseline.runtime.references import check_references

MAGIC = b"FUSELINE"
ARTIFACT_SUFFIX = ".fuse"
_PREAMBLE = struct.Struct("<8sIIQQ")
_HEADER_AT = 64
_DIGEST_BYTES = 32
_PAGE = 4096
_CHUNK = 16 << 20


class Artifact(NamedTuple):
    """A compiled model.

    `code` is a position-independent image; `fixups` are `(offset, target)` pairs of words that must hold addresses in it; `entries` names
    offsets in it (`run`, `worker`). `constants` are byte arrays, 64-byte aligned. `records` is opaque here: the compiler's reports read it.
    """

    program: Program
    code: bytes
    entries: Mapping[str, int]
    machine: str
    fixups: Sequence[tuple[int, int]] = ()
    cpu_features: Sequence[str] = ()
    constants: Sequence[Bytes] = ()
    records: bytes = b""
    producer: str = "fuseline"
    metadata: Mapping[str, Any] = MappingProxyType({})

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the file at once: beside `path` under a temporary name, then renamed. Raises FuselineError (E0502)."""
        write_file(path, lambda file: _write(self, file))


def artifact_bytes(artifact: Artifact) -> bytes:
    """The artifact as its file would be."""
    file = BytesIO()
    _write(artifact, file)
    written = file.getvalue()
    return written.ljust(_PREAMBLE.unpack_from(written)[4], b"\0")  # an empty last section ends behind what was written


def artifact_from_bytes(data: bytes) -> Artifact:
    """The artifact that `artifact_bytes` wrote; raises as `read_artifact` does."""
    name, file = "an artifact inside another", BytesIO(data)
    header = _read_header(name, file.read(_HEADER_AT), file, len(data))
    return _decoded(name, header, _aligned(data), False)


def _aligned(data: bytes) -> Bytes:
    """A copy that begins on a page, as a mapped file does."""
    whole = np.frombuffer(mmap.mmap(-1, max(len(data), 1)), np.uint8)[: len(data)]
    whole[:] = np.frombuffer(data, np.uint8)
    return whole


def _write(artifact: Artifact, file: BinaryIO) -> None:
    """Sections first, so that digests are known when the header goes in front of them; each byte passes memory once."""
    blocks: list[bytes | Bytes] = [artifact.code, artifact.records, *artifact.constants]
    header_bytes = len(_header(artifact, [(0, len(b), "0" * 64) for b in blocks], wide=True))
    position = _HEADER_AT + header_bytes
    sections: list[tuple[int, int, str]] = []
    for block in blocks:
        position += -position % _PAGE
        file.seek(position)
        sections.append((position, len(block), _write_block(file, block)))
        position += len(block)
    file.truncate(position)
    header = _header(artifact, sections).ljust(header_bytes)
    preamble = _PREAMBLE.pack(MAGIC, FORMAT_VERSION, 0, header_bytes, position)
    file.seek(0)
    file.write(preamble + hashlib.sha256(preamble + header).digest() + header)


def _write_block(file: BinaryIO, block: bytes | Bytes) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(block):
        digest.update(chunk)
        file.write(chunk)
    return digest.hexdigest()


_WIDEST_OFFSET = 10**15


def _header(artifact: Artifact, sections: Sequence[tuple[int, int, str]], *, wide: bool = False) -> bytes:
    """The header's JSON; `wide` writes offsets at their greatest width, to know how much room the header may need."""
    rows = [[_WIDEST_OFFSET if wide else offset, length, digest] for offset, length, digest in sections]
    return json.dumps(
        {
            "producer": artifact.producer,
            "machine": artifact.machine,
            "cpu_features": list(artifact.cpu_features),
            "entries": dict(artifact.entries),
            "fixups": [list(fixup) for fixup in artifact.fixups],
            "program": program_to_json(artifact.program),
            "metadata": dict(artifact.metadata),
            "image": rows[0],
            "records": rows[1],
            "constants": rows[2:],
        },
        separators=(",", ":"),
    ).encode()


def _damaged(path: str, detail: str) -> FuselineError:
    return FuselineError("E0401", detail, node=path, hint="compile the model again")


def read_artifact(path: str | os.PathLike[str], *, verify: bool = False) -> Artifact:
    """Read and check the file at `path`; constants stay memory-mapped and are only read through with `verify`.

    Raises FuselineError: E0401 for a file that cannot be read, is no artifact, is truncated or changed; E0402 for another format version;
    E0403 for another machine or missing CPU features.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = _read_header(name, file.read(_HEADER_AT), file, size)
            whole = np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE), np.uint8)
    except OSError as error:
        raise _damaged(name, f"cannot be read: {error.strerror or error}") from error
    return _decoded(name, header, whole, verify)


def _decoded(name: str, header: Mapping[str, Any], whole: Bytes, verify: bool) -> Artifact:
    try:
        return _decode(name, header, whole, verify)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        raise _damaged(name, f"header is malformed: {error!r}") from error


def _read_header(name: str, start: bytes, file: BinaryIO, size: int) -> dict[str, Any]:
    if len(start) < _HEADER_AT or start[:8] != MAGIC:
        raise _damaged(name, "not a fuseline artifact")
    _, version, _, header_bytes, file_bytes = _PREAMBLE.unpack_from(start)
    if version != FORMAT_VERSION:
        raise FuselineError("E0402", f"format version is {version}, this runtime reads {FORMAT_VERSION}", node=name, hint="compile the model again")
    if file_bytes != size or header_bytes > size - _HEADER_AT:
        raise _damaged(name, f"file has {size} bytes, should have {file_bytes}")
    header = file.read(header_bytes)
    if hashlib.sha256(start[: _PREAMBLE.size] + header).digest() != start[_PREAMBLE.size :]:
        raise _damaged(name, "checksum of the header differs")
    return json.loads(header)


def _decode(name: str, header: Mapping[str, Any], whole: Bytes, verify: bool) -> Artifact:
    machine, features = str(header["machine"]), tuple(str(f) for f in header["cpu_features"])
    check_machine(machine, features)
    code, records = (_section(name, key, header[key], whole, verify=True).tobytes() for key in ("image", "records"))
    constants = [_section(name, f"constant {i}", row, whole, verify=verify) for i, row in enumerate(header["constants"])]
    program = program_from_json(header["program"])
    entries = {str(key): int(value) for key, value in header["entries"].items()}
    check_references(program, len(code), entries, [len(constant) for constant in constants])
    return Artifact(
        program=program,
        code=code,
        entries=entries,
        machine=machine,
        fixups=tuple((int(offset), int(target)) for offset, target in header["fixups"]),
        cpu_features=features,
        constants=tuple(constants),
        records=records,
        producer=str(header["producer"]),
        metadata=header["metadata"],
    )


def _section(name: str, label: str, row: Sequence[Any], whole: Bytes, *, verify: bool) -> Bytes:
    offset, length, digest = int(row[0]), int(row[1]), str(row[2])
    if offset < 0 or length < 0 or offset + length > len(whole):
        raise _damaged(name, f"{label} lies outside the file")
    body = whole[offset : offset + length]
    if verify and _digest(body) != digest:
        raise _damaged(name, f"checksum of {label} differs")
    return body


def _digest(body: Bytes) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(body):
        digest.update(chunk)
    return digest.hexdigest()


def _chunks(body: bytes | Bytes) -> Iterator[memoryview]:
    view = memoryview(body) if isinstance(body, bytes) else body.data
    for start in range(0, len(view), _CHUNK):
        yield view[start : start + _CHUNK]
