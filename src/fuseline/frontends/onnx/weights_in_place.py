"""Weights that lie inside the model file are read where they lie: mapped, not copied through the protobuf parser.

    ModelProto { graph (7) { initializer (5) { dims, data_type, name, raw_data (9) <400 MB> } .. } .. }
        =>   the same message without that `raw_data`, and where in the file it lies

The parser would copy every weight twice and a compile reads most of them once; a model of 0.4 GB is read in 20 ms
instead of 1.1 s.

Source: the protocol buffers encoding (https://protobuf.dev/programming-guides/encoding) and onnx.proto3's field
numbers.
"""

from __future__ import annotations

import math
import mmap
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

_GRAPH, _INITIALIZER, _DATA_TYPE, _RAW_DATA = 7, 5, 2, 9
_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

_PLAIN_TYPES = ("FLOAT", "DOUBLE", "FLOAT16", "INT8", "UINT8", "INT16", "UINT16", "INT32", "UINT32", "INT64")
_PLAIN = frozenset(ir.DataType[name].value for name in _PLAIN_TYPES)

LEAST_BYTES = 1 << 14
"""Smaller weights are left to the parser: a page has to be read for each anyway."""

Buffer: TypeAlias = "mmap.mmap | bytes"
Range: TypeAlias = tuple[int, int]
Where: TypeAlias = "dict[int, Range]"


@dataclass(frozen=True)
class SplitModel:
    """A model without its large initializers, and those: initializer number -> byte range in `data`."""

    proto: onnx.ModelProto
    data: Buffer = b""
    where: Where = field(default_factory=dict[int, Range])

    def put_back(self, model: ir.Model) -> None:
        """Give the initializers of `model` (made from `proto`) their values."""
        for number, (start, end) in self.where.items():
            tensor = self.proto.graph.initializer[number]
            value = model.graph.initializers[tensor.name]
            array: Any = np.frombuffer(self.data, _dtype(tensor), (end - start) // _dtype(tensor).itemsize, start)
            value.const_value = ir.Tensor(
                array.reshape(tuple(tensor.dims)), ir.DataType(tensor.data_type), name=tensor.name
            )


def split_model(path: Path) -> SplitModel | None:
    """The model at `path`, its large weights left in the file; None where that cannot be done, and the file has to be
    parsed as a whole.

    Raises OSError for a file that cannot be read.
    """
    with path.open("rb") as file:
        try:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except ValueError:  # an empty file
            return None
    return split_bytes(data)


def split_bytes(data: Buffer) -> SplitModel | None:
    """The model in `data`, its large weights left there; None where that cannot be done."""
    try:
        where: Where = {}
        small = _without_weights(data, where)
        proto = onnx.ModelProto()
        proto.ParseFromString(small)
    except (DecodeError, _UnknownEncoding, IndexError):
        return None
    names = Counter(tensor.name for tensor in proto.graph.initializer)
    whole = all(
        _is_whole(proto.graph.initializer[number], end - start, names) for number, (start, end) in where.items()
    )
    return SplitModel(proto, data, where) if whole else None


def _is_whole(tensor: onnx.TensorProto, count: int, names: Counter[str]) -> bool:
    """Whether `count` bytes are all of a tensor that has a name of its own and no data anywhere else."""
    if names[tensor.name] != 1 or tensor.data_location == onnx.TensorProto.EXTERNAL:
        return False
    return math.prod(tensor.dims) * _dtype(tensor).itemsize == count


def _dtype(tensor: onnx.TensorProto) -> np.dtype[Any]:
    return np.dtype(ir.DataType(tensor.data_type).numpy()).newbyteorder("<")


class _UnknownEncoding(Exception):
    """The bytes are no protocol buffer message that is known here."""


def _without_weights(data: Buffer, where: Where) -> bytes:
    """The ModelProto in `data` without the `raw_data` of large initializers, whose places go into `where`."""
    pieces: list[bytes] = []
    for number, kind, start, body, end in _fields(data, 0, len(data)):
        if number == _GRAPH and kind == _BYTES:
            graph = _small_graph(data, body, end, where)
            pieces.append(_header(_GRAPH, len(graph)) + graph)
        else:
            pieces.append(data[start:end])
    return b"".join(pieces)


def _small_graph(data: Buffer, begin: int, stop: int, where: Where) -> bytes:
    pieces: list[bytes] = []
    count, copied = 0, begin
    for number, kind, start, body, end in _fields(data, begin, stop):
        if number != _INITIALIZER or kind != _BYTES:
            continue
        raw = _raw_data(data, body, end) if end - body >= LEAST_BYTES else None
        if raw is not None:
            tag, first, last = raw
            rest = data[body:tag] + data[last:end]
            pieces += [data[copied:start], _header(_INITIALIZER, len(rest)), rest]
            where[count], copied = (first, last), end
        count += 1
    return b"".join([*pieces, data[copied:stop]])


def _raw_data(data: Buffer, begin: int, stop: int) -> tuple[int, int, int] | None:
    """Where the large `raw_data` of a TensorProto of a plain type stands: its tag, its first byte and its end."""
    found: list[tuple[int, int, int]] = []
    type_ = 0
    for number, kind, start, body, end in _fields(data, begin, stop):
        if number == _DATA_TYPE and kind == _VARINT:
            type_, _ = _varint(data, body)
        elif number == _RAW_DATA and kind == _BYTES:
            found.append((start, body, end))
    return found[0] if len(found) == 1 and found[0][2] - found[0][1] >= LEAST_BYTES and type_ in _PLAIN else None


def _fields(data: Buffer, at: int, stop: int) -> Iterator[tuple[int, int, int, int, int]]:
    """The fields of a message: number, wire type, where the tag, the value and the next field begin. Raises
    _UnknownEncoding."""
    while at < stop:
        start = at
        tag, at = _varint(data, at)
        number, kind = tag >> 3, tag & 7
        body = at
        if kind == _VARINT:
            _, at = _varint(data, at)
        elif kind == _BYTES:
            length, body = _varint(data, at)
            at = body + length
        elif kind in (_FIXED64, _FIXED32):
            at += 8 if kind == _FIXED64 else 4
        else:
            raise _UnknownEncoding(f"wire type {kind}")
        if at > stop:
            raise _UnknownEncoding("a field ends after its message")
        yield number, kind, start, body, at


def _varint(data: Buffer, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _UnknownEncoding("a number of more than 64 bits")


def _header(number: int, length: int) -> bytes:
    """The tag of a field of bytes, and its length."""
    out = bytearray([number << 3 | _BYTES])
    while length >= 0x80:
        out.append(length & 0x7F | 0x80)
        length >>= 7
    out.append(length)
    return bytes(out)
