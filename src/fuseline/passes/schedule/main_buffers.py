"""Which memory the tensors of `@main` and of its loops' bodies lie in: views are free aliases of a contiguous buffer,
or of a part of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import (
    DenseIntOrFPElementsAttr,
    DenseResourceAttr,
    FloatAttr,
    IndexType,
    IntegerAttr,
    TensorType,
)
from xdsl.ir import Attribute, Block, Operation, SSAValue

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.views import is_view, view_offset
from fuseline.buffers import BufferRef, Operand
from fuseline.errors import FuselineError
from fuseline.evaluation.constants import dense_array, scalar
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim, add, mul, product
from fuseline.ir.element_types import numpy_dtype
from fuseline.ir.fast import attributes
from fuseline.ir.fast.identity import by_identity
from fuseline.ir.flow import HostType
from fuseline.ir.provenance import node_names
from fuseline.ir.verify_definitions import is_detached
from fuseline.program.bitcasts import is_bitcast_view
from fuseline.program.fills import is_small_constant
from fuseline.program.schedule import element_bytes, moved_ref

_DTYPES = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i1": "bool", "index": "int64"}


@dataclass(eq=False)
class Storage:
    """What all functions of a program take together: constants (by number), bytes of the transients, how many values
    are boxed."""

    ctx: CompilerContext
    constants: list[NDArray[Any]] = field(default_factory=list[NDArray[Any]])
    transients: list[Dim] = field(default_factory=list[Dim])
    slots: int = 0
    _resources: dict[str, BufferRef] = field(default_factory=dict[str, BufferRef])

    def transient(self, size: Dim) -> BufferRef:
        """A new buffer of `size` bytes."""
        self.transients.append(size)
        return BufferRef("transient", len(self.transients) - 1)

    def slot(self) -> BufferRef:
        """A new slot for a value that is boxed."""
        self.slots += 1
        return BufferRef("boxed", self.slots - 1)

    def constant(self, array: NDArray[Any]) -> BufferRef:
        """A new constant."""
        self.constants.append(array)
        return BufferRef("constant", len(self.constants) - 1)

    def resource(self, name: str, op: Operation) -> BufferRef:
        """The constant that `dense_resource<name>` is; raises FuselineError (E0305) naming `op` where nobody has its
        data."""
        if name not in self._resources:
            array = self.ctx.resources.get(name)
            if array is None:
                hint = "emit the IR with -o FILE, which writes the weights beside it"
                raise FuselineError("E0305", f"no data for dense_resource<{name}>", node=node_names(op), hint=hint)
            self._resources[name] = self.constant(array)
        return self._resources[name]


class MainBuffers:
    """The buffers of one function's `block`: those given by `put`, and those made for whatever is asked for first."""

    def __init__(self, block: Block, shapes: ShapeAnalysis, storage: Storage) -> None:
        self.shapes, self.storage = shapes, storage
        self._refs: dict[SSAValue, BufferRef] = {}
        self._roots: dict[SSAValue, SSAValue] = {}
        self._view_offsets: dict[SSAValue, Dim] = {}
        for op in block.ops:
            if is_view(op) or is_bitcast_view(op):
                viewed = op.operands[0]
                self._roots[op.results[0]] = self.root(viewed)
                self._view_offsets[op.results[0]] = add(self._view_offsets.get(viewed, 0), view_offset(op, shapes))

    def root(self, value: SSAValue) -> SSAValue:
        """What `value` is a view of: itself, if of nothing."""
        return self._roots.get(value, value)

    def has(self, root: SSAValue) -> bool:
        """Whether `root` lies somewhere already."""
        return root in self._refs

    def put(self, root: SSAValue, ref: BufferRef) -> None:
        """Let `root` lie at `ref`."""
        self._refs[root] = ref

    def element(self, number: SSAValue) -> Operand:
        """Where the one element lies that a fill repeats: a constant, or one of a tensor."""
        if isinstance(number.owner, tensor.ExtractOp):
            return self.operand(number.owner.tensor)
        array = np.full((1,), number_of(number))
        return Operand(self.storage.constant(array), (1,), array.dtype.name)

    def put_parts(
        self, whole: SSAValue, parts: Sequence[SSAValue], made: Sequence[SSAValue | None]
    ) -> list[tuple[SSAValue, BufferRef]]:
        """Let `parts` lie one behind the other in `whole`: those that are `made` there. Answers the others, which must
        be copied, and where to."""
        ref = self.ref(whole)
        copied: list[tuple[SSAValue, BufferRef]] = []
        for part, value in zip(parts, made, strict=True):
            if value is None:
                copied.append((part, ref))
            else:
                self.put(value, ref)
            ref = moved_ref(ref, self._bytes(part))
        return copied

    def operand(self, value: SSAValue, dtype: str | None = None) -> Operand:
        """`value` as what a step reads or writes; `dtype` says what a signless type cannot."""
        if isinstance(value.type, HostType):
            return Operand(self.ref(value), (), "object")
        if isinstance(
            value.type, IndexType
        ):  # a number that a host operator tells: from there on a size like any other
            return Operand(self.ref(value), (self.shapes.index(value),), "object")
        name = dtype_name(tensor_type(value), dtype)
        distance = mul(self._view_offsets.get(value, 0), element_bytes(name))
        return Operand(moved_ref(self.ref(value), distance), self.shapes.dims(value), name)

    def ref(self, value: SSAValue) -> BufferRef:
        """Where the root of `value` lies."""
        root = self.root(value)
        if root not in self._refs:
            self._refs[root] = self._new(root)
        return self._refs[root]

    def _new(self, root: SSAValue) -> BufferRef:
        if isinstance(root.type, HostType | IndexType):
            return self.storage.slot()
        if isinstance(root.owner, arith.ConstantOp):
            return self._constant(root.owner)
        if isinstance(root.owner, linalg.ops.FillOp) and is_small_constant(root.owner):
            return self._filled(root.owner)
        if is_detached(root):
            raise FuselineError("E0901", "a dispatch reads what no op of the program makes")
        return self.storage.transient(self._bytes(root))

    def _bytes(self, value: SSAValue) -> Dim:
        return mul(product(self.shapes.dims(value)), element_bytes(dtype_name(tensor_type(value))))

    def _constant(self, op: arith.ConstantOp) -> BufferRef:
        value = op.value
        if isinstance(value, DenseResourceAttr):
            return self.storage.resource(value.resource_handle.data, op)
        assert isinstance(value, DenseIntOrFPElementsAttr)
        return self.storage.constant(
            np.ascontiguousarray(dense_array(value), np.dtype(dtype_name(tensor_type(op.result))))
        )

    def _filled(self, op: linalg.ops.FillOp) -> BufferRef:
        """A fill that no dispatch took: one constant, as its sizes are fixed."""
        shape = tensor_type(op.results[0]).get_shape()
        return self.storage.constant(np.full(shape, number_of(op.inputs[0])))


