"""Control flow that tensor programs need not have: blocks in a row, calls of functions with a body, branches of which
either may be computed."""

from __future__ import annotations

from xdsl.dialects import arith, cf, func, scf, tensor
from xdsl.dialects.builtin import ModuleOp, TensorType
from xdsl.ir import Block, Operation, SSAValue
from xdsl.rewriter import Rewriter
from xdsl.traits import Pure

from fuseline.errors import FuselineError
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.fast.direct import operands_of, ops_of
from fuseline.ir.fast.nesting import ops_inside
from fuseline.ir.provenance import carry
from fuseline.ir.reachable import reachable
from fuseline.ir.rounds import rounds
from fuseline.ir.scalar_ops import INTEGER_DIVISIONS
from fuseline.ir.text import text_location

LOOPS = (scf.ForOp, scf.WhileOp)

MAX_INLINED_CALLS = 10_000
"""Calls that are inlined at most: functions that call each other in turn would go on for ever."""


def join_blocks(function: func.FuncOp) -> None:
    """Blocks that lead to one another without a choice become one. Raises FuselineError (E0306) for a choice or a
    loop."""
    for _ in rounds("joining blocks", most=len(function.body.blocks)):
        if len(function.body.blocks) == 1:
            return
        last = function.body.blocks[0].last_op
        if not isinstance(last, cf.BranchOp):
            raise unsupported(last or function, "a branch that depends on data", "write it as scf.if or arith.select")
        _join(function, last)


def _join(function: func.FuncOp, last: cf.BranchOp) -> None:
    first, target = function.body.blocks[0], last.successor
    before = [op for block in function.body.blocks for op in block.ops if target in op.successors]
    if target is first or len(before) != 1:
        raise unsupported(last, "blocks that several others lead to", "write them as scf.if or arith.select")
    for argument, value in zip(list(target.args), list(last.arguments), strict=True):
        argument.replace_all_uses_with(value)
    last.detach()
    last.erase()
    for op in list(target.ops):
        op.detach()
        first.add_op(op)
    function.body.detach_block(target)


def inline_calls(module: ModuleOp, main: func.FuncOp) -> None:
    """Put the bodies of called functions in place of their calls in `main`, those of functions with loops excepted.

    Raises FuselineError: E0306 for functions that call themselves.
    """
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp) and not op.is_declaration}
    count = 0
    while calls := [
        op for op in main.walk() if isinstance(op, func.CallOp) and _inlinable(functions.get(op.callee.string_value()))
    ]:
        for call in calls:
            count += 1
            if count > MAX_INLINED_CALLS:
                raise unsupported(call, f"{call.callee.string_value()} calls itself")
            _inline(call, functions[call.callee.string_value()])


def erase_uncalled(module: ModuleOp, main: func.FuncOp) -> None:
    """Functions that the program does not reach, so that nothing in them is compiled, or refused."""
    functions = {op.sym_name.data: op for op in module.ops if isinstance(op, func.FuncOp)}

    def called(function: func.FuncOp) -> list[func.FuncOp]:
        calls = [op.callee.string_value() for op in function.walk() if isinstance(op, func.CallOp)]
        return [functions[name] for name in calls if name in functions]

    reached = set(reachable([main], called))
    for op in functions.values():
        if op not in reached and not op.is_declaration:
            op.detach()
            op.erase()


def _inlinable(callee: func.FuncOp | None) -> bool:
    return (
        callee is not None
        and len(callee.body.blocks) == 1
        and not any(isinstance(op, scf.ForOp) for op in ops_inside(callee))
    )


def _inline(call: func.CallOp, callee: func.FuncOp) -> None:
    types = callee.function_type
    if [value.type for value in call.arguments] != list(types.inputs) or [value.type for value in call.res] != list(
        types.outputs
    ):
        raise FuselineError(
            "E0302", f"func.call: @{callee.sym_name.data} has another type", node=text_location(call.location)
        )
    assert call.parent is not None
    values: dict[SSAValue, SSAValue] = dict(zip(callee.body.block.args, call.arguments, strict=True))
    for op in ops_of(callee.body.block):
        if isinstance(op, func.ReturnOp):
            Rewriter.replace_op(call, [], [values.get(value, value) for value in op.arguments])
            return
        copy = op.clone(values)
        carry([call], [copy])
        call.parent.insert_op_before(copy, call)


