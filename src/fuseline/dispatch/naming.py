"""What a dispatch is called: what it does, and the shape and type of what it makes, as in `gather_1x128x768_f32`."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import COMPUTING, Kind, kind

_TELLING = (Kind.GATHER, Kind.ELEMENTWISE, Kind.CONCAT, Kind.TRANSPOSE, Kind.PAD, Kind.SLICE, Kind.BROADCAST)
"""The first of these that a dispatch has says most, where no root computes: arithmetic is no copy, and where several
ops move data, a concat or a transpose is more than what is cut off on the way."""


def what_it_does(members: Sequence[Operation], root: Operation | None) -> str:
    """The kind of `root` where it computes, else the kind among `members` that says most; `empty` without any."""
    kinds = {kind(op) for op in members}
    if root is not None and kind(root) in COMPUTING:
        return kind(root).value
    other = kind(root).value if root is not None else "empty"
    return next((one.value for one in _TELLING if one in kinds), other)


def shape_label(value: SSAValue, shapes: ShapeAnalysis) -> str:
    """Shape and type of a tensor as in IREE's names of dispatches: `1x56x56x64_f32`, `D` for a size that only the run
    tells."""
    assert isinstance(value.type, TensorType)
    sizes = [str(size) if isinstance(size, int) else "D" for size in shapes.dims(value)]
    return "_".join([*(["x".join(sizes)] if sizes else []), str(value.type.element_type)])
