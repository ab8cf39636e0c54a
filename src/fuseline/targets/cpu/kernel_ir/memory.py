"""Loads, stores and addresses of the kernel IR."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from math import inf
from typing import Any

from fuseline.targets.cpu.kernel_ir.conversion import Conversion
from fuseline.targets.cpu.kernel_ir.emitter import split
from fuseline.targets.cpu.kernel_ir.types import BYTES, PTR, VOID, Address, MemRef, Operand, Type, Value


class Memory(Conversion):
    """Buffers are flat and addressed in elements. A bool takes a byte in memory and is i1 in a register."""

    def __init__(self, register_bits: int = 512, budget: float = inf) -> None:
        super().__init__(register_bits, budget)
        self._bindings: dict[int, MemRef] = {}
        self._scratch: list[MemRef] = []
        self._tables: list[MemRef] = []
        self.scratch_bytes = 0
        self._scratch_top = 0

    def binding(self, i: int, dtype: str, extent: Operand, writable: bool = False) -> MemRef:
        """The `i`-th buffer the runtime passes, of `extent` elements. Asking twice gives the same buffer."""
        found = self._bindings.get(i)
        if found is None:
            found = self._bindings[i] = MemRef(f"b{i}", dtype, extent, "binding", i, writable=writable, alignment=64)
        found.writable = found.writable or writable
        return found

    def writes_binding(self, i: int) -> bool:
        """Whether the `i`-th buffer has been asked for to write into."""
        found = self._bindings.get(i)
        return found is not None and found.writable

    def scratch(self, dtype: str, elements: int, align: int = 64) -> MemRef:
        """A new buffer of this thread, uninitialised, of a fixed number of elements."""
        offset = -(-self._scratch_top // align) * align
        self._scratch_top = offset + elements * BYTES[dtype]
        self.scratch_bytes = max(self.scratch_bytes, self._scratch_top)
        memory = MemRef(f"s{len(self._scratch)}", dtype, elements, "scratch", offset, writable=True, alignment=align)
        self._scratch.append(memory)
        return memory

    @contextmanager
    def passing_scratch(self) -> Generator[None]:
        """Buffers made inside are dead at the end: what comes after may lie in the same place."""
        top = self._scratch_top
        yield
        self._scratch_top = top

    def table(self, name: str, numbers: Sequence[float | int], dtype: str = "i64") -> MemRef:
        """A constant array inside the kernel's code; the same table asked for twice is one."""
        data = tuple(numbers)
        for known in self._tables:
            if known.data == data and known.dtype == dtype:
                return known
        memory = MemRef(
            f"t{len(self._tables)}_{name}", dtype, len(data), "table", 0, writable=False, alignment=64, data=data
        )
        self._tables.append(memory)
        return memory

    def address(self, memory: MemRef, index: Operand) -> Address:
        """The place of element `index`."""
        base, offset = split(index)
        return Address(memory, memory.dtype, base, offset)

    def offset(self, address: Address, elements: Operand) -> Address:
        """The place `elements` further on."""
        base, constant = split(self.add(address.index, elements))
        return Address(address.root, address.dtype, base, address.offset + constant)

    def select_mem(
        self,
        condition: Value,
        memory_a: MemRef | Address,
        index_a: Operand,
        memory_b: MemRef | Address,
        index_b: Operand,
    ) -> Address:
        """The first place if `condition` holds, else the second: how padding reads a row of zeros without a branch."""
        a, b = self._place_of(memory_a, index_a), self._place_of(memory_b, index_b)
        if condition.op == "const":
            return a if condition.attr else b
        return Address(self.pure("select_address", PTR, (condition, a, b)), a.dtype, 0, 0)

    def _place_of(self, memory: MemRef | Address, index: Operand) -> Address:
        return self.offset(memory, index) if isinstance(memory, Address) else self.address(memory, index)

    def load(
        self,
        memory: MemRef | Address,
        index: Operand = 0,
        lanes: int = 1,
        active: Operand | None = None,
        align: int | None = None,
    ) -> Value:
        """`lanes` neighbouring elements; only the first `active` are read, the others are 0."""
        address = self._place_of(memory, index)
        return self._load(address, lanes, active, align)

    def load_at(self, address: Address, offset: Operand = 0, lanes: int = 1, active: Operand | None = None) -> Value:
        """`load` relative to an address."""
        return self._load(self.offset(address, offset), lanes, active, None)

    def load_once(self, memory: MemRef) -> Value:
        """The first element of a buffer that nothing writes and that is no NaN, loaded where the kernel begins, however
        deep the reader."""
        value = self._seen[0].get(("once", memory))
        if value is None:
            dtype = _stored(memory.dtype)
            value = self._place(("load", Type(dtype), (self.address(memory, 0), None, None), BYTES[dtype]), 0)
            self._seen[0]["once", memory] = value
            self._numbers.add(value)
        return value

    def _load(self, address: Address, lanes: int, active: Operand | None, align: int | None) -> Value:
        dtype = _stored(address.dtype)
        if lanes == 1 and active is not None:
            (value,) = self.when(
                self.compare("gt", active, 0),
                lambda: (self._raw_load(address, 1, None, align),),
                lambda: (self.const(0, dtype),),
            )
        else:
            value = self._raw_load(address, lanes, active, align)
        return self.cast(value, "i1") if address.dtype == "i1" else value

    def _raw_load(self, address: Address, lanes: int, active: Operand | None, align: int | None) -> Value:
        dtype = _stored(address.dtype)
        return self.effect("load", Type(dtype, lanes), (address, *self._masked(active, lanes)), align or BYTES[dtype])

    def store(
        self,
        memory: MemRef | Address,
        index: Operand,
        value: Value,
        active: Operand | None = None,
        align: int | None = None,
    ) -> None:
        """Write the lanes of `value` to neighbouring elements; only the first `active`.

        One element is stored as such: of a masked store of one lane that is known, LLVM (22.1) makes a scalar store of
        the lane *before* a conversion to a narrower type, which writes beyond the element.
        """
        address = self._place_of(memory, index)
        value = self._to_memory(value, address.dtype)
        if active == 1 and value.type.lanes > 1:
            value, active = self.extract(value, 0), None
        if value.type.lanes == 1 and active is not None:
            self.when(self.compare("gt", active, 0), lambda: self._raw_store(address, value, align))
            return
        self._raw_store(address, value, align, active)

    def _raw_store(self, address: Address, value: Value, align: int | None, active: Operand | None = None) -> None:
        self.effect(
            "store", VOID, (address, *self._masked(active, value.type.lanes), value), align or BYTES[value.type.dtype]
        )

    def _to_memory(self, value: Value, dtype: str) -> Value:
        if value.type.dtype != dtype:
            raise TypeError(f"store of {value.type} into {dtype}")
        return self.cast(value, "i8", unsigned=True) if dtype == "i1" else value

    def _masked(self, active: Operand | None, lanes: int) -> tuple[Operand | None, Value | None]:
        if active is None or (isinstance(active, int) and active >= lanes):
            return None, None
        return active, self.mask(active, lanes)

    def gather(self, memory: MemRef | Address, indices: Value, active: Operand | None = None) -> Value:
        """One element per lane of `indices` (i64 or i32, elements); lanes from `active` on are not read and are 0."""
        address = memory if isinstance(memory, Address) else self.address(memory, 0)
        if indices.type.lanes == 1:
            return self.load(address, self.cast(indices, "i64"), active=active)
        dtype = _stored(address.dtype)
        value = self.effect(
            "gather", Type(dtype, indices.type.lanes), (address, *self._masked(active, indices.type.lanes), indices)
        )
        return self.cast(value, "i1") if address.dtype == "i1" else value

    def scatter(self, memory: MemRef | Address, indices: Value, value: Value, active: Operand | None = None) -> None:
        """Write one element per lane, in lane order."""
        address = memory if isinstance(memory, Address) else self.address(memory, 0)
        if indices.type.lanes == 1:
            self.store(address, self.cast(indices, "i64"), value, active=active)
            return
        value = self._to_memory(value, address.dtype)
        self.effect("scatter", VOID, (address, *self._masked(active, value.type.lanes), indices, value))

    def prefetch(self, memory: MemRef | Address, index: Operand = 0, locality: int = 3) -> None:
        """Ask for the cache line of an element; may lie outside the buffer. `locality` 3 is the nearest cache."""
        self.effect("prefetch", VOID, (self._place_of(memory, index),), locality)

    def lane_indices(self, base: Operand, stride: Operand, lanes: int) -> Any:
        """`base + stride * lane` per lane, for `gather` and `scatter`."""
        if lanes == 1:
            return self.as_value(base)
        if isinstance(stride, int):
            return self.add(
                self.const(tuple(stride * lane for lane in range(lanes)), "i64", lanes), self.as_value(base)
            )
        return self.add(self.mul(self.iota(lanes), stride), self.as_value(base))


def _stored(dtype: str) -> str:
    return "i8" if dtype == "i1" else dtype
