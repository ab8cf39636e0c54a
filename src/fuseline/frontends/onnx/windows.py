"""What convolutions and poolings share: where the window may stand, and the padding that makes it so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.ir.build import tensor_type
from fuseline.ir.create import create_pad
from fuseline.ir.dim import Dim, add, floor_div, sub


@dataclass(frozen=True)
class Window:
    """A window over spatial dimensions: its extents, steps, and the zeros around the image; `out` is where it stands."""

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[int, ...]
    high: tuple[int, ...]
    out: tuple[Dim, ...]

    @property
    def padded(self) -> bool:
        """Whether anything is padded."""
        return any(self.low) or any(self.high)


def window_of(node: OnnxNode, image: Sequence[Dim], kernel: Sequence[int]) -> Window:
    """The window that a node's attributes describe over spatial sizes `image`."""
    rank = len(image)
    strides = node.integers("strides") or [1] * rank
    dilations = node.integers("dilations") or [1] * rank
    spans = [(k - 1) * step + 1 for k, step in zip(kernel, dilations, strict=True)]
    low, high = _padding(node, image, spans, strides)
    ceil = bool(node.integer("ceil_mode"))
    out: list[Dim] = []
    for axis in range(rank):
        size, extra = _positions(image[axis], spans[axis], strides[axis], low[axis], high[axis], ceil)
        out.append(size)
        high[axis] += extra
    return Window(tuple(kernel), tuple(strides), tuple(dilations), tuple(low), tuple(high), tuple(out))


def _positions(size: Dim, span: int, stride: int, low: int, high: int, ceil: bool) -> tuple[Dim, int]:
    """How many places the window has, and how much more padding at the end it needs for them (ceil mode)."""
    room = sub(add(size, low + high), span)
    if not ceil or stride == 1:
        return add(floor_div(room, stride), 1), 0
    if not isinstance(room, int) or not isinstance(size, int):
        raise NoNativeLowering("symbolic-window", "ceil_mode over a symbolic size")
    count = -(-room // stride) + 1
    if (count - 1) * stride >= size + low:  # the last window may not start in the padding at the end
        count -= 1
    return count, max(0, (count - 1) * stride + span - (size + low + high))


def _padding(node: OnnxNode, image: Sequence[Dim], spans: Sequence[int], strides: Sequence[int]) -> tuple[list[int], list[int]]:
    rank, mode = len(image), node.text("auto_pad", "NOTSET") or "NOTSET"
    if mode in ("NOTSET", "VALID"):
        pads = node.integers("pads") if mode == "NOTSET" else []
        pads = pads or [0] * (2 * rank)
        return pads[:rank], pads[rank:]
    low, high = [], []
    for size, span, stride in zip(image, spans, strides, strict=True):
        if not isinstance(size, int):
            raise NoNativeLowering("symbolic-window", f"{mode} over a symbolic size")
        total = max(0, (-(-size // stride) - 1) * stride + span - size)
        small, large = total // 2, total - total // 2
        low.append(large if mode == "SAME_LOWER" else small)
        high.append(small if mode == "SAME_LOWER" else large)
    return low, high


def pad_spatial(node: OnnxNode, x: Tensor, window: Window, value: float | int) -> Tensor:
    """`x` with `value` around its spatial dimensions (the last ones)."""
    lead = x.rank - len(window.kernel)
    return pad(node, x, [0] * lead + list(window.low), [0] * lead + list(window.high), value)


def pad(node: OnnxNode, x: Tensor, low: Sequence[int], high: Sequence[int], value: float | int) -> Tensor:
    """`x` with `value` around it: `low` and `high` elements per axis."""
    if not any(low) and not any(high):
        return x
    emit = node.emit
    scalar = emit.scalar(value, mlir_element(x.dtype))
    dims = tuple(add(size, a + b) for size, a, b in zip(x.dims, low, high, strict=True))
    op = create_pad(node.ssa(x), low, high, scalar, tensor_type(mlir_element(x.dtype), dims), emit.location)
    return result(emit.add(op).result, dims, x.dtype)


def window_map(rank: int, lead: Sequence[int], out_loops: Sequence[int], window_loops: Sequence[int], window: Window) -> AffineMap:
    """From `rank` loops to the image: the `lead` loops as they are, then `out * stride + window * dilation` per spatial axis."""
    spatial = [
        AffineExpr.dimension(o) * stride + AffineExpr.dimension(w) * dilation
        for o, w, stride, dilation in zip(out_loops, window_loops, window.strides, window.dilations, strict=True)
    ]
    return AffineMap(rank, 0, (*(AffineExpr.dimension(loop) for loop in lead), *spatial))
