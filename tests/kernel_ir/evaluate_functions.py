"""Functions on NumPy, as `evaluate.py` has kernels: pointers are addresses of arrays and of Python functions.

One thread runs at a time: an atomic operation is an ordinary one, and who waits calls what the test put in its way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from fuseline.targets.cpu.kernel_ir.types import Address, Function, Value
from tests.kernel_ir.evaluate import Run

Array = NDArray[Any]


class AddressSpace:
    """Arrays of 64-bit words, and Python functions, by address."""

    def __init__(self) -> None:
        self._arrays: dict[int, Array] = {}
        self._functions: dict[int, Callable[..., Any]] = {}

    def words(self, count: int) -> tuple[int, Array]:
        """A new array of zeros, with its address."""
        array = np.zeros(max(count, 1), np.int64)
        self._arrays[array.ctypes.data] = array
        return array.ctypes.data, array

    def function(self, function: Callable[..., Any]) -> int:
        """The address of a Python function of integers."""
        address = -1 - len(self._functions)
        self._functions[address] = function
        return address

    def find(self, address: int) -> tuple[Array, int]:
        """The array that `address` lies in, and the words before it; raises IndexError for an address of nobody."""
        for start, array in self._arrays.items():
            if start <= address < start + array.nbytes and (address - start) % array.itemsize == 0:
                return array, (address - start) // array.itemsize
        raise IndexError(f"nothing lies at {address}")

    def call(self, address: int, arguments: Sequence[int]) -> Any:
        """Call the function at `address`; raises IndexError where there is none."""
        if address not in self._functions:
            raise IndexError(f"no function lies at {address}")
        return self._functions[address](*arguments)


def call_function(functions: Mapping[str, Function], symbol: str, arguments: Sequence[int], space: AddressSpace) -> int:
    """Call the function `symbol` of a module; 0 for one without a result. Raises IndexError for an access beside what
    its pointers lead to."""
    function = functions[symbol]
    run = _FunctionRun(functions, function, arguments, space)
    run.block(function.body)
    return 0 if function.result is None else int(run.vector(function.result)[0])


class _FunctionRun(Run):
    def __init__(
        self, functions: Mapping[str, Function], function: Function, arguments: Sequence[int], space: AddressSpace
    ) -> None:
        self.functions, self.function, self.space = functions, function, space
        self.values = {p.number: int(a) for p, a in zip(function.parameters, arguments, strict=True)}
        self.memory = {}

    def operation(self, value: Value) -> None:
        own = _OPS.get(value.op)
        if own is None:
            super().operation(value)
        else:
            self.set(value, own(self, value))

    def elements(self, address: Address, mask: Value | None, offsets: Array) -> tuple[Array, Array, Array]:
        memory, at = self.place(address)
        base = memory.base
        if base is None or mask is not None:
            raise TypeError(f"{memory} in a function")
        array, first = self.space.find(self.values[base.number])
        positions, extent = at + offsets, int(self.get(memory.extent))
        if (positions < 0).any() or (positions >= min(extent, array.size - first)).any():
            raise IndexError(f"word {positions[0]} of {memory.name}, which has {extent} ({self.function.symbol})")
        return array, first + positions, np.ones(len(offsets), bool)

    def word(self, address: Address) -> tuple[Array, int]:
        """The array and position of one word."""
        array, positions, _ = self.elements(address, None, np.zeros(1, np.int64))
        return array, int(positions[0])


def _call(r: _FunctionRun, v: Value) -> Any:
    symbol, _ = v.attr
    arguments = [int(r.vector(argument)[0]) for argument in v.args]
    if symbol is not None:
        return call_function(r.functions, symbol, arguments, r.space)
    answer = r.space.call(arguments[0], arguments[1:])
    return np.array([answer or 0], np.int32) if v.type.dtype == "i32" else answer or 0


def _atomic_load(r: _FunctionRun, v: Value) -> int:
    array, at = r.word(v.args[0])
    return int(array[at])


def _atomic(r: _FunctionRun, v: Value) -> int:
    (array, at), value = r.word(v.args[0]), int(r.vector(v.args[3])[0])
    before = int(array[at])
    array[at] = {"xchg": value, "add": before + value, "sub": before - value}[v.attr]
    return before


_OPS: Mapping[str, Callable[[_FunctionRun, Value], Any]] = {
    "advance": lambda r, v: r.get(v.args[0]) + r.get(v.args[1]),
    "not_null": lambda r, v: np.array([r.get(v.args[0]) != 0]),
    "stack": lambda r, v: r.space.words(r.get(v.args[0]))[0],
    "pause": lambda r, v: 0,
    "atomic_load": _atomic_load,
    "atomic": _atomic,
    "call": _call,
}
