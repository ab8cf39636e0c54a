"""The signature of a kernel: what the runtime checks a launch of it against."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.ir import SSAValue

from fuseline.dispatch.result_boxes import box_of
from fuseline.dispatch.view import DispatchView
from fuseline.ir import dim as d
from fuseline.ir.dim import Dim, Symbol
from fuseline.ir.dim_json import to_json
from fuseline.program.box_rows import ROW_LOOPS
from fuseline.runtime.abi import ALIGNMENT
from fuseline.runtime.signatures import COUNT, Buffer, Signature, SizeBounds
from fuseline.runtime.sizes import Size, size_from_json
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.kernel_ir.types import BYTES, Kernel, MemRef
from fuseline.targets.cpu.link.built_in_kernels import (
    COPY_ROWS_SYMBOL,
    COPY_SYMBOL,
    COPY_WORKGROUP_BYTES,
    FILL_SYMBOLS,
    SIZES_SYMBOL,
)

_COUNTED: Size = ("sum", ((1, COUNT),))
_BYTES_OF_SIZES: Size = ("sum", ((8, COUNT),))
_COPIED, _FILLED = d.symbol("bytes", 0), d.symbol("elements", 0)


def _size(dim: Dim) -> Size:
    return size_from_json(to_json(dim))


def _row_copying() -> Signature:
    """The signature of the kernel that copies rows."""
    length = d.symbol("bytes", 0)
    counts, strides = ([d.symbol(f"{what}{i}", 0) for i in range(ROW_LOOPS)] for what in ("rows", "stride"))
    ends = [d.mul(d.sub(count, 1), stride) for count, stride in zip(counts, strides, strict=True)]
    rows = d.product(counts)
    buffers = Buffer(_size(d.mul(rows, length))), Buffer(_size(d.sum_of([*ends, length])), written=True)
    names = ["bytes", *(f"{what}{i}" for what in ("rows", "stride") for i in range(ROW_LOOPS))]
    return Signature(tuple(map(SizeBounds, names)), buffers, _size(rows))


def _filling(element: int) -> Signature:
    """The signature of the kernel that fills with elements of so many bytes."""
    written = Buffer(_size(d.mul(_FILLED, element)), written=True, alignment=element)
    grid = _size(d.ceil_div(_FILLED, COPY_WORKGROUP_BYTES // element))
    return Signature((SizeBounds("elements"),), (Buffer(element, alignment=element), written), grid)


BUILT_IN: Mapping[str, Signature] = {
    COPY_SYMBOL: Signature(
        (SizeBounds("bytes"),),
        (Buffer(_size(_COPIED)), Buffer(_size(_COPIED), written=True)),
        _size(d.ceil_div(_COPIED, COPY_WORKGROUP_BYTES)),
    ),
    COPY_ROWS_SYMBOL: _row_copying(),
    **{symbol: _filling(element) for element, symbol in FILL_SYMBOLS.items()},
    SIZES_SYMBOL: Signature(None, (Buffer(_BYTES_OF_SIZES, written=True),), _COUNTED),
}
"""Those of the kernels that every image has, by symbol."""


def signature_of(kernel: Kernel, plan: Plan) -> Signature:
    """What the kernel of a plan may be launched on: buffers as long as its tensors, those it does not touch of any
    length."""
    view, memory = plan.view, {memory.position: memory for memory in kernel.bindings}
    values = (*view.tensors, *view.results)
    buffers = [_buffer(view, memory.get(i), value, i in plan.constant_layouts) for i, value in enumerate(values)]
    buffers += [Buffer(len(block), alignment=ALIGNMENT) for block in plan.extra_constants]
    sizes = tuple(_bounds(name, view.shapes.symbol(name)) for name in view.size_names)
    return Signature(sizes, tuple(buffers), _size(plan.workgroups), kernel.scratch_bytes)


def with_numbers(one: Signature, numbers: Sequence[int], scratch_bytes: int) -> Signature:
    """The same where the kernel takes `numbers` behind its sizes, and so much scratch."""
    assert one.sizes is not None
    fixed = tuple(SizeBounds(f"number{i}", number, number) for i, number in enumerate(numbers))
    return one._replace(sizes=(*one.sizes, *fixed), scratch_bytes=scratch_bytes)


def _buffer(view: DispatchView, memory: MemRef | None, value: SSAValue, packed: bool) -> Buffer:
    if memory is None:
        return Buffer(0)
    element = BYTES[memory.dtype]
    if not memory.writable:
        elements = memory.extent if isinstance(memory.extent, int) else d.product(view.shapes.dims(value))
        return Buffer(_size(d.mul(elements, element)), alignment=ALIGNMENT if packed else element)
    return Buffer(_size(d.mul(_written(view, value), element)), written=True, alignment=element)


def _written(view: DispatchView, result: SSAValue) -> Dim:
    """Elements from the start of a result to behind the last one that is written: a box of a larger tensor ends before
    the tensor does."""
    box = box_of(view.shapes, result)
    if not box.sliced:
        return d.product(box.dims)
    last: Dim = 1
    for axis, (offset, size) in enumerate(zip(box.offsets, view.shapes.dims(box.value), strict=True)):
        last = d.add(last, d.mul(d.sub(d.add(offset, size), 1), d.product(box.dims[axis + 1 :])))
    return last


def _bounds(name: str, size: Dim) -> SizeBounds:
    symbol = next((s for s in d.symbols(size) if s.name == name), Symbol(name, 0, None))
    return SizeBounds(name, symbol.lo, symbol.hi)
