"""The reduction of one register tile: accumulators of `rows x vectors`, a loop nest over the reduction, edges read from
a row of zeros, or where a border repeats the image.

Each step loads the column vectors, broadcasts one element per row, and multiplies and adds. Row elements are read
through addresses that advance with the loops of the reduction. Where a row may lie in the padding, its address is
replaced by that of the padding row before the loops inside, so that the innermost loop has no conditions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from fuseline.targets.cpu.emit.partial_sums import MOST_STEPS, PARTIAL_STEPS, PartialSums, PartialTotals, partial_size
from fuseline.targets.cpu.emit.reduction_axes import EdgeCheck, ReductionAxis
from fuseline.targets.cpu.emit.row_edges import RowEdges
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Address, MemRef, Operand, Value

UNROLLED_STEPS = 4
"""Up to so many innermost steps are written out without a loop, unless rows share elements between them: LLVM would
then keep those in registers that the accumulators need (a 7-wide window written out ran at 38 % of peak, as a loop at
96)."""

STEPS_PER_ITERATION = 2
"""Steps of a long innermost loop written out per iteration: one hides the loop's own instructions, more only make
code."""


Columns = Callable[[Operand, Sequence[Operand], int], Value]
"""`(column index of the step, index per reduction axis, vector) -> column vector`."""

Step = Callable[[Sequence[Operand], tuple[Value, ...]], tuple[Value, ...]]
"""`(index of a loop, as what adds up to it from outer to inner loops, accumulators) -> accumulators`"""

Rows = Callable[[Sequence[Operand], int], Value]
"""`(index per reduction axis, row) -> scalar`, for rows that are evaluated rather than addressed."""


@dataclass(frozen=True, slots=True)
class PrefetchRequests:
    """What is asked of memory meanwhile: `request(column index of the innermost loop's start, j)` before every `period`
    of its steps."""

    period: int
    request: Callable[[Operand, Operand], None]


class TileReduction:
    """Emits the nest for one tile. Long sums of floats are totals of partial ones (blocked summation, Higham, Accuracy
    and Stability of Numerical Algorithms, section 4.2).

    Args:
        addresses: where each row starts; None when `pulled` supplies the elements.
        columns: the column vectors of a step.
        padding_row: pad values, at least as many as the loops inside a check reach.
        skips_padding: the pad value is 0, so steps that only meet padding may be left out.
        prefetches: what to ask of memory meanwhile, where the innermost loop's extent is known.
        partial_steps: the length of partial sums of the only loop; 0 for one sum, None for what suits this reduction.
    """

    def __init__(
        self,
        kernel: KernelBuilder,
        addresses: Sequence[Address] | None,
        axes: Sequence[ReductionAxis],
        columns: Columns,
        shape: tuple[int, int],
        *,
        padding_row: MemRef | None = None,
        skips_padding: bool = True,
        pulled: Rows | None = None,
        prefetches: PrefetchRequests | None = None,
        partial_steps: int | None = None,
    ) -> None:
        self.kernel, self.axes, self.columns = kernel, axes, columns
        self.rows, self.vectors = shape
        self.addresses, self.pulled = addresses, pulled
        self.edges = RowEdges(kernel, padding_row, skips_padding=skips_padding)
        self.prefetches, self.partial_steps = prefetches, partial_steps
        self._totals: PartialTotals | None = None
        self._partials: PartialSums | None = None

    def emit(self, accumulators: Sequence[Value], always: Sequence[EdgeCheck] = ()) -> list[Value]:
        """The accumulators after the whole reduction. `always`: edges that no loop of the reduction changes."""
        addresses = self.addresses
        for check in always:
            addresses = self.edges.selected(addresses, check, 0)
        self._partials = self._partial_sums() if accumulators[0].type.is_float else None
        if self._partials is None:
            return list(self._nest(0, addresses, 0, (), tuple(accumulators)))
        with self.kernel.passing_scratch():
            self._totals = PartialTotals(self.kernel, accumulators)
            self._nest(0, addresses, 0, (), ())
            return self._totals.values()

    def _nest(
        self,
        level: int,
        addresses: Sequence[Address] | None,
        column: Operand,
        at: tuple[Operand, ...],
        accumulators: tuple[Value, ...],
    ) -> tuple[Value, ...]:
        if level == len(self.axes):
            return self._step(addresses, column, at, accumulators)
        axis = self.axes[level]
        lo, hi = self.edges.range_of(axis)

        def point(terms: Sequence[Operand], carried: tuple[Value, ...]) -> tuple[Value, ...]:
            i = self._sum(terms)
            moved = self.edges.moved(addresses, axis, i)
            for check in axis.checks:
                if not (check.shared and self.edges.cuts(check)):
                    moved = self.edges.selected(moved, check, i)
            step = self.kernel.add(i, axis.first)
            inner = self._sum([column, *(self.kernel.mul(term, axis.column_stride) for term in (axis.first, *terms))])
            return self._nest(level + 1, moved, inner, (*at, step), carried)

        if self._partials is not None and level == self._partials.level:
            return self._in_partial_sums(self._partials, column, lo, hi, point)
        return self._run(level, column, lo, hi, point, accumulators)

    def _run(
        self,
        level: int,
        column: Operand,
        lo: Operand,
        hi: Operand,
        point: Step,
        carried: tuple[Value, ...],
        first: Operand = 0,
    ) -> tuple[Value, ...]:
        """One loop of the nest; the innermost one asks for memory meanwhile, its requests numbered from `first`."""
        if self.prefetches is not None and level == len(self.axes) - 1 and isinstance(lo, int) and isinstance(hi, int):
            return self._with_prefetches(self.prefetches, column, lo, hi, point, carried, first)
        return self._loop(level, lo, hi, point, carried)

    def _in_partial_sums(
        self, partials: PartialSums, column: Operand, lo: Operand, hi: Operand, point: Step
    ) -> tuple[Value, ...]:
        """The loop that is cut into partial sums; what they add up to is in memory."""
        kernel, totals, (level, size) = self.kernel, self._totals, partials
        assert totals is not None
        requests = size // self._period(level)
        whole = kernel.div(kernel.sub(hi, lo), size)
        done = kernel.add(lo, kernel.mul(whole, size))

        def partial_sum(j: Operand) -> tuple[Value, ...]:
            begin = kernel.add(lo, kernel.mul(j, size))
            inside = self._run(
                level,
                column,
                0,
                size,
                lambda terms, held: point((begin, *terms), held),
                totals.zeros(),
                kernel.mul(j, requests),
            )
            return totals.add(inside)

        kernel.loop(0, whole, 1, partial_sum)
        if done == hi:
            return ()
        return totals.add(self._run(level, column, done, hi, point, totals.zeros(), kernel.mul(whole, requests)))

    def _period(self, level: int) -> int:
        """Iterations of a loop between requests."""
        return 1 if self.prefetches is None or level < len(self.axes) - 1 else self.prefetches.period

    def _partial_sums(self) -> PartialSums | None:
        """Where the reduction is cut into partial sums: the outermost loop of short enough iterations; None where one
        sum is all."""
        if self.partial_steps is not None:
            return PartialSums(0, self.partial_steps) if self.partial_steps else None
        counts = [axis.extent if isinstance(axis.extent, int) else 2 * PARTIAL_STEPS for axis in self.axes]
        if prod(counts) < MOST_STEPS:
            return None
        level = next(level for level in range(len(counts)) if prod(counts[level + 1 :]) < MOST_STEPS)
        return PartialSums(level, partial_size(counts[level], prod(counts[level + 1 :]), self._period(level)))

    def _with_prefetches(
        self,
        prefetches: PrefetchRequests,
        column: Operand,
        lo: int,
        hi: int,
        point: Step,
        carried: tuple[Value, ...],
        first: Operand,
    ) -> tuple[Value, ...]:
        """The innermost loop, in runs of `prefetches.period` steps with a request before each, numbered from `first`;
        the last one may be shorter."""
        kernel, level, whole = self.kernel, len(self.axes) - 1, (hi - lo) // prefetches.period

        def run(j: Operand, *values: Value) -> tuple[Value, ...]:
            prefetches.request(column, kernel.add(first, j))
            begin = kernel.add(lo, kernel.mul(j, prefetches.period))
            return self._loop(level, 0, prefetches.period, lambda terms, held: point((begin, *terms), held), values)

        carried = kernel.loop(0, whole, 1, run, carried)
        if lo + whole * prefetches.period == hi:
            return carried
        prefetches.request(column, kernel.add(first, whole))
        return self._loop(level, lo + whole * prefetches.period, hi, point, carried)

    def _loop(self, level: int, lo: Operand, hi: Operand, point: Step, carried: tuple[Value, ...]) -> tuple[Value, ...]:
        if (
            isinstance(lo, int)
            and isinstance(hi, int)
            and self._steps_from(level) <= UNROLLED_STEPS
            and not self._shares(level)
        ):
            for i in range(lo, hi):
                carried = point((i,), carried)
            return carried
        unroll = self._steps_per_iteration(level, lo, hi)

        def body(i: Operand, *values: Value) -> tuple[Value, ...]:
            for u in range(unroll):
                values = point((self.kernel.add(i, u),), values)
            return values

        return self.kernel.loop(lo, hi, unroll, body, carried)

    def _sum(self, terms: Sequence[Operand]) -> Operand:
        """Terms from outer to inner loops added up, so that what inner ones do not change is computed outside. The
        column index gets each term multiplied by itself: as a multiple of the row index, LLVM (22.1) makes it in that
        register, behind all loads of rows, and spills them (49x2048x512 in tiles of 13x32: 1.25 times as long)."""
        total: Operand = 0
        for term in terms:
            total = self.kernel.add(total, term)
        return total

    def _steps_per_iteration(self, level: int, lo: Operand, hi: Operand) -> int:
        if level != len(self.axes) - 1 or not isinstance(lo, int) or not isinstance(hi, int):
            return 1
        if self._is_tight():
            return 1
        wanted = max(STEPS_PER_ITERATION, 16 // (self.rows * self.vectors))
        return max(u for u in range(1, wanted + 1) if (hi - lo) % u == 0)

    def _is_tight(self) -> bool:
        """Whether the columns of a next step find no register: of three and more, LLVM (22.1) loads some ahead, and
        keeps the accumulators on the stack for it (960x256x1008: 28 ms, of steps one by one 8)."""
        needed = self.rows * self.vectors + 2 * self.vectors + 1
        return self.vectors > 2 and needed > self.kernel.machine.vector_registers

    def _steps_from(self, level: int) -> int:
        """How many steps the loops from `level` on are; more than the budget where one is not known."""
        steps = 1
        for axis in self.axes[level:]:
            clipped = any(self.edges.cuts(check) for check in axis.checks)
            if clipped or not isinstance(axis.extent, int):
                return UNROLLED_STEPS + 1
            steps *= axis.extent
        return steps

    def _shares(self, level: int) -> bool:
        """Whether neighbouring rows read the same elements within the loops from `level` on."""
        if self.addresses is None or self.rows == 1:
            return False
        first, second = self.addresses[:2]
        if first.root is not second.root or first.index is not second.index:
            return False
        reach: Operand = 0
        for axis in self.axes[level:]:
            reach = self.kernel.add(reach, self.kernel.mul(self.kernel.sub(axis.extent, 1), axis.row_stride))
        return not isinstance(reach, int) or abs(second.offset - first.offset) <= reach

    # one step ---------------------------------------------------------------------------------------------------------

    def _step(
        self,
        addresses: Sequence[Address] | None,
        column: Operand,
        at: Sequence[Operand],
        accumulators: tuple[Value, ...],
    ) -> tuple[Value, ...]:
        kernel, out = self.kernel, list(accumulators)
        vectors = [self.columns(column, at, v) for v in range(self.vectors)]
        for row in range(self.rows):
            if addresses is not None:
                scalar = kernel.load(addresses[row])
            else:
                assert self.pulled is not None
                scalar = self.pulled(at, row)
            spread = kernel.splat(scalar, vectors[0].type.lanes)
            for v in range(self.vectors):
                out[row * self.vectors + v] = kernel.fma(spread, vectors[v], out[row * self.vectors + v])
        return tuple(out)