def number_of(value: SSAValue) -> NDArray[Any]:
    """The number that a constant scalar is, as a NumPy scalar of its type."""
    assert isinstance(value.owner, arith.ConstantOp)
    attribute = value.owner.value
    assert isinstance(attribute, IntegerAttr | FloatAttr)
    return scalar(attribute.value.data, numpy_dtype(value.type))


def tensor_type(value: SSAValue) -> TensorType[Attribute]:
    """The type of a tensor; raises FuselineError (E0305) for a value of another type."""
    if not isinstance(value.type, TensorType):
        raise FuselineError(
            "E0305", f"a value of type {value.type} cannot be scheduled", hint="programs pass tensors and sizes only"
        )
    return value.type


def dtype_name(type_: TensorType[Attribute], override: str | None = None) -> str:
    """The NumPy name of a tensor's elements; `override` is a `fuseline.dtype` attribute, which says what a signless
    type cannot. Raises FuselineError: E0305 for elements that no tensor of a program can have."""
    return override or _name_of(type_.element_type)


@by_identity
def _name_of(element: Attribute) -> str:
    text = attributes.text(element)
    found = _DTYPES.get(text) or f"int{text.lstrip('i')}"
    if found not in _DTYPES.values() and not found[3:].isdecimal():
        raise FuselineError("E0305", f"tensors of {text} cannot be scheduled", hint="convert them to f32 in the model")
    return found
