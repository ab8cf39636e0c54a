"""The order of a row by keys of any width, one or several: keys and positions side by side, merged.

Few are sorted by counting for each how many come before; of many, runs of 1, 2, 4, .. elements are merged by pairs
until one is left. Of equals the left one comes first: what lies in scratch lies there in the order of the row, or in
order already and before what came later.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fuseline.targets.cpu.combinators.lanes import LaneLoop, is_masked
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.families.sequential.kept_order import FEW, SELECTED, VECTORS, KeptOrder, KeyAt, Rooms
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import BITS, MemRef, Operand, Value

Side = tuple[MemRef, ...]
"""The keys of elements, the most significant ones first, then their positions."""


class KeyedOrder(KeptOrder):
    """Sorts keys of these types in scratch."""

    def __init__(self, kernel: KernelBuilder, rooms: Rooms, key: KeyAt, dtypes: Sequence[str]) -> None:
        super().__init__(kernel, rooms, key)
        self.kinds, self.lanes = (*dtypes, "i64"), kernel.machine.lanes("i64")
        room = rooms.room + self.lanes
        self.sides = [tuple(kernel.scratch(dtype, room) for dtype in self.kinds) for _ in range(2)]
        self.looked_at = [kernel.scratch(dtype, VECTORS * self.lanes) for dtype in dtypes]

    # what is kept -----------------------------------------------------------------------------------------------------

    def collect(self, count: Operand, last: Sequence[Value] | None) -> None:
        """See `KeptOrder`."""
        if self.rooms.whole:
            self._line(1).run(0, count, self._read)
            self._sort(count)
            return
        start = [self.kernel.as_value(0), self.kernel.as_value(0)]
        size, _ = self._line(VECTORS).run(0, count, partial(self._look, last), start)
        self._sort(size)

    def _line(self, unroll: int) -> LaneLoop:
        return LaneLoop(self.kernel, self.lanes, unroll=unroll, masked=is_masked(self.kernel, *self.kinds))

    def _keys(self, start: Operand, lanes: int, active: Operand | None) -> list[Value]:
        index, kernel = Index(start, 1 if lanes > 1 else 0), self.kernel
        return [
            kernel.splat(kernel.cast(self.key(n, index, lanes, active), dtype), lanes)
            for n, dtype in enumerate(self.kinds[:-1])
        ]

    def _places(self, start: Operand, lanes: int) -> Value:
        return self.kernel.lane_indices(start, 1, lanes)

    def _read(
        self, starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
    ) -> Sequence[Value]:
        element = [*self._keys(starts[0], lanes, active), self._places(starts[0], lanes)]
        for memory, value in zip(self.sides[0], element, strict=True):
            self.kernel.store(memory, starts[0], value, active)
        return state

    def _look(
        self,
        last: Sequence[Value] | None,
        starts: list[Operand],
        lanes: int,
        active: Operand | None,
        state: tuple[Value, ...],
    ) -> Sequence[Value]:
        """Keep those of a few vectors of elements that may be among the first."""
        kernel, (size, full) = self.kernel, state
        hits = kernel.as_value(0)
        for number, start in enumerate(starts):
            keys = self._keys(start, lanes, active)
            for memory, value in zip(self.looked_at, keys, strict=True):
                kernel.store(memory, number * lanes, value)
            near = self._near(keys, self._places(start, lanes), full, last)
            near = near if active is None else kernel.bitand(near, kernel.mask(active, lanes))
            hits = kernel.bitor(hits, kernel.shl(kernel.mask_bits(near), kernel.const(number * lanes, "i64")))
        return kernel.when(
            kernel.compare("ne", hits, 0),
            lambda: self._keep(hits, starts[0], lanes * len(starts), *self._with_room(size, full)),
            lambda: (size, full),
        )

    def _near(self, keys: Sequence[Value], places: Value, full: Value, last: Sequence[Value] | None) -> Value:
        kernel, lanes = self.kernel, places.type.lanes
        bound = [kernel.splat(kernel.load(one, self.rooms.want - 1), lanes) for one in self.sides[0][:-1]]
        near = kernel.bitor(kernel.splat(kernel.compare("eq", full, 0), lanes), self._less(keys, bound))
        if last is None:
            return near
        *end, any_ = last
        behind = self._less([kernel.splat(one, lanes) for one in end], [*keys, places])
        return kernel.bitand(near, kernel.bitor(kernel.splat(kernel.compare("eq", any_, 0), lanes), behind))

    def _with_room(self, size: Value, full: Value) -> tuple[Value, Value]:
        """How many are kept, and whether there were more, once there is room for all that are looked at."""
        kernel = self.kernel

        def forget() -> tuple[Value, Value]:
            self._sort(size)
            return kernel.as_value(self.rooms.want), kernel.as_value(1)

        beyond = kernel.compare("gt", size, self.rooms.room - VECTORS * self.lanes)
        return kernel.when(beyond, forget, lambda: (size, full))  # pyright: ignore[reportReturnType]

    def _keep(self, hits: Value, first: Operand, looked_at: int, size: Value, full: Value) -> tuple[Value, Value]:
        kernel = self.kernel

        def keep(hits: Value, size: Value) -> tuple[Value, Value]:
            place = kernel.max(kernel.min(kernel.trailing_zeros(hits), looked_at - 1), 0)
            element = [*(kernel.load(one, place) for one in self.looked_at), kernel.add(first, place)]
            to = kernel.max(kernel.min(size, self.rooms.room - 1), 0)
            for memory, value in zip(self.sides[0], element, strict=True):
                kernel.store(memory, to, value)
            return kernel.bitand(hits, kernel.add(hits, kernel.const(-1, "i64"))), kernel.add(size, 1)

        _, size = kernel.while_(lambda hits, size: kernel.compare("ne", hits, 0), keep, [hits, size])
        return size, full

    def before_all(self) -> Sequence[Operand]:
        """Nothing, which the last number says."""
        return [*(self.kernel.const(0, dtype) for dtype in self.kinds), self.kernel.as_value(0)]

    def behind(self, place: Operand) -> Sequence[Value]:
        """See `KeptOrder`."""
        return [*(self.kernel.load(one, place) for one in self.sides[0]), self.kernel.as_value(1)]

    def positions(self, place: Operand, lanes: int, active: Operand | None) -> Value:
        """See `KeptOrder`."""
        return self.kernel.load(self.sides[0][-1], place, lanes, active)

    def _less(self, a: Sequence[Value], b: Sequence[Value], *, equal: bool = False) -> Value:
        """Whether `a` comes before `b` (or is `equal`), by the first of their numbers that differ."""
        kernel = self.kernel
        found = kernel.compare("le" if equal else "lt", a[-1], b[-1])
        for x, y in reversed(list(zip(a[:-1], b[:-1], strict=True))):
            found = kernel.bitor(kernel.compare("lt", x, y), kernel.bitand(kernel.compare("eq", x, y), found))
        return found

    # sorting ----------------------------------------------------------------------------------------------------------

    def _sort(self, size: Operand) -> None:
        kernel = self.kernel
        size = kernel.max(kernel.min(size, self.rooms.room), 0)
        one_key = len(self.kinds) == 2
        few = self._by_selecting if one_key and self.rooms.want <= SELECTED else self._by_counting
        for memory, dtype in zip(self.sides[0], self.kinds, strict=True):
            kernel.store(memory, size, kernel.const((1 << (BITS[dtype] - 1)) - 1, dtype, self.lanes))  # behind all
        if self.rooms.room <= FEW:
            few(size)
            return
        kernel.when(kernel.compare("le", size, FEW), lambda: few(kernel.min(size, FEW)), lambda: self._by_merging(size))

    def _by_selecting(self, size: Operand) -> None:
        """The least, then the least of those behind it, as many as are wanted: its key, then where it stands."""
        kernel, lanes = self.kernel, self.lanes
        (keys, positions), (found_keys, found_positions) = self.sides
        ends = [kernel.const((1 << (BITS[dtype] - 1)) - 1, dtype, lanes) for dtype in self.kinds]

        def select(p: Operand, *last: Value) -> Sequence[Value]:
            wide = [kernel.splat(one, lanes) for one in last]

            def look(j: Operand, found: Value) -> tuple[Value]:
                element = [kernel.load(one, j, lanes) for one in (keys, positions)]
                return (kernel.min(found, kernel.select(self._less(wide, element), element[0], ends[0])),)

            (found,) = kernel.loop(0, size, lanes, look, ends[:1])
            key = kernel.reduce("min", found)
            same = kernel.splat(key, lanes)

            def place(j: Operand, found: Value) -> tuple[Value]:
                element = [kernel.load(one, j, lanes) for one in (keys, positions)]
                hit = kernel.bitand(kernel.compare("eq", element[0], same), self._less(wide, element))
                return (kernel.min(found, kernel.select(hit, element[1], ends[1])),)

            (found,) = kernel.loop(0, size, lanes, place, ends[1:])
            position = kernel.reduce("min", found)
            kernel.store(found_keys, p, key)
            kernel.store(found_positions, p, position)
            return key, position

        def back(p: Operand) -> None:
            for one, other in zip(*self.sides, strict=True):
                kernel.store(one, p, kernel.load(other, p))

        first = [kernel.const(-(1 << (BITS[self.kinds[0]] - 1)), self.kinds[0]), kernel.const(-1, "i64")]
        kernel.loop(0, kernel.min(size, self.rooms.want), 1, select, first)
        kernel.loop(0, kernel.min(size, self.rooms.want), 1, back)

    def _by_counting(self, size: Operand) -> None:
        """Each element goes where as many come before."""
        kernel, lanes, (source, target) = self.kernel, self.lanes, self.sides

        def place(i: Operand) -> None:
            element = [kernel.load(one, i) for one in source]
            wide = [kernel.splat(one, lanes) for one in element[:-1]]

            def before(j: Operand, total: Value) -> tuple[Value]:
                places, others = self._places(j, lanes), [kernel.load(one, j, lanes) for one in source[:-1]]
                former = kernel.compare("lt", places, kernel.splat(kernel.as_value(i), lanes))
                equal = kernel.bitand(former, self._less(others, wide, equal=True))
                first = kernel.bitor(self._less(others, wide), equal)
                return (kernel.add(total, kernel.cast(first, "i64", unsigned=True)),)

            (total,) = kernel.loop(0, size, lanes, before, [kernel.const(0, "i64", lanes)])
            to = kernel.max(kernel.min(kernel.reduce("add", total), self.rooms.room - 1), 0)
            for memory, value in zip(target, element, strict=True):
                kernel.store(memory, to, value)

        def back(
            starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
        ) -> Sequence[Value]:
            for one, other in zip(source, target, strict=True):
                kernel.store(one, starts[0], kernel.load(other, starts[0], lanes, active), active)
            return state

        kernel.loop(0, size, 1, place)
        self._line(1).run(0, size, back)

    def _by_merging(self, size: Operand) -> None:
        kernel, width = self.kernel, 1
        while width < self.rooms.room:
            kernel.when(kernel.compare("gt", size, width), partial(self._merge_twice, width, size))
            width *= 4

    def _merge_twice(self, width: int, size: Operand) -> tuple[()]:
        """An even number of times, so that all lie where they did."""
        for runs in (width, 2 * width):
            self._merge_all(runs, size)
            self.sides.reverse()
        return ()

    def _merge_all(self, width: int, size: Operand) -> None:
        """Runs of `width` in the first side merged by pairs into the second."""
        kernel = self.kernel

        def pair(low: Operand) -> None:
            middle, high = (kernel.min(kernel.add(low, step), size) for step in (width, 2 * width))
            self._merge(low, middle, high)

        kernel.loop(0, size, 2 * width, pair)

    def _merge(self, low: Operand, middle: Operand, high: Operand) -> None:
        kernel, (source, target) = self.kernel, self.sides
        last = self.rooms.room - 1

        def step(place: Operand, left: Value, right: Value) -> tuple[Value, Value]:
            a, b = (
                kernel.max(kernel.min(at, last), 0) for at in (left, right)
            )  # an exhausted run is not read, and its end need not be inside
            first = [kernel.load(one, a) for one in source]
            second = [kernel.load(one, b) for one in source]
            exhausted = kernel.compare("ge", right, high)
            ordered = self._less(first[:-1], second[:-1], equal=True)
            taken = kernel.bitand(kernel.compare("lt", left, middle), kernel.bitor(exhausted, ordered))
            for memory, x, y in zip(target, first, second, strict=True):
                kernel.store(memory, place, kernel.select(taken, x, y))
            return kernel.select(taken, kernel.add(left, 1), left), kernel.select(taken, right, kernel.add(right, 1))

        kernel.loop(low, high, 1, step, [kernel.as_value(low), kernel.as_value(middle)])
