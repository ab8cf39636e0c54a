"""What convolutions and poolings share: where the window may stand, and the padding that makes it so."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from xdsl.ir.affine import AffineExpr, AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import result
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.onnx.window_positions import window_positions
from fuseline.ir.build import tensor_type
from fuseline.ir.dim import Dim, add, ceil_div, floor_div, maximum, mul, sub, to_text, upper_bound
from fuseline.ir.fast.create import create_pad


@dataclass(frozen=True)
class Window:
    """A window over spatial dimensions: its extents, steps, and the zeros around the image; `out` is where it stands.

    `explicit_high` is the padding at the end that the model states; `high` may hold more, for windows that ceil_mode
    lets hang over.
    """

    kernel: tuple[int, ...]
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    low: tuple[Dim, ...]
    high: tuple[Dim, ...]
    out: tuple[Dim, ...]
    explicit_high: tuple[Dim, ...] = ()

    @property
    def padded(self) -> bool:
        """Whether anything is padded."""
        return any(size != 0 for size in (*self.low, *self.high))


def window_of(node: OnnxNode, image: Sequence[Dim], kernel: Sequence[int]) -> Window:
    """The window that a node's attributes describe over spatial sizes `image`. Raises FuselineError: E0107 for one of
    another rank than the image, or larger than it."""
    rank = len(image)
    pads, strides = _stated_padding(node, rank), node.integers("strides") or [1] * rank
    dilations = node.integers("dilations") or [1] * rank
    require_per_dimension(node, rank, window=kernel, strides=strides, dilations=dilations, pads=pads)
    spans = [(k - 1) * step + 1 for k, step in zip(kernel, dilations, strict=True)]
    if _same(node):
        out, low, high = zip(
            *(_same_along(*axis, node) for axis in zip(image, spans, strides, strict=True)), strict=True
        )
        return Window(tuple(kernel), tuple(strides), tuple(dilations), low, high, out, high)
    low, stated = pads[:rank], pads[rank:]
    ceil = bool(node.integer("ceil_mode"))
    positions = [
        window_positions(image[axis], spans[axis], strides[axis], (low[axis], stated[axis]), ceil=ceil)
        for axis in range(rank)
    ]
    high = [add(end, extra) for end, (_, extra) in zip(stated, positions, strict=True)]
    out = tuple(size for size, _ in positions)
    if any((upper_bound(size) or 0) < 0 for size in out):
        where = [", ".join(map(to_text, sizes)) for sizes in (spans, image)]
        raise FuselineError(
            "E0107", f"a window of [{where[0]}] is larger than the padded image of [{where[1]}]", node=node.label
        )
    return Window(tuple(kernel), tuple(strides), tuple(dilations), tuple(low), tuple(high), out, tuple(stated))


def require_per_dimension(node: OnnxNode, rank: int, **settings: Sequence[int]) -> None:
    """Raises FuselineError (E0107) for a list with another number of entries than dimensions, or than their ends where
    it is called `pads`."""
    for name, numbers in settings.items():
        count = 2 * rank if name == "pads" else rank
        if len(numbers) != count:
            raise FuselineError(
                "E0107",
                f"{name} of {len(numbers)} numbers; an image of {rank} dimensions needs {count}",
                node=node.label,
            )


def _same(node: OnnxNode) -> bool:
    return node.text("auto_pad").startswith("SAME")


def _same_along(size: Dim, span: int, stride: int, node: OnnxNode) -> tuple[Dim, Dim, Dim]:
    """How many places the window has along one axis, and the padding before and after, with SAME_UPPER or
    SAME_LOWER."""
    out = ceil_div(size, stride)
    total = maximum(0, sub(add(mul(sub(out, 1), stride), span), size))
    small = floor_div(total, 2)
    large = sub(total, small)
    return (out, large, small) if node.text("auto_pad") == "SAME_LOWER" else (out, small, large)


def _stated_padding(node: OnnxNode, rank: int) -> list[int]:
    pads = node.integers("pads") if (node.text("auto_pad") or "NOTSET") == "NOTSET" else []
    return pads or [0] * (2 * rank)


def pad_spatial(node: OnnxNode, x: Tensor, window: Window, value: float | int) -> Tensor:
    """`x` with `value` around its spatial dimensions (the last ones)."""
    lead = x.rank - len(window.kernel)
    return pad(node, x, [0] * lead + list(window.low), [0] * lead + list(window.high), value)


def pad(node: OnnxNode, x: Tensor, low: Sequence[Dim], high: Sequence[Dim], value: float | int) -> Tensor:
    """`x` with `value` around it: `low` and `high` elements per axis."""
    if all(size == 0 for size in (*low, *high)):
        return x
    emit = node.emit
    scalar = emit.scalar(value, mlir_element(x.dtype))
    dims = tuple(add(size, add(a, b)) for size, a, b in zip(x.dims, low, high, strict=True))
    before, after = ([size if isinstance(size, int) else node.index(size) for size in sizes] for sizes in (low, high))
    op = create_pad(node.ssa(x), before, after, scalar, tensor_type(mlir_element(x.dtype), dims), emit.location)
    return result(emit.add(op).result, dims, x.dtype)


def window_map(
    rank: int, lead: Sequence[int], out_loops: Sequence[int], window_loops: Sequence[int], window: Window
) -> AffineMap:
    """From `rank` loops to the image: the `lead` loops as they are, then `out * stride + window * dilation` per spatial
    axis."""
    return _window_map(
        rank, tuple(lead), tuple(zip(out_loops, window_loops, window.strides, window.dilations, strict=True))
    )


@lru_cache(maxsize=1024)
def _window_map(rank: int, lead: tuple[int, ...], axes: tuple[tuple[int, int, int, int], ...]) -> AffineMap:
    spatial = [AffineExpr.dimension(o) * stride + AffineExpr.dimension(w) * dilation for o, w, stride, dilation in axes]
    return AffineMap(rank, 0, (*(AffineExpr.dimension(loop) for loop in lead), *spatial))
