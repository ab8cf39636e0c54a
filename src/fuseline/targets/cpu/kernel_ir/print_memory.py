"""LLVM text of what reads and writes memory. `printer.py` hands those operations on."""

from __future__ import annotations

from collections.abc import Callable

from fuseline.targets.cpu.kernel_ir.llvm_types import llvm_type, suffix, typed
from fuseline.targets.cpu.kernel_ir.print_functions import Printer
from fuseline.targets.cpu.kernel_ir.print_gathers import lane_pointers, mask_text, print_gather
from fuseline.targets.cpu.kernel_ir.types import BYTES, Value


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


def _scatter(p: Printer, v: Value) -> None:
    address, _, mask, indices, value = v.args
    lanes = value.type.lanes
    pointers = lane_pointers(p, address, indices)
    name = f"llvm.masked.scatter.{suffix(value.type)}.v{lanes}p0"
    p.declarations.add(f"declare void @{name}({llvm_type(value.type)}, <{lanes} x ptr>, <{lanes} x i1>)")
    place = f"<{lanes} x ptr> align {BYTES[value.type.dtype]} {pointers}"
    p.lines.append(f"  call void @{name}({typed(value)}, {place}, {mask_text(mask, lanes)})")


def _prefetch(p: Printer, v: Value) -> None:
    p.declarations.add("declare void @llvm.prefetch.p0(ptr, i32, i32, i32)")
    p.lines.append(f"  call void @llvm.prefetch.p0(ptr {p.pointer(v.args[0])}, i32 0, i32 {v.attr}, i32 1)")


HANDLERS: dict[str, Callable[[Printer, Value], None]] = {
    "load": _load,
    "store": _store,
    "gather": print_gather,
    "scatter": _scatter,
    "prefetch": _prefetch,
}