def flatten_branches(main: func.FuncOp) -> None:
    """Both sides of an `scf.if` are computed and one is chosen, where neither has an effect nor can fail for values
    that it was not meant for.

    Raises FuselineError: E0306 for any other.
    """
    while ifs := [op for block in straight_blocks(main) for op in ops_of(block) if isinstance(op, scf.IfOp)]:
        for op in ifs:
            _flatten(op)


def straight_blocks(main: func.FuncOp) -> list[Block]:
    """The block of a program and those of the bodies of its ops, but for what `scf` decides about."""
    whole, found = main.body.block, [main.body.block]
    for op in ops_of(whole):
        if not isinstance(op, (scf.IfOp, *LOOPS)) and op.regions:
            found += [block for region in op.regions for block in region.blocks]
    return found


def _flatten(op: scf.IfOp) -> None:
    sides = [region.block for region in (op.true_region, op.false_region) if region.blocks]
    if not op.results:
        raise unsupported(op, "a branch without a result")
    yields = [side.last_op for side in sides]
    if len(yields) != 2 or any(
        not isinstance(end, scf.YieldOp) or len(end.operands) != len(op.results) for end in yields
    ):
        raise unsupported(op, "both sides must yield its results")
    _check_speculatable(op)
    assert op.parent is not None
    chosen: list[list[SSAValue]] = []
    for side, end in zip(sides, yields, strict=True):
        assert end is not None
        chosen.append(list(operands_of(end)))
        end.detach()
        end.erase()
        for inner in list(side.ops):
            inner.detach()
            op.parent.insert_op_before(inner, op)
    selects: list[Operation] = [_choice(op.cond, yes, no) for yes, no in zip(*chosen, strict=True)]
    carry([op], selects)
    Rewriter.replace_op(op, selects, [select.results[0] for select in selects])


def _choice(condition: SSAValue, yes: SSAValue, no: SSAValue) -> Operation:
    return arith.SelectOp.create(operands=[condition, yes, no], result_types=[yes.type])


def _check_speculatable(op: scf.IfOp) -> None:
    for inner in ops_inside(op):
        if isinstance(inner, INTEGER_DIVISIONS) and not _divides_by_a_number(inner):
            raise unsupported(
                op, f"{inner.name} must not be computed where it was not meant to be", "choose with arith.select"
            )
        if not (
            inner.has_trait(Pure) or inner.name.startswith(("linalg.", "tensor.", "scf.", "arith.", "math.", "affine."))
        ):
            raise unsupported(op, f"{inner.name} must not run where it was not meant to")
        if isinstance(inner, scf.WhileOp) or (isinstance(inner, scf.ForOp) and not _has_constant_bounds(inner)):
            raise unsupported(op, "a loop whose end is computed must not run where it was not meant to")
        if (
            isinstance(inner, tensor.ExtractOp)
            and inner.indices
            and isinstance(inner.tensor.type, TensorType)
            and not _constant_places(inner)
        ):
            raise unsupported(op, "an element at a computed place must not be read where it was not meant to be")


def _has_constant_bounds(loop: scf.ForOp) -> bool:
    return all(isinstance(value.owner, arith.ConstantOp) for value in (loop.lb, loop.ub, loop.step))


def _constant_places(op: tensor.ExtractOp) -> bool:
    return all(isinstance(value.owner, arith.ConstantOp) for value in op.indices)


def _divides_by_a_number(op: Operation) -> bool:
    divisor = op.operands[1].owner
    return isinstance(divisor, arith.ConstantOp) and getattr(getattr(divisor.value, "value", None), "data", 0) not in (
        0,
        -1,
    )
