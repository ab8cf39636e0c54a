"""What an operand that is computed is made of: the stored tensors it reads, and where along a loop that changes.

A loop that is run piece by piece between the borders of concats and pads meets no border inside a piece, so what is
evaluated there needs no conditions. The loop that traverses the stored tensors element by element is the one for the
lanes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from xdsl.ir import Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr, AffineMap

from fuseline.analysis.linear_forms import Linear, flatten
from fuseline.analysis.moves import Guard, sources
from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.source_paths import Path, Tracer, coordinates_of
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.ir.dim import Dim

MOST_VISITS = 64
"""Values looked at, at most: what many ops read is looked at once per way to read it."""


def segment_boundaries(
    shapes: ShapeAnalysis,
    value: SSAValue,
    map_: AffineMap,
    loop: int,
    extents: Sequence[Dim],
    is_stored: Callable[[SSAValue], bool],
) -> tuple[int, ...]:
    """The iterations of `loop`, in order and without 0, at which a part of `value` begins or ends; only those that are
    known."""
    coordinates = coordinates_of(map_)
    extent = extents[loop]
    if coordinates is None or not isinstance(extent, int):
        return ()
    visitor = _Visitor(Tracer(shapes, tuple(extents), is_stored), shapes, loop)
    visitor.visit(Path(value, tuple(coordinates)))
    return tuple(sorted(cut for cut in visitor.cuts if 0 < cut < extent))


def stored_strides(
    shapes: ShapeAnalysis,
    value: SSAValue,
    map_: AffineMap,
    loop: int,
    extents: Sequence[Dim],
    is_stored: Callable[[SSAValue], bool],
) -> list[Dim]:
    """Elements between two steps of `loop` in each stored tensor that `value` is made of, as far as they are linear in
    the loops."""
    coordinates = coordinates_of(map_)
    if coordinates is None:
        return []
    visitor = _Visitor(Tracer(shapes, tuple(extents), is_stored), shapes, loop)
    visitor.visit(Path(value, tuple(coordinates)))
    return visitor.strides


class _Visitor:
    """Collects the borders along one loop of everything that a value is computed from, and its steps in what is
    stored."""

    def __init__(self, tracer: Tracer, shapes: ShapeAnalysis, loop: int) -> None:
        self.tracer, self.shapes, self.loop = tracer, shapes, loop
        self.cuts: set[int] = set()
        self.strides: list[Dim] = []
        self.seen: set[Any] = set()

    def visit(self, path: Path) -> None:
        """Follow a value to what is stored."""
        key = (path.value, tuple((frozenset(c.terms.items()), c.constant) for c in path.at))
        if key in self.seen or len(self.seen) > MOST_VISITS:
            return
        self.seen.add(key)
        if self.tracer.stored(path.value):
            self.strides.append(flatten(path.at, self.shapes.dims(path.value)).terms.get(self.loop, 0))
        if self.tracer.stored(path.value) or not isinstance(path.value, OpResult):
            return
        for source in self._sources(path, path.value.op):
            self.visit(source)

    def _sources(self, path: Path, op: Operation) -> Iterable[Path]:
        moved = sources(op, path.at, self.shapes, self.tracer.coordinates)
        if moved is not None:
            self._cut(guard for source in moved for guard in source.guards)
            return [replace(path, value=source.value, at=source.at) for source in moved]
        copied = self.tracer.step(path, op)
        if copied is not None:
            return (copied,)
        return _operands(StructuredOp(op), path) if is_generic(op) else ()

    def _cut(self, guards: Iterable[Guard[Linear]]) -> None:
        """Note the iterations at which a coordinate that only this loop moves begins or ceases to lie inside its
        guard."""
        for guard in guards:
            step, start = guard.coordinate.terms.get(self.loop), guard.coordinate.constant
            if len(guard.coordinate.terms) == 1 and isinstance(step, int) and step > 0 and isinstance(start, int):
                self.cuts.update(-(-(border - start) // step) for border in (0, guard.size) if isinstance(border, int))


def _operands(view: StructuredOp, path: Path) -> Iterable[Path]:
    """The inputs of an all-parallel op at the point that makes an element of its result."""
    loops: dict[int, Linear] = {}
    for expr, coordinate in zip(view.output_maps[0].results, path.at, strict=True):
        if isinstance(expr, AffineDimExpr):
            loops[expr.position] = coordinate
    if not loops.keys() >= set(range(view.rank)):
        return
    for value, map_ in zip(view.inputs, view.input_maps, strict=True):
        forms = coordinates_of(map_)
        inner = [form.with_loops(loops.__getitem__) for form in forms] if forms is not None else [None]
        found = [form for form in inner if form is not None]
        if len(found) == len(inner):
            yield replace(path, value=value, at=tuple(found))


def split_at(extent: Any, cuts: Collection[int]) -> list[tuple[Any, Any]]:
    """`0..extent` cut at `cuts`: `(begin, end)` of each piece.

    >>> split_at(64, (32,))
    [(0, 32), (32, 64)]
    """
    ends = [*sorted(cuts), extent]
    return list(zip([0, *ends[:-1]], ends, strict=True))
