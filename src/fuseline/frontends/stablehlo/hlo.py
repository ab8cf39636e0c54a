"""What a lowering sees of its op: operands as tensors, attributes, and where it emits.

Emission is the ONNX frontend's (`frontends/onnx/emission.py` and `ops/`): `Hlo.node` is what its helpers take.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import onnx_ir as ir
from xdsl.dialects import tensor
from xdsl.ir import Block, Operation, SSAValue

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.dtypes import mlir_element
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.node_importer import NodeImporter
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.registry import lowering_of
from fuseline.frontends.onnx.tensors import NoNativeLowering, Tensor
from fuseline.frontends.onnx.wide_halves import as_sequence
from fuseline.frontends.stablehlo.reading import fields_of, integer_of, integers_of, text_of
from fuseline.frontends.stablehlo.types import DType, tensor_type_of
from fuseline.ir.build import tensor_type
from fuseline.ir.context import CompilerContext
from fuseline.ir.dim import Dim
from fuseline.ir.hlo.ops import HloOp
from fuseline.ir.text import text_location

OPSET = 22
"""The operator set of the ONNX operators that are borrowed."""


@dataclass
class Scope:
    """The values that are visible in a block, and the program that their ops are in. `given`: the results of ops that
    are not lowered where they stand; `depth`: how many loops are around."""

    program: Program
    values: dict[SSAValue, Tensor] = field(default_factory=dict[SSAValue, Tensor])
    given: dict[Operation, list[Tensor]] = field(default_factory=dict[Operation, list[Tensor]])
    depth: int = 0

    def inside(self, block: Block, arguments: Sequence[Tensor]) -> Scope:
        """What a block of a region sees, its arguments given."""
        values = {**self.values, **dict(zip(block.args, arguments, strict=True))}
        return Scope(self.program, values, self.given, self.depth)

    def apart(self, program: Program) -> Scope:
        """The inside of a loop, whose ops are in a program of its own: nothing from outside is visible."""
        return Scope(program, depth=self.depth + 1)


class BlockImporter(NodeImporter, Protocol):
    """What lowers the ops around one that is being lowered."""

    ctx: CompilerContext

    def block(self, block: Block, scope: Scope) -> list[Tensor]:
        """The operands of the block's last op, all before it lowered."""
        ...

    def ops(self, block: Block, scope: Scope) -> Operation:
        """Lower all ops but the last, which is the answer."""
        ...

    def value(self, value: SSAValue, scope: Scope, op: Operation) -> Tensor:
        """The tensor of a value that `op` reads."""
        ...


