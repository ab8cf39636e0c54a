"""The kernel IR's data: typed SSA values, buffers with extents, and blocks that nest.

A kernel is a tree: a `Block` lists operations in order; an operation is a `Value` (one result or none), a `Loop`, a
`While` or a `When`, and the last three hold blocks. An operand is a `Value` or a Python int, which stands for an i64
scalar. Three consumers walk the tree: the LLVM printer, the NumPy evaluator and the bounds checker.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias


class Type(NamedTuple):
    """A scalar (`lanes == 1`) or a vector. dtype: f32 f64 f16 bf16 i64 i32 i16 i8 i1, `ptr` for a chosen address,
    `void` for an effect."""

    dtype: str
    lanes: int = 1

    @property
    def is_float(self) -> bool:
        """Whether the elements are floating point."""
        return self.dtype in FLOATS

    def __str__(self) -> str:
        return self.dtype if self.lanes == 1 else f"{self.lanes}x{self.dtype}"


FLOATS = frozenset({"f32", "f64", "f16", "bf16"})
BITS: dict[str, int] = {"f64": 64, "i64": 64, "f32": 32, "i32": 32, "f16": 16, "bf16": 16, "i16": 16, "i8": 8, "i1": 1}
BYTES: dict[str, int] = {"f64": 8, "i64": 8, "f32": 4, "i32": 4, "f16": 2, "bf16": 2, "i16": 2, "i8": 1, "i1": 1}
"""Bytes of one element in memory (a bool takes a byte)."""

I64 = Type("i64")
I32 = Type("i32")
I1 = Type("i1")
PTR = Type("ptr")
VOID = Type("void")


class Value:
    """One operation and its result. `depth` is the nesting of the block that defines it; `number` names it in text."""

    __slots__ = ("args", "attr", "depth", "number", "op", "type")

    def __init__(self, op: str, type: Type, args: tuple[Any, ...], attr: Any, number: int, depth: int) -> None:
        self.op = op
        self.type = type
        self.args = args
        self.attr = attr
        self.number = number
        self.depth = depth

    def __repr__(self) -> str:
        return f"<{self.op} %{self.number}: {self.type}>"


Operand: TypeAlias = Value | int


class MemRef:
    """A flat buffer addressed in elements. `extent` counts elements; reads and writes stay in `[0, extent)`."""

    __slots__ = ("alignment", "base", "data", "dtype", "extent", "kind", "name", "position", "writable")

    def __init__(
        self,
        name: str,
        dtype: str,
        extent: Operand,
        kind: str,
        position: int,
        *,
        writable: bool,
        alignment: int,
        data: tuple[float | int, ...] = (),
        base: Value | None = None,
    ) -> None:
        self.name = name
        self.dtype = dtype
        self.extent = extent
        # "binding" (position: its number), "scratch" (position: byte offset), "table" (data: its numbers), and in
        # functions "pointer" (base: what leads there)
        self.kind = kind
        self.position = position
        self.writable = writable
        self.alignment = alignment
        self.data = data
        self.base = base

    def __repr__(self) -> str:
        return f"<{self.kind} {self.name}: {self.extent} x {self.dtype}>"


class Address:
    """A place in a buffer: element `index + offset` from `root` (a buffer, or an address chosen at run time)."""

    __slots__ = ("dtype", "index", "offset", "root")

    def __init__(self, root: MemRef | Value, dtype: str, index: Operand, offset: int) -> None:
        self.root = root
        self.dtype = dtype
        self.index = index  # a Value, or 0
        self.offset = offset

    @property
    def depth(self) -> int:
        """The nesting at which every part of the address is defined."""
        index = self.index.depth if isinstance(self.index, Value) else 0
        return max(index, self.root.depth) if isinstance(self.root, Value) else index


class Block:
    """Operations in order."""

    __slots__ = ("ops",)

    def __init__(self) -> None:
        self.ops: list[Value | Loop | While | When] = []


class Loop:
    """`for index in range(lo, hi, step)` with carried values; `results` are the carried values after the last
    iteration."""

    __slots__ = ("body", "carried", "hi", "index", "inits", "lo", "number", "results", "step", "yields")

    def __init__(
        self,
        number: int,
        lo: Operand,
        hi: Operand,
        step: int,
        index: Value,
        inits: tuple[Operand, ...],
        carried: tuple[Value, ...],
    ) -> None:
        self.number = number
        self.lo = lo
        self.hi = hi
        self.step = step
        self.index = index
        self.inits = inits
        self.carried = carried
        self.body = Block()
        self.yields: tuple[Operand, ...] = ()
        self.results: tuple[Value, ...] = ()


class While:
    """`body` as long as `condition` (a scalar i1, what `test` computes) holds, with carried values; `results` are the
    carried values when it does not."""

    __slots__ = ("body", "carried", "condition", "inits", "number", "results", "test", "yields")

    def __init__(self, number: int, inits: tuple[Operand, ...], carried: tuple[Value, ...]) -> None:
        self.number = number
        self.inits = inits
        self.carried = carried
        self.test = Block()
        self.condition: Value | None = None
        self.body = Block()
        self.yields: tuple[Operand, ...] = ()
        self.results: tuple[Value, ...] = ()


class When:
    """`then` if `condition` (a scalar i1) holds, else `otherwise`; `results` are what the taken branch yields."""

    __slots__ = ("condition", "number", "otherwise", "otherwise_yields", "results", "then", "then_yields")

    def __init__(self, number: int, condition: Value) -> None:
        self.number = number
        self.condition = condition
        self.then = Block()
        self.otherwise = Block()
        self.then_yields: tuple[Operand, ...] = ()
        self.otherwise_yields: tuple[Operand, ...] = ()
        self.results: tuple[Value, ...] = ()


@dataclass(frozen=True, slots=True)
class Kernel:
    """A finished kernel. `sizes` are the values that stand for runtime sizes, by position; `scratch_bytes` is per
    thread."""

    symbol: str
    body: Block
    begin: Value
    end: Value
    sizes: tuple[Value, ...]
    bindings: tuple[MemRef, ...]
    scratch: tuple[MemRef, ...] = ()
    tables: tuple[MemRef, ...] = ()
    scratch_bytes: int = 0
    size_upper_bounds: dict[int, int] = field(default_factory=dict[int, int])


@dataclass(frozen=True, slots=True)
class Function:
    """A finished function that is no kernel (`FunctionBuilder`)."""

    symbol: str
    parameters: tuple[Value, ...]
    body: Block
    result: Operand | None = None
    exported: bool = False
    sizes: tuple[Value, ...] = ()


def type_of(operand: Operand) -> Type:
    """The type of an operand; a Python int is an i64 scalar."""
    return operand.type if isinstance(operand, Value) else I64


def depth_of(operand: Any) -> int:
    """The nesting at which an operand is defined; 0 for constants and buffers."""
    return operand.depth if isinstance(operand, (Value, Address)) else 0
