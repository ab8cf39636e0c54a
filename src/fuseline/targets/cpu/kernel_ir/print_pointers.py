"""LLVM pointers of addresses: one per base and index of a block, rows a runtime stride apart from one another's."""

from __future__ import annotations

from typing import Any

from fuseline.targets.cpu.kernel_ir.llvm_types import llvm_type, reference
from fuseline.targets.cpu.kernel_ir.row_pointers import StridedRow, runtime_rows, strided_rows
from fuseline.targets.cpu.kernel_ir.types import BYTES, Address, Function, Kernel, MemRef, Type, Value


class PointerPrinter:
    """The lines of a function, and the pointers that they have made so far: `pointers` are those of the present block,
    `row_pointers` and `strides` hold everywhere behind them."""

    def __init__(self, kernel: Kernel | Function) -> None:
        self.kernel = kernel
        self.lines: list[str] = []
        self.temporaries = 0
        self.pointers: dict[Any, str] = {}
        self.rows = runtime_rows(kernel.body)
        self.strided = strided_rows(kernel.body, self.rows)
        self.strides: dict[Any, str] = {}
        self.row_pointers: dict[Any, str] = {}

    def offset(self, pointer: str, byte_offset: int) -> str:
        """A pointer `byte_offset` bytes on."""
        if byte_offset == 0:
            return pointer
        name = self.temporary()
        self.lines.append(f"  {name} = getelementptr i8, ptr {pointer}, i64 {byte_offset}")
        return name

    def temporary(self) -> str:
        """A fresh name."""
        self.temporaries += 1
        return f"%t{self.temporaries}"

    def pointer(self, address: Address) -> str:
        """The LLVM pointer of an address: base and index once per block, the constant offset last so that it becomes a
        displacement."""
        root = address.root
        base = self._root(root)
        if isinstance(address.index, Value):
            base = self._indexed(base, address.index, address.dtype)
        elif address.index:
            return self.offset(base, (address.index + address.offset) * BYTES[address.dtype])
        return self.offset(base, address.offset * BYTES[address.dtype])

    def start_rows(self, value: Value) -> None:
        """Make the pointers to rows that begin `value` elements into a buffer, right behind it."""
        strided = self.strided.get(value)
        for memory in self.rows.get(value, ()):
            base = self._root(memory)
            if strided is not None and (base, strided.first) in self.row_pointers:
                continue
            name = self.row_pointers[base, value] = self.temporary()
            self.lines.append(f"  {name} = getelementptr {_element(memory.dtype)}, ptr {base}, i64 %v{value.number}")

    def start_strides(self) -> None:
        """Make the bytes of every stride, and three times as many, which no address computes."""
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


def _element(dtype: str) -> str:
    """The LLVM type of an element in memory."""
    return "i8" if dtype == "i1" else llvm_type(Type(dtype))
