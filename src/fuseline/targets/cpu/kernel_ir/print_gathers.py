"""LLVM text of gathers. Instructions that gather know words of 32 bits and more: elements of 16 or 8 are gathered as
parts of those they lie in, where LLVM would load them one by one (measured: a Winograd kernel whose channels of f16 lie
far apart takes .69 of the time).

    element 5 of 16 bits      word at bytes 8 to 11, shifted right by 16

A word is aligned, so it lies in the page of its element: what else is in it may belong to others, and is dropped.
"""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.targets.cpu.kernel_ir.llvm_types import llvm_type, suffix, typed
from fuseline.targets.cpu.kernel_ir.print_functions import Printer
from fuseline.targets.cpu.kernel_ir.types import BYTES, Address, Type, Value

WORD = 4
"""Bytes of the smallest element that is gathered."""

GATHERS = "avx2"
"""The flag of CPUs that gather."""

_FARTHEST = 1 << 30
"""Elements between the first lane and the last that numbers of 32 bits count."""


def print_gather(p: Printer, v: Value) -> None:
    """One element per lane."""
    if BYTES[v.type.dtype] < WORD and GATHERS in p.machine.needs:
        _narrow(p, v)
        return
    address, _, mask, indices = v.args
    pointers = lane_pointers(p, address, indices)
    p.out(v, _call(p, v.type, pointers, mask_text(mask, v.type.lanes), BYTES[v.type.dtype]))


def lane_pointers(p: Printer, address: Address, indices: Value) -> str:
    """The pointers to one element per lane."""
    element = llvm_type(Type(address.dtype)) if address.dtype != "i1" else "i8"
    return _new(p, f"getelementptr {element}, ptr {p.pointer(address)}, {typed(indices)}")


def mask_text(mask: Value | None, lanes: int) -> str:
    """The mask of a gather or scatter, with its type."""
    return f"<{lanes} x i1> splat (i1 true)" if mask is None else typed(mask)


def _call(p: Printer, type: Type, pointers: str, mask: str, align: int) -> str:
    name, text, lanes = f"llvm.masked.gather.{suffix(type)}.v{type.lanes}p0", llvm_type(type), type.lanes
    p.declarations.add(f"declare {text} @{name}(<{lanes} x ptr>, <{lanes} x i1>, {text})")
    return f"call {text} @{name}(<{lanes} x ptr> align {align} {pointers}, {mask}, {text} zeroinitializer)"


def _new(p: Printer, text: str) -> str:
    name = p.temporary()
    p.lines.append(f"  {name} = {text}")
    return name


# elements in words ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Words:
    """Pointers to words, one per lane, and by how many bits the element in each is to be shifted."""

    pointers: str
    shifts: str


def _narrow(p: Printer, v: Value) -> None:
    address, _, mask, indices = v.args
    lanes, size = v.type.lanes, BYTES[v.type.dtype]
    steps = _steps(indices, size)
    words = _in_steps(p, address, *steps, size) if steps is not None else _one_by_one(p, address, indices)
    wide, narrow = f"<{lanes} x i32>", f"<{lanes} x i{8 * size}>"
    found = _new(p, _call(p, Type("i32", lanes), words.pointers, mask_text(mask, lanes), WORD))
    shifted = _new(p, f"lshr {wide} {found}, {words.shifts}")
    if llvm_type(v.type) == narrow:
        p.out(v, f"trunc {wide} {shifted} to {narrow}")
        return
    p.out(v, f"bitcast {narrow} {_new(p, f'trunc {wide} {shifted} to {narrow}')} to {llvm_type(v.type)}")


def _steps(indices: Value, size: int) -> tuple[tuple[int, ...], Value] | None:
    """Lanes that are numbers beyond one place, and that place; None for others, and where they are too far apart."""
    if indices.op != "add":
        return None
    for lanes, base in (indices.args, indices.args[::-1]):
        if isinstance(lanes, Value) and isinstance(lanes.attr, tuple) and lanes.op == "const" and base.op == "splat":
            places = tuple(int(lane) for lane in lanes.attr)
            return (places, base.args[0]) if min(places) >= 0 and max(places) * size < _FARTHEST else None
    return None


def _in_steps(p: Printer, address: Address, places: tuple[int, ...], base: Value, size: int) -> _Words:
    """Words from one pointer on, at numbers of 32 bits; where lanes are whole words apart, all shifted alike."""
    lanes = len(places)
    first = _new(p, f"getelementptr i{8 * size}, ptr {p.pointer(address)}, {typed(base)}")
    place = _new(p, f"ptrtoint ptr {first} to i64")
    rest = _new(p, f"trunc i64 {_new(p, f'and i64 {place}, {WORD - 1}')} to i32")
    start = _new(p, f"inttoptr i64 {_new(p, f'and i64 {place}, {-WORD}')} to ptr")
    beyond = _splat(p, rest, lanes)
    if all(at * size % WORD == 0 for at in places):
        words = f"<{', '.join(f'i32 {at * size // WORD}' for at in places)}>"
        shifts = _new(p, f"shl <{lanes} x i32> {beyond}, splat (i32 3)")
    else:
        numbers = f"<{', '.join(f'i32 {at * size}' for at in places)}>"
        bytes_ = _new(p, f"add <{lanes} x i32> {beyond}, {numbers}")
        words = _new(p, f"lshr <{lanes} x i32> {bytes_}, splat (i32 2)")
        shifts = _shifts(p, bytes_, lanes)
    return _Words(_new(p, f"getelementptr i32, ptr {start}, <{lanes} x i32> {words}"), shifts)


def _one_by_one(p: Printer, address: Address, indices: Value) -> _Words:
    """The word of each lane by itself."""
    lanes = indices.type.lanes
    wide, pointers = f"<{lanes} x i64>", f"<{lanes} x ptr>"
    places = _new(p, f"ptrtoint {pointers} {lane_pointers(p, address, indices)} to {wide}")
    starts = _new(p, f"and {wide} {places}, splat (i64 {-WORD})")
    low = _new(p, f"trunc {wide} {places} to <{lanes} x i32>")
    return _Words(_new(p, f"inttoptr {wide} {starts} to {pointers}"), _shifts(p, low, lanes))


def _shifts(p: Printer, places: str, lanes: int) -> str:
    """Bits below elements at these bytes, in their words."""
    rest = _new(p, f"and <{lanes} x i32> {places}, splat (i32 {WORD - 1})")
    return _new(p, f"shl <{lanes} x i32> {rest}, splat (i32 3)")


def _splat(p: Printer, scalar: str, lanes: int) -> str:
    one = _new(p, f"insertelement <{lanes} x i32> poison, i32 {scalar}, i64 0")
    zeros = f"<{lanes} x i32> zeroinitializer"
    return _new(p, f"shufflevector <{lanes} x i32> {one}, <{lanes} x i32> poison, {zeros}")
