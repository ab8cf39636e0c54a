"""Ranks: how many elements of a row come before each, by sorting the row.

    out[.., i, ..] = sum over j of (x[.., j, ..] < x[.., i, ..], or equal and j < i ? 1 : 0)        for integers x

A workgroup takes one row. Where only the first few count, it keeps those in order while it walks along the row: most
elements are compared with the last of them and passed over. Else elements and their positions lie in scratch, runs of
1, 2, 4, .. are merged, as far as they count, until one is left. The position at place p then has rank p. Both are
stable: of equals the first comes first.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log, log2

from fuseline.analysis.structured import splat_value
from fuseline.analysis.walks import Rank
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim, upper_bound
from fuseline.targets.cpu.emit.coordinates import AnyIndex, Index
from fuseline.targets.cpu.emit.dtypes import dtype_of
from fuseline.targets.cpu.families.contraction.results import ResultPath, result_paths
from fuseline.targets.cpu.families.family import Family, Plan, Refusal
from fuseline.targets.cpu.families.root.kernel import RootKernel
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Operand, Value

MOST_ELEMENTS = 1 << 14
"""Elements of a row: what sorting keeps of more would not stay in the cache."""

MOST_KEPT = 64
"""Elements that are kept in order at the most: on rows in the opposite order each of a row's elements moves all of
them."""


@dataclass(frozen=True, kw_only=True)
class RankPlan(Plan):
    """A rank; the loops beside the ranked one form the grid. `most`: elements of a row at the most. `limit`: how many
    of them count."""

    rank: Rank
    outer: tuple[int, ...]
    most: int
    limit: int
    extents: tuple[Dim, ...]
    path: ResultPath


def keeps_first(limit: int, elements: int) -> bool:
    """Whether the first `limit` of a row are kept in order: in the mean `limit (1 + log(elements / limit))` elements
    take a place and move `limit` others, which takes half as long as a step of merging (measured: 2.5 and 5 ns)."""
    moves = limit * limit * (1 + log(max(elements / limit, 1)))
    return limit <= MOST_KEPT and moves <= 2 * elements * log2(max(elements, 2))


class _RankKernel(RootKernel):
    def __init__(self, plan: RankPlan, kernel: KernelBuilder) -> None:
        super().__init__(plan, kernel, plan.rank.root, [plan.path], 1)
        self.plan, self.rank = plan, plan.rank
        self.dtype = dtype_of(plan.rank.root.inputs[0].type)

    def prepare(self) -> None:
        """Room for what is in order."""
        plan, kernel = self.plan, self.kernel
        kept = keeps_first(plan.limit, plan.most)
        room = plan.limit if kept else plan.most
        self.sides = [(kernel.scratch(self.dtype, room), kernel.scratch("i64", room)) for _ in range(1 if kept else 2)]
        self.order = self._keep_first if kept else self._sort

    def workgroup(self, number: Operand) -> tuple[Operand, ...]:
        """One row."""
        plan, kernel, limit = self.plan, self.kernel, self.rank.limit
        loops = self.point_of(number, plan.outer, plan.extents)
        count = self.buffers.operand(plan.extents[self.rank.ranked])

        def ranked(p: Operand) -> None:
            found = kernel.load(self.sides[0][1], p)
            self._store(loops, kernel.max(kernel.min(found, kernel.sub(count, 1)), 0), p)

        if limit is not None:
            kernel.loop(0, count, 1, lambda i: self._store(loops, i, limit))
        self.order(loops, count)
        kernel.loop(0, kernel.min(count, plan.limit), 1, ranked)
        return ()

    def _store(self, loops: list[AnyIndex], position: Operand, rank: Operand) -> None:
        self.results.finish(self._at(loops, position), None, self.kernel.as_value(rank))

    def _element(self, loops: list[AnyIndex], i: Operand) -> Value:
        root, here = self.rank.root, self.rank.here
        return self.emitter.value_at(root.inputs[here], self.emitter.through(root.maps[here], self._at(loops, i), 1))

    def _at(self, loops: list[AnyIndex], index: Operand) -> list[AnyIndex]:
        return [Index(index) if loop == self.rank.ranked else at for loop, at in enumerate(loops)]

    # a few ------------------------------------------------------------------------------------------------------------

    def _keep_first(self, loops: list[AnyIndex], count: Operand) -> None:
        """The first elements of a row in order in scratch; places of which none has come yet hold the position -1."""
        kernel, limit, (keys, positions) = self.kernel, self.plan.limit, self.sides[0]

        def clear(p: Operand) -> None:
            kernel.store(keys, p, kernel.const(0, self.dtype))
            kernel.store(positions, p, kernel.as_value(-1))

        def element(i: Operand) -> None:
            key = self._element(loops, i)
            free = kernel.compare("lt", kernel.load(positions, limit - 1), 0)
            better = kernel.bitor(free, kernel.compare("lt", key, kernel.load(keys, limit - 1)))
            kernel.when(better, lambda: self._insert(key, i))

        kernel.loop(0, limit, 1, clear)
        kernel.loop(0, count, 1, element)

    def _insert(self, key: Value, number: Operand) -> tuple[()]:
        """`key` takes its place, what comes behind it moves by one, and the last falls out."""
        kernel, limit, (keys, positions) = self.kernel, self.plan.limit, self.sides[0]

        def step(p: Operand, carried: Value, position: Value) -> tuple[Value, Value]:
            old, at = kernel.load(keys, p), kernel.load(positions, p)
            former = kernel.bitand(kernel.compare("eq", carried, old), kernel.compare("lt", position, at))
            first = kernel.bitor(kernel.compare("lt", at, 0), kernel.bitor(kernel.compare("lt", carried, old), former))
            kernel.store(keys, p, kernel.select(first, carried, old))
            kernel.store(positions, p, kernel.select(first, position, at))
            return kernel.select(first, old, carried), kernel.select(first, at, position)

        kernel.loop(0, limit, 1, step, [key, kernel.as_value(number)])
        return ()

    # all --------------------------------------------------------------------------------------------------------------

    def _sort(self, loops: list[AnyIndex], count: Operand) -> None:
        kernel, (keys, positions) = self.kernel, self.sides[0]

        def read(i: Operand) -> None:
            kernel.store(keys, i, self._element(loops, i))
            kernel.store(positions, i, kernel.as_value(i))

        kernel.loop(0, count, 1, read)
        width = 1
        while width < self.plan.most:
            self._merge_all(width, count)
            self.sides.reverse()
            width *= 2

    def _merge_all(self, width: int, count: Operand) -> None:
        """Runs of `width` in the first side merged by pairs into the second."""
        kernel = self.kernel

        def pair(low: Operand) -> None:
            middle, high = (kernel.min(kernel.add(low, size), count) for size in (width, 2 * width))
            self._merge(low, middle, high, kernel.sub(count, 1))

        kernel.loop(0, count, 2 * width, pair)

    def _merge(self, low: Operand, middle: Operand, high: Operand, last: Operand) -> None:
        kernel, (keys, positions), (sorted_keys, sorted_positions) = self.kernel, *self.sides

        def step(p: Operand, left: Value, right: Value) -> tuple[Value, Value]:
            a, b = (
                kernel.max(kernel.min(at, last), 0) for at in (left, right)
            )  # an exhausted run is not read, and its end need not be inside
            first, second = kernel.load(keys, a), kernel.load(keys, b)
            exhausted, ordered = kernel.compare("ge", right, high), kernel.compare("le", first, second)
            taken = kernel.bitand(kernel.compare("lt", left, middle), kernel.bitor(exhausted, ordered))
            kernel.store(sorted_keys, p, kernel.select(taken, first, second))
            kernel.store(sorted_positions, p, kernel.load(positions, kernel.select(taken, a, b)))
            return kernel.select(taken, kernel.add(left, 1), left), kernel.select(taken, right, kernel.add(right, 1))

        kernel.loop(
            low,
            kernel.min(high, kernel.add(low, self.plan.limit)),
            1,
            step,
            [kernel.as_value(low), kernel.as_value(middle)],
        )


class RankFamily(Family):
    """Takes ranks that are alone in their dispatch, of rows up to `MOST_ELEMENTS`."""

    name = "rank"
    kernel_type = _RankKernel

    def accepts(self, view: DispatchView, machine: Machine) -> Plan | Refusal:
        """A plan where the root is a rank."""
        root = view.root_view
        rank = view.idiom
        if root is None or not isinstance(rank, Rank):
            return Refusal("not-a-rank", "the root does not count what comes before")
        if splat_value(root.outputs[0]) != 0 or dtype_of(root.op.results[0].type) != "i64":
            return Refusal("not-a-rank", "the count does not begin at 0")
        extents = root.loops(view.shapes)
        most = upper_bound(extents[rank.ranked])
        if most is None or most > MOST_ELEMENTS:
            return Refusal("row-length", f"rows of up to {most or 'any number of'} elements")
        paths = result_paths(view)
        if isinstance(paths, Refusal):
            return paths
        if len(paths) != 1 or paths[0].value is not root.op.results[0]:
            return Refusal("epilogue", "the ranks are not the only result")
        if any(extent == 0 for extent in extents):
            return Refusal("empty", "a loop never runs")
        outer = tuple(loop for loop in root.parallel if loop != rank.ranked and extents[loop] != 1)
        limit = min(rank.limit or most, most)
        plan = RankPlan(
            view=view, workgroups=0, rank=rank, outer=outer, most=most, limit=limit, extents=extents, path=paths[0]
        )
        return replace(plan, workgroups=d.product(extents[loop] for loop in outer))


EXPORT = RankFamily
