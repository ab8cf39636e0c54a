"""Elements at computed indices: gather, and slices whose start is computed.

A start that leads out of the operand is moved to the nearest one that does not, as the standard says.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx import scalars as s
from fuseline.frontends.onnx.dtypes import INDEX_DTYPE
from fuseline.frontends.onnx.ops.indexing import gather_at
from fuseline.frontends.onnx.ops.slicing import Cut, taken
from fuseline.frontends.onnx.tensors import Tensor, view
from fuseline.frontends.stablehlo.hlo import Hlo, scalar_number
from fuseline.frontends.stablehlo.registry import hlo_op
from fuseline.ir.build import Body
from fuseline.ir.dim import Dim, maximum, minimum, sub


def inside(hlo: Hlo, b: Body, start: SSAValue, index: Tensor, last: Dim) -> SSAValue:
    """A start as an index between 0 and `last`."""
    if last == 0:
        return s.index_constant(b, 0)
    wide = s.convert(b, start, index.dtype, INDEX_DTYPE)
    position = b.op(arith.IndexCastOp, wide, s.INDEX)
    end = s.index_constant(b, last) if isinstance(last, int) else hlo.node.index(last)
    return b.op(arith.MaxSIOp, b.op(arith.MinSIOp, position, end), s.index_constant(b, 0))


@hlo_op("dynamic_slice")
def dynamic_slice(hlo: Hlo) -> Tensor:
    """A box of known sizes, whose start is computed."""
    return box_of(hlo, hlo[0], hlo.inputs[1:], hlo.integers("slice_sizes"))


def box_of(hlo: Hlo, x: Tensor, starts: Sequence[Tensor], sizes: Sequence[Dim]) -> Tensor:
    """`sizes` elements per axis from `starts` on, moved inside."""
    lasts = [sub(d, size) for d, size in zip(x.dims, sizes, strict=True)]
    known = [0 if last == 0 else known_start(t, last) for t, last in zip(starts, lasts, strict=True)]
    cuts = [
        Cut(start, size, 1) if start is not None else Cut(0, d, 1)
        for start, size, d in zip(known, sizes, x.dims, strict=True)
    ]
    cut = taken(hlo.node, x, cuts)
    moving = [axis for axis, start in enumerate(known) if start is None]
    if not moving:
        return cut
    nowhere: list[int | None] = []

    def coordinates(b: Body, *elements: SSAValue) -> list[SSAValue]:
        found = dict(zip(moving, elements, strict=True))
        return [
            b.op(arith.AddiOp, inside(hlo, b, found[axis], starts[axis], lasts[axis]), s.loop_index(b, axis))
            if axis in found
            else s.loop_index(b, axis)
            for axis in range(x.rank)
        ]

    return gather_at(hlo.node, cut, [(starts[axis], nowhere) for axis in moving], sizes, coordinates)


def known_start(t: Tensor, last: Dim) -> Dim | None:
    """A start that is known while reading, moved inside; None for one that is computed."""
    number = scalar_number(t)
    if number is None and t.array is not None and t.array.size == 1:
        number = t.sizes()[0]
    return None if number is None else maximum(minimum(number, last), 0)


@hlo_op("gather")
def gather(hlo: Hlo) -> Tensor:
    """Slices of the operand at starts that rows of the indices spell."""
    return gathered(hlo, hlo.integers("slice_sizes"))


@hlo_op("dynamic_gather")
def dynamic_gather(hlo: Hlo) -> Tensor:
    """The same with sizes of slices that are computed."""
    return gathered(hlo, hlo[2].sizes())


class DimensionNumbers:
    """How the axes of a gather (or a scatter) belong together."""

    def __init__(self, hlo: Hlo, numbers: dict[str, list[int]], indices: Tensor, words: Sequence[str]) -> None:
        window, collapsed, map_, batching, of_indices = words
        self.window = numbers.get(window, [])
        self.collapsed = numbers.get(collapsed, [])
        self.start = numbers.get(map_, [])
        self.batching = numbers.get(batching, [])
        self.indices_batching = numbers.get(of_indices, [])
        self.vector = numbers.get("index_vector_dim", [0])[0]
        axes = [*self.start, *self.collapsed, *self.batching, *self.indices_batching, self.vector]
        if min(axes, default=0) < 0 or self.vector > indices.rank or len(self.batching) != len(self.indices_batching):
            raise FuselineError("E0302", f"{hlo.op.name}: dimension numbers that make no sense", node=hlo.location)

    def kept(self, rank: int) -> list[int]:
        """The axes of the operand that slices have."""
        return [axis for axis in range(rank) if axis not in self.collapsed and axis not in self.batching]


GATHER = (
    "offset_dims",
    "collapsed_slice_dims",
    "start_index_map",
    "operand_batching_dims",
    "start_indices_batching_dims",
)
SCATTER = (
    "update_window_dims",
    "inserted_window_dims",
    "scatter_dims_to_operand_dims",
    "input_batching_dims",
    "scatter_indices_batching_dims",
)


def dimension_numbers(hlo: Hlo, indices: Tensor) -> DimensionNumbers:
    """The dimension numbers of a gather or a scatter. Raises FuselineError (E0302) where they make no sense."""
    if "scatter" in hlo.name:
        return DimensionNumbers(hlo, hlo.fields("scatter_dimension_numbers"), indices, SCATTER)
    return DimensionNumbers(hlo, hlo.fields("dimension_numbers"), indices, GATHER)


def gathered(hlo: Hlo, sizes: Sequence[Dim]) -> Tensor:
    """The result of a gather whose slices have `sizes`, per axis of the operand."""
    x, indices = hlo[0], hlo[1]
    numbers = dimension_numbers(hlo, indices)
    lead = [axis for axis in range(indices.rank) if axis != numbers.vector]
    rank = len(lead) + len(numbers.window)
    batch = [axis for axis in range(rank) if axis not in numbers.window]
    kept = numbers.kept(x.rank)
    if len(kept) != len(numbers.window) or len(sizes) != x.rank or len(hlo.shape()) != rank:
        raise FuselineError("E0302", f"{hlo.op.name}: slices of another rank", node=hlo.location)
    computed: list[Dim] = [0] * rank
    for loop, axis in zip(batch, lead, strict=True):
        computed[loop] = indices.dims[axis]
    for loop, axis in zip(numbers.window, kept, strict=True):
        computed[loop] = sizes[axis]
    loop_of = dict(zip(kept, numbers.window, strict=True))
    batch_loop = {
        axis: batch[lead.index(i)] for axis, i in zip(numbers.batching, numbers.indices_batching, strict=True)
    }
    moving = [axis for axis in numbers.start if sub(x.dims[axis], sizes[axis]) != 0]
    columns = [(index_column(hlo, indices, numbers.vector, numbers.start.index(axis)), [*batch]) for axis in moving]

    def coordinates(b: Body, *elements: SSAValue) -> list[SSAValue]:
        found = dict(zip(moving, elements, strict=True))
        return [_coordinate(b, axis, found.get(axis)) for axis in range(x.rank)]

    def _coordinate(b: Body, axis: int, element: SSAValue | None) -> SSAValue:
        if axis in batch_loop:
            return s.loop_index(b, batch_loop[axis])
        within = s.loop_index(b, loop_of[axis]) if axis in loop_of and sizes[axis] != 1 else None
        if element is None:
            return within if within is not None else s.index_constant(b, 0)
        start = inside(hlo, b, element, indices, sub(x.dims[axis], sizes[axis]))
        return start if within is None else b.op(arith.AddiOp, start, within)

    return gather_at(hlo.node, x, columns, hlo.dims(computed), coordinates)


def index_column(hlo: Hlo, indices: Tensor, vector: int, number: int) -> Tensor:
    """Component `number` of the index vectors, without their axis."""
    if vector == indices.rank:
        return indices
    rest = [d for axis, d in enumerate(indices.dims) if axis != vector]
    if indices.dims[vector] != 1:
        cuts = [Cut(number, 1, 1) if axis == vector else Cut(0, d, 1) for axis, d in enumerate(indices.dims)]
        indices = taken(hlo.node, indices, cuts)
    if indices.is_constant and indices.array is not None:
        from fuseline.frontends.onnx.tensors import known

        return known(indices.array.reshape([d for d in rest if isinstance(d, int)]), indices.dtype, indices.name)
    followed = [None if axis == vector else axis - (axis > vector) for axis in range(indices.rank)]
    return view(indices, rest, followed)


@hlo_op("torch_index_select")
def torch_index_select(hlo: Hlo) -> Tensor:
    """Slices along one axis at the starts that the indices give."""
    if hlo.integer("batch_dims"):
        raise hlo.refusal("batch_dims")
    return hlo.onnx("Gather", hlo.inputs, axis=hlo.integer("dim"))[0]
