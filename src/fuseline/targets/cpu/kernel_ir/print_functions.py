"""LLVM text of what only functions have: pointers, calls, atomics. `printer.py` hands those operations on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.llvm_types import llvm_type, reference, typed
from fuseline.targets.cpu.kernel_ir.types import VOID, Address, Function, Operand, Value, type_of

_PAUSES = {"x86_64": ("llvm.x86.sse2.pause", "", ""), "aarch64": ("llvm.aarch64.hint", "i32", "i32 1")}


class Printer(Protocol):
    """What printing an operation needs of the printer of its function."""

    machine: Machine
    lines: list[str]
    declarations: set[str]

    def temporary(self) -> str:
        """A fresh name."""
        ...

    def out(self, value: Value, text: str) -> None:
        """Define a value."""

    def pointer(self, address: Address) -> str:
        """The LLVM pointer of an address."""
        ...


def head(function: Function) -> str:
    """The first line of a function, up to its attributes."""
    parameters = ", ".join(f"{llvm_type(p.type)} %v{p.number}" for p in function.parameters)
    linkage = "" if function.exported else "internal "
    return f"define {linkage}{_result(function.result)} @{function.symbol}({parameters})"


def end(function: Function) -> str:
    """The return."""
    return "  ret void" if function.result is None else f"  ret {typed(function.result)}"


def _result(result: Operand | None) -> str:
    return "void" if result is None else llvm_type(type_of(result))


def _advance(p: Printer, v: Value) -> None:
    pointer, distance = v.args
    p.out(v, f"getelementptr i8, {typed(pointer)}, {typed(distance)}")


def _not_null(p: Printer, v: Value) -> None:
    p.out(v, f"icmp ne {typed(v.args[0])}, null")


def _stack(p: Printer, v: Value) -> None:
    p.out(v, f"alloca i64, {typed(v.args[0])}, align 16")


def _atomic_load(p: Printer, v: Value) -> None:
    p.out(v, f"load atomic i64, ptr {p.pointer(v.args[0])} {v.attr}, align 8")


def _atomic(p: Printer, v: Value) -> None:
    p.out(v, f"atomicrmw {v.attr} ptr {p.pointer(v.args[0])}, {typed(v.args[3])} seq_cst")


def _pause(p: Printer, v: Value) -> None:
    del v
    name, types, operands = _PAUSES[p.machine.triple.partition("-")[0]]
    p.declarations.add(f"declare void @{name}({types})")
    p.lines.append(f"  call void @{name}({operands})")


def _call(p: Printer, v: Value) -> None:
    symbol, variadic = v.attr
    callee, arguments = (f"@{symbol}", v.args) if symbol else (reference(v.args[0]), v.args[1:])
    types = f" ({llvm_type(type_of(arguments[0]))}, ...)" if variadic else ""
    text = f"call {llvm_type(v.type)}{types} {callee}({_listed(arguments)})"
    if v.type == VOID:
        p.lines.append(f"  {text}")
    else:
        p.out(v, text)


def _listed(arguments: Sequence[Operand]) -> str:
    return ", ".join(typed(argument) for argument in arguments)


HANDLERS: dict[str, Callable[[Any, Value], None]] = {
    "advance": _advance,
    "not_null": _not_null,
    "stack": _stack,
    "atomic_load": _atomic_load,
    "atomic": _atomic,
    "pause": _pause,
    "call": _call,
}
"""By operation."""
