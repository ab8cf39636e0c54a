"""Writing a model whose weights lie elsewhere: in the file that was read, or in files of external data beside it.

    ModelProto { .. graph (7) { .. initializer (5) { name, dims, raw_data (9) <copied from the file that was read> } } }

Up to the size that a protobuf file may have everything is one file; beyond it, and where the model that was read had
external data, weights go to `<name>.data`.

Source: the protocol buffers encoding (https://protobuf.dev/programming-guides/encoding) and onnx.proto3's field
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

import onnx
from onnx import TensorProto

from fuseline.errors import FuselineError
from fuseline.exports.onnx.source import MOST_BYTES
from fuseline.frontends.onnx.model_file import OpenedModel
from fuseline.frontends.onnx.protos import graphs, nodes
from fuseline.runtime.files import write_files

_PIECE = 1 << 24
_ALIGNED = 1 << 12
"""Where weights begin in a file of external data: pages, so that runtimes may map them."""

_GRAPH, _INITIALIZER, _RAW_DATA = b"\x3a", b"\x2a", b"\x4a"
DATA_SUFFIX = ".data"


def in_memory(model: OpenedModel) -> onnx.ModelProto:
    """The model with the weights that were left in its file."""
    out = onnx.ModelProto()
    out.CopyFrom(model.split.proto)
    for number, (start, end) in model.split.where.items():
        out.graph.initializer[number].raw_data = bytes(model.split.data[start:end])
    for tensor in _tensors(out):
        if tensor.data_location == TensorProto.EXTERNAL and model.folder is not None:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = str((model.folder / entry.value).resolve())
    return out


def as_one_file(model: OpenedModel) -> bytes:
    """The model as one file. Raises FuselineError (E0501) where it does not fit into one."""
    if _is_large(model):
        raise FuselineError("E0501", "the model has a file of weights beside it", hint="give a file: -o FILE")
    out = onnx.ModelProto()
    out.CopyFrom(model.split.proto)
    content = BytesIO()
    _write_whole(model, out, content)
    return content.getvalue()


def _is_large(model: OpenedModel) -> bool:
    proto = model.split.proto
    inline = sum(end - start for start, end in model.split.where.values())
    external = any(tensor.data_location == TensorProto.EXTERNAL for tensor in _tensors(proto))
    return external or inline + proto.ByteSize() > MOST_BYTES


def write_model(model: OpenedModel, path: Path) -> list[str]:
    """Write the model to `path`, all files or none; answers their names. Raises FuselineError (E0501, E0502)."""
    if path.suffix in (".fuse", ".mlir", ".toml", ".json"):
        raise FuselineError("E0501", f"an ONNX model is no {path.suffix} file", node=str(path), hint="name it .onnx")
    out = onnx.ModelProto()
    out.CopyFrom(model.split.proto)
    if not _is_large(model):
        write_files({path: lambda file: _write_whole(model, out, file)})
        return [str(path)]
    data = path.with_name(path.name + DATA_SUFFIX)
    external = [tensor for tensor in _tensors(out) if tensor.data_location == TensorProto.EXTERNAL]
    pieces = list(_move_out(model, out, external, data.name))
    content = out.SerializeToString()
    write_files({path: lambda file: file.write(content), data: lambda file: _write_pieces(pieces, file)})
    return [str(path), str(data)]


# one file -------------------------------------------------------------------------------------------------------------


def _write_whole(model: OpenedModel, out: onnx.ModelProto, file: BinaryIO) -> None:
    """`out` with the weights of `model` put back as they are written."""
    where = model.split.where
    heads = {number: out.graph.initializer[number].SerializeToString() for number in where}
    order = [tensor.SerializeToString() for tensor in out.graph.initializer]
    rest = onnx.GraphProto()
    rest.CopyFrom(out.graph)
    del rest.initializer[:]
    graph = rest.SerializeToString()
    out.ClearField("graph")
    lengths = [len(head) + (_field_size(where[number]) if number in heads else 0) for number, head in enumerate(order)]
    total = len(graph) + sum(1 + len(_varint(length)) + length for length in lengths)
    file.write(out.SerializeToString())
    file.write(_GRAPH + _varint(total) + graph)
    for number, (head, length) in enumerate(zip(order, lengths, strict=True)):
        file.write(_INITIALIZER + _varint(length) + head)
        if number in where:
            start, end = where[number]
            file.write(_RAW_DATA + _varint(end - start))
            for at in range(start, end, _PIECE):
                file.write(model.split.data[at : min(at + _PIECE, end)])


def _field_size(place: tuple[int, int]) -> int:
    length = place[1] - place[0]
    return 1 + len(_varint(length)) + length


def _varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


# weights beside it ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Piece:
    """Bytes for the file of weights: from `start` of it on; `write` copies them."""

    start: int
    write: Callable[[BinaryIO], None]


def _move_out(model: OpenedModel, out: onnx.ModelProto, external: list[TensorProto], name: str) -> Iterator[_Piece]:
    """Let the large tensors of `out` lie in the file `name`; answers what goes there."""
    at = 0
    known: dict[tuple[str, int, int], int] = {}
    for number, (start, end) in model.split.where.items():
        tensor = out.graph.initializer[number]
        yield _Piece(at, _from_buffer(model, start, end))
        _point(tensor, name, at, end - start)
        at = _next(at, end - start)
    for tensor in external:
        entries = {entry.key: entry.value for entry in tensor.external_data}
        assert model.folder is not None
        file = model.folder / entries["location"]
        offset = int(entries.get("offset", "0"))
        length = int(entries.get("length", "0")) or _bytes_of(tensor)
        place = (str(file), offset, length)
        if place not in known:
            known[place] = at
            yield _Piece(at, _from_file(file, offset, length))
            at = _next(at, length)
        _point(tensor, name, known[place], length)


def _next(at: int, length: int) -> int:
    return -(-(at + length) // _ALIGNED) * _ALIGNED


def _point(tensor: TensorProto, name: str, offset: int, length: int) -> None:
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    del tensor.external_data[:]
    for key, value in {"location": name, "offset": str(offset), "length": str(length)}.items():
        tensor.external_data.add(key=key, value=value)


def _bytes_of(tensor: TensorProto) -> int:
    from math import prod

    import onnx_ir as ir

    return -(-prod(tensor.dims) * ir.DataType(tensor.data_type).bitwidth // 8)


def _from_buffer(model: OpenedModel, start: int, end: int) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        for at in range(start, end, _PIECE):
            file.write(model.split.data[at : min(at + _PIECE, end)])

    return write


def _from_file(path: Path, offset: int, length: int) -> Callable[[BinaryIO], None]:
    def write(file: BinaryIO) -> None:
        with path.open("rb") as source:
            source.seek(offset)
            left = length
            while left:
                piece = source.read(min(left, _PIECE))
                if not piece:
                    raise FuselineError("E0101", "external data ends too early", node=str(path))
                file.write(piece)
                left -= len(piece)

    return write


def _write_pieces(pieces: list[_Piece], file: BinaryIO) -> None:
    for piece in pieces:
        file.write(bytes(piece.start - file.tell()))
        piece.write(file)


def _tensors(proto: onnx.ModelProto) -> Iterator[TensorProto]:
    """Every tensor of a model, those of attributes too."""
    for graph in graphs(proto):
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield sparse.values
            yield sparse.indices
    for node in nodes(proto):
        for attribute in node.attribute:
            yield attribute.t
            yield from attribute.tensors
