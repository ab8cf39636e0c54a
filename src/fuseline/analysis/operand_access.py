"""How a root op reads an operand: where its elements lie in stored tensors, seen through everything that only moves
data.

Pads, slices, reshapes, transposes, copies, broadcasts (nearest-neighbour upsampling is one) and concats are followed
back to the tensors that are stored. A pad becomes a `Bound`: outside of it the element is the pad value, and nothing is
read. A border that repeats the tensor becomes a `Bound` as well, outside of which another element is read. A concat
along a loop cuts that loop into `Segment`s, each with an access of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from xdsl.dialects import tensor
from xdsl.ir import OpResult, SSAValue
from xdsl.ir.affine import AffineMap

from fuseline.analysis.linear_forms import Floor, Fold, Linear, flatten, range_of
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.source_paths import MOST_SEGMENTS, Border, Bound, Path, Tracer, coordinates_of
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim


@dataclass(frozen=True, slots=True)
class Quotient:
    """A term of an address: `stride * floor(numerator / divisor)`."""

    numerator: Linear
    divisor: int
    stride: Dim


@dataclass(frozen=True, slots=True)
class LinearAccess:
    """Element `flat` (plus the quotients, plus what borders add) of the stored tensor `source`; the pad value where a
    bound without a border does not hold."""

    source: SSAValue
    flat: Linear
    bounds: tuple[Bound, ...] = ()
    pad: float | int = 0
    floordiv_terms: tuple[Quotient, ...] = ()

    @property
    def padding(self) -> tuple[Bound, ...]:
        """The bounds beyond which elements are the pad value."""
        return tuple(bound for bound in self.bounds if bound.border is None)

    @property
    def borders(self) -> tuple[Bound, ...]:
        """The bounds beyond which other elements are read."""
        return tuple(bound for bound in self.bounds if bound.border is not None)

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
    plain, rounded = Linear({**flat.loops}, flat.constant), tuple(q for q in quotients if q is not None)
    return LinearAccess(_origin(path.value), plain, (*bounds, *_borders(flat, extents)), path.pad or 0, rounded)


def _borders(flat: Linear, extents: Sequence[Dim]) -> list[Bound]:
    """The bounds of the folds in an address, those that are left anywhere."""
    folds = [(atom, stride) for atom, stride in flat.terms.items() if isinstance(atom, Fold)]
    found = [Bound(atom.coordinate, atom.size, Border(atom.mode, stride)) for atom, stride in folds]
    return [bound for bound in found if not always_inside(bound, extents)]


def _quotient(atom: Floor, stride: Dim) -> Quotient | None:
    return Quotient(atom.numerator, atom.divisor, stride) if isinstance(atom.divisor, int) else None


def _origin(value: SSAValue) -> SSAValue:
    """The tensor whose buffer `value` is: reshapes change nothing in memory."""
    while isinstance(value, OpResult) and isinstance(value.op, tensor.ExpandShapeOp | tensor.CollapseShapeOp):
        value = value.op.src
    return value
