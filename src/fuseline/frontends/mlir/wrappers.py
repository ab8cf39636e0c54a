"""What stands around values and computes nothing: barriers, constants that are not to be folded, globals, regions that
somebody else formed."""

from __future__ import annotations

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, DenseResourceAttr, FloatAttr, IntegerAttr, ModuleOp
from xdsl.ir import Attribute, Operation, OpResult, SSAValue
from xdsl.rewriter import Rewriter

from fuseline.dispatch.view import MEMBERS_ATTRIBUTE
from fuseline.errors import FuselineError
from fuseline.ir import flow, util_dialect
from fuseline.ir.fast.create import create_constant
from fuseline.ir.provenance import replace
from fuseline.ir.tensor_ext import ComputeBarrierOp
from fuseline.ir.text import text_location

_CONSTANTS = (DenseIntOrFPElementsAttr, DenseResourceAttr, IntegerAttr, FloatAttr)


def unsupported(op: Operation, why: str, hint: str | None = None) -> FuselineError:
    """E0306 that names `op` and its place."""
    return FuselineError("E0306", f"{op.name}: {why}", node=text_location(op.location), hint=hint)


def unwrap(module: ModuleOp) -> None:
    """Put values in place of what only names or guards them. Raises FuselineError: E0306 for a global that a run may
    change or nobody gives."""
    globals_ = {op.sym_name.data: op for op in module.ops if isinstance(op, util_dialect.GlobalOp)}
    for op in list(module.walk()):
        if isinstance(op, util_dialect.OptimizationBarrierOp | ComputeBarrierOp):
            Rewriter.replace_op(op, [], list(op.operands)[: len(op.results)])
        elif isinstance(op, util_dialect.UnfoldableConstantOp):
            replace(op, [constant_op(op, op.value, op.res.type)])
        elif isinstance(op, util_dialect.GlobalLoadOp):
            replace(op, [_loaded(op, op.target.root_reference.data, globals_)])
        elif isinstance(op, util_dialect.GlobalLoadIndirectOp):
            replace(op, [_loaded(op, _addressed(op.address), globals_)])
        elif isinstance(op, util_dialect.GlobalStoreOp):
            raise unsupported(
                op, "a run may not change a global", "give the value as an argument and return the new one"
            )
    _erase_unused(module)


def _erase_unused(module: ModuleOp) -> None:
    for op in list(module.walk()):
        if isinstance(op, util_dialect.GlobalAddressOp | util_dialect.GlobalOp):
            op.detach()
            op.erase()


def _addressed(address: SSAValue) -> str:
    maker = address.op if isinstance(address, OpResult) else None
    return maker.target.root_reference.data if isinstance(maker, util_dialect.GlobalAddressOp) else ""


def _loaded(op: Operation, name: str, globals_: dict[str, util_dialect.GlobalOp]) -> Operation:
    """The value of global `name`, as a constant of the program."""
    source = globals_.get(name)
    if source is None:
        raise FuselineError("E0302", f"{op.name}: no global is called {name!r}", node=text_location(op.location))
    if source.mutable is not None:
        raise unsupported(op, f"@{name} may change between runs", "give it as an argument")
    if source.value is None or op.results[0].type != source.type:
        raise unsupported(
            op, f"@{name} has no value of type {op.results[0].type}", "give it as an argument, or its value in the text"
        )
    return constant_op(op, source.value, op.results[0].type)


def constant_op(op: Operation, value: Attribute | None, type_: Attribute) -> Operation:
    """A constant in place of `op`. Raises FuselineError: E0306 for a value that is none."""
    if not isinstance(value, _CONSTANTS):
        raise unsupported(
            op,
            f"{value.name if value is not None else 'nothing'} is no constant that is read",
            "write the value as dense<...>",
        )
    return create_constant(value, type_)


def inline_foreign_regions(module: ModuleOp) -> None:
    """Dispatch regions that another compiler formed go: fuseline forms its own. Those with `fuseline.members` are its
    own, and stay."""
    for op in list(module.walk()):
        if isinstance(op, flow.DispatchRegionOp) and MEMBERS_ATTRIBUTE not in op.attributes:
            _inline(op)


def _inline(region: flow.DispatchRegionOp) -> None:
    block = region.body.block
    end = block.last_op
    assert isinstance(end, flow.ReturnOp)  # the text was verified
    values = list(end.values)
    end.detach()
    end.erase()
    assert region.parent is not None
    for op in list(block.ops):
        op.detach()
        region.parent.insert_op_before(op, region)
    Rewriter.replace_op(region, [], values)
