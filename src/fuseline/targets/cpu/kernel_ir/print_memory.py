"""LLVM text of what reads and writes memory. `printer.py` hands those operations on."""

from __future__ import annotations

from collections.abc import Callable

from fuseline.targets.cpu.kernel_ir.llvm_types import llvm_type, suffix, typed
from fuseline.targets.cpu.kernel_ir.print_functions import Printer
from fuseline.targets.cpu.kernel_ir.types import BYTES, Address, Type, Value


def _load(p: Printer, v: Value) -> None:
    address, _, mask = v.args
    pointer, type = p.pointer(address), llvm_type(v.type)
    if mask is None:
        p.out(v, f"load {type}, ptr {pointer}, align {v.attr}")
    else:
        name = f"llvm.masked.load.{suffix(v.type)}.p0"
        p.declarations.add(f"declare {type} @{name}(ptr, {llvm_type(mask.type)}, {type})")
        p.out(v, f"call {type} @{name}(ptr align {v.attr} {pointer}, {typed(mask)}, {type} zeroinitializer)")


def _store(p: Printer, v: Value) -> None:
    address, _, mask, value = v.args
    pointer = p.pointer(address)
    if mask is None:
        p.lines.append(f"  store {typed(value)}, ptr {pointer}, align {v.attr}")
        return
    name = f"llvm.masked.store.{suffix(value.type)}.p0"
    p.declarations.add(f"declare void @{name}({llvm_type(value.type)}, ptr, {llvm_type(mask.type)})")
    p.lines.append(f"  call void @{name}({typed(value)}, ptr align {v.attr} {pointer}, {typed(mask)})")


def _pointers(p: Printer, address: Address, indices: Value) -> tuple[str, str]:
    vector = f"<{indices.type.lanes} x ptr>"
    name = p.temporary()
    element = llvm_type(Type(address.dtype)) if address.dtype != "i1" else "i8"
    p.lines.append(f"  {name} = getelementptr {element}, ptr {p.pointer(address)}, {typed(indices)}")
    return vector, name


def _mask_text(mask: Value | None, lanes: int) -> tuple[str, str]:
    type = f"<{lanes} x i1>"
    return type, f"{type} splat (i1 true)" if mask is None else typed(mask)


def _gather(p: Printer, v: Value) -> None:
    address, _, mask, indices = v.args
    vector, pointers = _pointers(p, address, indices)
    mask_type, mask_text = _mask_text(mask, v.type.lanes)
    type = llvm_type(v.type)
    name = f"llvm.masked.gather.{suffix(v.type)}.v{v.type.lanes}p0"
    p.declarations.add(f"declare {type} @{name}({vector}, {mask_type}, {type})")
    p.out(
        v,
        f"call {type} @{name}({vector} align {BYTES[v.type.dtype]} {pointers}, {mask_text}, {type} zeroinitializer)",
    )


def _scatter(p: Printer, v: Value) -> None:
    address, _, mask, indices, value = v.args
    vector, pointers = _pointers(p, address, indices)
    mask_type, mask_text = _mask_text(mask, value.type.lanes)
    name = f"llvm.masked.scatter.{suffix(value.type)}.v{value.type.lanes}p0"
    p.declarations.add(f"declare void @{name}({llvm_type(value.type)}, {vector}, {mask_type})")
    p.lines.append(
        f"  call void @{name}({typed(value)}, {vector} align {BYTES[value.type.dtype]} {pointers}, {mask_text})"
    )


def _prefetch(p: Printer, v: Value) -> None:
    p.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    p.lines.append(f"  call void @llvm.prefetch.p0(ptr {p.pointer(v.args[0])}, i32 0, i32 {v.attr}, i32 1)")


HANDLERS: dict[str, Callable[[Printer, Value], None]] = {
    "load": _load,
    "store": _store,
    "gather": _gather,
    "scatter": _scatter,
    "prefetch": _prefetch,
}
