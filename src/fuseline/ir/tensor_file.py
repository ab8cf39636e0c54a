"""Tensors in a file of the safetensors format: written as they stream by, read where they lie in the mapped file.

    8 bytes: length of the header | header: JSON, padded with spaces | the tensors, one behind the other

The header says type, sizes and range of bytes of each tensor by name, and texts under `__metadata__`
(https://huggingface.co/docs/safetensors). Tensors of wider elements come first, so that each lies aligned to its own.
"""

from __future__ import annotations

import hashlib
import json
import mmap
import struct
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import ml_dtypes
import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError

METADATA = "__metadata__"
DIGEST = "fuseline.digest"
"""What a file that was written here has in its metadata: a digest of all tensors, their names, types and sizes."""

CHUNK_BYTES = 1 << 24
"""What is held in memory of a tensor that does not lie as the file has it."""

_ALIGNMENT = 64
_LENGTH = struct.Struct("<Q")
_DIGEST_BYTES = 16
_HINT = "copy the file again, or emit the IR anew"

DTYPES: dict[str, np.dtype[Any]] = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype(np.uint8),
    "I8": np.dtype(np.int8),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "BF16": np.dtype(ml_dtypes.bfloat16),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
"""The types of elements that tensors of the IR have, by their names in such files."""

_NAMES = {dtype: name for name, dtype in DTYPES.items()}


class Entry(NamedTuple):
    """Where a tensor lies: bytes `start` to `end` of the file."""

    dtype: str
    shape: tuple[int, ...]
    start: int
    end: int


class TensorFile:
    """A mapped file. `entries`: its tensors by name; `metadata`: its texts; `size` in bytes."""

    def __init__(self, path: Path) -> None:
        """Map the file at `path`. Raises FuselineError (E0308): it is missing, truncated, or of another format."""
        self.path = path
        self._data = _mapped(path)
        self.size = len(self._data)
        header, start = _header(self._data, path)
        self.metadata = {str(key): str(text) for key, text in dict(header.pop(METADATA, None) or {}).items()}
        self.entries = {name: _entry(name, said, start, path) for name, said in header.items()}

    def array(self, name: str) -> NDArray[Any]:
        """The tensor called `name`, in place and read-only. Raises FuselineError (E0308) for one of a type that there
        is not here, or that the file has not all of."""
        entry = self.entries[name]
        dtype = DTYPES.get(entry.dtype)
        if dtype is None:
            raise wrong(name, f"{self.path.name} has elements of type {entry.dtype}", "use one of " + ", ".join(DTYPES))
        wanted, found = prod(entry.shape) * dtype.itemsize, entry.end - entry.start
        if found != wanted:
            raise wrong(name, f"{found} bytes in {self.path.name}, {_type(entry)} takes {wanted}")
        if entry.end > self.size:
            there = max(0, self.size - entry.start)
            raise wrong(name, f"{self.path.name} is cut off: {there} of the tensor's {wanted} bytes are there")
        return np.frombuffer(self._data, dtype, prod(entry.shape), entry.start).reshape(entry.shape)


def write_tensors(file: BinaryIO, arrays: Mapping[str, NDArray[Any]], metadata: Mapping[str, str]) -> str:
    """Write `arrays` to `file`, which can seek, a few MB at a time; answers the digest that its metadata has then.

    Raises KeyError for a dtype that is none of `DTYPES`.
    """
    ordered = sorted(arrays.items(), key=lambda item: (-item[1].dtype.itemsize, item[0]))
    header: dict[str, Any] = {METADATA: {**metadata, DIGEST: "0" * (2 * _DIGEST_BYTES)}}
    end = 0
    for name, array in ordered:
        start, end = end, end + array.nbytes
        header[name] = {"dtype": dtype_name(array), "shape": list(array.shape), "data_offsets": [start, end]}
    digest = hashlib.blake2b(_padded(header), digest_size=_DIGEST_BYTES)
    first = file.tell()
    file.write(_LENGTH.pack(len(_padded(header))) + _padded(header))
    for _, array in ordered:
        for chunk in _chunks(array):
            file.write(chunk)
            digest.update(chunk)
    header[METADATA][DIGEST] = digest.hexdigest()
    last = file.tell()
    file.seek(first + _LENGTH.size)
    file.write(_padded(header))
    file.seek(last)
    return digest.hexdigest()


def dtype_name(array: NDArray[Any]) -> str:
    """The name of an array's type in such a file; raises KeyError for one that it has none for."""
    return _NAMES[array.dtype.newbyteorder("<") if array.dtype.byteorder == ">" else array.dtype]


def wrong(name: str, why: str, hint: str = _HINT) -> FuselineError:
    """E0308 about a tensor or a file."""
    return FuselineError("E0308", why, node=name, hint=hint)


def _type(entry: Entry) -> str:
    return "x".join([*map(str, entry.shape), entry.dtype])


def _padded(header: Mapping[str, Any]) -> bytes:
    text = json.dumps(header, ensure_ascii=False, separators=(",", ":")).encode()
    return text + b" " * (-(_LENGTH.size + len(text)) % _ALIGNMENT)


def _chunks(array: NDArray[Any]) -> Iterator[Any]:
    """The bytes of an array in the order of its elements, whole where they lie so, else copied a chunk at a time."""
    if array.size == 0:
        return
    little = array.dtype.newbyteorder("<")
    if array.flags.c_contiguous and array.dtype == little:
        yield array.reshape(-1).view(np.uint8)
    elif array.nbytes <= CHUNK_BYTES or array.ndim == 0:
        yield np.ascontiguousarray(array, little).reshape(-1).view(np.uint8)
    else:
        rows = max(1, CHUNK_BYTES * len(array) // array.nbytes)
        for first in range(0, len(array), rows):
            yield from _chunks(array[first : first + rows] if len(array) > 1 else array[0])


def _mapped(path: Path) -> mmap.mmap | bytes:
    try:
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except ValueError:  # an empty file, or a name with a zero byte in it
        return b""
    except OSError as error:
        raise wrong(str(path), f"cannot read: {error.strerror or error}", "keep the weights beside the IR") from error


def _header(data: mmap.mmap | bytes, path: Path) -> tuple[dict[str, Any], int]:
    """The header, and where the tensors begin."""
    start = _LENGTH.size + (_LENGTH.unpack(data[: _LENGTH.size])[0] if len(data) >= _LENGTH.size else 0)
    if len(data) < _LENGTH.size or start > len(data):
        raise wrong(str(path), f"the file is cut off: {len(data)} bytes, its header alone takes {start}")
    try:
        header: Any = json.loads(data[_LENGTH.size : start])
    except (ValueError, RecursionError) as error:
        raise wrong(str(path), f"it is no file of tensors (safetensors): {error}") from error
    if not isinstance(header, dict) or not isinstance(header.get(METADATA, {}), dict):
        raise wrong(str(path), "it is no file of tensors (safetensors): the header is no table")
    return header, start


def _entry(name: str, said: Any, start: int, path: Path) -> Entry:
    try:
        dtype, (first, last) = said["dtype"], said["data_offsets"]
        shape = tuple(said["shape"])
        sound = all(type(number) is int and number >= 0 for number in (first, last, *shape)) and first <= last
    except (TypeError, KeyError, ValueError) as error:
        raise wrong(name, f"{path.name} does not say where the tensor lies") from error
    if not sound or not isinstance(dtype, str):
        raise wrong(name, f"{path.name} does not say where the tensor lies")
    return Entry(dtype, shape, start + first, start + last)
