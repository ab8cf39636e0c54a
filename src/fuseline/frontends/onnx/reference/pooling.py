"""Pooling and transposed convolution as the ONNX standard defines them.

MaxPool        `Indices` count through the whole tensor, batch and channel included, in every rank and with every stride
AveragePool    halves are added up in float32
LpPool         automatic padding of any stride
GlobalMaxPool  any rank
MaxUnpool      places count through the result, whatever its shape is, as those of MaxPool do
ConvTranspose  groups: each with its own bias and filters; `output_shape`
"""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Node
from fuseline.frontends.onnx.reference.windows import gathered, numbers, sliding


class MaxPool(Node):
    """The largest element of each window, and where it stands."""

    def _run(self, x: Any, kernel_shape: Any = None, storage_order: Any = None, **options: Any) -> tuple[Any, ...]:
        axes = sliding(x.shape[2:], options, [int(size) for size in kernel_shape])
        lowest = -np.inf if x.dtype.kind == "f" else np.iinfo(x.dtype).min
        windows = gathered(x, axes, lowest)
        largest = windows.max(-1)
        if len(self.onnx_node.output) < 2:
            return (largest,)
        places = gathered(_numbered(x.shape, bool(storage_order)), axes, -1)
        best = np.where(largest == largest, largest, 0)[..., None]
        there = np.where((largest == largest)[..., None], windows == best, windows != windows)
        first = (there & (places >= 0)).argmax(-1)
        return largest, np.take_along_axis(places, first[..., None], -1)[..., 0]


def _numbered(shape: tuple[int, ...], columns_first: bool) -> Any:
    """The number of each element of a tensor; with `columns_first` the spatial axes are counted the other way round."""
    count = int(np.prod(shape[2:]))
    image = np.arange(count).reshape(shape[:1:-1]).T if columns_first else np.arange(count).reshape(shape[2:])
    planes = np.arange(shape[0] * shape[1]).reshape(*shape[:2], *[1] * image.ndim)
    return planes * image.size + image


class AveragePool(Node):
    """The mean of each window: of what lies in the image, or with `count_include_pad` of that and its padding."""

    def _run(self, x: Any, kernel_shape: Any = None, count_include_pad: Any = None, **options: Any) -> tuple[Any, ...]:
        axes = sliding(x.shape[2:], options, [int(size) for size in kernel_shape])
        total = gathered(x.astype(np.float32 if x.dtype.itemsize < 4 else x.dtype), axes, 0).sum(-1)
        for i, axis in enumerate(axes):
            counts = (axis.padded if count_include_pad else axis.inside).sum(1)
            total = total / counts.reshape([-1 if k == 2 + i else 1 for k in range(total.ndim)])
        return (total.astype(x.dtype),)


class LpPool(Node):
    """The p-norm of each window."""

    def _run(self, x: Any, kernel_shape: Any = None, p: Any = None, **options: Any) -> tuple[Any, ...]:
        wide = np.abs(x.astype(np.float32 if x.dtype.itemsize < 4 else x.dtype))
        windows = gathered(wide, sliding(x.shape[2:], options, [int(size) for size in kernel_shape]), 0)
        return (((windows**p).sum(-1) ** (1 / p)).astype(x.dtype),)


class GlobalMaxPool(Node):
    """The largest element of each channel."""

    def _run(self, x: Any, **_: Any) -> tuple[Any, ...]:
        return (x.max(tuple(range(2, x.ndim)), keepdims=True),)


class MaxUnpool(Node):
    """Zeros, with each value at its place among all elements of the result (onnxruntime and PyTorch; the standard's
    test counts through the shape that there would be without `output_shape`, see onnx issue 2398)."""

    def _run(
        self,
        x: Any,
        places: Any,
        output_shape: Any = None,
        kernel_shape: Any = None,
        strides: Any = None,
        pads: Any = None,
        **_: Any,
    ) -> tuple[Any, ...]:
        n = x.ndim - 2
        steps, border = numbers(strides, [1] * n), numbers(pads, [0] * (2 * n))
        windows = zip(x.shape[2:], steps, kernel_shape, border[:n], border[n:], strict=True)
        sizes = [(size - 1) * step + k - low - high for size, step, k, low, high in windows]
        out = np.zeros([*x.shape[:2], *sizes] if output_shape is None else output_shape.astype(np.int64), x.dtype)
        out.reshape(-1)[places.reshape(-1)] = x.reshape(-1)
        return (out,)


class ConvTranspose(Node):
    """Every element spread over a window of the output, in float32 at least."""

    def _run(self, x: Any, w: Any, bias: Any = None, group: Any = None, **options: Any) -> tuple[Any, ...]:
        rank, dtype = x.ndim - 2, np.float32 if x.dtype.itemsize < 4 else x.dtype
        groups, kernel = group or 1, w.shape[2:]
        strides, dilations = numbers(options.get("strides"), [1] * rank), numbers(options.get("dilations"), [1] * rank)
        extra = numbers(options.get("output_padding"), [0] * rank)
        spread = [
            s * (n - 1) + d * (k - 1) + 1 for n, k, s, d in zip(x.shape[2:], kernel, strides, dilations, strict=True)
        ]
        image = x.astype(dtype).reshape(x.shape[0], groups, -1, *x.shape[2:])
        filters = w.astype(dtype).reshape(groups, -1, *w.shape[1:])
        full = np.zeros((x.shape[0], groups, w.shape[1], *spread), dtype)
        for place in product(*map(range, kernel)):
            part = np.einsum("bgi...,gio->bgo...", image, filters[(..., *place)])
            where = [
                slice(p * d, p * d + s * (n - 1) + 1, s)
                for p, d, s, n in zip(place, dilations, strides, x.shape[2:], strict=True)
            ]
            full[(..., *where)] += part
        out = full.reshape(x.shape[0], -1, *spread)
        for axis in range(rank):
            begin, size = _kept(axis, x.shape[2 + axis], spread[axis] + extra[axis], strides[axis], options)
            out = _cut(out, 2 + axis, begin, size)
        shift = 0 if bias is None else bias.astype(dtype).reshape(-1, *[1] * rank)
        return ((out + shift).astype(x.dtype),)


def _kept(axis: int, size: int, whole: int, stride: int, options: dict[str, Any]) -> tuple[int, int]:
    """From where and how much of the spread image is the output."""
    shape, auto = options.get("output_shape"), options.get("auto_pad") or "NOTSET"
    if shape is not None and len(shape):
        wanted = int(shape[axis])
    elif auto in ("SAME_UPPER", "SAME_LOWER"):
        wanted = size * stride
    else:
        pads = numbers(options.get("pads"), []) if auto == "NOTSET" else []
        begin, end = (pads[axis], pads[len(pads) // 2 + axis]) if pads else (0, 0)
        return begin, whole - begin - end
    cut = max(whole - wanted, 0)
    return (cut // 2 if auto == "SAME_UPPER" else cut - cut // 2), wanted


def _cut(x: Any, axis: int, begin: int, size: int) -> Any:
    """`size` elements from `begin` on along an axis; zeros behind its end."""
    missing = max(begin + size - x.shape[axis], 0)
    grown = np.pad(x, [(0, missing if i == axis else 0) for i in range(x.ndim)]) if missing else x
    return grown[tuple(slice(begin, begin + size) if i == axis else slice(None) for i in range(x.ndim))]


POOLING: tuple[type[OpRun], ...] = (MaxPool, AveragePool, LpPool, GlobalMaxPool, MaxUnpool, ConvTranspose)
"""What to give `ReferenceEvaluator` as `new_ops`."""
