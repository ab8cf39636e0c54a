"""Kernel IR as LLVM text. This is the only place that writes LLVM."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir import print_functions, print_memory
from fuseline.targets.cpu.kernel_ir.llvm_types import llvm_type, reference, scalar_text, suffix, typed
from fuseline.targets.cpu.kernel_ir.row_pointers import StridedRow, runtime_rows, strided_rows
from fuseline.targets.cpu.kernel_ir.types import (
    BYTES,
    I1,
    Address,
    Block,
    Function,
    Kernel,
    Loop,
    MemRef,
    Operand,
    Type,
    Value,
    When,
    While,
    type_of,
)

_FLOAT_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "fdiv": "fdiv"}
_INTRINSICS = {"sqrt": "sqrt", "floor": "floor", "ceil": "ceil", "rint": "rint", "trunc": "trunc"}
_INT_EXTREMES = {"min": "smin", "max": "smax", "umin": "umin", "umax": "umax"}
_NO_WRAP = {"add": "add nsw", "sub": "sub nsw", "mul": "mul nsw"}


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
    return "attributes #0 = { nounwind " + " ".join(f'"{name}"="{value}"' for name, value in pairs) + " }\n"


class _Printer:
    def __init__(self, kernel: Kernel | Function, machine: Machine, declarations: set[str]) -> None:
        self.kernel, self.machine, self.declarations = kernel, machine, declarations
        self.lines: list[str] = []
        self.label = "entry"
        self.temporaries = 0
        self.pointers: dict[Any, str] = {}
        self.rows = runtime_rows(kernel.body)
        self.strided = strided_rows(kernel.body, self.rows)
        self.strides: dict[Any, str] = {}
        self.row_pointers: dict[Any, str] = {}

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
        return tables + head + "ptr noalias %scratch) #0 {\nentry:\n" + "\n".join(self.lines) + "\n  ret void\n}\n"

    # parts ------------------------------------------------------------------------------------------------------------

    def _prologue(self, kernel: Kernel) -> None:
        out = self.lines.append
        for memory in kernel.bindings:
            slot = self._offset("%bindings", memory.position * 8)
            out(f"  %{memory.name} = load ptr, ptr {slot}, align 8, !invariant.load !{{}}")
        for memory in kernel.scratch:
            out(f"  %{memory.name} = getelementptr i8, ptr %scratch, i64 {memory.position}")
        for i, size in enumerate(kernel.sizes):
            out(f"  %v{size.number} = load i64, ptr {self._offset('%sizes', i * 8)}, align 8, !invariant.load !{{}}")
        self._start_strides()

    def _offset(self, pointer: str, byte_offset: int) -> str:
        if byte_offset == 0:
            return pointer
        name = self.temporary()
        self.lines.append(f"  {name} = getelementptr i8, ptr {pointer}, i64 {byte_offset}")
        return name

    def temporary(self) -> str:
        """A fresh name."""
        self.temporaries += 1
        return f"%t{self.temporaries}"

    def _block(self, block: Block) -> None:
        handlers = _HANDLERS
        for op in block.ops:
            if isinstance(op, Value):
                handlers[op.op](self, op)
                self._start_rows(op)
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
        head, body, done = (f"{part}{loop.number}" for part in ("while", "do", "done"))
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
        names = [f"{part}{when.number}" for part in ("then", "else", "join")]
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

    # addresses --------------------------------------------------------------------------------------------------------

    def pointer(self, address: Address) -> str:
        """The LLVM pointer of an address: base and index once per block, the constant offset last so that it becomes a
        displacement."""
        root = address.root
        base = self._root(root)
        if isinstance(address.index, Value):
            base = self._indexed(base, address.index, address.dtype)
        elif address.index:
            return self._offset(base, (address.index + address.offset) * BYTES[address.dtype])
        return self._offset(base, address.offset * BYTES[address.dtype])

    def _start_rows(self, value: Value) -> None:
        """The pointers to rows that begin `value` elements into a buffer, right behind it."""
        strided = self.strided.get(value)
        for memory in self.rows.get(value, ()):
            base = self._root(memory)
            if strided is not None and (base, strided.first) in self.row_pointers:
                continue
            name = self.row_pointers[base, value] = self.temporary()
            self.lines.append(f"  {name} = getelementptr {_element(memory.dtype)}, ptr {base}, i64 %v{value.number}")

    def _start_strides(self) -> None:
        """The bytes of every stride, and three times as many, which no address computes."""
        rows = {(row.stride, BYTES[memory.dtype]) for value, row in self.strided.items() for memory in self.rows[value]}
        for stride, size in sorted(rows, key=lambda one: (one[0].number, one[1])):
            for times in (1, 3):
                product = self.temporary()
                name = self.strides[stride, size, times] = self.temporary()
                self.lines.append(f"  {product} = mul nsw i64 %v{stride.number}, {times * size}")
                self.lines.append(f"  {name} = freeze i64 {product}")

    def _indexed(self, base: str, index: Value, dtype: str) -> str:
        """`base` moved by `index` elements.

        Rows a runtime stride apart have a pointer each, made outside of the loop, and a common index. Their sums would
        all be computed ahead, and what is loaded through them held at once (a product with a runtime reduction ran at
        half speed).
        """
        key = (base, index)
        found = self.pointers.get(key)
        if found is None:
            step = index
            row = self.row_pointers.get((base, index.args[0])) if index.op == "add" else None
            strided = self.strided.get(index.args[0]) if row is None and index.op == "add" else None
            if strided is not None and (base, strided.first) in self.row_pointers:
                found = self.pointers[key] = self._along(base, strided, index.args[1], dtype)
                return found
            if row is not None:
                base, step = row, index.args[1]
            found = self.pointers[key] = self.temporary()
            self.lines.append(f"  {found} = getelementptr {_element(dtype)}, ptr {base}, i64 {reference(step)}")
        return found

    def _along(self, base: str, row: StridedRow, step: Value, dtype: str) -> str:
        """The pointer `step` elements into a row that is reached from another one's."""
        key = (base, row.first, row.stride, step, row.times // 4)
        near = self.pointers.get(key)
        if near is None:
            near = self.pointers[key] = self._fourth_row(base, row, step, dtype)
        return self._strides_on(near, row.stride, row.times % 4, dtype)

    def _fourth_row(self, base: str, row: StridedRow, step: Value, dtype: str) -> str:
        """The pointer into the last row up to `row` that is a multiple of four strides from the first."""
        if row.times >= 4:
            before = self._along(base, row._replace(times=row.times // 4 * 4 - 4), step, dtype)
            return self._strides_on(before, row.stride, 4, dtype)
        name, start = self.temporary(), self.row_pointers[base, row.first]
        self.lines.append(f"  {name} = getelementptr {_element(dtype)}, ptr {start}, i64 %v{step.number}")
        return name

    def _strides_on(self, pointer: str, stride: Value, times: int, dtype: str) -> str:
        """A pointer up to four strides on. The product is written where it is used: addresses multiply by 2 and 4."""
        if times == 0:
            return pointer
        bytes_ = self.strides[stride, BYTES[dtype], 3 if times == 3 else 1]
        if times in (2, 4):
            product = self.temporary()
            self.lines.append(f"  {product} = mul nsw i64 {bytes_}, {times}")
            bytes_ = product
        name = self.temporary()
        self.lines.append(f"  {name} = getelementptr i8, ptr {pointer}, i64 {bytes_}")
        return name

    def _root(self, root: MemRef | Value) -> str:
        if isinstance(root, Value):
            return f"%v{root.number}"
        if root.base is not None:
            return f"%v{root.base.number}"
        return f"@{self.kernel.symbol}_{root.name}" if root.kind == "table" else f"%{root.name}"

    # operations -------------------------------------------------------------------------------------------------------

    def out(self, value: Value, text: str) -> None:
        self.lines.append(f"  %v{value.number} = {text}")

    def call(self, name: str, result: Type, operands: Sequence[Operand]) -> str:
        """A call of an intrinsic, declared on the way."""
        types = ", ".join(llvm_type(type_of(o)) for o in operands)
        self.declarations.add(f"declare {llvm_type(result)} @{name}({types})")
        return f"call {llvm_type(result)} @{name}({', '.join(typed(o) for o in operands)})"

    def binary(self, v: Value) -> None:
        op, (a, b) = v.op, v.args
        if v.type.is_float:
            name = _FLOAT_BINARY[op]
        else:
            name = (
                _NO_WRAP.get(op, op) if v.type.dtype == "i64" and v.type.lanes == 1 and not isinstance(b, Value) else op
            )
        self.out(v, f"{name} {typed(a)}, {reference(b)}")

    def extreme(self, v: Value) -> None:
        a, b = v.args
        if not v.type.is_float:
            self.out(v, self.call(f"llvm.{_INT_EXTREMES[v.op]}.{suffix(v.type)}", v.type, (a, b)))
            return
        mask = self.temporary()
        self.lines.append(f"  {mask} = fcmp {'olt' if v.op == 'min' else 'ogt'} {typed(a)}, {reference(b)}")
        self.out(v, f"select {llvm_type(Type('i1', v.type.lanes))} {mask}, {typed(a)}, {typed(b)}")

    def fma(self, v: Value) -> None:
        a, b, c = v.args
        if self.machine.fma:
            self.out(v, self.call(f"llvm.fma.{suffix(v.type)}", v.type, (a, b, c)))
            return
        product = self.temporary()
        self.lines.append(f"  {product} = fmul {typed(a)}, {reference(b)}")
        self.out(v, f"fadd {llvm_type(v.type)} {product}, {reference(c)}")

    def dot_pairs(self, v: Value) -> None:
        a, b, total = v.args
        product = self.temporary()
        self.lines.append(f"  {product} = {self.call(self.machine.pair_dot, v.type, (a, b))}")
        self.out(v, f"add {llvm_type(v.type)} {product}, {reference(total)}")

    def neg(self, v: Value) -> None:
        self.out(v, f"fneg {typed(v.args[0])}")

    def abs(self, v: Value) -> None:
        if v.type.is_float:
            self.out(v, self.call(f"llvm.fabs.{suffix(v.type)}", v.type, v.args))
        else:
            self.out(v, self.call(f"llvm.abs.{suffix(v.type)}", v.type, (v.args[0], Value("const", I1, (), 0, 0, 0))))

    def unary(self, v: Value) -> None:
        self.out(v, self.call(f"llvm.{_INTRINSICS[v.op]}.{suffix(v.type)}", v.type, v.args))

    def count(self, v: Value) -> None:
        name = f"llvm.{v.op}.{suffix(v.type)}"
        flags = () if v.op == "ctpop" else (Value("const", I1, (), 0, 0, 0),)
        self.out(v, self.call(name, v.type, (*v.args, *flags)))

    def compare(self, v: Value) -> None:
        a, b = v.args
        self.out(v, f"{'fcmp' if type_of(a).is_float else 'icmp'} {v.attr} {typed(a)}, {reference(b)}")

    def select(self, v: Value) -> None:
        self.out(v, "select " + ", ".join(typed(a) for a in v.args))

    def cast(self, v: Value) -> None:
        self.out(v, f"{v.attr} {typed(v.args[0])} to {llvm_type(v.type)}")

    def bitcast(self, v: Value) -> None:
        self.out(v, f"bitcast {typed(v.args[0])} to {llvm_type(v.type)}")

    def splat(self, v: Value) -> None:
        vector, lanes = llvm_type(v.type), v.type.lanes
        first = self.temporary()
        self.lines.append(f"  {first} = insertelement {vector} poison, {typed(v.args[0])}, i64 0")
        self.out(v, f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")

    def mask(self, v: Value) -> None:
        """Compared in i32 lanes: an `active` count is small, and a 64-bit compare would need twice the registers."""
        lanes = v.type.lanes
        vector, one, first, wide = f"<{lanes} x i32>", *(self.temporary() for _ in range(3))
        self.lines.append(f"  {one} = trunc {typed(v.args[0])} to i32")
        self.lines.append(f"  {first} = insertelement {vector} poison, i32 {one}, i64 0")
        self.lines.append(f"  {wide} = shufflevector {vector} {first}, {vector} poison, {vector} zeroinitializer")
        steps = ", ".join(f"i32 {i}" for i in range(lanes))
        self.out(v, f"icmp sgt {vector} {wide}, <{steps}>")

    def extract(self, v: Value) -> None:
        self.out(v, f"extractelement {typed(v.args[0])}, i64 {v.attr}")

    def insert(self, v: Value) -> None:
        self.out(v, f"insertelement {typed(v.args[0])}, {typed(v.args[1])}, i64 {v.attr}")

    def shuffle(self, v: Value) -> None:
        mask = ", ".join(f"i32 {i}" for i in v.attr)
        self.out(v, f"shufflevector {typed(v.args[0])}, {typed(v.args[1])}, <{len(v.attr)} x i32> <{mask}>")

    def select_address(self, v: Value) -> None:
        condition, a, b = v.args
        self.out(v, f"select {typed(condition)}, ptr {self.pointer(a)}, ptr {self.pointer(b)}")


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
    **dict.fromkeys(
        ("add", "sub", "mul", "fdiv", "udiv", "urem", "sdiv", "srem", "and", "or", "xor", "shl", "lshr", "ashr"),
        _Printer.binary,
    ),
    **dict.fromkeys(("min", "max", "umin", "umax"), _Printer.extreme),
    **dict.fromkeys(("ctlz", "cttz", "ctpop"), _Printer.count),
    **dict.fromkeys(("sqrt", "floor", "ceil", "rint", "trunc"), _Printer.unary),
    **{
        name: getattr(_Printer, name)
        for name in (
            "fma dot_pairs neg abs compare select cast bitcast splat mask extract insert shuffle select_address".split()
        )
    },
    **print_memory.HANDLERS,
    **print_functions.HANDLERS,
}


def _element(dtype: str) -> str:
    """The LLVM type of an element in memory."""
    return "i8" if dtype == "i1" else llvm_type(Type(dtype))
