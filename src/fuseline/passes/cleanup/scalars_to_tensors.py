"""scalars-to-tensors: a number that the program computes, or is given, becomes a tensor without dimensions.

    %s = tensor.extract %p[%c0]                  %t = slice and collapse of %p : tensor<f32>
    generic ins(%x) { addf %in, %s }       =>    generic ins(%x, %t) {maps (i) -> (i), (i) -> ()} { addf %in, %scalar }

So a scalar is a value like any other: an op that makes one is a node of the fusion graph, an op that reads one has an
edge to it, and it is an operand of the dispatch. Arithmetic on constants and sizes stays as it is: it costs nothing
wherever it is repeated.

Index values are sizes (`Dim`s) where sizes and places need them. One that comes out of a tensor is read by a host
operator, and is a size that only the run tells from there on (`runtime/index_values.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import IndexType, ModuleOp, TensorType
from xdsl.dialects.func import CallOp, FuncOp, ReturnOp
from xdsl.ir import Block, BlockArgument, Operation, OpResult, SSAValue
from xdsl.ir.affine import AffineMap
from xdsl.passes import ModulePass

from fuseline.analysis.structured import captured, is_generic
from fuseline.analysis.structured_op import input_count
from fuseline.errors import FuselineError
from fuseline.ir.build import PARALLEL, Emitter, shape_of
from fuseline.ir.context import CompilerContext
from fuseline.ir.fast import attributes
from fuseline.ir.fast.create import create_generic
from fuseline.ir.fast.direct import body_of, erase, is_unused, operands_of, ops_of, replace_uses, result_of, set_operand
from fuseline.ir.fast.nesting import ops_inside, replace_inside
from fuseline.ir.flow import HostType
from fuseline.ir.provenance import node_names, replace
from fuseline.passes.cleanup.scalar_values import (
    IndexReads,
    constant_scalar,
    extracted,
    is_scalar_op,
    is_size_arithmetic,
    rank_zero,
)
from fuseline.passes.cleanup.scalars_in_regions import hoist_scalars, with_regions_opened

_POINT = AffineMap(0, 0, ())


@dataclass(frozen=True)
class ScalarsToTensorsPass(ModulePass):
    """Raises FuselineError: E0305 for an op that has no form for a scalar which is no constant."""

    name = "scalars-to-tensors"

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Rewrite the functions that no other calls: bodies of host loops keep their scalars. Raises FuselineError: see
        the class."""
        assert isinstance(ctx, CompilerContext)
        called = {inner.callee.string_value() for inner in ops_inside(op) if type(inner) is CallOp}
        for function in [item for item in op.ops if isinstance(item, FuncOp) and len(item.body.blocks) == 1]:
            if function.sym_name.data not in called:  # a loop's body has the scalars that its loop gives it
                _Scalars(function, IndexReads(op, ctx)).run()


