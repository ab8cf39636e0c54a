"""Rows that begin at places only the run knows: which values of a kernel say where, and in which buffers."""

from __future__ import annotations

from collections.abc import Iterator

from fuseline.targets.cpu.kernel_ir.types import Address, Block, Loop, MemRef, Operand, Value, When


def runtime_rows(block: Block) -> dict[Value, list[MemRef]]:
    """The buffers that are read or written in rows a runtime stride apart, by the value that says where a row begins:
    what an index has that is defined further out."""
    found: dict[Value, dict[int, MemRef]] = {}
    for address in _addresses(block):
        index, root = address.index, address.root
        if isinstance(index, Value) and isinstance(root, MemRef) and root.base is None and _is_in_row(index):
            found.setdefault(index.args[0], {})[id(root)] = root
    return {value: list(memories.values()) for value, memories in found.items()}


def _addresses(block: Block) -> Iterator[Address]:
    for op in block.ops:
        if isinstance(op, Value):
            yield from (arg for arg in op.args if isinstance(arg, Address))
        elif isinstance(op, When):
            yield from (*_addresses(op.then), *_addresses(op.otherwise))
        else:
            yield from () if isinstance(op, Loop) else _addresses(op.test)
            yield from _addresses(op.body)


def _is_in_row(index: Value) -> bool:
    """Whether an index is one that is defined further out and holds a product with a runtime stride, and another
    one."""
    if index.op != "add":
        return False
    outer, inner = index.args
    known = isinstance(outer, Value) and isinstance(inner, Value) and outer.depth < inner.depth
    return known and _has_runtime_product(outer)


def _has_runtime_product(value: Operand) -> bool:
    """Whether a value is a sum with a product of two values in it, or with a size."""
    if not isinstance(value, Value) or value.op not in ("add", "mul"):
        return False
    if value.op == "mul" and isinstance(value.args[1], Value):
        return True
    return any(isinstance(arg, Value) and (arg.op == "size" or _has_runtime_product(arg)) for arg in value.args)
