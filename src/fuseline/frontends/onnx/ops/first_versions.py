"""Operators as the operator sets before 7 define them: operands aligned by `axis`, limits and shapes as attributes.

Source: ONNX's changelog of operators (`docs/Changelog.md`), versions 1 to 6.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import from_onnx, holds
from fuseline.frontends.onnx.emission import cast, reshape
from fuseline.frontends.onnx.host_values import Value
from fuseline.frontends.onnx.node import OnnxNode, normal_axis
from fuseline.frontends.onnx.registry import lowering_of, onnx_op
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor, known
from fuseline.ir.dim import Dim

Results = Value | Sequence[Value | None]


def _as_in(version: int, node: OnnxNode) -> Results:
    lowering = lowering_of("", node.op_type, version)
    assert lowering is not None
    return lowering(node)


def _aligned(node: OnnxNode) -> Results:
    """The second operand starts at dimension `axis` of the first (with `broadcast`; without `axis` it ends where the
    first ends, as in NumPy)."""
    x, y = node[0], node[1]
    if node.integer("broadcast") and node.has("axis"):
        axis = node.axis("axis", 0, x.rank)
        after = x.rank - axis - y.rank
        if after < 0:
            raise FuselineError("E0107", f"{y.rank} dimensions from axis {axis} on of {x.rank}", node=node.label)
        y = reshape(node, y, [*y.dims, *[1] * after])
    return _as_in(7, replace(node, inputs=[x, y]))


for _name in ("Add", "Sub", "Mul", "Div", "Pow", "Equal", "Less", "Greater", "And", "Or", "Xor"):
    onnx_op(_name)(_aligned)


@onnx_op("PRelu")
def prelu_v1(node: OnnxNode) -> Results:
    """One slope, or one for each channel: dimension 1."""
    x, slope = node[0], node[1]
    if slope.rank == 1 and x.rank > 2:
        slope = reshape(node, slope, [*slope.dims, *[1] * (x.rank - 2)])
    return _as_in(7, replace(node, inputs=[x, slope]))


@onnx_op("BatchNormalization")
def batch_norm_v1(node: OnnxNode) -> Results:
    """Inference, which `is_test` asks for."""
    if not node.integer("is_test"):
        raise NoNativeLowering("training", "running statistics are updated")
    return _as_in(7, node)


@onnx_op("Upsample")
def upsample_v1(node: OnnxNode) -> Results:
    """Scales of height and width; linear is called bilinear. Raises FuselineError as `upsample` does."""
    import onnx_ir as ir
    from onnx import helper

    scales = [1.0, 1.0, node.number("height_scale"), node.number("width_scale")]
    found = node.attributes["mode"].value if node.has("mode") else "nearest"
    mode = "linear" if found in ("bilinear", b"bilinear") else found
    given = (helper.make_attribute("scales", scales), helper.make_attribute("mode", mode))
    return _as_in(7, replace(node, attributes={item.name: ir.from_proto(item) for item in given}))


@onnx_op("Reshape")
def reshape_v1(node: OnnxNode) -> Results:
    """The shape as an attribute. Raises FuselineError as `reshape_op` does."""
    import numpy as np

    return _as_in(5, replace(node, inputs=[node[0], known(np.array(node.integers("shape"), np.int64))]))


@onnx_op("Tile")
def tile_v1(node: OnnxNode) -> Results:
    """`tiles` times along `axis` (scalars). Raises NoNativeLowering for an axis that there is not."""
    import numpy as np

    x, (count,), (axis,) = node[0], node[1].sizes(), node[2].sizes()
    if not isinstance(axis, int):
        raise NoNativeLowering("symbolic-axis", "the axis is a size")
    repeats: list[Dim] = [1] * x.rank
    repeats[normal_axis(axis, x.rank)] = count
    if not isinstance(count, int):
        raise NoNativeLowering("symbolic-repeats", "the number of tiles is a size")
    return _as_in(6, replace(node, inputs=[x, known(np.array(repeats, np.int64))]))


@onnx_op("Cast")
def cast_v1(node: OnnxNode) -> Tensor:
    """The type by its name. Raises FuselineError: E0105 for a name that is none's."""
    import onnx_ir as ir

    name = node.text("to")
    if name not in ir.DataType.__members__:
        raise FuselineError("E0105", f"no type is called '{name}'", node=node.label)
    wanted = ir.DataType[name]
    if not holds(wanted):
        raise NoNativeLowering("unsupported-dtype", wanted.name)
    return cast(node, node[0], from_onnx(wanted), asked=True)
