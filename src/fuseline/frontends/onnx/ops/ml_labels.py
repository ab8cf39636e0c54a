"""LabelEncoder of ai.onnx.ml from numbers to numbers: a binary search of the sorted keys, its steps in one body.
Strings stay on the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import i32
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import is_float, mlir_element
from fuseline.frontends.onnx.emission import elementwise, filled, result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.build import Body, element_of, shape_of

Array = NDArray[Any]
ML = "ai.onnx.ml"
MOST_KEYS = 1 << 24
"""Keys that are searched: the place of one is an integer of 32 bits, and a body holds the steps."""

LISTS = {"floats": np.float32, "int64s": np.int64}
DEFAULTS = {"floats": ("default_float", -0.0), "int64s": ("default_int64", -1)}
"""The attribute with what stands for keys that are not there, and what it is where it is left out."""


@dataclass(frozen=True)
class _Table:
    """Sorted keys, what each stands for, what stands for not a number (None where that is no key) and for everything
    else."""

    keys: Array
    values: Array
    missing: float | int | None
    default: float | int


@onnx_op("LabelEncoder", domain=ML, since=2)
def label_encoder_2(node: OnnxNode) -> Tensor:
    """For each element what its key stands for; of equal keys the first. A NaN equals none, as by onnxruntime. Raises
    FuselineError: E0105 for keys of another type than `x`, and other than one value per key."""
    return _encoded(node, with_nan=False)


@onnx_op("LabelEncoder", domain=ML, since=4)
def label_encoder_4(node: OnnxNode) -> Tensor:
    """The same, but every NaN is one key. Raises FuselineError: E0105 likewise."""
    return _encoded(node, with_nan=True)


def _encoded(node: OnnxNode, *, with_nan: bool) -> Tensor:
    x = node[0]
    keys, values = _listed(node, "keys"), _listed(node, "values")
    if keys.dtype != x.dtype:
        raise FuselineError("E0105", f"keys are {keys.dtype}, what is looked up is {x.dtype}", node=node.label)
    if len(keys) != len(values):
        raise FuselineError("E0105", f"{len(keys)} keys for {len(values)} values", node=node.label)
    table = _table(keys, values, _default(node), with_nan=with_nan)
    if not len(table.keys) and table.missing is None:
        return result(filled(node, table.default, x.dims, values.dtype), x.dims, values.dtype)
    return _looked_up(node, x, table)


def _listed(node: OnnxNode, side: str) -> Array:
    """The numbers of one side of the table."""
    if node.has(f"{side}_tensor"):
        found = np.asarray(node.attributes[f"{side}_tensor"].value.numpy()).reshape(-1)
        if found.dtype.kind in "if" and found.dtype.itemsize > 1:
            return found
    for kind, dtype in LISTS.items():
        if node.has(f"{side}_{kind}"):
            return np.asarray(
                node.numbers(f"{side}_{kind}") if kind == "floats" else node.integers(f"{side}_{kind}"), dtype
            )
    raise NoNativeLowering("host-value", f"{side} are strings")


def _default(node: OnnxNode) -> float | int:
    if node.has("values_tensor"):
        given = node.attributes.get("default_tensor")
        whole = _listed(node, "values").dtype.kind == "i"
        return (-1 if whole else -0.0) if given is None else np.asarray(given.value.numpy()).reshape(-1)[0].item()
    name, otherwise = DEFAULTS["floats" if node.has("values_floats") else "int64s"]
    return otherwise if not node.has(name) else node.number(name) if name == "default_float" else node.integer(name)


def _table(keys: Array, values: Array, default: float | int, *, with_nan: bool) -> _Table:
    backwards = slice(None, None, -1)  # the first of equal keys overwrites the others
    number = keys == keys
    found = dict(zip(keys[number][backwards].tolist(), values[number][backwards].tolist(), strict=True))
    missing = values[~number][:1] if with_nan else values[:0]
    ordered = sorted(found)
    if len(ordered) > MOST_KEYS:
        raise NoNativeLowering("many-keys", f"{len(ordered)} keys")
    held = np.asarray([found[key] for key in ordered], values.dtype)
    return _Table(np.asarray(ordered, keys.dtype), held, missing[0].item() if len(missing) else None, default)


def _looked_up(node: OnnxNode, x: Tensor, table: _Table) -> Tensor:
    dtype, floating = table.values.dtype, is_float(x.dtype)
    keys, values = (_padded(node, column) for column in (table.keys, table.values)) if len(table.keys) else (None, None)

    def body(b: Body, e: SSAValue) -> SSAValue:
        out = b.constant(table.default, mlir_element(dtype))
        if keys is not None and values is not None:
            at = s.as_index(b, _position(b, keys, x, e))
            here = s.compare(b, x.dtype, "eq", b.op(tensor.ExtractOp, keys, [at], element_of(keys)), e)
            out = s.select(b, here, b.op(tensor.ExtractOp, values, [at], element_of(values)), out)
        if table.missing is None or not floating:
            return out
        return s.select(b, s.compare(b, x.dtype, "ne", e, e), b.constant(table.missing, mlir_element(dtype)), out)

    return elementwise(node, [x], dtype, body)


def _padded(node: OnnxNode, column: Array) -> SSAValue:
    """The column, filled up to a power of two with its last element."""
    filled_up = np.pad(column, (0, (1 << (len(column) - 1).bit_length()) - len(column)), mode="edge")
    return node.ssa(known(filled_up, name=f"{node.label}_table"))


def _position(b: Body, keys: SSAValue, x: Tensor, e: SSAValue) -> SSAValue:
    """The place of the last key that is not larger than `e`, or 0: the bits of the place from the highest on."""
    at = b.constant(0, i32)
    for bit in reversed(range((shape_of(keys)[0] - 1).bit_length())):
        beyond = b.op(arith.OrIOp, at, b.constant(1 << bit, i32))
        key = b.op(tensor.ExtractOp, keys, [s.as_index(b, beyond)], element_of(keys))
        at = s.select(b, s.compare(b, x.dtype, "le", key, e), beyond, at)
    return at
