"""The artifact: a compiled model as one value, and as one file that is verified before anything in it is trusted.

File layout (little-endian):

    0    magic "FUSELINE", u32 format version, u32 0, u64 header bytes, u64 file bytes
    32   SHA-256 of bytes 0..31 and of the header
    64   header: JSON (program, machine, CPU features, and offset, length, digest of each section)
         sections, one behind the other, each on a page boundary: image (code, and the table of what it takes), records,
         constants, the image of the fallback, and (where it is signed) the signature of bytes 0..63

Header, images and records are always verified; each constant carries its own digest, verified on request. Every number
of the header is checked against the file: it was signed by nobody.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from io import BytesIO
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

import numpy as np

from fuseline.errors import FuselineError
from fuseline.runtime import strict
from fuseline.runtime.abi import FORMAT_VERSION
from fuseline.runtime.cpu import check_machine
from fuseline.runtime.files import write_file
from fuseline.runtime.linked import linked, loaded
from fuseline.runtime.memory import Bytes
from fuseline.runtime.program import Program
from fuseline.runtime.references import check_same_border
from fuseline.runtime.sections import Row, check_layout, digest_of, read_row, write_sections
from fuseline.runtime.signatures import Signature
from fuseline.runtime.signing import SIGNED_BYTES, check_signature, signer
from fuseline.runtime.stored_constants import laid_out_json, made_constants, of_both, stored_blocks, with_sources

if TYPE_CHECKING:
    from fuseline.weight_layouts import WeightSource

MAGIC = b"FUSELINE"
ARTIFACT_SUFFIX = ".fuse"
_PREAMBLE = struct.Struct("<8sIIQQ")
_HEADER_AT = 64


class Artifact(NamedTuple):
    """A compiled model.

    `code` is a position-independent image; `fixups` are `(offset, target)` pairs of words that must hold addresses in
    it; `entries` names offsets in it (`run`, `worker`), `kernels` what the kernel at an offset takes (None: nobody
    knows). `constants` are byte arrays, 64-byte aligned. `records` is opaque here: the compiler's reports read it.
    `fallback` is a second program of the same inputs and outputs, for sizes that break a requirement of the first one;
    constants that are the same arrays are stored once. `sources`: what constants are made from, by number, that a file
    holds in their place; `layout_seconds`: how long making them took when this was read.
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
    fallback: Artifact | None = None
    sources: Mapping[int, WeightSource] = MappingProxyType({})
    layout_seconds: float = 0.0

    def with_fallback(self, other: Artifact) -> Artifact:
        """This artifact, whose runs turn to the program of `other` for sizes that break a requirement of its own."""
        return self._replace(fallback=other._replace(records=b"", metadata={}, fallback=None))

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
    programs = [
        linked(one.program, one.code, one.entries, one.fixups, one.kernels)
        for one in (artifact, artifact.fallback)
        if one is not None
    ]
    wanted, numbers = of_both(
        *(with_sources(one.constants, one.sources) for one in (artifact, artifact.fallback) if one)
    )
    constants, places = stored_blocks(wanted)
    laid_out = laid_out_json(wanted, places)
    images = [one.image for one in programs]
    blocks: list[bytes | Bytes] = [images[0], artifact.records, *constants, *images[1:]]
    if seal is not None:
        blocks.append(bytes(SIGNED_BYTES))
    header = partial(_header, artifact, [one.program for one in programs], numbers, laid_out, seal is not None)
    header_bytes = len(header([(_WIDEST_OFFSET, len(b), "0" * 64) for b in blocks]))
    rows, end = write_sections(file, blocks, _HEADER_AT + header_bytes)
    preamble = _PREAMBLE.pack(MAGIC, FORMAT_VERSION, 0, header_bytes, end)
    text = header(rows).ljust(header_bytes)
    start = preamble + hashlib.sha256(preamble + text).digest()
    file.seek(0)
    file.write(start + text)
    if seal is not None:
        file.seek(rows[-1][0])
        file.write(seal(start))


_WIDEST_OFFSET = 10**15


def _header(
    artifact: Artifact,
    programs: Sequence[Any],
    numbers: Sequence[int],
    laid_out: Any,
    signed: bool,
    rows: Sequence[Row],
) -> bytes:
    """The header's JSON, for `programs` in their JSON form; `numbers` are those of the fallback's constants."""
    *rows, seal = rows if signed else (*rows, None)
    *rows, other = rows if len(programs) > 1 else (*rows, None)
    image, records, *constants = rows
    return json.dumps(
        {
            "producer": artifact.producer,
            "machine": artifact.machine,
            "cpu_features": list(artifact.cpu_features),
            "program": programs[0],
            "metadata": dict(artifact.metadata),
            "image": image,
            "records": records,
            "constants": constants,
            "laid_out": laid_out,
            "fallback": {"program": programs[1], "image": other, "constants": numbers} if other is not None else None,
            "signature": seal,
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
    machine, features = (
        strict.text(header["machine"]),
        tuple(strict.text(feature) for feature in header["cpu_features"]),
    )
    check_machine(machine, features)
    fallback = None if header["fallback"] is None else strict.mapping(header["fallback"])
    image, records, stored, other = _sections(asked, header, fallback, header_bytes, whole)
    constants, sources, seconds = made_constants(stored, header["laid_out"])
    artifact = Artifact(
        **loaded(header["program"], image, constants),
        machine=machine,
        cpu_features=features,
        records=records.tobytes(),
        producer=strict.text(header["producer"]),
        metadata=strict.mapping(header["metadata"]),
        sources=sources,
        layout_seconds=seconds,
    )
    if fallback is None or other is None:
        return artifact
    taken = [constants[strict.within(number, 0, len(constants) - 1)] for number in fallback["constants"]]
    second = loaded(fallback["program"], other, taken)
    check_same_border(artifact.program, second["program"])
    others = {i: sources[number] for i, number in enumerate(fallback["constants"]) if number in sources}
    return artifact.with_fallback(artifact._replace(**second, sources=others))


class _Sections(NamedTuple):
    image: Bytes
    records: Bytes
    constants: list[Bytes]
    fallback: Bytes | None


def _sections(
    asked: _Asked, header: Mapping[str, Any], fallback: Mapping[str, Any] | None, header_bytes: int, whole: Bytes
) -> _Sections:
    """The bytes of each section, verified as asked. Raises FuselineError: E0401, E0406."""
    listed = {"image": header["image"], "records": header["records"]}
    listed |= {f"constant {number}": row for number, row in enumerate(header["constants"])}
    listed |= {} if fallback is None else {"image of the fallback": fallback["image"]}
    seal = header["signature"]
    rows = {label: read_row(*row) for label, row in listed.items()}
    check_layout([*rows.values(), *([] if seal is None else [read_row(*seal)])], _HEADER_AT + header_bytes, len(whole))
    if asked.trusted is not None:
        stored = None if seal is None else whole[read_row(*seal)[0] :].tobytes()
        check_signature(asked.name, whole[:_HEADER_AT].tobytes(), stored, asked.trusted)
    every = asked.verify or asked.trusted is not None
    bodies = {label: whole[offset : offset + length] for label, (offset, length, _) in rows.items()}
    for label, (_, _, digest) in rows.items():
        if (every or not label.startswith("constant ")) and digest_of(bodies[label]) != digest:
            raise _damaged(asked.name, f"checksum of {label} differs")
    constants = [body for label, body in bodies.items() if label.startswith("constant ")]
    return _Sections(bodies["image"], bodies["records"], constants, bodies.get("image of the fallback"))
