"""Where a copy of an image takes its elements from: the buffer that the image lies in, or what is evaluated for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from fuseline.analysis.computed_images import ComputedImage
from fuseline.analysis.operand_access import LinearAccess
from fuseline.targets.cpu.emit.body_emitter import BodyEmitter
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.emit.dispatch_buffers import DispatchBuffers
from fuseline.targets.cpu.emit.folded_address import Folding, folded
from fuseline.targets.cpu.families.contraction.axes import Axis
from fuseline.targets.cpu.families.directions import Direction
from fuseline.targets.cpu.kernel_ir.types import Address, Operand, Value

Outer = Mapping[Axis, Operand]

Place = TypeVar("Place")
"""Where an element of the image is."""


class CopiedRows(Protocol[Place]):
    """Rows of an image in steps of its directions, and lanes along one of its dimensions."""

    def row(self, outer: Outer, row: Operand, lane: Operand) -> Place:
        """Where step `row` begins, at element `lane` along the lanes."""
        ...

    def column(self, place: Place, column: Operand, *, inside: bool) -> Place:
        """So many steps along the pixels; not `inside`: where that may lie in a border that repeats the image."""
        ...

    def along(self, place: Place, lane: Operand) -> Place:
        """So many elements along the lanes."""
        ...

    def vector(self, place: Place, lanes: int, active: Operand | None) -> Value:
        """Neighbouring elements along the lanes."""
        ...


class StoredRows:
    """Those of an image as it lies: places are addresses."""

    def __init__(self, buffers: DispatchBuffers, image: LinearAccess, ways: tuple[Direction, Direction]) -> None:
        self.buffers, self.kernel, self.image, (self.rows, self.columns) = buffers, buffers.kernel, image, ways

    def row(self, outer: Outer, row: Operand, lane: Operand) -> Address:
        """Where step `row` begins, as if the image went on beyond its border where it repeats nothing."""
        kernel = self.kernel
        total = kernel.add(self.buffers.operand(self.image.flat.constant), lane)
        for axis, value in outer.items():
            total = kernel.add(total, kernel.mul(value, self.buffers.operand(self.image.stride(axis.inner))))
        start = kernel.address(
            self.buffers.argument(self.image.source),
            kernel.add(total, kernel.mul(row, self.buffers.operand(self.rows.stride))),
        )
        return self._folded(self.rows, start, row)

    def column(self, place: Address, column: Operand, *, inside: bool) -> Address:
        """So many steps along the pixels."""
        place = self.kernel.offset(place, self.kernel.mul(column, self.buffers.operand(self.columns.stride)))
        return place if inside else self._folded(self.columns, place, column)

    def along(self, place: Address, lane: Operand) -> Address:
        """So many elements on."""
        return self.kernel.offset(place, lane)

    def vector(self, place: Address, lanes: int, active: Operand | None) -> Value:
        """What lies there."""
        return self.kernel.load(place, 0, lanes, active=active)

    def _folded(self, way: Direction, place: Address, step: Operand) -> Address:
        """Where step `step` of a direction is, given the place as if the image went on beyond its border."""
        if way.border is None or way.size is None:
            return place
        first, size, stride = (self.buffers.operand(one) for one in (way.first, way.size, way.border.stride))
        coordinate = self.kernel.add(self.kernel.mul(step, way.scale), first)
        return Folding(way.border.mode, size, stride).at(self.kernel, place, coordinate)


@dataclass(frozen=True, slots=True)
class EvaluatedPlace:
    """A point of the image, in steps of its directions, and along the lanes. `inside`: it lies before no border along
    the pixels."""

    outer: Outer
    row: Operand
    column: Operand
    lane: Operand
    inside: bool = False


class EvaluatedRows:
    """Those of an image that is computed: places are points, and what is there is evaluated. `roles`: the loops that
    move rows, columns and lanes (those of the result, then those of the window), with how far a loop of the first two
    goes in steps of its direction; lanes may be columns."""

    def __init__(self, emitter: BodyEmitter, image: ComputedImage, roles: EvaluatedRoles) -> None:
        self.emitter, self.kernel, self.image = emitter, emitter.kernel, image
        self.row_steps, self.column_steps = (_steps(image, moves) for moves in (roles.rows, roles.columns))
        self.lane_steps = [_int(form.terms.get(roles.lane, 0)) for form in image.at] if roles.lane is not None else []
        self.borders = [image.border_of(axis) for axis in range(len(image.at))]

    def row(self, outer: Outer, row: Operand, lane: Operand) -> EvaluatedPlace:
        """Where step `row` begins."""
        return EvaluatedPlace(outer, row, 0, lane)

    def column(self, place: EvaluatedPlace, column: Operand, *, inside: bool) -> EvaluatedPlace:
        """So many steps along the pixels."""
        return replace(place, column=self.kernel.add(place.column, column), inside=inside)

    def along(self, place: EvaluatedPlace, lane: Operand) -> EvaluatedPlace:
        """So many elements on."""
        return replace(place, lane=self.kernel.add(place.lane, lane))

    def vector(self, place: EvaluatedPlace, lanes: int, active: Operand | None) -> Value:
        """What is evaluated there."""
        return self._vector(place, self.lane_steps or self.column_steps, lanes, active)

    def across(self, place: EvaluatedPlace, lanes: int, active: Operand | None) -> Value:
        """The same along the pixels."""
        return self._vector(place, self.column_steps, lanes, active)

    def _vector(self, place: EvaluatedPlace, steps: Sequence[int], lanes: int, active: Operand | None) -> Value:
        index = [Index(self._base(axis, place), steps[axis] if lanes > 1 else 0) for axis in range(len(self.image.at))]
        return self.emitter.value_at(self.image.value, index, lanes, active)

    def _base(self, axis: int, place: EvaluatedPlace) -> Operand:
        kernel, form = self.kernel, self.image.at[axis]
        total: Operand = _int(form.constant)
        moves = [(place.row, self.row_steps[axis]), (place.column, self.column_steps[axis])]
        if self.lane_steps:
            moves.append((place.lane, self.lane_steps[axis]))
        moves += [(value, _int(form.terms.get(one.inner, 0))) for one, value in place.outer.items()]
        for value, step in moves:
            total = kernel.add(total, kernel.mul(value, step)) if step else total
        bound = self.borders[axis]
        if bound is None or bound.border is None or (place.inside and self.column_steps[axis]):
            return total
        return folded(kernel, total, self.emitter.buffers.operand(bound.size), bound.border.mode)


@dataclass(frozen=True, slots=True)
class EvaluatedRoles:
    """By loop, how many steps of their direction the loops of rows and of columns go; `lane`: the loop of the lanes,
    None where those are columns."""

    rows: Mapping[int, int]
    columns: Mapping[int, int]
    lane: int | None = None


def moves_of(way: Direction, along: Axis | None, window: Axis | None) -> dict[int, int]:
    """The loops of a direction, with how many of its steps each goes."""
    found = {axis.inner: steps for axis, steps in ((along, way.along), (window, way.window)) if axis is not None}
    return {loop: steps for loop, steps in found.items() if steps}


def _steps(image: ComputedImage, moves: Mapping[int, int]) -> list[int]:
    """How far one step of a direction goes along each dimension: by any of the loops that go along it."""
    return [
        max((_int(form.terms.get(loop, 0)) // steps for loop, steps in moves.items()), default=0) for form in image.at
    ]


def _int(size: object) -> int:
    assert isinstance(size, int)
    return size
