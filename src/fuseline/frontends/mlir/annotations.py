"""Our own attributes in MLIR text: what the compiler wrote about feeds, results and sizes is as the compiler writes it,
or refused."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import Any

from xdsl.dialects.builtin import ArrayAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute

from fuseline.analysis.shapes import DIMS_ATTRIBUTE
from fuseline.errors import FuselineError
from fuseline.ir.declared_types import OPERANDS, RESULTS
from fuseline.ir.dim_json import from_name
from fuseline.ir.operand_code import CODE_ATTRIBUTE, code_of

_TEXTS = ("fuseline.name", "fuseline.dtype", "fuseline.type")
_DECLARED = ("", "uint8", "uint16", "uint32", "uint64")


def check_annotations(module: ModuleOp, path: str) -> None:
    """Raises FuselineError (E0302) for a `fuseline.dims` that does not name one size per dimension, for a name or type
    that is no text, and for an operator of the host that is not in base64, has no type for each of its values or
    computes what cannot be computed."""
    for op in module.walk():
        if isinstance(op, FuncOp):
            _check_host_node(op, f"{path}: @{op.sym_name.data}")
            _check_code(op, f"{path}: @{op.sym_name.data}")
            _check_dtypes(op, OPERANDS, len(op.function_type.inputs), f"{path}: @{op.sym_name.data}")
            _check_dtypes(op, RESULTS, len(op.function_type.outputs), f"{path}: @{op.sym_name.data}")
            for attributes, type_ in _borders(op):
                _check_texts(attributes, f"{path}: @{op.sym_name.data}")
                if DIMS_ATTRIBUTE in attributes:
                    _check_sizes(attributes[DIMS_ATTRIBUTE], type_, f"{path}: @{op.sym_name.data}")
        elif DIMS_ATTRIBUTE in op.attributes:
            names = op.attributes[DIMS_ATTRIBUTE]
            if not isinstance(names, ArrayAttr) or len(names.data) != len(op.results):
                raise _wrong(DIMS_ATTRIBUTE, "a list for every result", f"{path}: {op.name}")
            for entry, value in zip(names.data, op.results, strict=True):
                _check_sizes(entry, value.type, f"{path}: {op.name}")


def _borders(function: FuncOp) -> Iterator[tuple[dict[str, Attribute], Attribute]]:
    """The attributes of each argument and result, with its type."""
    type_ = function.function_type
    for given, types in ((function.arg_attrs, type_.inputs.data), (function.res_attrs, type_.outputs.data)):
        for entry, one in zip(given.data if given is not None else (), types, strict=False):
            yield dict(entry.data), one


def _check_host_node(function: FuncOp, location: str) -> None:
    for key in ("fuseline.onnx_node", "fuseline.executor"):
        if not isinstance(function.attributes.get(key, StringAttr("")), StringAttr):
            raise _wrong(key, "a text", location)
    node = function.attributes.get("fuseline.onnx_node")
    try:
        b64decode(node.data if isinstance(node, StringAttr) else "", validate=True)
    except ValueError as error:
        raise _wrong("fuseline.onnx_node", f"base64 ({error})", location) from error


def _check_code(function: FuncOp, location: str) -> None:
    try:
        code_of(function)
    except ValueError as error:
        raise _wrong(CODE_ATTRIBUTE, f"code for the operands ({error})", location) from error


def _check_dtypes(function: FuncOp, key: str, count: int, location: str) -> None:
    """One integer type of NumPy's per operand or result, or an empty text."""
    names = function.attributes.get(key, ArrayAttr([StringAttr("")] * count))
    entries: Sequence[Any] = names.data if isinstance(names, ArrayAttr) else [None]
    if len(entries) != count or not all(isinstance(one, StringAttr) and one.data in _DECLARED for one in entries):
        raise _wrong(key, "the unsigned type of each value, as a text, or an empty one", location)


def _check_texts(attributes: dict[str, Attribute], location: str) -> None:
    for key in _TEXTS:
        if not isinstance(attributes.get(key, StringAttr("")), StringAttr):
            raise _wrong(key, "a text", location)


def _check_sizes(names: Attribute, type_: Attribute, location: str) -> None:
    """One text per dimension of a tensor; one or none for what is none."""
    entries: Sequence[Any] = names.data if isinstance(names, ArrayAttr) else [None]
    ranks = (len(type_.get_shape()),) if isinstance(type_, TensorType) else range(9)
    if len(entries) not in ranks or not all(
        isinstance(entry, StringAttr) and _is_size(entry.data) for entry in entries
    ):
        raise _wrong(DIMS_ATTRIBUTE, "the size of each dimension, as a text", location)


def _is_size(text: str) -> bool:
    try:
        from_name(text)
    except (ValueError, KeyError, TypeError, IndexError, RecursionError, ArithmeticError):
        return False
    return True


def _wrong(key: str, expected: str, location: str) -> FuselineError:
    return FuselineError(
        "E0302", f"{key} must be {expected}", node=location, hint="leave the attribute out, or emit the text again"
    )