class _Scalars:
    """The scalars of one function, as tensors or as index values: whichever their users ask for, made where the scalar
    was."""

    def __init__(self, function: FuncOp, reads: IndexReads) -> None:
        self.function, self.block, self.reads = function, function.body.block, reads
        self._data: dict[SSAValue, bool] = {}
        self._tensors: dict[SSAValue, SSAValue] = {}
        self._indices: dict[SSAValue, SSAValue] = {}
        self.any_data = False

    def run(self) -> None:
        """Rewrite the function."""
        self._arguments()
        hoist_scalars(self.block)
        scalars = [op for op in ops_of(self.block) if is_scalar_op(op)]
        self.any_data = any(self.is_data(op.results[0]) for op in scalars)
        known = set(map(id, scalars))
        for op in list(with_regions_opened(self.block)):
            if id(op) not in known:
                self._consumer(op)
        for op in reversed(ops_of(self.block)):
            if is_scalar_op(op) and is_unused(op):
                erase(op)
        self.function.update_function_type()

    def _arguments(self) -> None:
        """Numbers that the caller gives are tensors from now on; index values stay: they are sizes."""
        for argument in list(self.block.args):
            if not isinstance(argument.type, TensorType | IndexType | HostType):
                new = self.block.insert_arg(attributes.tensor_type(argument.type, ()), argument.index)
                new.name_hint = argument.name_hint
                placeholder = (
                    Emitter.before(self.block.first_op).add(tensor.ExtractOp(new, [], argument.type))
                    if self.block.first_op
                    else None
                )
                if placeholder is not None:
                    replace_uses(argument, placeholder.result)
                self.block.erase_arg(argument)

    # what is asked of a scalar ----------------------------------------------------------------------------------------

    def is_data(self, value: SSAValue) -> bool:
        """Whether `value` is a scalar of this function that is neither a constant nor a size."""
        if (
            type(value) is not OpResult
            or isinstance(value.type, TensorType | HostType)
            or value.op.parent is not self.block
        ):
            return False
        found = self._data.get(value)
        if found is None:
            found = self._data[value] = is_scalar_op(value.op) and self._computes_data(value.op)
        return found

    def _computes_data(self, op: Operation) -> bool:
        if type(op) is tensor.ExtractOp:
            return True
        if isinstance(op, arith.ConstantOp | tensor.DimOp):
            return False
        unknown = isinstance(op.results[0].type, IndexType) and not is_size_arithmetic(op)
        return unknown or any(self.is_data(operand) for operand in operands_of(op))

    def tensor(self, value: SSAValue) -> SSAValue:
        """A scalar as a tensor without dimensions."""
        found = self._tensors.get(value)
        if found is None:
            found = self._tensors[value] = self._as_tensor(value)
        return found

    def _as_tensor(self, value: SSAValue) -> SSAValue:
        if type(value) is not OpResult:  # an index argument, the only scalar that arguments still are
            return rank_zero(Emitter.before(self._first()), value)
        op = value.op
        if type(op) is arith.ConstantOp:
            return constant_scalar(op)
        if isinstance(value.type, IndexType) and not self.is_data(value):
            return rank_zero(Emitter.after(op), value)
        if type(op) is tensor.ExtractOp and (found := extracted(op)) is not None:
            return found
        return self._computed(op, value)

    def _first(self) -> Operation:
        assert self.block.first_op is not None
        return self.block.first_op

    def _computed(self, op: Operation, value: SSAValue) -> SSAValue:
        """A structured op without loops whose body is `op`."""
        data = [operand for operand in dict.fromkeys(operands_of(op)) if self.is_data(operand)]
        e = Emitter.before(op)
        inputs = [self.tensor(operand) for operand in data]
        output = e.empty(value.type, ())

        def body(block: Block) -> Sequence[SSAValue]:
            copy = op.clone(dict(zip(data, block.args, strict=False)))
            block.add_op(copy)
            return [copy.results[list(op.results).index(value)]]  # pyright: ignore[reportArgumentType]

        return result_of(e.generic(inputs, [output], [_POINT] * (len(inputs) + 1), [], lambda b: body(b.block)))

    def index(self, value: SSAValue) -> SSAValue:
        """An index value that is data as one that sizes may depend on."""
        if not self.is_data(value):
            return value
        found = self._indices.get(value)
        if found is None:
            found = self._indices[value] = self._as_index(value)
        return found

    def _as_index(self, value: SSAValue) -> SSAValue:
        assert type(value) is OpResult
        op = value.op
        if is_size_arithmetic(op) and all(isinstance(operand.type, IndexType) for operand in operands_of(op)):
            copy = op.clone({operand: self.index(operand) for operand in operands_of(op)})
            self.block.insert_op_before(copy, op)
            return result_of(copy)
        scalar = self.tensor(value)
        return self.reads.read(Emitter.before(op), scalar)

    # who uses scalars -------------------------------------------------------------------------------------------------

    def _consumer(self, op: Operation) -> None:
        if isinstance(op, ReturnOp):
            self._returned(op)
        elif is_generic(op):
            self._structured(op)
        elif type(op) is linalg.ops.FillOp and self.is_data(op.inputs[0]):
            self._fill(op)
        else:
            self._sizes(op)

    def _returned(self, op: ReturnOp) -> None:
        for i, operand in enumerate(operands_of(op)):
            if not isinstance(operand.type, TensorType | HostType):
                set_operand(op, i, self.tensor(operand))

    def _sizes(self, op: Operation) -> None:
        """Index operands are sizes and places; no other op takes a scalar that is data."""
        for i, operand in enumerate(operands_of(op)):
            if self.is_data(operand):
                if not isinstance(operand.type, IndexType):
                    raise _formless(op, operand)
                set_operand(op, i, self.index(operand))
        inside = self._inside(op) if op.regions else []
        if any(not isinstance(value.type, IndexType) for value in inside):
            raise _formless(op, inside[0])
        if inside:
            replace_inside(op, {value: self.index(value) for value in inside})

    def _inside(self, op: Operation) -> list[SSAValue]:
        """The scalars that are data among what the regions of `op` use from outside."""
        return [value for value in captured(op) if self.is_data(value)] if self.any_data else []

    def _fill(self, op: linalg.ops.FillOp) -> None:
        """A fill with a number that is data: a broadcast of it."""
        init, rank = op.outputs[0], len(shape_of(op.outputs[0]))
        maps = [AffineMap(rank, 0, ()), AffineMap.identity(rank)]
        e = Emitter.before(op)
        new = e.generic([self.tensor(op.inputs[0])], [init], maps, [PARALLEL] * rank, lambda b: [b.args[0]])
        new.detach()
        replace(op, [new])

    def _structured(self, op: linalg.ops.GenericOp) -> None:
        """Scalar operands and scalars that the body captures become inputs without dimensions; constants and sizes are
        captured."""
        count = input_count(op)
        loose = [i for i, operand in enumerate(operands_of(op)[:count]) if not isinstance(operand.type, TensorType)]
        inside = self._inside(op)
        if not loose and not inside:
            return
        body = body_of(op)
        operands = dict(enumerate(operands_of(op)))
        for i in loose:
            if self.is_data(operands[i]):
                operands[i] = self.tensor(operands[i])
            else:
                replace_uses(body.args[i], operands.pop(i))
        for i in reversed([i for i in loose if i not in operands]):
            body.erase_arg(body.args[i])
        self._rebuild(op, operands, count, inside)

    def _rebuild(
        self, op: linalg.ops.GenericOp, operands: dict[int, SSAValue], count: int, inside: Sequence[SSAValue]
    ) -> None:
        maps = [map_.data for map_ in op.indexing_maps.data]
        rank = len(op.iterator_types.data)
        inputs = [i for i in operands if i < count]
        outputs = [i for i in operands if i >= count]
        added: list[BlockArgument] = [
            body_of(op).insert_arg(value.type, len(inputs) + k) for k, value in enumerate(inside)
        ]
        replace_inside(op, dict(zip(inside, added, strict=True)))
        new = create_generic(
            [*(operands[i] for i in inputs), *(self.tensor(value) for value in inside)],
            [operands[i] for i in outputs],
            op.detach_region(op.body),
            [*(maps[i] for i in inputs), *[AffineMap(rank, 0, ())] * len(inside), *(maps[i] for i in outputs)],
            op.iterator_types,
            doc=op.doc,
            library_call=op.library_call,
        )
        new.attributes |= op.attributes
        replace(op, [new])


def _formless(op: Operation, operand: SSAValue) -> FuselineError:
    message = f"{op.name} takes a number of type {operand.type} that is no constant"
    return FuselineError(
        "E0305",
        message,
        node=node_names(op),
        hint="linalg ops, sizes and results may depend on computed numbers",
    )


EXPORT = ScalarsToTensorsPass
