"""The builder of kernels: straight-line operations from its bases, the kernel's parameters here.

>>> from fuseline.targets.cpu.isa import machine
>>> k = KernelBuilder("twice", machine("avx2"))
>>> x, y = k.binding(0, "f32", 64), k.binding(1, "f32", 64, writable=True)
>>> def body(i, *_):
...     v = k.load(x, k.mul(i, 8), lanes=8)
...     k.store(y, k.mul(i, 8), k.add(v, v))
...     return ()
>>> k.loop(k.begin, k.end, 1, body)
()
>>> kernel = k.finish()
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from math import inf

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.memory import Memory
from fuseline.targets.cpu.kernel_ir.types import I64, Kernel, MemRef, Operand, Value


@dataclass(frozen=True)
class Inlined:
    """What a kernel inside another one takes for its parameters.

    Attributes:
        begin, end: its range of workgroups.
        sizes: its runtime sizes, by position.
        bindings: by position, a binding of the kernel around it or a buffer in scratch.
    """

    begin: Operand
    end: Operand
    sizes: Sequence[Operand]
    bindings: Mapping[int, int | MemRef]


class KernelBuilder(Memory):
    """Builds one kernel: `void symbol(ptr bindings, ptr sizes, i64 begin, i64 end, ptr scratch)`.

    Args:
        symbol: the name the object code exports.
        machine: what the kernel may use.
        budget: of code, in instructions (about); `TooMuchCodeError` is raised beyond it.
        compact: whether long code is there once and run in loops, rather than written out for each register of a tile.
        keeps_loops, keeps_edges: see `Emitter.keeps_loops` and `Emitter.keeps_edges`.
    """

    def __init__(
        self,
        symbol: str,
        machine: Machine,
        *,
        budget: float = inf,
        compact: bool = False,
        keeps_loops: bool = False,
        keeps_edges: bool = False,
    ) -> None:
        super().__init__(8 * machine.vector_bytes, budget)
        self.compact, self.keeps_loops, self.keeps_edges = compact, keeps_loops, keeps_edges
        self.symbol, self.machine = symbol, machine
        self.half_conversion = machine.half_conversion
        self._begin, self._end = self._fresh("argument", I64, attr="begin"), self._fresh("argument", I64, attr="end")
        self._sizes: list[Value] = []
        self._size_upper_bounds: dict[int, int] = {}
        self._inlined: Inlined | None = None

    @contextmanager
    def inlined(self, inner_kernel: Inlined) -> Generator[None]:
        """A kernel inside this one: until the end, parameters are those of `inner_kernel`, and scratch is given
        back."""
        outer, self._inlined = self._inlined, inner_kernel
        with self.passing_scratch():
            yield
        self._inlined = outer

    @property
    def begin(self) -> Operand:
        """The first workgroup to run."""
        return self._begin if self._inlined is None else self._inlined.begin

    @property
    def end(self) -> Operand:
        """The end of the workgroups to run."""
        return self._end if self._inlined is None else self._inlined.end

    def binding(self, i: int, dtype: str, extent: Operand, writable: bool = False) -> MemRef:
        """The `i`-th buffer the runtime passes, of `extent` elements. Asking twice gives the same buffer."""
        found = i if self._inlined is None else self._inlined.bindings[i]
        return found if isinstance(found, MemRef) else super().binding(found, dtype, extent, writable)

    def size(self, i: int, upper_bound: int | None = None) -> Operand:
        """The `i`-th runtime size (i64, not negative)."""
        if self._inlined is not None:
            return self._inlined.sizes[i]
        while len(self._sizes) <= i:
            self._sizes.append(self._fresh("size", I64, attr=len(self._sizes)))
        if upper_bound is not None:
            self._size_upper_bounds[i] = upper_bound
        return self._sizes[i]

    def lanes_of(self, dtype: str) -> int:
        """Elements of `dtype` in one vector register."""
        return self.machine.lanes(dtype)

    def dot_pairs(self, a: Value, b: Value, c: Value) -> Value:
        """`c[i] + a[2 i] * b[2 i] + a[2 i + 1] * b[2 i + 1]`: i16 lanes into half as many i32 lanes, wrapping; exact
        for operands above -2**15."""
        lanes = c.type.lanes
        if self.machine.pair_dot and lanes == self.machine.lanes("i32"):
            return self.pure("dot_pairs", c.type, (a, b, c))
        for odd in (0, 1):
            wide = [self.cast(self.shuffle(operand, None, range(odd, 2 * lanes, 2)), "i32") for operand in (a, b)]
            c = self.add(c, self.mul(*wide))
        return c

    def dot_quads(self, a: Value, b: Value, c: Value) -> Value:
        """`c[i]` plus the products of four neighbours each, `a[4 i + j] * b[4 i + j]`: i8 lanes, those of `a` without a
        sign, into a quarter as many i32 lanes, wrapping. For machines that have an instruction for it."""
        assert self.machine.quad_dot and c.type.lanes == self.machine.lanes("i32")
        return self.pure("dot_quads", c.type, (a, b, c))

    def finish(self) -> Kernel:
        """The kernel; the builder is spent."""
        bindings = tuple(self._bindings[i] for i in sorted(self._bindings))
        return Kernel(
            symbol=self.symbol,
            body=self._blocks[0],
            begin=self._begin,
            end=self._end,
            sizes=tuple(self._sizes),
            bindings=bindings,
            scratch=tuple(self._scratch),
            tables=tuple(self._tables),
            scratch_bytes=self.scratch_bytes,
            size_upper_bounds=self._size_upper_bounds,
        )
