"""Every constant of a model has exactly the content that its type and sizes ask for, in the model or in a file beside
it."""

from __future__ import annotations

import math
import os
from collections.abc import Container, Iterator
from pathlib import Path

import onnx
import onnx_ir as ir
from onnx import TensorProto

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.protos import graphs, label_of, nodes

_FIELDS: dict[str, tuple[int, ...]] = {
    "float_data": (TensorProto.FLOAT, TensorProto.COMPLEX64),
    "double_data": (TensorProto.DOUBLE, TensorProto.COMPLEX128),
    "int64_data": (TensorProto.INT64,),
    "uint64_data": (TensorProto.UINT32, TensorProto.UINT64),
    "string_data": (TensorProto.STRING,),
}
_FIELD_OF = {type_: name for name, types in _FIELDS.items() for type_ in types}
_KEYS = ("location", "offset", "length", "checksum")
"""What ONNX says of external data; onnxruntime adds keys that start with `prepacked`, which are hints for itself."""
_COMPLEX = (TensorProto.COMPLEX64, TensorProto.COMPLEX128)


def check_tensors(proto: onnx.ModelProto, folder: Path | None, *, elsewhere: Container[int] = ()) -> None:
    """Check all constants; the main graph's initializers number `elsewhere` have their content outside of `proto`,
    checked already.

    Raises:
        FuselineError: E0105 content that does not fit type and sizes; E0104 and E0101 external data that lies outside
        the model's folder, is
            missing, or is shorter or longer than the tensor.
    """
    for number, tensor in enumerate(proto.graph.initializer):
        if number not in elsewhere:
            check_tensor(tensor, tensor.name, folder)
    for label, tensor in _further(proto):
        check_tensor(tensor, label, folder)


def external_files(proto: onnx.ModelProto) -> tuple[str, ...]:
    """The files of external data, by name in the model's folder, of a model that `check_tensors` has taken."""
    tensors = (*proto.graph.initializer, *(tensor for _, tensor in _further(proto)))
    external = (tensor.external_data for tensor in tensors if tensor.data_location == TensorProto.EXTERNAL)
    return tuple(sorted({entry.value for entries in external for entry in entries if entry.key == "location"}))


def _further(proto: onnx.ModelProto) -> Iterator[tuple[str, TensorProto]]:
    for number, graph in enumerate(graphs(proto)):
        for tensor in graph.initializer if number else ():
            yield tensor.name, tensor
        for sparse in graph.sparse_initializer:
            yield sparse.values.name, sparse.values
            yield sparse.values.name, sparse.indices
    for index, node in enumerate(nodes(proto)):
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield label_of(node, index), attribute.t
            for tensor in attribute.tensors:
                yield label_of(node, index), tensor


def check_tensor(tensor: TensorProto, label: str, folder: Path | None) -> None:
    """Check one; `label` names it in errors. Raises FuselineError: E0105 for a type, sizes or data that do not
    fit each other, E0101 for a file of weights that is missing or too short, E0104 for one that is not in the model's
    folder."""
    if tensor.data_type not in TensorProto.DataType.values() or tensor.data_type == TensorProto.UNDEFINED:
        raise _bad(label, f"element type {tensor.data_type} is none of ONNX's")
    if any(size < 0 for size in tensor.dims):
        raise _bad(label, f"sizes {list(tensor.dims)} are negative")
    if tensor.data_location == TensorProto.EXTERNAL:
        _check_external(tensor, label, folder)
    elif tensor.HasField("raw_data"):
        _check_raw(tensor, label)
    else:
        _check_field(tensor, label)


def _check_raw(tensor: TensorProto, label: str) -> None:
    if tensor.data_type == TensorProto.STRING:
        raise _bad(label, "strings lie in raw_data, which ONNX does not allow")
    wanted, found = _bytes_of(tensor), len(tensor.raw_data)
    if wanted != found:
        raise _bad(
            label, f"raw_data has {found} bytes, sizes {list(tensor.dims)} of {_type_name(tensor)} take {wanted}"
        )


