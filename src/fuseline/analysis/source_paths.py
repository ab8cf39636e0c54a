"""Following a value back to the stored tensors that it is made of, through ops that only move data: the coordinates at
which each is read, and what was met on the way."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import tensor
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.border_modes import BorderMode
from fuseline.analysis.borders import border_read
from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.linear_forms import Linear, LinearCoordinates, fold_of
from fuseline.analysis.moves import Source, sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, splat_value
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim

MOST_SEGMENTS = 16
"""More pieces than this are not told apart: each takes code of its own in a kernel."""


@dataclass(frozen=True, slots=True)
class Border:
    """What is read beyond a bound: the element that the coordinate is folded back to by `mode`, `stride` elements per
    step."""

    mode: BorderMode
    stride: Dim


@dataclass(frozen=True, slots=True)
class Bound:
    """A coordinate that may leave its tensor: inside where `0 <= coordinate < size`. Linear in the loops themselves.

    Outside, nothing is read; with a `border`, the address moves by its stride times the way back inside.
    """

    coordinate: Linear
    size: Dim
    border: Border | None = None


@dataclass(frozen=True, slots=True)
class Path:
    """A value on the way back to memory, the coordinates at which it is read, and what was met.

    `bounds`: outside of them the element is `pad`. `ranges`: the points that fall into one operand of a concat.
    """

    value: SSAValue
    at: tuple[Linear, ...]
    bounds: tuple[Bound, ...] = ()
    pad: float | int | None = None
    ranges: tuple[Bound, ...] = ()


def coordinates_of(map_: AffineMap) -> list[Linear] | None:
    """The results of an indexing map as linear forms of its loops; None where one is not linear."""
    found = [linear_terms(expr) for expr in map_.results]
    return [Linear({**terms[0]}, terms[1]) for terms in found if terms is not None] if None not in found else None


class Tracer:
    """Follows a value to the stored tensors it is made of, rewriting the coordinates on the way."""

    def __init__(self, shapes: ShapeAnalysis, extents: tuple[Dim, ...], is_stored: Callable[[SSAValue], bool]) -> None:
        self.shapes, self.is_stored = shapes, is_stored
        self.coordinates = LinearCoordinates(extents)

    def follow(self, path: Path) -> list[Path] | None:
        """One path per piece; None where the value is computed."""
        while not self.stored(path.value):
            if not isinstance(path.value, OpResult):
                return None
            if isinstance(path.value.op, tensor.ConcatOp):
                return self._pieces(path, path.value.op)
            step = self.step(path, path.value.op)
            if step is None:
                return None
            path = step
        return [path]

    def stored(self, value: SSAValue) -> bool:
        """Whether a value lies in memory, or is a reshape of what does."""
        while not self.is_stored(value):
            if not isinstance(value, OpResult) or not isinstance(
                value.op, tensor.ExpandShapeOp | tensor.CollapseShapeOp
            ):
                return False
            value = value.op.src
        return True

    def _pieces(self, path: Path, op: tensor.ConcatOp) -> list[Path] | None:
        out: list[Path] = []
        for source in sources(op, path.at, self.shapes, self.coordinates) or ():
            ranges = _bounds(source)
            if not all(map(_may_hold, ranges)):
                continue
            moving = tuple(range_ for range_ in ranges if range_.coordinate.terms)
            found = self.follow(replace(path, value=source.value, at=source.at, ranges=(*path.ranges, *moving)))
            if found is None or len(out) > MOST_SEGMENTS:
                return None
            out += found
        return out or None

    def step(self, path: Path, op: Operation) -> Path | None:
        """Through an op that only moves data, a concat aside; None where it is another."""
        if is_generic(op):
            moved = (
                _through_copy(StructuredOp(op), path.at)
                if kind(op) in (Kind.COPY, Kind.TRANSPOSE, Kind.BROADCAST)
                else None
            )
            if moved is None:
                moved = self._through_border(op, path.at)
            return replace(path, value=moved[0], at=tuple(moved[1])) if moved is not None else None
        found = sources(op, path.at, self.shapes, self.coordinates)
        if found is None or len(found) != 1:
            return None
        pad = _pad_value(op) if isinstance(op, tensor.PadOp) else path.pad
        if isinstance(op, tensor.PadOp) and (pad is None or (path.pad is not None and pad != path.pad)):
            return None
        return replace(path, value=found[0].value, at=found[0].at, bounds=(*path.bounds, *_bounds(found[0])), pad=pad)

    def _through_border(self, op: Operation, at: Sequence[Linear]) -> tuple[SSAValue, list[Linear]] | None:
        """Through a gather that is a tensor with borders."""
        read = border_read(op, self.shapes) if is_generic(op) and kind(op) is Kind.GATHER else None
        if read is None or not is_generic(op):
            return None
        loops = _loops_at(StructuredOp(op), at)
        found: list[Linear] = []
        for axis, size in zip(read.axes, self.shapes.dims(read.source), strict=True):
            coordinate = loops[axis.loop].plus(Linear({}, -axis.low)) if loops is not None else None
            fold = fold_of(coordinate, size, axis.mode) if coordinate is not None and axis.mode is not None else None
            if coordinate is None or (fold is None and axis.mode is not None):
                return None
            found.append(coordinate if fold is None else coordinate.plus(fold))
        return read.source, found


def _bounds(source: Source[Linear]) -> tuple[Bound, ...]:
    return tuple(Bound(guard.coordinate, guard.size) for guard in source.guards)


def _pad_value(op: tensor.PadOp) -> float | int | None:
    last = op.region.block.last_op
    return splat_value(last.operands[0]) if last is not None else None


def _may_hold(bound: Bound) -> bool:
    """Whether a coordinate may lie inside its bound; one that loops move is taken to."""
    low, high = bound.coordinate.constant, d.sub(bound.coordinate.constant, bound.size)
    below, above = d.upper_bound(low), d.lower_bound(high)
    return bool(bound.coordinate.terms) or not ((below is not None and below < 0) or (above is not None and above >= 0))


def _through_copy(view: StructuredOp, at: Sequence[Linear]) -> tuple[SSAValue, list[Linear]] | None:
    """Through a generic that yields an input unchanged."""
    loops = _loops_at(view, at)
    last = view.body.last_op
    source = last.operands[0] if last is not None else None
    if loops is None or not isinstance(source, BlockArgument) or source.index >= len(view.inputs):
        return None
    inner = [form.with_loops(loops.__getitem__) for form in coordinates_of(view.input_maps[source.index]) or ()]
    found = [form for form in inner if form is not None]
    return (view.inputs[source.index], found) if len(found) == len(view.input_maps[source.index].results) else None


def _loops_at(view: StructuredOp, at: Sequence[Linear]) -> dict[int, Linear] | None:
    """Where the loops are that make element `at` of a generic's result; None where it does not tell them."""
    loops: dict[int, Linear] = {}
    for expr, coordinate in zip(view.output_maps[0].results, at, strict=True):
        if not isinstance(expr, AffineDimExpr):
            return None
        loops[expr.position] = coordinate
    return loops if len(loops) == view.rank else None
