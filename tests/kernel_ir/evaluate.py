"""Kernels on NumPy, one operation at a time: what a kernel means, independent of LLVM, with every access checked
against its buffer's extent.

i64 scalars are Python ints; everything else is a 1-D array of its lanes (bf16 as its bits).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.ir.rounds import rounds
from fuseline.targets.cpu.kernel_ir.llvm_types import bf16_bits
from fuseline.targets.cpu.kernel_ir.types import (
    BITS,
    I64,
    PTR,
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

Array = NDArray[Any]

_DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f64": np.float64,
    "f16": np.float16,
    "bf16": np.int16,
    "i64": np.int64,
    "i32": np.int32,
    "i16": np.int16,
    "i8": np.int8,
    "i1": np.bool_,
}

_MOST_ROUNDS = 1 << 20
"""Of a loop with a condition: one that waits for what does not come is told apart from one that works."""


def evaluate(
    kernel: Kernel, bindings: Sequence[Array], sizes: Sequence[int] = (), begin: int = 0, end: int = 1
) -> None:
    """Run `kernel` on `bindings` in place.

    Args:
        bindings: contiguous arrays in binding order; any shape and dtype of the right element size.

    Raises IndexError for an access outside a buffer, ValueError for a binding whose size is not the kernel's extent for
    it.
    """
    run = Run(kernel, bindings, sizes, begin, end)
    with np.errstate(all="ignore"):
        run.check_extents()
        run.block(kernel.body)


class Run:
    """One run of a kernel: the values so far, and its memory by the names of the buffers."""

    def __init__(self, kernel: Kernel, bindings: Sequence[Array], sizes: Sequence[int], begin: int, end: int) -> None:
        self.kernel = kernel
        self.values: dict[int, Any] = {kernel.begin.number: begin, kernel.end.number: end}
        self.values.update((size.number, int(sizes[i])) for i, size in enumerate(kernel.sizes))
        self.memory: dict[str, Array] = {}
        for memory in kernel.bindings:
            self.memory[memory.name] = bindings[memory.position].reshape(-1).view(_stored(memory.dtype))
        for memory in kernel.scratch:
            assert isinstance(memory.extent, int)
            raw = np.full(memory.extent * np.dtype(_stored(memory.dtype)).itemsize, 0xFF, np.uint8)
            self.memory[memory.name] = raw.view(_stored(memory.dtype))
        for memory in kernel.tables:
            bits = [bf16_bits(x) for x in memory.data] if memory.dtype == "bf16" else memory.data
            self.memory[memory.name] = np.array(bits).astype(_stored(memory.dtype))

    def check_extents(self) -> None:
        """Extents that are known before the kernel starts must be what was bound."""
        for memory in self.kernel.bindings:
            if isinstance(memory.extent, int) and self.memory[memory.name].size != memory.extent:
                raise ValueError(
                    f"binding {memory.position} has {self.memory[memory.name].size} elements, the kernel expects "
                    f"{memory.extent}"
                )

    # operands ---------------------------------------------------------------------------------------------------------

    def get(self, operand: Operand) -> Any:
        if not isinstance(operand, Value):
            return operand
        return constant(operand) if operand.op == "const" else self.values[operand.number]

    def vector(self, operand: Operand) -> Array:
        found = self.get(operand)
        return np.array([found], np.int64) if isinstance(found, int) else found

    def set(self, value: Value, result: Any) -> None:
        self.values[value.number] = int(np.asarray(result).reshape(-1)[0]) if value.type in (I64, PTR) else result

    # structure --------------------------------------------------------------------------------------------------------

    def block(self, block: Block) -> None:
        for op in block.ops:
            if isinstance(op, Value):
                self.operation(op)
            elif isinstance(op, Loop):
                self.loop(op)
            elif isinstance(op, While):
                self.while_(op)
            else:
                self.when(op)

    def operation(self, value: Value) -> None:
        _OPS[value.op](self, value)

    def loop(self, loop: Loop) -> None:
        state = [self.get(c) for c in loop.inits]
        for i in range(self.get(loop.lo), self.get(loop.hi), loop.step):
            self.values[loop.index.number] = i
            self.values.update((p.number, s) for p, s in zip(loop.carried, state, strict=True))
            self.block(loop.body)
            state = [self.get(y) for y in loop.yields]
        self.values.update((r.number, s) for r, s in zip(loop.results, state, strict=True))

    def while_(self, loop: While) -> None:
        state = [self.get(c) for c in loop.inits]
        for _ in rounds("a loop of a function that is evaluated", most=_MOST_ROUNDS):
            self.values.update((p.number, s) for p, s in zip(loop.carried, state, strict=True))
            self.block(loop.test)
            if not self.vector(loop.condition or 0)[0]:
                break
            self.block(loop.body)
            state = [self.get(y) for y in loop.yields]
        self.values.update((r.number, s) for r, s in zip(loop.results, state, strict=True))

    def when(self, when: When) -> None:
        taken = bool(self.vector(when.condition)[0])
        self.block(when.then if taken else when.otherwise)
        chosen = when.then_yields if taken else when.otherwise_yields
        if when.results:
            state = [self.get(y) for y in chosen]
            self.values.update((r.number, s) for r, s in zip(when.results, state, strict=True))

    # memory -----------------------------------------------------------------------------------------------------------

    def place(self, address: Address) -> tuple[MemRef, int]:
        """The buffer and element that an address means."""
        at = self.get(address.index) + address.offset
        if isinstance(address.root, MemRef):
            return address.root, at
        memory, base = self.values[address.root.number]
        return memory, base + at

    def elements(self, address: Address, mask: Value | None, offsets: Array) -> tuple[Array, Array, Array]:
        """`(buffer, positions, live)`; raises IndexError if a live position lies outside."""
        memory, at = self.place(address)
        live = np.ones(len(offsets), bool) if mask is None else self.vector(mask)
        positions = at + offsets
        extent = int(self.get(memory.extent))
        buffer = self.memory[memory.name]
        outside = live & ((positions < 0) | (positions >= min(extent, buffer.size)))
        if outside.any():
            raise IndexError(
                f"element {positions[outside][0]} of {memory.name}, which has {min(extent, buffer.size)} "
                f"({self.kernel.symbol})"
            )
        return buffer, positions, live


def constant(value: Value) -> Any:
    """What a `const` value is."""
    if value.type == I64:
        return int(value.attr)
    numbers = value.attr if isinstance(value.attr, tuple) else (value.attr,) * value.type.lanes
    if value.type.dtype == "bf16":
        return np.array([bf16_bits(x) for x in numbers], np.uint16).view(np.int16)
    if value.type.dtype == "i1":
        return np.array([bool(x) for x in numbers])
    if value.type.is_float:
        return np.array(numbers, np.float64).astype(_DTYPES[value.type.dtype])
    return np.array([_wrapped(x, BITS[value.type.dtype]) for x in numbers], _DTYPES[value.type.dtype])


def _wrapped(x: int, bits: int) -> int:
    x &= (1 << bits) - 1
    return x - (1 << bits) if x >> (bits - 1) else x


def _stored(dtype: str) -> Any:
    return np.int8 if dtype == "i1" else _DTYPES[dtype]


def _unsigned(a: Array) -> Array:
    return a.view(f"u{a.dtype.itemsize}") if a.dtype.kind == "i" else a


# operations -----------------------------------------------------------------------------------------------------------


def _elementwise(function: Callable[..., Array], *, unsigned: bool = False) -> Callable[[Run, Value], None]:
    def run(r: Run, v: Value) -> None:
        operands = [r.vector(a) for a in v.args]
        if unsigned:
            operands = [_unsigned(a) for a in operands]
        result = np.asarray(function(*operands))
        dtype = _DTYPES[v.type.dtype]
        r.set(v, result.view(dtype) if unsigned and result.dtype.kind == "u" else result.astype(dtype))

    return run


def _fma(a: Array, b: Array, c: Array) -> Array:
    if a.dtype == np.float64:
        wide = np.longdouble
        return (a.astype(wide) * b + c).astype(a.dtype)
    return (a.astype(np.float64) * b + c).astype(a.dtype)


def _dot_pairs(a: Array, b: Array, c: Array) -> Array:
    return (a.astype(np.int64) * b).reshape(-1, 2).sum(1) + c


def _dot_quads(a: Array, b: Array, c: Array) -> Array:
    return (a.view(np.uint8).astype(np.int32) * b).reshape(-1, 4).sum(1, dtype=np.int32) + c


def _min(a: Array, b: Array) -> Array:
    return np.where(a < b, a, b)


def _max(a: Array, b: Array) -> Array:
    return np.where(a > b, a, b)


def _truncated(a: Array, b: Array) -> Array:
    return (a - np.fmod(a, b)) // b


_COMPARE: dict[str, Callable[[Array, Array], Array]] = {
    "eq": np.equal,
    "ne": np.not_equal,
    "slt": np.less,
    "sle": np.less_equal,
    "sgt": np.greater,
    "sge": np.greater_equal,
    "oeq": np.equal,
    "olt": np.less,
    "ole": np.less_equal,
    "ogt": np.greater,
    "oge": np.greater_equal,
    "une": np.not_equal,
}
_INVERSE = {"ueq": "one", "ult": "oge", "ule": "ogt", "ugt": "ole", "uge": "olt"}
_UNSIGNED_COMPARE = {"ult": np.less, "ule": np.less_equal, "ugt": np.greater, "uge": np.greater_equal}


def _compare(r: Run, v: Value) -> None:
    a, b = (r.vector(x) for x in v.args)
    if a.dtype.kind == "f":
        r.set(v, _float_compare(v.attr, a, b))
    elif v.attr in _UNSIGNED_COMPARE:
        r.set(v, _UNSIGNED_COMPARE[v.attr](_unsigned(a), _unsigned(b)))
    else:
        r.set(v, _COMPARE[v.attr](a, b))


def _float_compare(predicate: str, a: Array, b: Array) -> Array:
    unordered = np.isnan(a) | np.isnan(b)
    if predicate in ("uno", "ord"):
        return unordered if predicate == "uno" else ~unordered
    if predicate == "one":
        return (a != b) & ~unordered
    if predicate in _INVERSE:
        return ~_float_compare(_INVERSE[predicate], a, b)
    return _COMPARE[predicate](a, b)


def _cast(r: Run, v: Value) -> None:
    a, dtype = r.vector(v.args[0]), np.dtype(_DTYPES[v.type.dtype])
    if v.attr in ("zext", "uitofp"):
        a = a.astype(np.uint8) if a.dtype.kind == "b" else _unsigned(a)
    if v.attr == "trunc" and dtype.kind == "b":
        a = a & 1
    r.set(v, a.astype(dtype))


def _select(r: Run, v: Value) -> None:
    condition, a, b = (r.vector(x) for x in v.args)
    r.set(v, np.where(condition, a, b))


def _mask(r: Run, v: Value) -> None:
    r.set(v, np.arange(v.type.lanes) < r.get(v.args[0]))


def _mask_bits(r: Run, v: Value) -> None:
    r.set(v, np.asarray([sum(1 << i for i, one in enumerate(r.vector(v.args[0])) if one)], np.uint64).astype(np.int64))


def _splat(r: Run, v: Value) -> None:
    r.set(v, np.repeat(r.vector(v.args[0]), v.type.lanes))


def _extract(r: Run, v: Value) -> None:
    r.set(v, r.vector(v.args[0])[v.attr : v.attr + 1])


def _insert(r: Run, v: Value) -> None:
    out = r.vector(v.args[0]).copy()
    out[v.attr] = r.vector(v.args[1])[0]
    r.set(v, out)


def _shuffle(r: Run, v: Value) -> None:
    both = np.concatenate([r.vector(a) for a in v.args])
    r.set(v, both[list(v.attr)])


def _select_address(r: Run, v: Value) -> None:
    condition, a, b = v.args
    r.values[v.number] = r.place(a if r.vector(condition)[0] else b)


def _load(r: Run, v: Value) -> None:
    address, _, mask = v.args
    _read(r, v, address, mask, np.arange(v.type.lanes))


def _gather(r: Run, v: Value) -> None:
    address, _, mask, indices = v.args
    _read(r, v, address, mask, r.vector(indices).astype(np.int64))


def _read(r: Run, v: Value, address: Address, mask: Value | None, offsets: Array) -> None:
    buffer, positions, live = r.elements(address, mask, offsets)
    out = np.zeros(v.type.lanes, buffer.dtype)
    out[live] = buffer[positions[live]]
    r.set(v, out)


def _store(r: Run, v: Value) -> None:
    address, _, mask, value = v.args
    data = r.vector(value)
    _write(r, address, mask, np.arange(len(data)), data)


def _scatter(r: Run, v: Value) -> None:
    address, _, mask, indices, value = v.args
    _write(r, address, mask, r.vector(indices).astype(np.int64), r.vector(value))


def _write(r: Run, address: Address, mask: Value | None, offsets: Array, data: Array) -> None:
    memory, _ = r.place(address)
    if not memory.writable:
        raise IndexError(f"{memory.name} is read-only ({r.kernel.symbol})")
    buffer, positions, live = r.elements(address, mask, offsets)
    buffer[positions[live]] = data[live]


def _nothing(r: Run, v: Value) -> None:
    del r, v


def _leading_zeros(a: Array) -> Array:
    bits = a.dtype.itemsize * 8
    return np.array([bits - (int(x) & ((1 << bits) - 1)).bit_length() for x in a])


def _trailing_zeros(a: Array) -> Array:
    bits = a.dtype.itemsize * 8
    return np.array([((int(x) & -int(x)).bit_length() - 1) if x else bits for x in a])


_OPS: dict[str, Callable[[Run, Value], None]] = {
    "add": _elementwise(np.add),
    "sub": _elementwise(np.subtract),
    "mul": _elementwise(np.multiply),
    "fdiv": _elementwise(np.divide),
    "udiv": _elementwise(np.floor_divide, unsigned=True),
    "urem": _elementwise(np.remainder, unsigned=True),
    "sdiv": _elementwise(_truncated),
    "srem": _elementwise(np.fmod),
    "and": _elementwise(np.bitwise_and),
    "or": _elementwise(np.bitwise_or),
    "xor": _elementwise(np.bitwise_xor),
    "shl": _elementwise(np.left_shift),
    "lshr": _elementwise(np.right_shift, unsigned=True),
    "ashr": _elementwise(np.right_shift),
    "min": _elementwise(_min),
    "max": _elementwise(_max),
    "umin": _elementwise(np.minimum, unsigned=True),
    "umax": _elementwise(np.maximum, unsigned=True),
    "neg": _elementwise(np.negative),
    "abs": _elementwise(np.abs),
    "sqrt": _elementwise(np.sqrt),
    "floor": _elementwise(np.floor),
    "ceil": _elementwise(np.ceil),
    "rint": _elementwise(np.rint),
    "nearest": _elementwise(np.rint),
    "trunc": _elementwise(np.trunc),
    "ctlz": _elementwise(_leading_zeros),
    "cttz": _elementwise(_trailing_zeros),
    "ctpop": _elementwise(lambda a: np.bitwise_count(_unsigned(a))),
    "fma": _elementwise(_fma),
    "dot_pairs": _elementwise(_dot_pairs),
    "dot_quads": _elementwise(_dot_quads),
    "bitcast": lambda r, v: r.set(v, r.vector(v.args[0]).view(_DTYPES[v.type.dtype])),
    "compare": _compare,
    "cast": _cast,
    "select": _select,
    "mask": _mask,
    "mask_bits": _mask_bits,
    "splat": _splat,
    "extract": _extract,
    "insert": _insert,
    "shuffle": _shuffle,
    "select_address": _select_address,
    "load": _load,
    "gather": _gather,
    "store": _store,
    "scatter": _scatter,
    "prefetch": _nothing,
}
