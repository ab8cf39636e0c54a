"""The order of a row by one key of 32 bits or fewer: key and position are one number of 64 bits.

    key << 32 | position        no two are equal, and equal keys stay in the order of the row

Keys are looked at in vectors, 64 bits of masks at a time; most rows have few elements that come before the last of
those that are kept. Few numbers are sorted by counting for each how many are less, many by their digits (radix sort,
the least digit first: Knuth, The Art of Computer Programming 3, 5.2.5).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from fuseline.targets.cpu.combinators.lanes import LaneLoop, is_masked
from fuseline.targets.cpu.emit.coordinates import Index
from fuseline.targets.cpu.families.sequential.kept_order import FEW, SELECTED, VECTORS, KeptOrder, KeyAt, Rooms
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import MemRef, Operand, Value

DIGITS, DIGIT_BITS = 4, 8
RADIX = 1 << DIGIT_BITS
POSITION_BITS = 32

LEAST_KEY, LARGEST_KEY = -(1 << 31), (1 << 31) - 1
LEAST, LARGEST = -(1 << 63), (1 << 63) - 1


class PackedOrder(KeptOrder):
    """Sorts numbers in scratch."""

    def __init__(self, kernel: KernelBuilder, rooms: Rooms, key: KeyAt) -> None:
        super().__init__(kernel, rooms, key)
        self.lanes, self.wide_lanes = kernel.machine.lanes("i32"), kernel.machine.lanes("i64")
        room = rooms.room + self.wide_lanes
        self.room = room
        self.numbers, self.other = kernel.scratch("i64", room), kernel.scratch("i64", room)
        self.counts = kernel.scratch("i64", DIGITS * RADIX) if rooms.room > FEW else None
        self.looked_at = kernel.scratch("i32", VECTORS * self.lanes)

    # what is kept -----------------------------------------------------------------------------------------------------

    def collect(self, count: Operand, last: Sequence[Value] | None) -> None:
        """See `KeptOrder`."""
        if self.rooms.whole:
            self._read_all(count)
            self._sort(count)
        else:
            self._sort(self._filtered(count, last))

    def before_all(self) -> Sequence[Operand]:
        """See `KeptOrder`."""
        return [self.kernel.const(LEAST, "i64")]

    def behind(self, place: Operand) -> Sequence[Value]:
        """The least number that comes behind."""
        return [self.kernel.add(self.kernel.load(self.numbers, place), self.kernel.const(1, "i64"))]

    def positions(self, place: Operand, lanes: int, active: Operand | None) -> Value:
        """See `KeptOrder`."""
        number = self.kernel.load(self.numbers, place, lanes, active)
        return self.kernel.bitand(number, self.kernel.const((1 << POSITION_BITS) - 1, "i64"))

    def _packed(self, key: Value, position: Operand) -> Value:
        kernel, lanes = self.kernel, key.type.lanes
        at = kernel.as_value(position)
        if lanes > 1:
            at = kernel.add(kernel.splat(at, lanes), kernel.iota(lanes))
        high = kernel.shl(kernel.cast(key, "i64"), kernel.splat(kernel.const(POSITION_BITS, "i64"), lanes))
        return kernel.bitor(high, at)

    def _read_all(self, count: Operand) -> None:
        kernel = self.kernel

        def read(
            starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
        ) -> Sequence[Value]:
            key = kernel.cast(self.key(0, Index(starts[0], 1 if lanes > 1 else 0), lanes, active), "i32")
            kernel.store(self.numbers, starts[0], self._packed(key, starts[0]), active)
            return state

        LaneLoop(kernel, self.lanes, masked=is_masked(kernel, "i32", "i64")).run(0, count, read)

    def _filtered(self, count: Operand, last: Sequence[Value] | None) -> Value:
        """Keep what may be one of the first; how many are left in scratch, not in order."""
        kernel = self.kernel

        def look(
            starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
        ) -> Sequence[Value]:
            size, bound = state
            hits = kernel.as_value(0)
            for number, start in enumerate(starts):
                key = kernel.cast(self.key(0, Index(start, 1 if lanes > 1 else 0), lanes, active), "i32")
                kernel.store(self.looked_at, number * lanes, kernel.splat(key, lanes))
                near = self._near(kernel.splat(key, lanes), bound, last, active)
                hits = kernel.bitor(hits, kernel.shl(kernel.mask_bits(near), kernel.const(number * lanes, "i64")))
            return kernel.when(
                kernel.compare("ne", hits, 0),
                lambda: self._keep(hits, starts[0], lanes * len(starts), last, self._with_room(size, bound)),
                lambda: (size, bound),
            )

        line = LaneLoop(kernel, self.lanes, unroll=VECTORS, masked=is_masked(kernel, "i32"))
        start = [kernel.as_value(0), kernel.const(LARGEST_KEY, "i32")]
        return line.run(0, count, look, start)[0]

    def _near(self, key: Value, bound: Value, last: Sequence[Value] | None, active: Operand | None) -> Value:
        """Which keys may belong to what is looked for."""
        kernel, lanes = self.kernel, key.type.lanes
        near = kernel.compare("le", key, kernel.splat(bound, lanes))
        if last is not None:
            least = kernel.cast(kernel.ashr(last[0], kernel.const(POSITION_BITS, "i64")), "i32")
            near = kernel.bitand(near, kernel.compare("ge", key, kernel.splat(least, lanes)))
        return kernel.bitand(near, kernel.mask(active, lanes)) if active is not None else near

    def _with_room(self, size: Value, bound: Value) -> tuple[Value, Value]:
        """How many are kept, and the largest key that counts, once there is room for all that are looked at."""
        kernel, want = self.kernel, self.rooms.want

        def forget() -> tuple[Value, Value]:
            self._sort(size)
            key = kernel.cast(
                kernel.ashr(kernel.load(self.numbers, want - 1), kernel.const(POSITION_BITS, "i64")), "i32"
            )
            least = kernel.const(LEAST_KEY, "i32")
            below = kernel.sub(kernel.max(key, kernel.const(LEAST_KEY + 1, "i32")), kernel.const(1, "i32"))
            return kernel.as_value(want), kernel.select(kernel.compare("eq", key, least), least, below)

        full = kernel.compare("gt", size, self.rooms.room - VECTORS * self.lanes)
        return kernel.when(full, forget, lambda: (size, bound))  # pyright: ignore[reportReturnType]

    def _keep(
        self, hits: Value, first: Operand, looked_at: int, last: Sequence[Value] | None, state: tuple[Value, Value]
    ) -> tuple[Value, Value]:
        kernel, (size, bound) = self.kernel, state

        def keep(hits: Value, size: Value) -> tuple[Value, Value]:
            place = kernel.max(kernel.min(kernel.trailing_zeros(hits), looked_at - 1), 0)
            number = self._packed(kernel.load(self.looked_at, place), kernel.add(first, place))
            kernel.store(self.numbers, kernel.max(kernel.min(size, self.rooms.room - 1), 0), number)
            counts = (
                kernel.as_value(1)
                if last is None
                else kernel.cast(kernel.compare("ge", number, last[0]), "i64", unsigned=True)
            )
            return kernel.bitand(hits, kernel.add(hits, kernel.const(-1, "i64"))), kernel.add(size, counts)

        _, size = kernel.while_(lambda hits, size: kernel.compare("ne", hits, 0), keep, [hits, size])
        return size, bound

    # sorting ----------------------------------------------------------------------------------------------------------

    def _sort(self, size: Operand) -> None:
        kernel = self.kernel
        size = kernel.max(kernel.min(size, self.rooms.room), 0)
        few = self._by_selecting if self.rooms.want <= SELECTED else self._by_counting
        if self.counts is None:
            few(size)
            return
        kernel.when(kernel.compare("le", size, FEW), lambda: few(kernel.min(size, FEW)), lambda: self._by_digits(size))

    def _by_selecting(self, size: Operand) -> None:
        """The least, then the least of those behind it, as many as are wanted."""
        kernel, lanes = self.kernel, self.wide_lanes
        largest = kernel.const(LARGEST, "i64", lanes)
        kernel.store(self.numbers, size, largest)

        def select(p: Operand, least: Value) -> tuple[Value]:
            wide = kernel.splat(least, lanes)

            def look(j: Operand, found: Value) -> tuple[Value]:
                number = kernel.load(self.numbers, j, lanes)
                behind = kernel.select(kernel.compare("ge", number, wide), number, largest)
                return (kernel.min(found, behind),)

            (found,) = kernel.loop(0, size, lanes, look, [largest])
            number = kernel.reduce("min", found)
            kernel.store(self.other, p, number)
            return (kernel.add(number, kernel.const(1, "i64")),)

        kernel.loop(0, kernel.min(size, self.rooms.want), 1, select, [kernel.const(LEAST, "i64")])
        kernel.loop(0, kernel.min(size, self.rooms.want), 1, self._back)

    def _back(self, p: Operand) -> None:
        self.kernel.store(self.numbers, p, self.kernel.load(self.other, p))

    def _by_counting(self, size: Operand) -> None:
        """Each number goes where as many are less."""
        kernel, lanes = self.kernel, self.wide_lanes
        kernel.store(self.numbers, size, kernel.const(LARGEST, "i64", lanes))

        def place(i: Operand) -> None:
            number = kernel.load(self.numbers, i)
            wide = kernel.splat(number, lanes)

            def less(j: Operand, total: Value) -> tuple[Value]:
                one = kernel.compare("lt", kernel.load(self.numbers, j, lanes), wide)
                return (kernel.add(total, kernel.cast(one, "i64", unsigned=True)),)

            (total,) = kernel.loop(0, size, lanes, less, [kernel.const(0, "i64", lanes)])
            kernel.store(
                self.other, kernel.max(kernel.min(kernel.reduce("add", total), self.rooms.room - 1), 0), number
            )

        def back(
            starts: list[Operand], lanes: int, active: Operand | None, state: tuple[Value, ...]
        ) -> Sequence[Value]:
            kernel.store(self.numbers, starts[0], kernel.load(self.other, starts[0], lanes, active), active)
            return state

        kernel.loop(0, size, 1, place)
        LaneLoop(kernel, lanes, masked=is_masked(kernel, "i64")).run(0, size, back)

    def _by_digits(self, size: Operand) -> None:
        """Stable by each digit of the keys, an even number of times."""
        assert self.counts is not None
        kernel, counts = self.kernel, self.counts
        lanes = self.wide_lanes
        kernel.loop(0, DIGITS * RADIX, lanes, lambda i: kernel.store(counts, i, kernel.const(0, "i64", lanes)))

        def count(i: Operand) -> None:
            number = kernel.load(self.numbers, i)
            for digit in range(DIGITS):
                self._next(number, digit)

        def begin(d: Operand, *totals: Value) -> Sequence[Value]:
            places = [kernel.add(d, digit * RADIX) for digit in range(DIGITS)]
            found = [kernel.load(counts, place) for place in places]
            for place, total in zip(places, totals, strict=True):
                kernel.store(counts, place, total)
            return [kernel.add(total, one) for total, one in zip(totals, found, strict=True)]

        kernel.loop(0, size, 1, count)
        kernel.loop(0, RADIX, 1, begin, [kernel.as_value(0)] * DIGITS)
        for digit in range(DIGITS):
            sides = (self.numbers, self.other) if digit % 2 == 0 else (self.other, self.numbers)
            kernel.loop(0, size, 1, partial(self._move, digit, *sides))

    def _move(self, digit: int, source: MemRef, target: MemRef, i: Operand) -> None:
        kernel = self.kernel
        number = kernel.load(source, i)
        at = self._next(number, digit)
        kernel.store(target, kernel.max(kernel.min(at, self.rooms.room - 1), 0), number)

    def _next(self, number: Value, digit: int) -> Value:
        """The count of a digit, which is one more from now on."""
        assert self.counts is not None
        kernel = self.kernel
        shifted = kernel.lshr(number, kernel.const(POSITION_BITS + DIGIT_BITS * digit, "i64"))
        found = kernel.bitand(shifted, kernel.const(RADIX - 1, "i64"))
        if digit == DIGITS - 1:  # of the sign: negative ones come first
            found = kernel.xor(found, kernel.const(RADIX // 2, "i64"))
        place = kernel.add(kernel.max(kernel.min(found, RADIX - 1), 0), digit * RADIX)
        at = kernel.load(self.counts, place)
        kernel.store(self.counts, place, kernel.add(at, kernel.const(1, "i64")))
        return at
