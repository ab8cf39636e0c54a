"""How a root op reads an operand: where its elements lie in stored tensors, seen through everything that only moves
data.

Pads, slices, reshapes, transposes, copies, broadcasts (nearest-neighbour upsampling is one) and concats are followed
back to the tensors that are stored. A pad becomes a `Bound`: outside of it the element is the pad value, and nothing is
read. A concat along a loop cuts that loop into `Segment`s, each with an access of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import tensor
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.convolution_dims import linear_terms
from fuseline.analysis.linear_forms import Floor, Linear, LinearCoordinates, flatten, range_of
from fuseline.analysis.moves import Source, sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, splat_value
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim

MOST_SEGMENTS = 16
"""More pieces than this are not told apart: each takes code of its own in a kernel."""


@dataclass(frozen=True, slots=True)
class Bound:
    """A coordinate that may leave its tensor: inside where `0 <= coordinate < size`. Linear in the loops themselves."""

    coordinate: Linear
    size: Dim


@dataclass(frozen=True, slots=True)
class Quotient:
    """A term of an address: `stride * floor(numerator / divisor)`."""

    numerator: Linear
    divisor: int
    stride: Dim


@dataclass(frozen=True, slots=True)
class LinearAccess:
    """Element `flat` (plus the quotients) of the stored tensor `source`; the pad value where a bound does not hold."""

    source: SSAValue
    flat: Linear
    bounds: tuple[Bound, ...] = ()
    pad: float | int = 0
    floordiv_terms: tuple[Quotient, ...] = ()

    def stride(self, loop: int) -> Dim:
        """Elements between two steps of `loop`, quotients aside."""
        return self.flat.terms.get(loop, 0)

    def has_floordiv(self, loop: int) -> bool:
        """Whether a quotient depends on `loop`."""
        return any(loop in q.numerator.terms for q in self.floordiv_terms)

    def step(self, loop: int, estimated: Callable[[Dim], int]) -> float:
        """About how far apart two steps of `loop` are, in elements; `estimated` stands in for sizes that are not
        known."""
        rounded = (
            estimated(q.numerator.terms.get(loop, 0)) * estimated(q.stride) / q.divisor for q in self.floordiv_terms
        )
        return abs(estimated(self.stride(loop)) + sum(rounded))


@dataclass(frozen=True, slots=True)
class Segment:
    """The iterations `start` to `start + size` of `loop`, and the access for them, in which `loop` counts from `start`.
    `loop` None: all."""

    loop: int | None
    start: Dim
    size: Dim
    access: LinearAccess


def always_inside(bound: Bound, extents: Sequence[Dim]) -> bool:
    """Whether no point of the loops leaves the bound."""
    found = range_of(bound.coordinate, extents)
    return found is not None and isinstance(bound.size, int) and found[0] >= 0 and found[1] < bound.size


def coordinates_of(map_: AffineMap) -> list[Linear] | None:
    """The results of an indexing map as linear forms of its loops; None where one is not linear."""
    found = [linear_terms(expr) for expr in map_.results]
    return [Linear({**terms[0]}, terms[1]) for terms in found if terms is not None] if None not in found else None


def segments(
    shapes: ShapeAnalysis,
    value: SSAValue,
    map_: AffineMap,
    extents: Sequence[Dim],
    is_stored: Callable[[SSAValue], bool],
) -> tuple[Segment, ...] | None:
    """Where the elements that `map_` picks of `value` lie, in the order of the loop that concats cut; None where they
    are computed.

    Args:
        map_: from loops to coordinates of `value`.
        extents: of the loops.
        is_stored: whether a value lies in memory; ops before it are not looked at.
    """
    coordinates = coordinates_of(map_)
    if coordinates is None:
        return None
    paths = Tracer(shapes, tuple(extents), is_stored).follow(Path(value, tuple(coordinates)))
    return _segments_of(paths, shapes, extents) if paths is not None and len(paths) <= MOST_SEGMENTS else None


# from paths to segments -----------------------------------------------------------------------------------------------


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


def _segments_of(paths: Sequence[Path], shapes: ShapeAnalysis, extents: Sequence[Dim]) -> tuple[Segment, ...] | None:
    loops = {loop for path in paths for range_ in path.ranges for loop in range_.coordinate.terms}
    if len(loops) > 1 or len({path.pad for path in paths if path.pad is not None}) > 1:
        return None
    loop = next(iter(loops), None)
    if not loops and len(paths) == 1:
        access = _access(paths[0], shapes, extents)
        return (Segment(None, 0, 1, access),) if access is not None else None
    if not isinstance(loop, int):
        return None
    out: list[Segment] = []
    for path in paths:
        found = _segment(path, loop, shapes, extents)
        if found is None:
            return None
        out += [found] if found.size != 0 else []
    return tuple(out) if out and _covers(out, extents[loop]) else None


def _covers(found: Sequence[Segment], extent: Dim) -> bool:
    """Whether the segments, in order, are the whole loop: where padding lies beside a concat they are not."""
    at: Dim = 0
    for segment in found:
        if segment.start != at:
            return False
        at = d.add(at, segment.size)
    return at == extent


def _segment(path: Path, loop: int, shapes: ShapeAnalysis, extents: Sequence[Dim]) -> Segment | None:
    start: Dim = 0
    stop = extents[loop]
    for range_ in path.ranges:
        if range_.coordinate.terms.get(loop) != 1:
            return None
        start = d.maximum(start, d.mul(range_.coordinate.constant, -1))
        stop = d.minimum(stop, d.sub(range_.size, range_.coordinate.constant))
    size = d.maximum(d.sub(stop, start), 0)
    shifted = _shifted(path, loop, start)
    inner = [size if i == loop else extent for i, extent in enumerate(extents)]
    access = _access(shifted, shapes, inner) if shifted is not None else None
    return Segment(loop, start, size, access) if access is not None else None


def _shifted(path: Path, loop: int, start: Dim) -> Path | None:
    if start == 0:
        return path
    at = [coordinate.counted_from(loop, start) for coordinate in path.at]
    inside = [bound.coordinate.counted_from(loop, start) for bound in path.bounds]
    if None in at or None in inside:
        return None
    bounds = tuple(Bound(c, bound.size) for c, bound in zip(inside, path.bounds, strict=True) if c is not None)
    return replace(path, at=tuple(c for c in at if c is not None), bounds=bounds)


def _access(path: Path, shapes: ShapeAnalysis, extents: Sequence[Dim]) -> LinearAccess | None:
    bounds = tuple(bound for bound in path.bounds if not always_inside(bound, extents))
    flat = flatten(path.at, shapes.dims(path.value))
    quotients = [_quotient(atom, stride) for atom, stride in flat.terms.items() if isinstance(atom, Floor)]
    if None in quotients or not all(bound.coordinate.plain for bound in bounds):
        return None
    plain = Linear({atom: c for atom, c in flat.terms.items() if isinstance(atom, int)}, flat.constant)
    return LinearAccess(_origin(path.value), plain, bounds, path.pad or 0, tuple(q for q in quotients if q is not None))


def _quotient(atom: Floor, stride: Dim) -> Quotient | None:
    return Quotient(atom.numerator, atom.divisor, stride) if isinstance(atom.divisor, int) else None


def _origin(value: SSAValue) -> SSAValue:
    """The tensor whose buffer `value` is: reshapes change nothing in memory."""
    while isinstance(value, OpResult) and isinstance(value.op, tensor.ExpandShapeOp | tensor.CollapseShapeOp):
        value = value.op.src
    return value


# following a value to memory ------------------------------------------------------------------------------------------


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
        for part in sources(op, path.at, self.shapes, self.coordinates) or ():
            ranges = _bounds(part)
            if not all(map(_may_hold, ranges)):
                continue
            moving = tuple(range_ for range_ in ranges if range_.coordinate.terms)
            found = self.follow(replace(path, value=part.value, at=part.at, ranges=(*path.ranges, *moving)))
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
            return replace(path, value=moved[0], at=tuple(moved[1])) if moved is not None else None
        found = sources(op, path.at, self.shapes, self.coordinates)
        if found is None or len(found) != 1:
            return None
        pad = _pad_value(op) if isinstance(op, tensor.PadOp) else path.pad
        if isinstance(op, tensor.PadOp) and (pad is None or (path.pad is not None and pad != path.pad)):
            return None
        return replace(path, value=found[0].value, at=found[0].at, bounds=(*path.bounds, *_bounds(found[0])), pad=pad)


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
    loops: dict[int, Linear] = {}
    for expr, coordinate in zip(view.output_maps[0].results, at, strict=True):
        if not isinstance(expr, AffineDimExpr):
            return None
        loops[expr.position] = coordinate
    last = view.body.last_op
    source = last.operands[0] if last is not None else None
    if not isinstance(source, BlockArgument) or source.index >= len(view.inputs) or len(loops) != view.rank:
        return None
    inner = [form.with_loops(loops.__getitem__) for form in coordinates_of(view.input_maps[source.index]) or ()]
    found = [form for form in inner if form is not None]
    return (view.inputs[source.index], found) if len(found) == len(view.input_maps[source.index].results) else None
