"""Kernels that are the same code up to numbers as one kernel, which takes those numbers as sizes.

    for i in 0 .. 8:  load b0[64 * i]            for i in 0 .. n0:  load b0[n1 * i]       n0, n1 = 8, 64
    for i in 0 .. 4:  load b0[128 * i + 2]   =>  (and + n2)                               n0, n1, n2 = 4, 128, 2

What is traversed side by side, op by op, are the effects, the control flow and the arithmetic on data; they must agree
in everything but numbers. Index arithmetic is not: `64 * i` is `i` where the number is 1, and folded into something
else where it is 0. It is compared as what it computes, a sum of multiples (`forms.py`), and written anew where it is
used. So the merged kernel does for each set of numbers what the kernel of those numbers did, and is proved by the same
argument.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import (
    Address,
    Block,
    Kernel,
    Loop,
    MemRef,
    Operand,
    Value,
    When,
    While,
)
from fuseline.targets.cpu.merging.forms import Forms, UnlikeError
from fuseline.targets.cpu.merging.numbers import Column, Numbers
from fuseline.targets.cpu.merging.op_classes import FREE, MASKED, TRAPS, Many, is_index, sort_of
from fuseline.targets.cpu.merging.outline import EFFECTS, is_index_work, steps_of
from fuseline.targets.cpu.merging.scratch import laid_out


@dataclass(frozen=True)
class Merged:
    """`kernel` takes its own sizes and then, for the `i`-th of the kernels that were merged, the numbers
    `numbers[i]`."""

    kernel: Kernel
    numbers: tuple[tuple[int, ...], ...]


def merge(kernels: Sequence[Kernel], symbol: str, machine: Machine) -> Merged:
    """The kernels as one, called `symbol`. Raises UnlikeError saying where they first differ in more than numbers."""
    first = _Merger(kernels, symbol, machine)
    first.block([kernel.body for kernel in kernels])
    merger = _Merger(kernels, symbol, machine, *first.numbers.fewest())
    merger.block([kernel.body for kernel in kernels])
    return Merged(merger.builder.finish(), merger.numbers.values() or ((),) * len(kernels))


class _Builder(KernelBuilder):
    """Takes over buffers that others have placed."""

    def take_scratch(self, memory: MemRef, end: int) -> None:
        """A buffer of this thread where it is, up to byte `end`."""
        self._scratch.append(memory)
        self.scratch_bytes = max(self.scratch_bytes, end)

    def take_table(self, memory: MemRef) -> None:
        """A constant array."""
        self._tables.append(memory)

    def masked(self, active: Operand | None, lanes: int) -> tuple[Operand | None, Value | None]:
        """How many lanes live, and which."""
        return self._masked(active, lanes)


class _Merger:
    def __init__(
        self, kernels: Sequence[Kernel], symbol: str, machine: Machine, sizes: Sequence[Column] = (), strides: int = 0
    ) -> None:
        self.builder = _Builder(symbol, machine)
        self.known: dict[Many, Any] = {}
        self.met: dict[tuple[int, int], Many] = {}
        require(len({len(kernel.sizes) for kernel in kernels}) == 1, "sizes")
        self._sizes(kernels)
        self.numbers = Numbers(self.builder, len(kernels[0].sizes), sizes, strides)
        self.forms = Forms(self.builder, self.numbers, self.value, lambda i, value: self.met.get((i, id(value))))
        self._put([(kernel.begin, kernel.end) for kernel in kernels], (self.builder.begin, self.builder.end))
        self.buffers: dict[Many, MemRef] = {}
        self._scratch(kernels)
        self._tables(kernels)

    # parameters and memory --------------------------------------------------------------------------------------------

    def _sizes(self, kernels: Sequence[Kernel]) -> None:
        for i, sizes in enumerate(zip(*(kernel.sizes for kernel in kernels), strict=True)):
            bounds = [kernel.size_upper_bounds.get(i) for kernel in kernels]
            known = [bound for bound in bounds if bound is not None]
            self._put(
                [[one] for one in sizes], [self.builder.size(i, max(known) if len(known) == len(bounds) else None)]
            )

    def _scratch(self, kernels: Sequence[Kernel]) -> None:
        require(len({len(kernel.scratch) for kernel in kernels}) == 1, "scratch")
        many = list(zip(*(kernel.scratch for kernel in kernels), strict=True))
        for memories, (taken, end) in zip(many, laid_out(many), strict=True):
            self._buffer(memories, taken)
            self.builder.take_scratch(taken, end)

    def _tables(self, kernels: Sequence[Kernel]) -> None:
        require(len({len(kernel.tables) for kernel in kernels}) == 1, "tables")
        for memories in zip(*(kernel.tables for kernel in kernels), strict=True):
            require(len({memory.data for memory in memories}) == 1, "tables", memories[0].name)
            self._buffer(memories, memories[0])
            self.builder.take_table(memories[0])

    def _buffer(self, memories: Sequence[MemRef], taken: MemRef) -> None:
        alike = {(memory.name, memory.kind, memory.dtype, memory.alignment) for memory in memories}
        require(len(alike) == 1, "buffers", taken.name)
        self.buffers[_ids(memories)] = taken

    def _memory(self, memories: Sequence[MemRef]) -> MemRef:
        key = _ids(memories)
        if key not in self.buffers:
            first = memories[0]
            require(all(memory.kind == "binding" for memory in memories), "buffers", first.name)
            extent = self.forms.operand(tuple(memory.extent for memory in memories), (0,) * len(memories))
            written = any(memory.writable for memory in memories)
            self._buffer(memories, self.builder.binding(first.position, first.dtype, extent, written))
        return self.buffers[key]

    # operands ---------------------------------------------------------------------------------------------------------

    def operand(self, many: Many) -> Any:
        """An operand of the merged kernel for one of each of the others."""
        require(len({sort_of(one) for one in many}) == 1, "operands", "of several sorts")
        if many[0] is None:
            return None
        if isinstance(many[0], Address):
            return self._address(many)
        return self.forms.operand(many) if is_index(many[0]) else self.value(many)

    def _address(self, many: Sequence[Address]) -> Address:
        """Of the index and the offset in one sum: where one is a number the other may not be."""
        roots: Many = tuple(address.root for address in many)
        index = self.forms.operand(tuple(address.index for address in many), tuple(address.offset for address in many))
        if all(isinstance(root, MemRef) for root in roots):
            return self.builder.address(self._memory(roots), index)
        require(not any(isinstance(root, MemRef) for root in roots), "addresses", "one is chosen, the other is not")
        chosen = self.value(roots)
        require(isinstance(chosen, Address), "addresses")
        return self.builder.offset(chosen, index)

    def value(self, many: Sequence[Any]) -> Any:
        """A value that was made, or one that is made where it is asked for: constants, masks, conditions, choices."""
        key = _ids(many)
        found = self.known.get(key)  # which may be 0
        if found is None:
            found = self.builder.recall(("merged", key))
        if found is None:
            require(all(isinstance(one, Value) for one in many), "operands")
            found = self._made(many)
            self.builder.remember(("merged", key), found)
        return found

    def _made(self, many: Sequence[Value]) -> Any:
        first = many[0]
        require(len({(one.op, one.type, len(one.args)) for one in many}) == 1, "operations", first.op)
        if first.op == "const":
            require(len({repr(one.attr) for one in many}) == 1, "constants")
            return self.builder.const(first.attr, *first.type)
        require(is_index_work(first), "order of operations", first.op)
        args = tuple(self.operand(arg) for arg in zip(*(one.args for one in many), strict=True))
        return self._free(first, args, many)

    def _free(self, first: Value, args: Many, many: Sequence[Value]) -> Any:
        require(len({repr(one.attr) for one in many}) == 1, "operations", first.op)
        build = FREE.get(first.op)
        if build is not None:
            return build(self.builder, first, args)
        return self.builder.pure(first.op, first.type, args, first.attr, safe=first.op not in TRAPS)

    def _put(self, olds: Sequence[Sequence[Value]], news: Sequence[Any]) -> None:
        for many, new in zip(zip(*olds, strict=True), news, strict=True):
            self.known[_ids(many)] = new
            self.met.update(((i, id(one)), many) for i, one in enumerate(many))

    # code -------------------------------------------------------------------------------------------------------------

    def block(self, blocks: Sequence[Block]) -> None:
        """The ops of one block each, in order."""
        lists = [list(steps_of(block)) for block in blocks]
        for steps in zip(*lists, strict=False):
            self._divisions([step.divisions for step in steps])
            self._op(tuple(step.op for step in steps))
        require(len({len(steps) for steps in lists}) == 1, "code", "one goes on")

    def _divisions(self, lists: Sequence[Sequence[Value]]) -> None:
        """Divisions stay where they are: asked for in a loop, they would be done in every round."""
        if len({len(one) for one in lists}) == 1:
            for many in zip(*lists, strict=True):
                with suppress(UnlikeError):  # nobody may ask for it
                    self.forms.operand(many)

    def _op(self, ops: Many) -> None:
        require(len({type(op) for op in ops}) == 1, "code", f"{type(ops[0]).__name__} beside {type(ops[-1]).__name__}")
        if isinstance(ops[0], Value):
            self._effect(ops)
        elif isinstance(ops[0], Loop):
            self._loop(ops)
        elif isinstance(ops[0], When):
            self._when(ops)
        else:
            self._while(ops)

    def _effect(self, ops: Sequence[Value]) -> None:
        first = ops[0]
        kinds = {(op.op, op.type, repr(op.attr), len(op.args)) for op in ops}
        require(len(kinds) == 1, "operations", f"{first.op} {first.type}")
        builder = self.builder
        args = list(zip(*(op.args for op in ops), strict=True))
        if first.op in MASKED:
            lanes = (first.type if first.op in ("load", "gather") else first.args[-1].type).lanes
            masked = builder.masked(self.operand(args[1]), lanes)
            require((masked[0] is None) == (args[1][0] is None), "operations", "every lane, once counted")
            made = [self.operand(args[0]), *masked, *(self.operand(arg) for arg in args[3:])]
        else:
            made = [self.operand(arg) for arg in args]
        is_effect = first.op in EFFECTS
        place = builder.effect if is_effect else lambda *arguments: builder.pure(*arguments, safe=False)
        self._put([[op] for op in ops], [place(first.op, first.type, tuple(made), first.attr)])

    def _loop(self, loops: Sequence[Loop]) -> None:
        require(len({(loop.step, len(loop.carried)) for loop in loops}) == 1, "loops")
        lo, hi = (self.operand(tuple(getattr(loop, end) for loop in loops)) for end in ("lo", "hi"))

        def body(index: Operand, *carried: Any) -> tuple[Any, ...]:
            self._put([(loop.index, *loop.carried) for loop in loops], (index, *carried))
            self.block([loop.body for loop in loops])
            return self._all([loop.yields for loop in loops])

        results = self.builder.loop(lo, hi, loops[0].step, body, self._all([loop.inits for loop in loops]))
        self._put([loop.results for loop in loops], results)

    def _while(self, loops: Sequence[While]) -> None:
        require(len({len(loop.carried) for loop in loops}) == 1, "loops")

        def test(*carried: Any) -> Value:
            self._put([loop.carried for loop in loops], carried)
            self.block([loop.test for loop in loops])
            return self.operand(tuple(loop.condition for loop in loops))

        def body(*carried: Any) -> tuple[Any, ...]:
            del carried  # those of the test
            self.block([loop.body for loop in loops])
            return self._all([loop.yields for loop in loops])

        results = self.builder.while_(test, body, self._all([loop.inits for loop in loops]))
        self._put([loop.results for loop in loops], results)

    def _when(self, whens: Sequence[When]) -> None:
        def side(name: str) -> Callable[[], tuple[Any, ...]]:
            def emit() -> tuple[Any, ...]:
                self.block([getattr(when, name) for when in whens])
                return self._all([getattr(when, f"{name}_yields") for when in whens])

            return emit

        condition = self.operand(tuple(when.condition for when in whens))
        both = any(when.otherwise.ops or when.results for when in whens)
        results = self.builder.when(condition, side("then"), side("otherwise") if both else None)
        self._put([when.results for when in whens], results)

    def _all(self, lists: Sequence[Sequence[Operand]]) -> tuple[Any, ...]:
        require(len({len(one) for one in lists}) == 1, "code", "values")
        return tuple(self.operand(many) for many in zip(*lists, strict=True))


def _ids(many: Sequence[Any]) -> Many:
    return tuple(map(id, many))


def require(holds: bool, what: str, where: str = "") -> None:
    """Raises UnlikeError: the kernels differ in `what`."""
    if not holds:
        raise UnlikeError(what, where)