@dataclass(eq=False)
class Hlo:
    """One op under translation; `location` is where it stands in the text, `scope` what regions of it may read."""

    importer: BlockImporter
    op: HloOp
    inputs: list[Tensor]
    scope: Scope
    label: str
    node: OnnxNode

    def __getitem__(self, index: int) -> Tensor:
        """Operand `index`."""
        return self.inputs[index]

    @property
    def name(self) -> str:
        """The op's name, without the dialect."""
        return self.op.name.partition(".")[2]

    @property
    def program(self) -> Program:
        """Where ops go."""
        return self.node.program

    # -- attributes ----------------------------------------------------------------------------------------------------

    def has(self, name: str) -> bool:
        """Whether the op has the attribute."""
        return self.op.attribute(name) is not None

    def integers(self, name: str, default: Sequence[int] = ()) -> list[int]:
        """A list of integers."""
        found = integers_of(self.op.attribute(name))
        return list(default) if found is None else found

    def integer(self, name: str, default: int = 0) -> int:
        """An integer, or 1 for `true`."""
        return integer_of(self.op.attribute(name), default)

    def text(self, name: str, default: str = "") -> str:
        """A word or a text."""
        return text_of(self.op.attribute(name), default)

    def fields(self, name: str) -> dict[str, list[int]]:
        """The numbers of an attribute with fields."""
        return fields_of(self.op.attribute(name))

    def paddings(self, name: str, rank: int) -> list[tuple[int, int]]:
        """Pairs of numbers, per axis; none where the attribute is left out."""
        flat = self.integers(name, [0] * 2 * rank)
        flat = flat * rank * 2 if len(flat) == 1 else flat
        return list(zip(flat[::2], flat[1::2], strict=True))

    # -- results -------------------------------------------------------------------------------------------------------

    def dtype(self, index: int = 0) -> DType:
        """The dtype of a result."""
        return tensor_type_of(self.op.results[index].type)[0]

    def shape(self, index: int = 0) -> tuple[int, ...]:
        """The sizes of a result, -1 for those that the type leaves open."""
        return tensor_type_of(self.op.results[index].type)[1]

    def static_shape(self, index: int = 0) -> tuple[int, ...]:
        """The sizes of a result, all known. Raises FuselineError (E0306)."""
        shape = self.shape(index)
        if min(shape, default=0) < 0:
            raise self.refusal("the sizes of its result are left open")
        return shape

    def dims(self, computed: Sequence[Dim], index: int = 0) -> tuple[Dim, ...]:
        """The sizes of a result: those that the type says, and else those that were computed."""
        return tuple(size if size >= 0 else dim for size, dim in zip(self.shape(index), computed, strict=True))

    # -- refusals and borrowed operators -------------------------------------------------------------------------------

    @property
    def location(self) -> str:
        """The op as errors name it: its source name, and where it stands where the text says no more."""
        return text_location(self.op.location) or self.label

    def refusal(self, why: str, hint: str | None = None) -> FuselineError:
        """E0306 that names the op and its location."""
        return FuselineError("E0306", f"{self.op.name}: {why}", node=self.location, hint=hint)

    def onnx(self, op_type: str, inputs: Sequence[Tensor | None], outputs: int = 1, **settings: Any) -> list[Tensor]:
        """What an ONNX operator of today gives, emitted here. Raises FuselineError (E0306) where it has no native
        lowering."""
        lowering = lowering_of("", op_type, OPSET)
        assert lowering is not None, op_type
        attributes = {name: ir.Attr(name, *_attribute(value)) for name, value in settings.items()}
        source = ir.Node("", op_type, [], list(attributes.values()), num_outputs=outputs)
        for number, value in enumerate(source.outputs):
            value.name = f"o{number}"
        given = list(inputs)
        node = OnnxNode(self.importer, self.program, source, self.label, given, attributes, OPSET, self.node.provenance)
        try:
            found = as_sequence(lowering(node))
        except NoNativeLowering as error:
            raise self.refusal(str(error)) from error
        return [value for value in found if isinstance(value, Tensor)]

    def with_dims(self, t: Tensor, dims: Sequence[Dim]) -> Tensor:
        """`t` with sizes that are called otherwise; the program requires that they are the same."""
        if t.dims == tuple(dims):
            return t
        for size, wanted in zip(t.dims, dims, strict=True):
            self.program.require_equal(size, wanted, self.label)
        value = self.node.ssa(t)
        wanted_type = tensor_type(mlir_element(t.dtype), dims)
        if value.type != wanted_type:
            value = self.node.emit.add(tensor.CastOp(value, wanted_type)).dest
        return Tensor(t.dtype, tuple(dims), value=value, name=t.name)


def _attribute(value: Any) -> tuple[ir.AttributeType, Any]:
    if isinstance(value, str):
        return ir.AttributeType.STRING, value
    if isinstance(value, list):
        return ir.AttributeType.INTS, value
    return (ir.AttributeType.FLOAT, value) if isinstance(value, float) else (ir.AttributeType.INT, int(value))


def scalar_number(t: Tensor) -> Any:
    """The number of a constant that is one number everywhere, as Python has it; None for any other tensor."""
    while t.value is None and t.base is not None:
        t = t.base
    if not t.is_constant or t.array is None or t.array.size != 1:
        return None
    return np.asarray(t.array).reshape(-1)[0].item()
