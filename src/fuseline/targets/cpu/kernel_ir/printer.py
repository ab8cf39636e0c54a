"""Kernel IR as LLVM text. This is the only place that writes LLVM."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import groupby
from typing import Any

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir import print_functions, print_memory, print_values
from fuseline.targets.cpu.kernel_ir.llvm_types import llvm_type, reference, scalar_text
from fuseline.targets.cpu.kernel_ir.print_constants import around_wide_loops, held
from fuseline.targets.cpu.kernel_ir.print_pointers import PointerPrinter
from fuseline.targets.cpu.kernel_ir.types import (
    Block,
    Function,
    Kernel,
    Loop,
    MemRef,
    Type,
    Value,
    When,
    While,
)


def print_llvm(kernels: Sequence[Kernel | Function], machine: Machine) -> str:
    """One LLVM module with the kernels as exported functions, and other functions."""
    declarations: set[str] = set()
    bodies = [_Printer(kernel, machine, declarations).text() for kernel in kernels]
    attributes = _attributes(machine)
    header = f'target triple = "{machine.triple}"\n'
    return "\n".join([header, *bodies, *sorted(declarations), "", attributes])


def _attributes(machine: Machine) -> str:
    pairs = (
        ("target-cpu", machine.cpu),
        ("target-features", ",".join(machine.features)),
        ("frame-pointer", "none"),
        *machine.attributes,
    )
    said = " ".join(f'"{name}"="{value}"' for name, value in pairs)
    # A caller aligns the stack to 16 bytes, and LLVM finds out too late that it spills vectors: each one spilled would
    # lie in two lines of the cache, or not, from one process to the next.
    return f"attributes #0 = {{ nounwind alignstack={machine.vector_bytes} {said} }}\n"


class _Printer(PointerPrinter):
    def __init__(self, kernel: Kernel | Function, machine: Machine, declarations: set[str]) -> None:
        super().__init__(kernel)
        self.machine, self.declarations, self.label = machine, declarations, "entry"
        self.globals = set[str]()
        self.around_wide = around_wide_loops(kernel.body, machine)

    def out(self, value: Value, text: str) -> None:
        """Define a value."""
        self.lines.append(f"  %v{value.number} = {text}")

    def text(self) -> str:
        kernel = self.kernel
        if isinstance(kernel, Function):
            self._block(kernel.body)
            return "\n".join(
                [print_functions.head(kernel) + " #0 {", "entry:", *self.lines, print_functions.end(kernel), "}\n"]
            )
        head = (
            f"define void @{kernel.symbol}(ptr noalias %bindings, ptr noalias %sizes, i64 %v{kernel.begin.number}, "
            f"i64 %v{kernel.end.number}, "
        )
        self._prologue(kernel)
        self._block(kernel.body)
        tables = "".join(_table(kernel.symbol, t) for t in kernel.tables)
        return (
            "".join(sorted(self.globals))
            + tables
            + head
            + "ptr noalias %scratch) #0 {\nentry:\n"
            + "\n".join(self.lines)
            + "\n  ret void\n}\n"
        )

    # parts ------------------------------------------------------------------------------------------------------------

    def _prologue(self, kernel: Kernel) -> None:
        out = self.lines.append
        for memory in kernel.bindings:
            slot = self.offset("%bindings", memory.position * 8)
            out(f"  %{memory.name} = load ptr, ptr {slot}, align 8, !invariant.load !{{}}")
        for memory in kernel.scratch:
            out(f"  %{memory.name} = getelementptr i8, ptr %scratch, i64 {memory.position}")
        for i, size in enumerate(kernel.sizes):
            out(f"  %v{size.number} = load i64, ptr {self.offset('%sizes', i * 8)}, align 8, !invariant.load !{{}}")
        self.start_strides()

    def _block(self, block: Block) -> None:
        if block not in self.around_wide:
            self._ops(block.ops)
            return
        for apart, ops in groupby(block.ops, lambda op: op in self.around_wide):
            at = len(self.lines)
            self._ops(ops)
            if not apart:
                self.lines[at:] = held(self.lines[at:], f"%held{at}_", self.kernel.symbol, self.globals)

    def _ops(self, ops: Iterable[Value | Loop | While | When]) -> None:
        handlers = _HANDLERS
        for op in ops:
            if isinstance(op, Value):
                handlers[op.op](self, op)
                self.start_rows(op)
            elif isinstance(op, Loop):
                self._loop(op)
            elif isinstance(op, While):
                self._while(op)
            else:
                self._when(op)

    def _enter(self, label: str) -> None:
        self.lines.append(f"{label}:")
        self.label = label
        self.pointers = {}

    def _loop(self, loop: Loop) -> None:
        head, done = f"loop{loop.number}", f"done{loop.number}"
        before = self._loop_guard(loop, head, done)
        saved = self.pointers
        self._enter(head)
        at = len(self.lines)
        self._block(loop.body)
        latch = self.label
        self.lines[at:at] = self._phis(loop, before, latch)
        self.lines.append(f"  %next{loop.number} = add nsw i64 %v{loop.index.number}, {loop.step}")
        self.lines.append(f"  %more{loop.number} = icmp slt i64 %next{loop.number}, {reference(loop.hi)}")
        self.lines.append(f"  br i1 %more{loop.number}, label %{head}, label %{done}")
        self._enter(done)
        self.pointers = dict(saved)
        self._loop_results(loop, before, latch)

    def _loop_guard(self, loop: Loop, head: str, done: str) -> str:
        before = self.label
        if _surely_runs(loop):
            self.lines.append(f"  br label %{head}")
        else:
            self.lines.append(f"  %any{loop.number} = icmp slt i64 {reference(loop.lo)}, {reference(loop.hi)}")
            self.lines.append(f"  br i1 %any{loop.number}, label %{head}, label %{done}")
        return before

    def _phis(self, loop: Loop, before: str, latch: str) -> list[str]:
        number = loop.number
        lines = [f"  %v{loop.index.number} = phi i64 [ {reference(loop.lo)}, %{before} ], [ %next{number}, %{latch} ]"]
        return lines + self._carried(loop, before, latch)

    def _carried(self, loop: Loop | While, before: str, latch: str) -> list[str]:
        lines: list[str] = []
        for parameter, init, after in zip(loop.carried, loop.inits, loop.yields, strict=True):
            ends = f"[ {reference(init)}, %{before} ], [ {reference(after)}, %{latch} ]"
            lines.append(f"  %v{parameter.number} = phi {llvm_type(parameter.type)} {ends}")
        return lines

    def _loop_results(self, loop: Loop, before: str, latch: str) -> None:
        skipped = not _surely_runs(loop)
        for result, init, after in zip(loop.results, loop.inits, loop.yields, strict=True):
            ends = f"[ {reference(after)}, %{latch} ]" + (f", [ {reference(init)}, %{before} ]" if skipped else "")
            self.lines.append(f"  %v{result.number} = phi {llvm_type(result.type)} {ends}")

    def _while(self, loop: While) -> None:
        head, body, done = (f"{label}{loop.number}" for label in ("while", "do", "done"))
        before, saved = self.label, self.pointers
        self.lines.append(f"  br label %{head}")
        self._enter(head)
        at = len(self.lines)
        self._block(loop.test)
        assert loop.condition is not None
        self.lines.append(f"  br i1 {reference(loop.condition)}, label %{body}, label %{done}")
        tested = self.label
        self._enter(body)
        self._block(loop.body)
        self.lines.append(f"  br label %{head}")
        self.lines[at:at] = self._carried(loop, before, self.label)
        self._enter(done)
        self.pointers = dict(saved)
        for result, parameter in zip(loop.results, loop.carried, strict=True):
            ends = f"[ %v{parameter.number}, %{tested} ]"
            self.lines.append(f"  %v{result.number} = phi {llvm_type(result.type)} {ends}")

    def _when(self, when: When) -> None:
        names = [f"{label}{when.number}" for label in ("then", "else", "join")]
        otherwise = names[1] if when.otherwise.ops or when.results else names[2]
        self.lines.append(f"  br i1 {reference(when.condition)}, label %{names[0]}, label %{otherwise}")
        saved = self.pointers
        ends = [self._branch(names[0], when.then, names[2], saved)]
        if otherwise == names[1]:
            ends.append(self._branch(names[1], when.otherwise, names[2], saved))
        self._enter(names[2])
        self.pointers = dict(saved)
        for i, result in enumerate(when.results):
            a, b = reference(when.then_yields[i]), reference(when.otherwise_yields[i])
            self.lines.append(
                f"  %v{result.number} = phi {llvm_type(result.type)} [ {a}, %{ends[0]} ], [ {b}, %{ends[1]} ]"
            )

    def _branch(self, label: str, block: Block, join: str, pointers: dict[Any, str]) -> str:
        self._enter(label)
        self.pointers = dict(pointers)
        self._block(block)
        self.lines.append(f"  br label %{join}")
        return self.label


def _surely_runs(loop: Loop) -> bool:
    return isinstance(loop.lo, int) and isinstance(loop.hi, int) and loop.lo < loop.hi


def _table(symbol: str, table: MemRef) -> str:
    dtype = "i8" if table.dtype == "i1" else table.dtype
    element = llvm_type(Type(dtype))
    numbers = ", ".join(f"{element} {scalar_text(n, dtype)}" for n in table.data)
    return (
        f"@{symbol}_{table.name} = private unnamed_addr constant [{len(table.data)} x {element}] [{numbers}], "
        f"align {table.alignment}\n"
    )


_HANDLERS: dict[str, Callable[[_Printer, Value], None]] = {
    **print_values.HANDLERS,
    **print_memory.HANDLERS,
    **print_functions.HANDLERS,
}
