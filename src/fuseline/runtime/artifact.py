"""The artifact: a compiled model as one value, and as one file that is verified before anything in it is trusted.

File layout (little-endian):

    0    magic "FUSELINE", u32 format version, u32 0, u64 header bytes, u64 file bytes
    32   SHA-256 of bytes 0..31 and of the header
    64   header: JSON (program, machine, CPU features, and offset, length, digest of each section)
         sections, one behind the other, each on a page boundary: image (code, and the table of what it takes), records,
         constants, and (where it is signed) the signature of bytes 0..63

Header, image and records are always verified; each constant carries its own digest, verified on request. Every number
of the header is checked against the file: it was signed by nobody.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
from io import BytesIO
from types import MappingProxyType
from typing import Any, BinaryIO, NamedTuple

import numpy as np

from fuseline.errors import FuselineError
from fuseline.runtime import strict
from fuseline.runtime.abi import FORMAT_VERSION
from fuseline.runtime.cpu import check_machine
from fuseline.runtime.files import write_file
from fuseline.runtime.memory import Bytes
from fuseline.runtime.program import Program, program_from_json, program_to_json
from fuseline.runtime.references import check_references
from fuseline.runtime.signatures import CodeTable, Signature, split_table, with_table
from fuseline.runtime.signing import SIGNED_BYTES, check_signature, signer

MAGIC = b"FUSELINE"
ARTIFACT_SUFFIX = ".fuse"
_PREAMBLE = struct.Struct("<8sIIQQ")
_HEADER_AT = 64
_DIGEST_BYTES = 32
_PAGE = 4096
_CHUNK = 16 << 20


class Artifact(NamedTuple):
    """A compiled model.

    `code` is a position-independent image; `fixups` are `(offset, target)` pairs of words that must hold addresses in
    it; `entries` names offsets in it (`run`, `worker`), `kernels` what the kernel at an offset takes (None: nobody
    knows). `constants` are byte arrays, 64-byte aligned. `records` is opaque here: the compiler's reports read it.
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
    kernels: Mapping[int, Sequence[Signature]] | None = None

    def save(self, path: str | os.PathLike[str], *, sign: Any = None) -> None:
        """Write the file at once: beside `path` under a temporary name, then renamed. `sign`: a private key
        (`fuseline.runtime.signing`).

        Raises FuselineError: E0502, and E0501 or E0503 for the key.
        """
        seal = None if sign is None else signer(sign)
        write_file(path, lambda file: _write(self, file, seal))

    def write(self, file: BinaryIO) -> None:
        """Write the artifact, unsigned, to a binary file that can seek."""
        _write(self, file)


def artifact_bytes(artifact: Artifact, *, sign: Any = None) -> bytes:
    """The artifact as its file would be."""
    file = BytesIO()
    _write(artifact, file, None if sign is None else signer(sign))
    written = file.getvalue()
    return written.ljust(_PREAMBLE.unpack_from(written)[4], b"\0")  # an empty last section ends behind what was written


def artifact_from_bytes(data: bytes, *, trusted: Sequence[Any] | None = None) -> Artifact:
    """The artifact that `artifact_bytes` wrote; `trusted` and what is raised are as for `read_artifact`."""
    name, file = "an artifact in memory", BytesIO(data)
    header = _read_header(name, file.read(_HEADER_AT), file, len(data))
    return _decoded(_Asked(name, trusted=trusted), header, _aligned(data))


def _aligned(data: bytes) -> Bytes:
    """A copy that begins on a page, as a mapped file does."""
    whole = np.frombuffer(mmap.mmap(-1, max(len(data), 1)), np.uint8)[: len(data)]
    whole[:] = np.frombuffer(data, np.uint8)
    return whole


def _write(artifact: Artifact, file: BinaryIO, seal: Callable[[bytes], bytes] | None = None) -> None:
    """Sections first, so that digests are known when the header goes in front of them; each byte passes memory once."""
    program = program_to_json(artifact.program)
    image = with_table(
        artifact.code, CodeTable(artifact.entries, artifact.fixups, artifact.kernels, program_digest(program))
    )
    blocks: list[bytes | Bytes] = [
        image,
        artifact.records,
        *artifact.constants,
        *([] if seal is None else [bytes(SIGNED_BYTES)]),
    ]
    signed = seal is not None
    header_bytes = len(_header(artifact, program, [(0, len(b), "0" * 64) for b in blocks], signed, wide=True))
    position = _HEADER_AT + header_bytes
    sections: list[tuple[int, int, str]] = []
    for block in blocks:
        position += -position % _PAGE
        file.seek(position)
        sections.append((position, len(block), _write_block(file, block)))
        position += len(block)
    file.truncate(position)
    header = _header(artifact, program, sections, signed).ljust(header_bytes)
    preamble = _PREAMBLE.pack(MAGIC, FORMAT_VERSION, 0, header_bytes, position)
    start = preamble + hashlib.sha256(preamble + header).digest()
    file.seek(0)
    file.write(start + header)
    if seal is not None:
        file.seek(sections[-1][0])
        file.write(seal(start))


def program_digest(program: Mapping[str, Any]) -> str:
    """The digest of a program in its JSON form: the image carries it, so that code and program of two artifacts are
    never taken for one."""
    return hashlib.sha256(json.dumps(program, separators=(",", ":")).encode()).hexdigest()


def _write_block(file: BinaryIO, block: bytes | Bytes) -> str:
    digest = hashlib.sha256()
    for chunk in _chunks(block):
        digest.update(chunk)
        file.write(chunk)
    return digest.hexdigest()


_WIDEST_OFFSET = 10**15


