"""Discrete Fourier transforms of known length as products with constant matrices of cosines and sines.

    out[k] = sum over n of x[n] exp(-2 pi i k n / N);  inverse: exp(+..) / N

A transform of N places takes N * N products, in f64: sums as long as these would round more in f32 than the few steps
of a fast transform do. Long ones run on the host.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import accumulator, is_float
from fuseline.frontends.onnx.emission import cast, contract, reshape, result
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.ops.convolution import convolve
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slices import slice_of
from fuseline.frontends.onnx.ops.windows import Window
from fuseline.frontends.onnx.registry import onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known, static_size
from fuseline.ir.constant_budget import folded_name
from fuseline.ir.dim import add, floor_div, sub

MOST_ENTRIES = 1 << 22
"""Numbers of a matrix; larger ones would be more constants than they are worth."""


@onnx_op("DFT", since=20)
def dft(node: OnnxNode) -> Tensor:
    """The axis is an input."""
    given = node.get(2)
    return _transformed(node, int(given.numbers().reshape(-1)[0]) if given is not None else -2)


@onnx_op("DFT", since=17)
def dft_of_attribute(node: OnnxNode) -> Tensor:
    """The axis is an attribute."""
    return _transformed(node, node.integer("axis", 1))


@onnx_op("STFT", since=17)
def stft(node: OnnxNode) -> Tensor:
    """Transforms of overlapping frames of the signals `[batch, samples, components]`: a convolution whose filters are
    the matrix, times the window. Raises FuselineError: E0105 for a frame or step below 1, E0107 for frames longer than
    the signal."""
    x, step, window = node[0], int(node[1].numbers().reshape(-1)[0]), node.get(2)
    given, components = node.get(3), static_size(x.dims[2])
    if not is_float(x.dtype) or components not in (1, 2) or (window is None and given is None):
        raise NoNativeLowering("dft-form", f"frames of {components} parts of {x.dtype.name}")
    weights = np.ones(1) if window is None else window.numbers().astype(np.float64)
    length = int(given.numbers().reshape(-1)[0]) if given is not None else weights.size
    if length < 1 or step < 1:
        raise FuselineError(
            "E0105", f"frames of {length} samples, {step} apart: both must be positive", node=node.label
        )
    if weights.size not in (1, length):
        raise NoNativeLowering("dft-form", f"a window of {weights.size} for frames of {length}")
    dtype = accumulator(x.dtype)
    matrix = _matrix(node, length, length, components, False, bool(node.integer("onesided", 1))) * weights.reshape(
        -1, 1, 1, 1
    )
    bins = matrix.shape[2]
    filters = known(
        np.ascontiguousarray(matrix.transpose(2, 3, 1, 0)).reshape(2 * bins, components, length).astype(dtype),
        name=folded_name("stft_filters"),
    )
    if isinstance(x.dims[1], int) and x.dims[1] < length:
        raise FuselineError("E0107", f"frames of {length} of {x.dims[1]} samples", node=node.label)
    node.program.require_at_least(x.dims[1], length, node.label)
    frames = Window((length,), (step,), (1,), (0,), (0,), (add(floor_div(sub(x.dims[1], length), step), 1),))
    found = convolve(node, transposed(node, cast(node, x, dtype), [0, 2, 1]), filters, frames, 1)
    split = reshape(node, found, (x.dims[0], bins, 2, *frames.out))
    return cast(node, transposed(node, split, [0, 3, 1, 2]), x.dtype)


def _transformed(node: OnnxNode, axis: int) -> Tensor:
    """`x`, whose last axis holds real and imaginary parts (or only the former), transformed along another one."""
    x, at, components = node[0], normal_axis(axis, node[0].rank), static_size(node[0].dims[-1])
    if not is_float(x.dtype) or at == x.rank - 1 or components not in (1, 2):
        raise NoNativeLowering("dft-form", f"{components} parts of {x.dtype.name} along axis {at}")
    if x.dims[at] == 0 and node.get(1) is None and not node.integer("onesided"):
        empty = (*x.dims[:-1], 2)
        return result(node.program.empty(empty, x.dtype, node.emit), empty, x.dtype)
    real_result = bool(node.integer("inverse") and node.integer("onesided"))
    length, given = _length(node, static_size(x.dims[at]), real_result), static_size(x.dims[at])
    used = min(given, length // 2 + 1 if real_result else length)
    dtype = np.dtype(np.float64)
    matrix = _matrix(node, used, length, components, real_result, bool(node.integer("onesided")))
    if used < given:
        x = slice_of(node, x, [0] * x.rank, [used if i == at else size for i, size in enumerate(x.dims)], [1] * x.rank)
    weights = known(matrix.astype(dtype), name=folded_name("dft_matrix"))
    rank = x.rank
    loops = [
        *(matrix.shape[2] if i == at else size for i, size in enumerate(x.dims[:-1])),
        matrix.shape[3],
        used,
        components,
    ]
    spelled = [rank if i == at else i for i in range(rank - 1)]
    product = contract(
        node,
        (cast(node, x, dtype), [*spelled, rank + 1]),
        (weights, [rank, rank + 1, at, rank - 1]),
        loops,
        list(range(rank)),
        dtype,
    )
    return cast(node, product, x.dtype)


def _length(node: OnnxNode, size: int, real_result: bool) -> int:
    """How many places the signal has: what is missing is zeros."""
    given = node.get(1)
    length = int(given.numbers().reshape(-1)[0]) if given is not None else 2 * (size - 1) if real_result else size
    if length < 1:
        raise NoNativeLowering("dft-form", f"a transform of {length} places")
    return length


def _matrix(node: OnnxNode, used: int, length: int, components: int, real_result: bool, onesided: bool) -> NDArray[Any]:
    """`[used, components, results, result components]` in float64."""
    inverse = bool(node.integer("inverse"))
    results = length // 2 + 1 if onesided and not inverse else length
    entries = used * components * results * 2
    if entries > MOST_ENTRIES or not node.program.may_make(entries, np.dtype(np.float64)):
        raise NoNativeLowering("dft-length", f"{length} places")
    turns = np.outer(np.arange(used), np.arange(results)) % length * (2 * np.pi / length)
    cosine, sine = np.cos(turns), np.sin(turns) * (1 if inverse else -1)
    matrix = np.stack([np.stack([cosine, sine], -1), np.stack([-sine, cosine], -1)], 1)[
        :, :components
    ]  # 1 and i, times cosine + i sine
    if inverse:
        matrix = matrix / length
    if not real_result:
        return matrix
    counted = np.where((np.arange(used) == 0) | (2 * np.arange(used) == length), 1, 2)  # the conjugate half is left out
    return matrix[..., :1] * counted.reshape(-1, 1, 1, 1)
