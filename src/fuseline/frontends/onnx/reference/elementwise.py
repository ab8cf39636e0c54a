"""Element types and rounding as the ONNX standard, and where it is silent onnxruntime, define them.

Cast, CastLike          strings: numbers as onnxruntime writes and reads them
Div                     integers: 0 divides as 1 does
QuantizeLinear and kin  operator sets 10 to 18, infinities and NaN
PRelu                   slopes that are not finite
Det, Softsign           halves, and tensors without dimensions
DeformConv and others   halves are added up in float32
Sum, Mean               inputs that broadcast the first one
RoiAlign                corners as operator set 10 means them
TfIdfVectorizer         no weights
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Amended, Node
from fuseline.frontends.onnx.reference.texts import numbers_of

MOVED_SINCE = 16
"""Operator set since which RoiAlign says how its corners are meant."""

INTEGERS = frozenset(f"{sign}int{bits}" for sign in ("", "u") for bits in (2, 4, 8, 16))
"""Types that QuantizeLinear cuts to."""

BLOCKS_SINCE = 19
"""Operator set since which onnx.reference has QuantizeLinear and DequantizeLinear."""


class Cast(Amended):
    """To another element type."""

    def _run(self, x: Any, **options: Any) -> tuple[Any, ...]:
        if options["to"] == TensorProto.STRING:
            return (_as_text(x),)
        return (
            (numbers_of(x, helper.tensor_dtype_to_np_dtype(options["to"])),)
            if x.dtype.kind in "OUST"
            else self.original(x)
        )


class CastLike(Amended):
    """To the element type of the second input."""

    def _run(self, x: Any, like: Any, **_: Any) -> tuple[Any, ...]:
        if like.dtype.kind in "OUST":
            return (_as_text(x),)
        return (numbers_of(x, like.dtype),) if x.dtype.kind in "OUST" else self.original(x, like)


def _as_text(x: Any) -> Any:
    out = np.empty(x.size, object)
    out[:] = [_text(item, x.dtype) for item in x.reshape(-1)]
    return out.reshape(x.shape)


def _text(item: Any, dtype: Any) -> str:
    if dtype.kind in "OUST":
        return str(item)
    if dtype.kind in "biu":
        return str(int(item))
    number = float(item)
    if not np.isfinite(number):
        return "NaN" if np.isnan(number) else "INF" if number > 0 else "-INF"
    return f"{number:.8g}"


class QuantizeLinear(Amended):
    """round(x / scale) + zero point, cut to the type; what is no number becomes the lowest, as by onnxruntime."""

    def _run(self, x: Any, scale: Any, zero: Any = None, **given: Any) -> tuple[Any, ...]:
        if self.version >= BLOCKS_SINCE:  # halves are divided in float32, as everything else is computed with them
            x, scale = (y.astype(np.float32) if y.dtype == np.float16 else y for y in (x, scale))
        dtype = _quantized_dtype(zero, given.get("output_dtype"))
        if np.dtype(dtype).name not in INTEGERS:
            return self.original(x, scale, zero)
        precision = given.get("precision")
        wide = helper.tensor_dtype_to_np_dtype(precision) if precision else np.result_type(x, scale)
        steps = np.rint(x.astype(wide) / _spread(scale, x, given).astype(wide)).astype(np.float64)
        shifted = steps if zero is None else steps + _spread(zero, x, given).astype(np.float64)
        ends = ml_dtypes.iinfo(dtype)
        return (
            np.where(np.isnan(shifted), ends.min, np.clip(shifted, ends.min, ends.max)).astype(np.int64).astype(dtype),
        )


def _quantized_dtype(zero: Any, output_dtype: int | None) -> Any:
    if zero is not None:
        return zero.dtype
    return helper.tensor_dtype_to_np_dtype(output_dtype) if output_dtype else np.dtype(np.uint8)


def _spread(parameter: Any, x: Any, given: dict[str, Any]) -> Any:
    """A parameter in the shape of `x`, or one that broadcasts to it: of all of it, of each slice or of each block along
    the axis."""
    axis, block = 1 if given.get("axis") is None else given["axis"], given.get("block_size")
    return np.repeat(parameter, block, axis) if block else _along(parameter, x, axis)


class Div(Amended):
    """Quotients; an integer divided by 0, of which nothing says what it is, stays, as in a native program."""

    def _run(self, x: Any, y: Any, **_: Any) -> tuple[Any, ...]:
        return self.original(x, np.where(y == 0, 1, y).astype(y.dtype) if y.dtype.kind in "iu" else y)


class PRelu(Node):
    """What is below 0 by its slope; a slope says nothing of 0."""

    def _run(self, x: Any, slope: Any) -> tuple[Any, ...]:
        return (np.where(x >= 0, x, x * slope).astype(x.dtype),)


class DequantizeLinear(Amended):
    """(x - zero point) * scale."""

    def _run(self, x: Any, scale: Any, zero: Any = None, axis: Any = None, **_: Any) -> tuple[Any, ...]:
        if self.version >= BLOCKS_SINCE:
            return self.original(x, scale, zero)
        shifted = x.astype(np.int64) - (0 if zero is None else _along(zero, x, axis).astype(np.int64))
        return ((shifted.astype(scale.dtype) * _along(scale, x, axis)).astype(scale.dtype),)


def _along(parameter: Any, x: Any, axis: int | None) -> Any:
    """A parameter of the whole tensor, or of each slice along `axis`."""
    if np.size(parameter) == 1:
        return np.asarray(parameter).reshape(())
    shape = [1] * x.ndim
    shape[1 if axis is None else axis] = -1
    return parameter.reshape(shape)


class Det(Node):
    """Determinants of the last two axes."""

    def _run(self, x: Any, **_: Any) -> tuple[Any, ...]:
        return (np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype),)


class Softsign(Node):
    """x / (1 + |x|)."""

    def _run(self, x: Any, **_: Any) -> tuple[Any, ...]:
        return (np.asarray(x / (1 + np.abs(x))).astype(x.dtype),)


class RoiAlign(Amended):
    """Averages or maxima of regions; before operator set 16 their corners are not moved by half an element."""

    def missing(self, node: onnx.NodeProto, version: int) -> dict[str, Any]:
        """Before version 16: `output_half_pixel`, which moves no corner."""
        return {"coordinate_transformation_mode": "output_half_pixel"} if version < MOVED_SINCE else {}

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        return self.original(*inputs)


class TfIdfVectorizer(Amended):
    """Counts of n-grams, weighted."""

    def missing(self, node: onnx.NodeProto, version: int) -> dict[str, Any]:
        """A weight of 1 for each column."""
        columns = next(max(attribute.ints) + 1 for attribute in node.attribute if attribute.name == "ngram_indexes")
        return {"weights": [1.0] * columns}

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        return self.original(*inputs)


class _InFloat32(Amended):
    """What adds up halves in float32; results are halves again where the first input is one."""

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        wide = [x.astype(np.float32) if x is not None and x.dtype == np.float16 else x for x in inputs]
        return tuple(out.astype(np.float16) if inputs[0].dtype == np.float16 else out for out in self.original(*wide))


class MelWeightMatrix(_InFloat32):
    """Weights from frequencies to bins."""


class DeformConv(_InFloat32):
    """A convolution of places that lie between the elements."""


class InstanceNormalization(_InFloat32):
    """Each channel of each image by its own mean and variance."""


class QLinearMatMul(_InFloat32):
    """A product of quantised matrices."""


class Sum(Node):
    """Of all inputs, which broadcast."""

    def _run(self, *inputs: Any) -> tuple[Any, ...]:
        return (np.asarray(_total(inputs)).astype(inputs[0].dtype),)


class Mean(Node):
    """Of all inputs, which broadcast."""

    def _run(self, *inputs: Any) -> tuple[Any, ...]:
        return (np.asarray(_total(inputs) / len(inputs)).astype(inputs[0].dtype),)


def _total(inputs: Sequence[Any]) -> Any:
    return sum(x.astype(np.float32 if x.dtype == np.float16 else x.dtype) for x in inputs)


ELEMENTWISE: tuple[type[OpRun], ...] = (
    Cast,
    CastLike,
    QuantizeLinear,
    Div,
    PRelu,
    DequantizeLinear,
    Det,
    Softsign,
    RoiAlign,
    TfIdfVectorizer,
    MelWeightMatrix,
    DeformConv,
    InstanceNormalization,
    QLinearMatMul,
    Sum,
    Mean,
)
"""What to give `ReferenceEvaluator` as `new_ops`."""
