"""Kernel IR as text for people (`--emit kernel`): loops, branches and operations as they nest, buffers as indexed
names.

    kernel @k(workgroups %1 to %2) {
      binding 0: b0 f32[4096] read
      for %3 = %1 to %2 step 1 {
        %4: 8xf32 = load b0[%3 + 8]
        store b1[%3], %4
      }
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from fuseline.targets.cpu.kernel_ir.types import Address, Block, Kernel, Loop, MemRef, Operand, Value, When, While

_INDENT = "  "
_SHOWN = 16
"""Numbers of a table that are spelt out."""


def kernel_text(kernel: Kernel) -> str:
    """A kernel: its range of workgroups, runtime sizes (i64), buffers (extents in elements, places in scratch in
    bytes), and its body."""
    sizes = f", sizes {_names(kernel.sizes)}" if kernel.sizes else ""
    head = f"kernel @{kernel.symbol}(workgroups {_operand(kernel.begin)} to {_operand(kernel.end)}{sizes}) {{"
    buffers = [_buffer(memory) for memory in (*kernel.bindings, *kernel.scratch, *kernel.tables)]
    return "\n".join([head, *(_INDENT + line for line in (*buffers, *_lines(kernel.body))), "}", ""])


def _buffer(memory: MemRef) -> str:
    shape = f"{memory.name} {memory.dtype}[{_operand(memory.extent)}]"
    if memory.kind == "table":
        more = ", .." if len(memory.data) > _SHOWN else ""
        return f"table: {shape} = <{', '.join(map(str, memory.data[:_SHOWN]))}{more}>"
    if memory.kind == "scratch":
        return f"scratch at {memory.position}: {shape}"
    return f"binding {memory.position}: {shape} {'read and written' if memory.writable else 'read'}"


def _lines(block: Block) -> Iterator[str]:
    for op in block.ops:
        if isinstance(op, Value):
            yield _value(op)
        elif isinstance(op, Loop):
            yield from _loop(op)
        elif isinstance(op, While):
            yield from _while(op)
        else:
            yield from _when(op)


def _loop(loop: Loop) -> Iterator[str]:
    bounds = f"{_operand(loop.lo)} to {_operand(loop.hi)} step {loop.step}"
    yield f"{_bound(loop.results)}for {_operand(loop.index)} = {bounds}{_carried(loop)} {{"
    yield from _nested(loop.body, loop.yields)
    yield "}"


def _while(loop: While) -> Iterator[str]:
    assert loop.condition is not None
    yield f"{_bound(loop.results)}while{_carried(loop)} {{"
    yield from _nested(loop.test)
    yield f"}} test {_operand(loop.condition)} {{"
    yield from _nested(loop.body, loop.yields)
    yield "}"


def _when(when: When) -> Iterator[str]:
    yield f"{_bound(when.results)}if {_operand(when.condition)} {{"
    yield from _nested(when.then, when.then_yields)
    if when.otherwise.ops or when.results:
        yield "} else {"
        yield from _nested(when.otherwise, when.otherwise_yields)
    yield "}"


def _nested(block: Block, yields: Sequence[Operand] = ()) -> Iterator[str]:
    for line in _lines(block):
        yield _INDENT + line
    if yields:
        yield f"{_INDENT}yield {_names(yields)}"


def _carried(loop: Loop | While) -> str:
    pairs = zip(loop.carried, loop.inits, strict=True)
    inits = ", ".join(f"{_operand(parameter)}: {parameter.type} = {_operand(init)}" for parameter, init in pairs)
    return f" with ({inits})" if inits else ""


def _bound(results: Sequence[Value]) -> str:
    return f"{_names(results)} = " if results else ""


def _value(value: Value) -> str:
    # How a memory operation is aligned (its attribute) is not what it does.
    attribute = value.attr if value.op not in ("load", "store", "const") else None
    name = value.op if attribute is None else f"{value.op}{{{_attribute(attribute)}}}"
    words = f"{name} {_names([argument for argument in value.args if argument is not None])}".rstrip()
    return words if value.type.dtype == "void" else f"%{value.number}: {value.type} = {words}"


def _attribute(attribute: Any) -> str:
    return ", ".join(map(str, attribute)) if isinstance(attribute, tuple) else str(attribute)


def _names(operands: Sequence[Any]) -> str:
    return ", ".join(map(_operand, operands))


def _operand(operand: Any) -> str:
    """A value's number, a constant's numbers, or a place in a buffer."""
    if isinstance(operand, Address):
        return _address(operand)
    if not isinstance(operand, Value):
        return str(operand)
    if operand.op != "const":
        return f"%{operand.number}"
    return f"<{', '.join(map(str, operand.attr))}>" if isinstance(operand.attr, tuple) else str(operand.attr)


def _address(address: Address) -> str:
    root = address.root.name if isinstance(address.root, MemRef) else _operand(address.root)
    if not isinstance(address.index, Value):
        return f"{root}[{address.index + address.offset}]"
    return f"{root}[{_operand(address.index)}{f' + {address.offset}' if address.offset else ''}]"
