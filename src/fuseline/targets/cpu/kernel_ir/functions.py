"""The builder of functions that are no kernels: pointers into structures of 64-bit words, calls, atomics.

What a pointer leads to is said where it is followed (`words`) and taken at its word; accesses are checked against that.

>>> f = FunctionBuilder("first_of_two", (PTR,))
>>> pair = f.words(f.parameters[0], 2)
>>> f.finish(f.word(pair, 0)).symbol
'first_of_two'
"""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.targets.cpu.kernel_ir.memory import Memory
from fuseline.targets.cpu.kernel_ir.types import I1, I64, PTR, VOID, Address, Function, MemRef, Operand, Type, Value

WORD_BYTES = 8


class FunctionBuilder(Memory):
    """Builds one function.

    Args:
        symbol: its name; others of the same module call it by that.
        parameters: their types, `I64` (for numbers that are not negative) or `PTR`.
        exported: whether the object code exports the name.
    """

    def __init__(self, symbol: str, parameters: Sequence[Type], *, exported: bool = False) -> None:
        super().__init__()
        self.symbol, self.exported = symbol, exported
        self.parameters = [self._fresh("parameter", type) for type in parameters]

    def finish(self, result: Operand | None = None) -> Function:
        """The function, which returns `result`; the builder is spent."""
        return Function(self.symbol, tuple(self.parameters), self._blocks[0], result, self.exported)

    # structures -------------------------------------------------------------------------------------------------------

    def words(self, pointer: Value, count: Operand) -> MemRef:
        """The structure of `count` words that `pointer` leads to."""
        name = f"p{self.fresh_number()}"
        return MemRef(name, "i64", count, "pointer", 0, writable=True, alignment=WORD_BYTES, base=pointer)

    def word(self, structure: MemRef, offset: int) -> Value:
        """The integer `offset` bytes into a structure."""
        return self.load(structure, offset // WORD_BYTES)

    def set_word(self, structure: MemRef, offset: int, value: Operand) -> None:
        """Write an integer `offset` bytes into a structure."""
        self.store(structure, offset // WORD_BYTES, self.as_value(value))

    def pointer(self, structure: MemRef, offset: int = 0) -> Value:
        """The pointer `offset` bytes into a structure."""
        return self.effect("load", PTR, (self._word(structure, offset), None, None), WORD_BYTES)

    def set_pointer(self, structure: MemRef, index: Operand, value: Value) -> None:
        """Let word `index` of a structure be a pointer."""
        self.effect("store", VOID, (self.address(structure, index), None, None, value), WORD_BYTES)

    def advance(self, pointer: Value, distance: Operand) -> Value:
        """`distance` bytes further on; where that is allowed to lead, the access says."""
        return self.effect("advance", PTR, (pointer, distance))

    def not_null(self, pointer: Value) -> Value:
        """Whether a pointer leads anywhere (i1)."""
        return self.effect("not_null", I1, (pointer,))

    def stack(self, count: Operand) -> Value:
        """`count` new words of this call."""
        return self.effect("stack", PTR, (count,))

    def _word(self, structure: MemRef, offset: int) -> Address:
        return self.address(structure, offset // WORD_BYTES)

    # other threads ----------------------------------------------------------------------------------------------------

    def atomic_load(self, structure: MemRef, ordering: str, offset: int = 0) -> Value:
        """The integer `offset` bytes into a structure; `ordering` is `acquire` or `seq_cst`."""
        return self.effect("atomic_load", I64, (self._word(structure, offset), None, None), ordering)

    def atomic(self, operation: str, structure: MemRef, value: Operand, offset: int = 0) -> Value:
        """What a word was before `operation` (`xchg`, `add`, `sub`) with `value`, sequentially consistent."""
        return self.effect("atomic", I64, (self._word(structure, offset), None, None, self.as_value(value)), operation)

    def pause(self) -> None:
        """Tell the processor that this thread spins."""
        self.effect("pause", VOID, ())

    # calls ------------------------------------------------------------------------------------------------------------

    def call(
        self, callee: str | Value, arguments: Sequence[Operand], result: Type = VOID, *, variadic: bool = False
    ) -> Value:
        """Call a function of this module by name, or the one that a pointer leads to.

        `variadic`: as C's functions with `...` behind their first parameter.
        """
        target = (callee,) if isinstance(callee, Value) else ()
        symbol = None if isinstance(callee, Value) else callee
        return self.effect("call", result, (*target, *arguments), (symbol, variadic))
