"""LLVM text of what computes values from values. `printer.py` hands those operations on."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.targets.cpu.kernel_ir.llvm_types import llvm_type, reference, suffix, typed
from fuseline.targets.cpu.kernel_ir.print_functions import Printer
from fuseline.targets.cpu.kernel_ir.types import I1, Operand, Type, Value, type_of

_FLOAT_BINARY = {"add": "fadd", "sub": "fsub", "mul": "fmul", "fdiv": "fdiv"}
_NO_WRAP = {"add": "add nsw", "sub": "sub nsw", "mul": "mul nsw"}
_INT_BINARY = ("udiv", "urem", "sdiv", "srem", "and", "or", "xor", "shl", "lshr", "ashr")
_INT_EXTREMES = {"min": "smin", "max": "smax", "umin": "umin", "umax": "umax"}
_FALSE = Value("const", I1, (), 0, 0, 0)


def _call(p: Printer, name: str, result: Type, operands: Sequence[Operand]) -> str:
    """A call of an intrinsic, declared on the way."""
    types = ", ".join(llvm_type(type_of(o)) for o in operands)
    p.declarations.add(f"declare {llvm_type(result)} @{name}({types})")
    return f"call {llvm_type(result)} @{name}({', '.join(typed(o) for o in operands)})"


def _binary(p: Printer, v: Value) -> None:
    op, (a, b) = v.op, v.args
    if v.type.is_float:
        name = _FLOAT_BINARY[op]
    else:
        name = _NO_WRAP.get(op, op) if v.type.dtype == "i64" and v.type.lanes == 1 and not isinstance(b, Value) else op
    p.out(v, f"{name} {typed(a)}, {reference(b)}")


def _extreme(p: Printer, v: Value) -> None:
    a, b = v.args
    if not v.type.is_float:
        p.out(v, _call(p, f"llvm.{_INT_EXTREMES[v.op]}.{suffix(v.type)}", v.type, (a, b)))
        return
    mask = p.temporary()
    p.lines.append(f"  {mask} = fcmp {'olt' if v.op == 'min' else 'ogt'} {typed(a)}, {reference(b)}")
    p.out(v, f"select {llvm_type(Type('i1', v.type.lanes))} {mask}, {typed(a)}, {typed(b)}")


def _fma(p: Printer, v: Value) -> None:
    a, b, c = v.args
    if p.machine.fma:
        p.out(v, _call(p, f"llvm.fma.{suffix(v.type)}", v.type, (a, b, c)))
        return
    product = p.temporary()
    p.lines.append(f"  {product} = fmul {typed(a)}, {reference(b)}")
    p.out(v, f"fadd {llvm_type(v.type)} {product}, {reference(c)}")


def _dot_pairs(p: Printer, v: Value) -> None:
    a, b, total = v.args
    product = p.temporary()
    p.lines.append(f"  {product} = {_call(p, p.machine.pair_dot, v.type, (a, b))}")
    p.out(v, f"add {llvm_type(v.type)} {product}, {reference(total)}")


def _dot_quads(p: Printer, v: Value) -> None:
    a, b, total = v.args
    p.out(v, _call(p, p.machine.quad_dot, v.type, (total, a, b)))


def _abs(p: Printer, v: Value) -> None:
    name, flags = ("fabs", ()) if v.type.is_float else ("abs", (_FALSE,))
    p.out(v, _call(p, f"llvm.{name}.{suffix(v.type)}", v.type, (*v.args, *flags)))


def _intrinsic(p: Printer, v: Value) -> None:
    flags = (_FALSE,) if v.op in ("ctlz", "cttz") else ()
    p.out(v, _call(p, f"llvm.{v.op}.{suffix(v.type)}", v.type, (*v.args, *flags)))


def _nearest(p: Printer, v: Value) -> None:
    p.out(v, _call(p, f"llvm.lrint.{suffix(v.type)}.{suffix(v.args[0].type)}", v.type, v.args))


def _compare(p: Printer, v: Value) -> None:
    a, b = v.args
    p.out(v, f"{'fcmp' if type_of(a).is_float else 'icmp'} {v.attr} {typed(a)}, {reference(b)}")


def _cast(p: Printer, v: Value) -> None:
    p.out(v, f"{v.attr if v.op == 'cast' else 'bitcast'} {typed(v.args[0])} to {llvm_type(v.type)}")


def _splat(p: Printer, v: Value) -> None:
    vector, lanes, first = llvm_type(v.type), v.type.lanes, p.temporary()
    p.lines.append(f"  {first} = insertelement {vector} poison, {typed(v.args[0])}, i64 0")
    p.out(v, f"shufflevector {vector} {first}, {vector} poison, <{lanes} x i32> zeroinitializer")


def _mask(p: Printer, v: Value) -> None:
    """Compared in i32 lanes: an `active` count is small, and a 64-bit compare would need twice the registers."""
    lanes = v.type.lanes
    vector, one, first, wide = f"<{lanes} x i32>", *(p.temporary() for _ in range(3))
    p.lines.append(f"  {one} = trunc {typed(v.args[0])} to i32")
    p.lines.append(f"  {first} = insertelement {vector} poison, i32 {one}, i64 0")
    p.lines.append(f"  {wide} = shufflevector {vector} {first}, {vector} poison, {vector} zeroinitializer")
    steps = ", ".join(f"i32 {i}" for i in range(lanes))
    p.out(v, f"icmp sgt {vector} {wide}, <{steps}>")


def _mask_bits(p: Printer, v: Value) -> None:
    lanes, bits = v.args[0].type.lanes, p.temporary()
    p.lines.append(f"  {bits} = bitcast {typed(v.args[0])} to i{lanes}")
    p.out(v, f"{'bitcast' if lanes == 64 else 'zext'} i{lanes} {bits} to i64")


def _shuffle(p: Printer, v: Value) -> None:
    mask = ", ".join(f"i32 {i}" for i in v.attr)
    p.out(v, f"shufflevector {typed(v.args[0])}, {typed(v.args[1])}, <{len(v.attr)} x i32> <{mask}>")


def _select_address(p: Printer, v: Value) -> None:
    condition, a, b = v.args
    p.out(v, f"select {typed(condition)}, ptr {p.pointer(a)}, ptr {p.pointer(b)}")


HANDLERS: dict[str, Callable[[Printer, Value], None]] = {
    **dict.fromkeys((*_FLOAT_BINARY, *_INT_BINARY), _binary),
    **dict.fromkeys(_INT_EXTREMES, _extreme),
    **dict.fromkeys(("ctlz", "cttz", "ctpop", "sqrt", "floor", "ceil", "rint", "trunc"), _intrinsic),
    **dict.fromkeys(("cast", "bitcast"), _cast),
    "fma": _fma,
    "dot_pairs": _dot_pairs,
    "nearest": _nearest,
    "dot_quads": _dot_quads,
    "neg": lambda p, v: p.out(v, f"fneg {typed(v.args[0])}"),
    "abs": _abs,
    "compare": _compare,
    "select": lambda p, v: p.out(v, "select " + ", ".join(map(typed, v.args))),
    "splat": _splat,
    "mask": _mask,
    "mask_bits": _mask_bits,
    "extract": lambda p, v: p.out(v, f"extractelement {typed(v.args[0])}, i64 {v.attr}"),
    "insert": lambda p, v: p.out(v, f"insertelement {typed(v.args[0])}, {typed(v.args[1])}, i64 {v.attr}"),
    "shuffle": _shuffle,
    "select_address": _select_address,
}