def _header(
    artifact: Artifact,
    program: Mapping[str, Any],
    sections: Sequence[tuple[int, int, str]],
    signed: bool,
    *,
    wide: bool = False,
) -> bytes:
    """The header's JSON; `wide` writes offsets at their greatest width, to know how much room the header may need."""
    rows = [[_WIDEST_OFFSET if wide else offset, length, digest] for offset, length, digest in sections]
    return json.dumps(
        {
            "producer": artifact.producer,
            "machine": artifact.machine,
            "cpu_features": list(artifact.cpu_features),
            "program": program,
            "metadata": dict(artifact.metadata),
            "image": rows[0],
            "records": rows[1],
            "constants": rows[2:-1] if signed else rows[2:],
            "signature": rows[-1] if signed else None,
        },
        separators=(",", ":"),
    ).encode()


def _damaged(path: str, detail: str) -> FuselineError:
    return FuselineError("E0401", detail, node=path, hint="compile the model again")


class _Asked(NamedTuple):
    """What a reader wants of the file called `name` beside its content: digests of constants, a signature of one of the
    keys."""

    name: str
    verify: bool = False
    trusted: Sequence[Any] | None = None


def read_artifact(
    path: str | os.PathLike[str], *, verify: bool = False, trusted: Sequence[Any] | None = None
) -> Artifact:
    """Read and check the file at `path`; constants stay memory-mapped and are only read through with `verify`, or where
    a signature by one of the `trusted` public keys (`fuseline.runtime.signing`) is asked for.

    Raises FuselineError: E0401 for a file that cannot be read, is no artifact, is truncated or changed; E0402 for
    another format version; E0403 for another machine or missing CPU features; E0406 for a missing or wrong signature,
    E0501 or E0503 for the keys.
    """
    name = os.fspath(path)
    try:
        with open(name, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            header = _read_header(name, file.read(_HEADER_AT), file, size)
            whole = np.frombuffer(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ, flags=mmap.MAP_PRIVATE), np.uint8)
    except OSError as error:
        raise _damaged(name, f"cannot be read: {error.strerror or error}") from error
    return _decoded(_Asked(name, verify, trusted), header, whole)


def _decoded(asked: _Asked, text: bytes, whole: Bytes) -> Artifact:
    try:
        return _decode(asked, strict.mapping(json.loads(text)), len(text), whole)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError, RecursionError) as error:
        raise _damaged(asked.name, f"header is malformed: {type(error).__name__}: {str(error)[:200]}") from error


def _read_header(name: str, start: bytes, file: BinaryIO, size: int) -> bytes:
    if len(start) < _HEADER_AT or start[:8] != MAGIC:
        raise _damaged(name, "not a fuseline artifact")
    _, version, _, header_bytes, file_bytes = _PREAMBLE.unpack_from(start)
    if version != FORMAT_VERSION:
        raise FuselineError(
            "E0402",
            f"format version is {version}, this runtime reads {FORMAT_VERSION}",
            node=name,
            hint="compile the model again",
        )
    if file_bytes != size or header_bytes > size - _HEADER_AT:
        raise _damaged(name, f"file has {size} bytes, should have {file_bytes}")
    header = file.read(header_bytes)
    if hashlib.sha256(start[: _PREAMBLE.size] + header).digest() != start[_PREAMBLE.size :]:
        raise _damaged(name, "checksum of the header differs")
    return header


def _decode(asked: _Asked, header: Mapping[str, Any], header_bytes: int, whole: Bytes) -> Artifact:
    name, seal = asked.name, header["signature"]
    machine, features = (
        strict.text(header["machine"]),
        tuple(strict.text(feature) for feature in header["cpu_features"]),
    )
    check_machine(machine, features)
    labels = ["image", "records", *(f"constant {i}" for i in range(len(header["constants"])))]
    rows = [
        _row(*row)
        for row in (header["image"], header["records"], *header["constants"], *([] if seal is None else [seal]))
    ]
    _check_layout(rows, _HEADER_AT + header_bytes, len(whole))
    if asked.trusted is not None:
        stored = None if seal is None else whole[rows[-1][0] :].tobytes()
        check_signature(name, whole[:_HEADER_AT].tobytes(), stored, asked.trusted)
    always = labels if asked.verify or asked.trusted is not None else labels[:2]
    sections = (
        _section(name, label, row, whole, verify=label in always) for label, row in zip(labels, rows, strict=False)
    )
    image, records, *constants = sections
    program = program_from_json(header["program"])
    code, table = split_table(image.tobytes())
    if table.program != program_digest(header["program"]):
        raise _damaged(name, "the program is not the one that the code was linked for")
    check_references(program, len(code), table.entries, [len(constant) for constant in constants], table.kernels)
    return Artifact(
        program=program,
        code=code,
        entries=table.entries,
        machine=machine,
        fixups=table.fixups,
        cpu_features=features,
        constants=tuple(constants),
        records=records.tobytes(),
        producer=strict.text(header["producer"]),
        metadata=strict.mapping(header["metadata"]),
        kernels=table.kernels,
    )


def _row(offset: Any, length: Any, digest: Any) -> tuple[int, int, str]:
    return strict.whole(offset), strict.within(length, 0, strict.LARGEST), strict.text(digest)


def _check_layout(rows: Sequence[tuple[int, int, str]], begin: int, end: int) -> None:
    """Raise ValueError unless the sections lie one behind the other, as they are written: each byte of the file belongs
    to one of them."""
    position = begin
    for offset, length, _ in rows:
        position += -position % _PAGE
        if offset != position or offset + length > end:
            raise ValueError(f"a section of {length} bytes at {offset}, where {position} of {end} is next")
        position += length
    if position != end:
        raise ValueError(f"the sections end at {position}, the file at {end}")


def _section(name: str, label: str, row: tuple[int, int, str], whole: Bytes, *, verify: bool) -> Bytes:
    offset, length, digest = row
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
