"""The roles of the loops of a convolution or pooling, as in MLIR's `inferConvolutionDims`.

O[batch, image, channel, depth] += I[batch, image * stride + window * dilation, input_channel, depth] * F[window,
input_channel, channel, depth]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from xdsl.ir.affine import (
    AffineBinaryOpExpr,
    AffineBinaryOpKind,
    AffineConstantExpr,
    AffineDimExpr,
    AffineExpr,
    AffineMap,
)

from fuseline.analysis.indexing_maps import is_projected_permutation, used_dims
from fuseline.analysis.structured import WINDOWS, StructuredOp, kind
from fuseline.ir.fast.identity import by_identities


@dataclass(frozen=True, slots=True)
class WindowExpr:
    """One spatial coordinate of the image: `loop * stride + window * dilation + offset`."""

    loop: int
    window: int
    stride: int
    dilation: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class ConvolutionDims:
    """Loops by role. `image`/`filter` are positions among the inputs (`filter` is the window operand of a pooling).

    `spatial[i]` describes the image dimension `spatial_axes[i]`; `image_loops`/`window_loops` are its loops in the same
    order.
    """

    batch: tuple[int, ...]
    spatial: tuple[WindowExpr, ...]
    spatial_axes: tuple[int, ...]
    output_channel: tuple[int, ...]
    input_channel: tuple[int, ...]
    depth: tuple[int, ...]
    image: int
    filter: int

    @property
    def image_loops(self) -> tuple[int, ...]:
        """The output's spatial loops."""
        return tuple(expr.loop for expr in self.spatial)

    @property
    def window_loops(self) -> tuple[int, ...]:
        """The filter's spatial loops."""
        return tuple(expr.window for expr in self.spatial)


def linear_terms(expr: AffineExpr) -> tuple[dict[int, int], int] | None:
    """`expr` as coefficients by loop and a constant; None where it is not linear."""
    if type(expr) is AffineDimExpr:
        return {expr.position: 1}, 0
    if type(expr) is AffineConstantExpr:
        return {}, expr.value
    if type(expr) is AffineBinaryOpExpr:
        return _linear_binary(expr)
    return None


def _linear_binary(expr: AffineBinaryOpExpr) -> tuple[dict[int, int], int] | None:
    left, right = linear_terms(expr.lhs), linear_terms(expr.rhs)
    if left is None or right is None:
        return None
    if expr.kind is AffineBinaryOpKind.Add:
        merged = dict(left[0])
        for loop, coefficient in right[0].items():
            merged[loop] = merged.get(loop, 0) + coefficient
        return merged, left[1] + right[1]
    if expr.kind is AffineBinaryOpKind.Mul and not (left[0] and right[0]):
        terms, factor = (left, right[1]) if left[0] else (right, left[1])
        return {loop: c * factor for loop, c in terms[0].items()}, terms[1] * factor
    return None


def window_expr(expr: AffineExpr, iterators: Sequence[str]) -> WindowExpr | None:
    """`expr` as a window coordinate: one parallel and one reduction loop; None for any other form."""
    linear = linear_terms(expr)
    if linear is None or len(linear[0]) != 2:
        return None
    parallel = [loop for loop in linear[0] if iterators[loop] == "parallel"]
    reduced = [loop for loop in linear[0] if iterators[loop] == "reduction"]
    if len(parallel) != 1 or len(reduced) != 1:
        return None
    return WindowExpr(parallel[0], reduced[0], linear[0][parallel[0]], linear[0][reduced[0]], linear[1])


def convolution_dims(view: StructuredOp) -> ConvolutionDims | None:
    """The roles of the loops of a convolution, depthwise convolution or windowed pooling; None for any other op."""
    if "reduction" not in view.iterators or kind(view.op) not in WINDOWS:
        return None
    return _dims((*view.maps, view.iterators, view.input_count))


@by_identities
def _dims(signature: tuple[Any, ...]) -> ConvolutionDims | None:
    """The roles by the maps, the iterators and the number of inputs."""
    *maps, iterators, count = signature
    windowed = [i for i, map_ in enumerate(maps[:count]) if not is_projected_permutation(map_)]
    if len(windowed) != 1 or count != 2:
        return None
    image = windowed[0]
    spatial: list[WindowExpr] = []
    axes: list[int] = []
    for axis, expr in enumerate(maps[image].results):
        if type(expr) is AffineDimExpr or (type(expr) is AffineConstantExpr and expr.value == 0):
            continue
        window = window_expr(expr, iterators)
        if window is None:
            return None
        spatial.append(window)
        axes.append(axis)
    return _by_role(maps, image, tuple(spatial), tuple(axes))


def _by_role(
    maps: Sequence[AffineMap], image: int, spatial: tuple[WindowExpr, ...], axes: tuple[int, ...]
) -> ConvolutionDims | None:
    filter_ = 1 - image
    taken = {loop for expr in spatial for loop in (expr.loop, expr.window)}
    in_image = used_dims(maps[image])
    in_filter = used_dims(maps[filter_])
    in_output = used_dims(maps[2])
    roles: dict[str, list[int]] = {"batch": [], "output_channel": [], "input_channel": [], "depth": []}
    for loop in range(maps[0].num_dims):
        if loop in taken:
            continue
        role = _role(loop in in_image, loop in in_filter, loop in in_output)
        if role is None:
            return None
        roles[role].append(loop)
    return ConvolutionDims(
        tuple(roles["batch"]),
        spatial,
        axes,
        tuple(roles["output_channel"]),
        tuple(roles["input_channel"]),
        tuple(roles["depth"]),
        image,
        filter_,
    )


def _role(in_image: bool, in_filter: bool, in_output: bool) -> str | None:
    match in_image, in_filter, in_output:
        case True, True, True:
            return "depth"
        case True, False, True:
            return "batch"
        case False, True, True:
            return "output_channel"
        case True, True, False:
            return "input_channel"
        case True, False, False:
            return "input_channel"
        case _:
            return None
