"""Ops that move elements or call axes otherwise."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.emission import reshape, result
from fuseline.frontends.onnx.ops.shape import transposed
from fuseline.frontends.onnx.ops.slicing import Cut, taken
from fuseline.frontends.onnx.tensors import Tensor, static_size, view
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import tensor_type
from fuseline.ir.dim import Dim, add, floor_div, sub, sum_of
from fuseline.ir.fast.create import create_concat


@hlo_op("reshape")
def reshape_op(hlo: Hlo) -> Tensor:
    """The same elements in other dimensions."""
    return reshape(hlo.node, hlo[0], hlo.static_shape())


@hlo_op("dynamic_reshape")
def dynamic_reshape(hlo: Hlo) -> Tensor:
    """The same elements in dimensions that are computed."""
    return reshape(hlo.node, hlo[0], hlo.dims(hlo[1].sizes()))


@hlo_op("broadcast_in_dim")
def broadcast_in_dim(hlo: Hlo) -> Tensor:
    """Repeated along the axes that the operand does not have, or has with size 1."""
    return _broadcast(hlo, hlo[0], hlo.static_shape(), hlo.integers("broadcast_dimensions"))


@hlo_op("dynamic_broadcast_in_dim")
def dynamic_broadcast_in_dim(hlo: Hlo) -> Tensor:
    """The same, to sizes that are computed."""
    return _broadcast(hlo, hlo[0], hlo.dims(hlo[1].sizes()), hlo.integers("broadcast_dimensions"))


@hlo_op("broadcast")
def broadcast(hlo: Hlo) -> Tensor:
    """With more axes in front."""
    dims = hlo.dims([*hlo.integers("broadcast_sizes"), *hlo[0].dims])
    return _broadcast(hlo, hlo[0], dims, list(range(len(dims) - hlo[0].rank, len(dims))))


def _broadcast(hlo: Hlo, x: Tensor, dims: Sequence[Dim], axes: Sequence[int]) -> Tensor:
    """`x` whose axis k is axis `axes[k]` of `dims`."""
    if len(axes) != x.rank or any(axis >= len(dims) for axis in axes):
        raise FuselineError("E0302", f"{hlo.op.name}: axes {list(axes)} for {x.rank} dimensions", node=hlo.location)
    followed: list[int | None] = []
    for axis, size in zip(axes, x.dims, strict=True):
        repeats = size == 1 and dims[axis] != 1
        followed.append(None if repeats else axis)
        if not repeats:
            hlo.program.require_equal(size, dims[axis], hlo.label)
    if list(axes) == list(range(len(dims))) and None not in followed:
        return hlo.with_dims(x, dims)
    kept = [size if axis is None else dims[axis] for axis, size in zip(followed, x.dims, strict=True)]
    return view(hlo.with_dims(x, kept), dims, followed)


@hlo_op("transpose")
def transpose(hlo: Hlo) -> Tensor:
    """Axes in another order."""
    order = hlo.integers("permutation")
    if sorted(order) != list(range(hlo[0].rank)):
        raise FuselineError("E0302", f"{hlo.op.name}: {order} is no order of {hlo[0].rank} axes", node=hlo.location)
    return transposed(hlo.node, hlo[0], order)


@hlo_op("reverse")
def reverse(hlo: Hlo) -> Tensor:
    """Axes from their end to their start."""
    x, turned = hlo[0], hlo.integers("dimensions")
    cuts = [Cut(sub(d, 1), d, -1) if axis in turned else Cut(0, d, 1) for axis, d in enumerate(x.dims)]
    return taken(hlo.node, x, cuts)


@hlo_op("slice")
def slice_op(hlo: Hlo) -> Tensor:
    """From, to, in steps, per axis."""
    bounds = [hlo.integers(name) for name in ("start_indices", "limit_indices", "strides")]
    cuts: list[Cut] = []
    for first, last, step, size in zip(*bounds, hlo[0].dims, strict=True):
        if first < 0 or last < first or step < 1 or (isinstance(size, int) and last > size):
            raise FuselineError("E0302", f"{hlo.op.name}: {first}:{last}:{step} of {size}", node=hlo.location)
        if not isinstance(size, int):
            hlo.program.require_at_least(size, last, hlo.label)
        cuts.append(Cut(first, -(-(last - first) // step), step))
    return taken(hlo.node, hlo[0], cuts)


@hlo_op("real_dynamic_slice")
def real_dynamic_slice(hlo: Hlo) -> Tensor:
    """From, to, in steps that are computed from sizes."""
    starts, limits, steps = (t.sizes() for t in hlo.inputs[1:4])
    cuts: list[Cut] = []
    for first, last, step, size in zip(starts, limits, steps, hlo[0].dims, strict=True):
        stride = static_size(step)
        count = floor_div(add(sub(last, first), stride - 1), stride)
        hlo.program.require_at_least(sub(size, last), 0, hlo.label)
        hlo.program.require_at_least(first, 0, hlo.label)
        cuts.append(Cut(first, count, stride))
    return taken(hlo.node, hlo[0], cuts)


@hlo_op("concatenate")
def concatenate(hlo: Hlo) -> Tensor:
    """Operands behind one another along an axis."""
    axis = hlo.integer("dimension")
    parts = [t for t in hlo.inputs if t.dims[axis] != 0] or hlo.inputs[:1]
    if len(parts) == 1:
        return parts[0]
    dims = hlo.dims([sum_of(t.dims[i] for t in parts) if i == axis else d for i, d in enumerate(parts[0].dims)])
    if all(t.is_constant for t in parts):
        return hlo.onnx("Concat", parts, axis=axis)[0]
    values = [
        hlo.node.ssa(hlo.with_dims(t, [t.dims[i] if i == axis else d for i, d in enumerate(dims)])) for t in parts
    ]
    op = create_concat(values, axis, tensor_type(mlir_element(parts[0].dtype), dims))
    return result(hlo.node.emit.add(op).result, dims, parts[0].dtype)