def _check_field(tensor: TensorProto, label: str) -> None:
    """Numbers of small types lie in int32_data, one each, or as many as fill a byte."""
    field = _FIELD_OF.get(tensor.data_type, "int32_data")
    count, found = math.prod(tensor.dims), len(getattr(tensor, field))
    wanted = 2 * count if tensor.data_type in _COMPLEX else _bytes_of(tensor) if _is_packed(tensor) else count
    if found != wanted:
        raise _bad(
            label, f"{field} has {found} elements, sizes {list(tensor.dims)} of {_type_name(tensor)} take {wanted}"
        )


def _check_external(tensor: TensorProto, label: str, folder: Path | None) -> None:
    if tensor.data_type == TensorProto.STRING:
        raise _bad(label, "strings lie in external data, which ONNX does not allow")
    entries = _entries(tensor, label)
    _check_location(label, entries.get("location", ""), folder)
    size, wanted = os.path.getsize(os.path.join(str(folder), entries["location"])), _bytes_of(tensor)
    offset, length = _number(entries, "offset", 0, label), _number(entries, "length", 0, label) or wanted
    if length != wanted:
        message = (
            f"external data has length {length}, sizes {list(tensor.dims)} of {_type_name(tensor)} take {wanted} bytes"
        )
        raise FuselineError("E0101", message, node=label, hint="export the model again")
    if offset + length > size:
        message = f"external data ends at byte {offset + length} of a file of {size}"
        raise FuselineError("E0101", message, node=label, hint="copy the weights file again")


def _entries(tensor: TensorProto, label: str) -> dict[str, str]:
    """What is said of where the data lies. A key that nobody knows may change what is meant, so it is refused, as
    onnxruntime does."""
    entries: dict[str, str] = {}
    for entry in tensor.external_data:
        if entry.key not in _KEYS and not entry.key.startswith("prepacked"):
            raise _bad(label, f"external data has the key {entry.key!r}, which is none of {', '.join(_KEYS)}")
        if entry.key in entries and entry.key in _KEYS:
            raise _bad(label, f"external data has the key {entry.key!r} twice")
        entries[entry.key] = entry.value
    return entries


def _number(entries: dict[str, str], key: str, default: int, label: str) -> int:
    text = entries.get(key, str(default))
    if not (text.isascii() and text.isdecimal()):
        raise _bad(label, f"external data has {key} {text!r}, which is no count of bytes")
    return int(text)


def _check_location(label: str, location: str, folder: Path | None) -> None:
    hint = "keep the weights beside the model file"
    if folder is None:
        raise FuselineError(
            "E0104",
            f"external data {location!r} without a model file to look beside",
            node=label,
            hint="pass the model's path",
        )
    root = os.path.realpath(folder)
    if (
        not location
        or os.path.isabs(location)
        or "\0" in location
        or not _is_within(root, os.path.realpath(os.path.join(root, location)))
    ):
        raise FuselineError(
            "E0104", f"external data location {location!r} leaves the model's folder", node=label, hint=hint
        )
    if not os.path.isfile(os.path.join(root, location)):
        raise FuselineError("E0101", f"external data file {location!r} is missing", node=label, hint=hint)


def _is_within(root: str, target: str) -> bool:
    return os.path.commonpath([root, target]) == root


def _bytes_of(tensor: TensorProto) -> int:
    return -(-math.prod(tensor.dims) * ir.DataType(tensor.data_type).bitwidth // 8)


def _is_packed(tensor: TensorProto) -> bool:
    return tensor.data_type != TensorProto.STRING and ir.DataType(tensor.data_type).bitwidth < 8


def _type_name(tensor: TensorProto) -> str:
    return TensorProto.DataType.Name(tensor.data_type)


def _bad(label: str, message: str) -> FuselineError:
    return FuselineError("E0105", message, node=label, hint="export the model again")
