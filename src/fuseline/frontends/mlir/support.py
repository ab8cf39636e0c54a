"""What a program may hold: element types that memory and kernels have, ops that have a form here. Anything else is
refused by name and line."""

from __future__ import annotations

from xdsl.dialects import arith, func, linalg, tensor
from xdsl.dialects.builtin import (
    BFloat16Type,
    Float16Type,
    Float32Type,
    Float64Type,
    IndexType,
    IntegerAttr,
    IntegerType,
    ModuleOp,
    NoneAttr,
    Signedness,
    TensorType,
)
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import is_projected_permutation, used_dims
from fuseline.analysis.structured import StructuredOp, is_generic
from fuseline.analysis.structured_op import extents_of
from fuseline.errors import FuselineError
from fuseline.evaluation.program import is_evaluable
from fuseline.frontends.mlir.dynamic_sizes import check_dynamic_sizes
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.flow import DispatchOp, DispatchRegionOp, ExecutableOp, HostType
from fuseline.ir.flow import ReturnOp as FlowReturnOp
from fuseline.ir.scalar_ops import INTEGER_DIVISIONS
from fuseline.ir.tensor_ops import GenerateOp
from fuseline.ir.text import text_location

_FLOATS = (Float16Type, BFloat16Type, Float32Type, Float64Type)
_WIDTHS = (1, 8, 16, 32, 64)
_STRUCTURE = (
    ModuleOp,
    func.FuncOp,
    func.ReturnOp,
    func.CallOp,
    DispatchRegionOp,
    DispatchOp,
    ExecutableOp,
    FlowReturnOp,
    GenerateOp,
)
_ENDS = (linalg.ops.YieldOp, tensor.YieldOp)


def check_supported(main: func.FuncOp) -> None:
    """Look at every op of the program.

    Raises FuselineError: E0306 for a type, an op or a map of a result that has no form here, E0302 for a structured op
    that leaves elements of its result unwritten, a size that is left open and not given, a dispatch of an executable
    that the text has not, and a division of an index by zero.
    """
    for argument in main.body.block.args:
        _check_type(main, argument.type)
    for op in main.walk():
        for value in (
            *op.operands,
            *op.results,
            *(argument for region in op.regions for block in region.blocks for argument in block.args),
        ):
            _check_type(op, value.type)
        if (
            not isinstance(op, (*_STRUCTURE, *_ENDS))
            and not op.name.startswith(("flow.", "scf."))
            and not is_evaluable(op)
        ):
            raise unsupported(op, "there is no such operation here")
        check_dynamic_sizes(op)
        if is_generic(op):
            _check_places(op)
        elif isinstance(op, DispatchOp):
            _check_callee(op)
        elif isinstance(op, INTEGER_DIVISIONS) and isinstance(op.result.type, IndexType) and _number(op.rhs) == 0:
            raise FuselineError("E0302", f"{op.name}: divides by zero", node=text_location(op.location))


def _number(value: SSAValue) -> int | None:
    maker = value.owner
    return (
        maker.value.value.data if isinstance(maker, arith.ConstantOp) and isinstance(maker.value, IntegerAttr) else None
    )


def _check_callee(op: DispatchOp) -> None:
    module = op.parent_op()
    while module is not None and not isinstance(module, ModuleOp):
        module = module.parent_op()
    executables = (
        [inner.sym_name.data for inner in module.ops if isinstance(inner, ExecutableOp)] if module is not None else []
    )
    if op.executable not in executables:
        raise FuselineError(
            "E0302", f"{op.name}: no executable is called @{op.executable}", node=text_location(op.location)
        )


def _check_type(op: Operation, type_: Attribute) -> None:
    if isinstance(type_, TensorType):
        if not isinstance(type_.encoding, NoneAttr):
            raise unsupported(op, f"{type_} has an encoding", "hand over the program before encodings were set")
        type_ = type_.element_type
    if isinstance(type_, IntegerType):
        if type_.width.data in _WIDTHS and type_.signedness.data is Signedness.SIGNLESS:
            return
    elif isinstance(type_, IndexType | HostType) or isinstance(type_, _FLOATS):
        return
    raise unsupported(
        op,
        f"values of type {type_} are not supported",
        "integers of 1, 8, 16, 32 and 64 bits, f16, bf16, f32, f64 and index are",
    )


def _check_places(op: linalg.ops.GenericOp) -> None:
    """Each parallel loop says where in every result an iteration writes: else several would write one element. All of a
    result is written."""
    view = StructuredOp(op)
    sizes = [value.type.get_shape() if isinstance(value.type, TensorType) else () for value in view.operands]
    extents = extents_of(view.maps, sizes, view.rank)
    for map_, shape in zip(view.output_maps, sizes[view.input_count :], strict=True):
        whole = all(
            type(position) is AffineDimExpr or size == 1 for position, size in zip(map_.results, shape, strict=True)
        )
        if not whole or not is_projected_permutation(map_):
            raise unsupported(
                op,
                f"a result is written at {map_}",
                "write whole results, and put them in place with tensor.insert_slice",
            )
    for map_ in view.output_maps:
        named = used_dims(map_)
        loose = [loop for loop in view.parallel if loop not in named and extents[loop] != 1]
        if loose:
            message = f"{op.name}: parallel loop d{loose[0]} does not say where a result is written"
            raise FuselineError(
                "E0302", message, node=text_location(op.location), hint="a loop that results do not name is a reduction"
            )
