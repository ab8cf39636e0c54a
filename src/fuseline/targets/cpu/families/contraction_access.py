"""How a root op reads an operand: element `offset + sum(stride * loop)` of a binding, with bounds where the operand is padded.

Seen through pads, slices, reshapes and transposes, so that a kernel addresses the binding itself and nothing is copied. A pad becomes a
`Bound`: outside of it the element is the pad value, and the binding is not touched.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.dispatch_view import DispatchView
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, splat_value
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim
from fuseline.targets.cpu.access import dtype_of


@dataclass(frozen=True, slots=True)
class Linear:
    """`constant + sum(coefficient * loop)`."""

    terms: Mapping[int, Dim]
    constant: Dim = 0

    def plus(self, other: Linear) -> Linear:
        """The sum."""
        terms = dict(self.terms)
        for loop, coefficient in other.terms.items():
            terms[loop] = d.add(terms.get(loop, 0), coefficient)
        return Linear(terms, d.add(self.constant, other.constant))

    def times(self, factor: Dim) -> Linear:
        """The product with a size."""
        return Linear({loop: d.mul(c, factor) for loop, c in self.terms.items()}, d.mul(self.constant, factor))


@dataclass(frozen=True, slots=True)
class Bound:
    """A coordinate that may leave its tensor: inside where `0 <= coordinate < size`."""

    coordinate: Linear
    size: Dim


@dataclass(frozen=True, slots=True)
class LinearAccess:
    """Element `flat` of the binding `argument`; the pad value where a bound does not hold."""

    argument: BlockArgument
    dtype: str
    flat: Linear
    bounds: tuple[Bound, ...] = ()
    pad: float | int = 0

    def stride(self, loop: int) -> Dim:
        """Elements between two steps of `loop`."""
        return self.flat.terms.get(loop, 0)


def coordinates_of(map_: AffineMap) -> list[Linear] | None:
    """The results of an indexing map as linear forms of its loops; None where one is not linear."""
    found = [linear_terms(expr) for expr in map_.results]
    return [Linear(dict(terms[0]), terms[1]) for terms in found if terms is not None] if None not in found else None


def linear_access(view: DispatchView, value: SSAValue, map_: AffineMap) -> LinearAccess | None:
    """How the elements that `map_` picks of `value` lie in a binding; None where they are computed, or not linear in the loops."""
    coordinates = coordinates_of(map_)
    return _Resolver(view).resolve(value, coordinates) if coordinates is not None else None


class _Resolver:
    """Follows a value to its binding, rewriting the coordinates and collecting the bounds of pads on the way."""

    def __init__(self, view: DispatchView) -> None:
        self.view = view
        self.bounds: list[Bound] = []
        self.pad: float | int | None = None

    def resolve(self, value: SSAValue, at: list[Linear]) -> LinearAccess | None:
        while True:
            argument = _aliased_argument(value)
            if argument is not None:
                flat = flatten(at, self.view.shapes.dims(value))
                return LinearAccess(argument, dtype_of(argument.type), flat, tuple(self.bounds), self.pad or 0)
            assert isinstance(value, OpResult)
            step = self._step(value.op, value, at)
            if step is None:
                return None
            value, at = step

    def _step(self, op: Operation, value: OpResult, at: list[Linear]) -> tuple[SSAValue, list[Linear]] | None:
        if isinstance(op, tensor.PadOp):
            return self._through_pad(op, at)
        if isinstance(op, tensor.ExtractSliceOp):
            return self._through_slice(op, at)
        if isinstance(op, tensor.ExpandShapeOp):
            return self._through_expand(op, value, at)
        if isinstance(op, tensor.CastOp):
            return op.operands[0], at
        if isinstance(op, linalg.ops.TransposeOp):
            return _through_transpose(op, at)
        if is_generic(op) and kind(op) in (Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST):
            return _through_copy(StructuredOp(op), at)
        return None

    def _through_pad(self, op: tensor.PadOp, at: list[Linear]) -> tuple[SSAValue, list[Linear]] | None:
        last = op.region.block.last_op
        pad = splat_value(last.operands[0]) if last is not None else None
        if pad is None or (self.pad is not None and pad != self.pad):
            return None
        shapes = self.view.shapes
        lows, highs = shapes.mixed(_numbers(op, "static_low"), op.low), shapes.mixed(_numbers(op, "static_high"), op.high)
        self.pad = pad
        out: list[Linear] = []
        for coordinate, low, high, size in zip(at, lows, highs, shapes.dims(op.source), strict=True):
            shifted = coordinate.plus(Linear({}, d.mul(low, -1)))
            if low != 0 or high != 0:
                self.bounds.append(Bound(shifted, size))
            out.append(shifted)
        return op.source, out

    def _through_slice(self, op: tensor.ExtractSliceOp, at: list[Linear]) -> tuple[SSAValue, list[Linear]] | None:
        shapes = self.view.shapes
        offsets = shapes.mixed(_numbers(op, "static_offsets"), op.offsets)
        strides = shapes.mixed(_numbers(op, "static_strides"), op.strides)
        if len(offsets) != len(at):
            return None
        return op.source, [c.times(stride).plus(Linear({}, offset)) for c, offset, stride in zip(at, offsets, strides, strict=True)]

    def _through_expand(self, op: tensor.ExpandShapeOp, value: OpResult, at: list[Linear]) -> tuple[SSAValue, list[Linear]]:
        dims = self.view.shapes.dims(value)
        groups = [[axis.value.data for axis in group.data] for group in op.reassociation.data]
        return op.src, [flatten([at[a] for a in group], [dims[a] for a in group]) for group in groups]


def flatten(at: Sequence[Linear], dims: Sequence[Dim]) -> Linear:
    """The row-major linear index of the coordinates `at` in a tensor of sizes `dims`."""
    total = Linear({}, 0)
    for coordinate, size in zip(at, dims, strict=True):
        total = total.times(size).plus(coordinate)
    return total


def _aliased_argument(value: SSAValue) -> BlockArgument | None:
    """The argument whose buffer `value` is, reshapes seen through (they change nothing in memory)."""
    while isinstance(value, OpResult) and isinstance(value.op, tensor.ExpandShapeOp | tensor.CollapseShapeOp):
        value = value.op.src
    return value if isinstance(value, BlockArgument) and isinstance(value.type, TensorType) else None


def _through_transpose(op: linalg.ops.TransposeOp, at: list[Linear]) -> tuple[SSAValue, list[Linear]]:
    out = list(at)
    for axis, coordinate in zip(op.permutation.get_values(), at, strict=True):
        out[int(axis)] = coordinate
    return op.inputs[0], out


def _through_copy(view: StructuredOp, at: list[Linear]) -> tuple[SSAValue, list[Linear]] | None:
    """Through a generic that yields an input unchanged."""
    loops: dict[int, Linear] = {}
    for expr, coordinate in zip(view.output_maps[0].results, at, strict=True):
        if not isinstance(expr, AffineDimExpr):
            return None
        loops[expr.position] = coordinate
    last = view.body.last_op
    assert last is not None
    source = last.operands[0]
    assert isinstance(source, BlockArgument)
    inner = coordinates_of(view.input_maps[source.index])
    if inner is None or len(loops) != view.rank:
        return None
    return view.inputs[source.index], [substituted(c, loops) for c in inner]


def substituted(linear: Linear, loops: Mapping[int, Linear]) -> Linear:
    """`linear` with every loop replaced by a linear form."""
    total = Linear({}, linear.constant)
    for loop, coefficient in linear.terms.items():
        total = total.plus(loops[loop].times(coefficient))
    return total


def _numbers(op: Operation, name: str) -> list[int]:
    values = op.properties[name].get_values()  # pyright: ignore[reportAttributeAccessIssue]
    return [int(v) for v in values]
