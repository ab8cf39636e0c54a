"""The buffers of a dispatch: where the elements of its tensors lie, their loads and stores, and its sizes as operands.

All tensors in memory are row-major and contiguous, so an element's place is one linear index; reshapes of a buffer
change nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from xdsl.ir import SSAValue

from fuseline.dispatch.result_boxes import ResultBox
from fuseline.dispatch.view import DispatchView
from fuseline.errors import FuselineError
from fuseline.ir.dim import Dim, Expr, Extreme, Quotient, Symbol, lower_bound, mul, product, sum_of
from fuseline.targets.cpu.emit.coordinates import (
    AnyIndex,
    DelinearizedIndex,
    Index,
    static_upper_bound,
    stays_in_run,
    whole_split,
)
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.emit.lane_digits import digit_of_lanes
from fuseline.targets.cpu.emit.quotients import floor_of_any
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

MOST_STRIDE = 4
"""Elements up to so far apart are picked from whole vectors, of which a shuffle each takes no longer than loading an
element."""


class TileLoads(Protocol):
    """Supplies loads across the lanes from tiles transposed in registers."""

    def load(self, memory: MemRef, flat: Index, lanes: int) -> Value | None:
        """The elements at `flat`, or None for those it does not have."""
        ...


Touched = Callable[[MemRef, Operand, int], None]
"""`(memory, index, lanes)` of what is read or written whole, for who asks memory for what comes next."""


class DispatchBuffers:
    """The buffers and sizes of one dispatch as the kernel under construction sees them."""

    def __init__(self, kernel: KernelBuilder, view: DispatchView) -> None:
        self.kernel, self.view = kernel, view
        self.tile: TileLoads | None = None
        self.touched: Touched = lambda *_: None
        self._size_index = {name: i for i, name in enumerate(view.size_names)}
        self._bindings: dict[SSAValue, int] = {tensor: i for i, tensor in enumerate(view.tensors)}

    # sizes ------------------------------------------------------------------------------------------------------------

    def dims(self, value: SSAValue) -> tuple[Dim, ...]:
        """The sizes of a tensor value."""
        return self.view.shapes.dims(value)

    def operand(self, dim: Dim) -> Operand:
        """A size as an operand; computed once in a block, for sizes of sizes share most of what they are made of.
        Raises FuselineError: E0901 for a size that is no argument of the dispatch."""
        if isinstance(dim, int):
            return dim
        found = self.kernel.recall(("size", dim))
        if found is None:
            found = self._sum(dim)
            self.kernel.remember(("size", dim), found)
        return found

    def _sum(self, dim: Expr) -> Operand:
        total: Operand = 0
        for monomial, coefficient in dim.terms:
            term: Operand = 1
            for atom in monomial:
                term = self.kernel.mul(term, self._atom(atom))
            total = self.kernel.add(total, self.kernel.mul(term, coefficient))
        return total

    def _atom(self, atom: Symbol | Quotient | Extreme) -> Operand:
        if isinstance(atom, Symbol):
            if atom.name not in self._size_index:
                raise FuselineError(
                    "E0901", f"size {atom.name!r} is no argument of the dispatch", node=self.view.entry.sym_name.data
                )
            return self.kernel.size(self._size_index[atom.name], atom.hi)
        if isinstance(atom, Quotient):
            return self._quotient(atom)
        return self.kernel.combine(atom.kind, self.operand(atom.lhs), self.operand(atom.rhs))

    def _quotient(self, atom: Quotient) -> Operand:
        """Rounded down, as sizes are; 0 for a divisor of 0."""
        least, divisor = lower_bound(atom.numerator), lower_bound(atom.denominator)
        a, b = self.operand(atom.numerator), self.operand(atom.denominator)
        positive = divisor is not None and divisor > 0
        return (
            self.kernel.div(a, b) if positive and least is not None and least >= 0 else floor_of_any(self.kernel, a, b)
        )

    def product(self, dims: Sequence[Dim]) -> Operand:
        """The product of sizes as an operand."""
        total: Operand = 1
        for dim in dims:
            total = self.kernel.mul(total, self.operand(dim))
        return total

    def coordinates(self, number: Operand, grid: Sequence[Dim]) -> list[Operand]:
        """The coordinates of workgroup `number` in a grid of these sizes, slowest first."""
        kernel, rest = self.kernel, number
        out: list[Operand] = []
        extents = [self.operand(extent) for extent in grid]
        if kernel.keeps_loops:
            return self.digits(number, grid, range(len(grid)))
        for extent in reversed(extents[1:]):
            out.append(kernel.rem(rest, extent))
            rest = kernel.div(rest, extent)
        out.append(0 if extents[0] == 1 else rest)
        return out[::-1]

    def digits(self, number: Operand, grid: Sequence[Dim], order: Sequence[int]) -> list[Operand]:
        """The coordinates in a grid, those of the dimensions `order` in that order, each by itself: elsewhere another
        one may be the slowest."""
        kernel = self.kernel
        strides: list[Operand] = [1]
        for extent in reversed(grid[1:]):
            strides.append(kernel.mul(self.operand(extent), strides[-1]))
        strides.reverse()
        return [kernel.rem(kernel.div(number, strides[i]), self.operand(grid[i])) for i in order]

    # buffers ----------------------------------------------------------------------------------------------------------

    def argument(self, value: SSAValue) -> MemRef:
        """The buffer of a tensor argument."""
        shared = self.view.shared_layout(value)
        elements = self.product(self.dims(value)) if shared is None else shared.key.layout.elements
        return self.kernel.binding(self._bindings[value], dtype_of(value.type), elements)

    def result(self, position: int) -> MemRef:
        """The buffer of the `position`-th result."""
        value = self.view.results[position]
        number = len(self.view.tensors) + position
        return self.kernel.binding(number, dtype_of(value.type), self.product(self.dims(value)), writable=True)

    # linear indices ---------------------------------------------------------------------------------------------------

    def linear(self, index: Sequence[AnyIndex], dims: Sequence[Dim], lanes: int) -> Index:
        """The row-major linear index of `index` in a tensor of sizes `dims`."""
        flat = Index(0)
        moving = [i for i, size in enumerate(dims) if size != 1]
        index, dims = [index[i] for i in moving], [dims[i] for i in moving]
        at = 0
        while at < len(dims):
            count = whole_split(index, dims, at)
            if count:
                split = index[at]
                assert isinstance(split, DelinearizedIndex)
                coordinate, sizes = self.resolve(split.whole, lanes), dims[at : at + count]
            else:
                coordinate, sizes, count = self.resolve(index[at], lanes), (dims[at],), 1
            flat = self.plus(self.scaled(flat, self.product(sizes), lanes), coordinate, lanes)
            at += count
        return flat

    def placed(self, place: ResultBox, index: Sequence[AnyIndex], lanes: int) -> Index:
        """The linear index, in the tensor that holds it, of element `index` of what lies at `place`."""
        start = sum_of(mul(at, product(place.dims[axis + 1 :])) for axis, at in enumerate(place.offsets))
        inside = self.linear(index, place.dims, lanes)
        return inside if start == 0 else self.plus(inside, Index(self.operand(start)), lanes)

    def delinearize(self, whole: AnyIndex, sizes: tuple[Dim, ...]) -> list[AnyIndex]:
        """The coordinates of linear index `whole` in a shape of `sizes`."""
        moving = [i for i, size in enumerate(sizes) if size != 1]
        if len(moving) <= 1:
            return [whole if i in moving else Index(0) for i in range(len(sizes))]
        kept = tuple(sizes[i] for i in moving)
        return [DelinearizedIndex(whole, kept, moving.index(i)) if i in moving else Index(0) for i in range(len(sizes))]

    def resolve(self, index: AnyIndex, lanes: int) -> Index:
        """A coordinate without pending divisions."""
        if isinstance(index, Index):
            return index
        whole = self.resolve(index.whole, lanes)
        inner = self.product(index.sizes[index.position + 1 :])
        size = self.operand(index.sizes[index.position]) if index.position else None
        if whole.uniform:
            return Index(self._digit(whole.base, inner, size))
        if stays_in_run(whole, index.sizes[-1], lanes):
            last = index.position == len(index.sizes) - 1
            return Index(self._digit(whole.base, inner, size), 1 if last else 0)
        return Index(0, 0, self._vector_coordinate(self.vector(whole, lanes), index, inner, size))

    def _vector_coordinate(
        self, whole: Value, index: DelinearizedIndex[AnyIndex], inner: Operand, size: Operand | None
    ) -> Value:
        """In 32 bits where they are enough, else as floats: ISAs divide no 64-bit lanes."""
        bound = static_upper_bound(index.sizes)
        if bound is None or bound >= 1 << 31:
            last = self.kernel.sub(self.operand(index.sizes[index.position]), 1)  # what checks accesses knows no bits
            digit = digit_of_lanes(self.kernel, whole, inner, size)
            return self.kernel.max(self.kernel.min(digit, last), 0)
        quotient = self.kernel.cast(whole, "i32")
        if inner != 1:
            quotient = self.kernel.div(quotient, self._narrow(inner, whole.type.lanes))
        if size is not None:
            quotient = self.kernel.rem(quotient, self._narrow(size, whole.type.lanes))
        return self.kernel.cast(quotient, "i64")

    def _narrow(self, operand: Operand, lanes: int) -> Value:
        if isinstance(operand, int):  # a constant where it divides: LLVM sees no further than a block back
            return self.kernel.const(operand, "i32", lanes)
        return self.kernel.splat(self.kernel.cast(self.kernel.as_value(operand), "i32"), lanes)

    def _digit(self, whole: Any, inner: Operand, size: Operand | None) -> Any:
        quotient = self.kernel.div(whole, inner)
        return quotient if size is None else self.kernel.rem(quotient, size)

    # arithmetic on coordinates ----------------------------------------------------------------------------------------

    def vector(self, index: Index, lanes: int) -> Value:
        """The coordinate of every lane as an i64 vector."""
        if index.vector is not None:
            return self.kernel.splat(index.vector, lanes)
        return self.kernel.splat(self.kernel.as_value(self.kernel.lane_indices(index.base, index.stride, lanes)), lanes)

    def plus(self, a: Index, b: Index, lanes: int) -> Index:
        """`a + b`."""
        if a.vector is None and b.vector is None:
            return Index(self.kernel.add(a.base, b.base), a.stride + b.stride)
        return Index(0, 0, self.kernel.add(self.vector(a, lanes), self.vector(b, lanes)))

    def scaled(self, a: Index, factor: Operand, lanes: int) -> Index:
        """`a * factor`."""
        if a.vector is None and (isinstance(factor, int) or a.stride == 0):
            return Index(self.kernel.mul(a.base, factor), a.stride * factor if isinstance(factor, int) else 0)
        return Index(
            0, 0, self.kernel.mul(self.vector(a, lanes), self.kernel.splat(self.kernel.as_value(factor), lanes))
        )

    def at_lane(self, index: AnyIndex, lane: Operand) -> AnyIndex:
        """Where one lane of a coordinate is."""
        if isinstance(index, DelinearizedIndex):
            return DelinearizedIndex(self.at_lane(index.whole, lane), index.sizes, index.position)
        return Index(self.kernel.add(index.base, self.kernel.mul(lane, index.stride)))

    # elements ---------------------------------------------------------------------------------------------------------

    def load(self, memory: MemRef, flat: Index, lanes: int, active: Operand | None = None) -> Value:
        """The elements at `flat`; a scalar where all lanes agree."""
        if flat.vector is not None:
            return self.kernel.gather(memory, self.kernel.splat(flat.vector, lanes), active=active)
        if flat.stride == 0:
            return self.kernel.load(memory, flat.base)
        found = (
            self.tile.load(memory, flat, lanes)
            if self.tile is not None and flat.stride != 1 and active is None
            else None
        )
        if found is not None:
            return found
        if flat.stride == 1:
            self.touched(memory, flat.base, 1 if active is not None else lanes)
            return self.kernel.load(memory, flat.base, lanes, active=active)
        if lanes == 1:
            return self.kernel.load(memory, flat.base, active=active)
        if active is None and 1 < flat.stride <= MOST_STRIDE:
            return self._strided(memory, flat, lanes)
        return self.kernel.gather(memory, self.kernel.lane_indices(flat.base, flat.stride, lanes), active=active)

    def _strided(self, memory: MemRef, flat: Index, lanes: int) -> Value:
        """Every `stride`-th element: the vectors that hold them, the last one ending with the last of them, and picked
        from those."""
        kernel, reach = self.kernel, flat.stride * (lanes - 1) + 1
        starts = [*range(0, reach - lanes, lanes), reach - lanes]
        vectors = [kernel.load(memory, kernel.add(flat.base, start), lanes) for start in starts]
        places = [lane * flat.stride for lane in range(lanes)]
        found, before = vectors[0], lanes
        for start, vector in zip(starts[1:], vectors[1:], strict=True):
            kept = [place if before == lanes and place < lanes else lane for lane, place in enumerate(places)]
            found = kernel.shuffle(
                found,
                vector,
                [lanes + p - start if before <= p < start + lanes else k for p, k in zip(places, kept, strict=True)],
            )
            before = start + lanes
        return found

    def store(self, memory: MemRef, flat: Index, value: Value, active: Operand | None = None) -> None:
        """Write the lanes of `value` at `flat`."""
        lanes = value.type.lanes
        if flat.vector is None and (flat.stride == 1 or lanes == 1):
            self.touched(memory, flat.base, 1 if active is not None else lanes)
            self.kernel.store(memory, flat.base, value, active=active)
        else:
            self.kernel.scatter(memory, self.vector(flat, lanes), value, active=active)
