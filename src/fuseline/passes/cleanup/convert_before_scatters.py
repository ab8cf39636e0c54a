"""convert-before-scatters: what is put into a tensor is converted before it is, and so is the tensor.

    float(scatter(zeros, places, u))      =>      scatter(float(zeros), places, float(u))

A scatter keeps what it puts together in the place of a result, so that one dispatch makes it and what follows, where a
result has its type (`fusion/walk_epilogue.py`). It is done where the conversion alone reads the scatter, where nothing
behind has the scatter's own type in the end, as where halves are widened to compute, and where this puts elements in
the place of others, which adds nothing up. Few elements are converted for it, and a fill once. Truths become numbers of
the type that is made of them in the end (`scattered_truths.py`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from xdsl.dialects import arith, linalg
from xdsl.dialects.builtin import TensorType, i1
from xdsl.ir import BlockArgument, Region, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.structured import Kind, StructuredOp, is_generic, kind, producer_of
from fuseline.analysis.walks import Scatter, scatter_of
from fuseline.ir.build import element_of
from fuseline.ir.costs import assumed_size
from fuseline.ir.fast.create import create_generic
from fuseline.ir.fast.direct import ops_of, replace_uses, result_of, users_of_value
from fuseline.ir.provenance import carry
from fuseline.passes.cleanup.scattered_truths import as_numbers, type_in_the_end
from fuseline.passes.fusion.walk_epilogue import LINES_PER_WORKGROUP
from fuseline.passes.layout.rewriting.repeated_parts import applied, is_point_by_point
from fuseline.passes.layout.rewriting.scope import Scope
from fuseline.passes.layout.rewriting.scoped_pass import ScopedPass


@dataclass(frozen=True)
class ConvertBeforeScattersPass(ScopedPass):
    """Has no options."""

    name = "convert-before-scatters"

    def rewrite(self, scope: Scope) -> None:
        """Each conversion that alone reads a scatter, those of truths included."""
        found = False
        for op in ops_of(scope.block):
            if is_generic(op):
                _number_truths(scope, op)
        for op in ops_of(scope.block):
            if is_generic(op) and _converts(op) and (scatter := _scatter(op)) is not None and not _comes_back(op):
                _convert(op, scatter)
                found = True
        if found:
            scope.sweep()


def _number_truths(scope: Scope, op: linalg.ops.GenericOp) -> None:
    """Have truths that are put into a tensor converted to the type of what is made of them, where that is made in the
    same dispatch."""
    if len(op.results) != 1 or element_of(result_of(op)) != i1:
        return
    scatter, number = _puts(op), type_in_the_end(result_of(op))
    if scatter is None or number is None or not _is_near(scope, scatter):
        return
    if not any(is_generic(reader) and _converts(reader) for reader in users_of_value(result_of(op))):
        as_numbers(op, number)


def _is_near(scope: Scope, scatter: Scatter) -> bool:
    """Whether a line of totals is still in a cache when it is complete, and lines are shared out among threads (as
    `fusion/walk_epilogue.py` asks): all is small, or lines are rows, and there are many."""
    view, target = scatter.root, scope.ctx.target
    sizes = [assumed_size(extent) for extent in view.loops(scope.shapes)]
    lines = prod(sizes[loop] for loop in view.parallel if loop != scatter.scattered)
    if lines * sizes[scatter.scattered] <= target.costs.serial_elements:
        return True
    innermost = view.output_maps[0].results[-1] == AffineDimExpr(scatter.scattered)
    return innermost and lines >= LINES_PER_WORKGROUP * max(target.threads, 2)


def _converts(op: linalg.ops.GenericOp) -> bool:
    return is_point_by_point(op, in_order=True) and element_of(op.inputs[0]) != element_of(result_of(op))


_PASSED = frozenset({Kind.ELEMENTWISE, Kind.TRANSPOSE, Kind.BROADCAST, Kind.COPY, Kind.RESHAPE})
"""What computes or moves elements one by one: what it makes may be a result of the same dispatch."""


def _comes_back(op: linalg.ops.GenericOp) -> bool:
    """Whether something that is made of what `op` makes, element by element, has the type that it converts, and is read
    by others."""
    pending, seen, narrow = [result_of(op)], set[SSAValue](), element_of(op.inputs[0])
    while pending:
        value = pending.pop()
        if value not in seen:
            seen.add(value)
            behind = [use.operation for use in value.uses]
            passed = [user for user in behind if user.results and kind(user) in _PASSED]
            if len(passed) < len(behind) and element_of(value) == narrow:
                return True
            pending += [result for user in passed for result in user.results]
    return False


def _scatter(op: linalg.ops.GenericOp) -> Scatter | None:
    """The scatter that `op` alone reads, of whole elements of a tensor; None for any other operand."""
    root = producer_of(op.inputs[0])
    if root is None or not is_generic(root) or len(root.results) != 1 or len(users_of_value(result_of(root))) != 1:
        return None
    return _puts(root)


def _puts(root: linalg.ops.GenericOp) -> Scatter | None:
    """The scatter that `root` is, if it puts whole elements of a tensor in the place of others."""
    view = StructuredOp(root)
    scatter = scatter_of(view) if len(view.reduction) == 1 else None
    if scatter is None or scatter.neutral is not None or not isinstance(scatter.element, BlockArgument):
        return None
    read = scatter.element.owner is view.body and scatter.element.index < len(view.inputs)
    return scatter if read and len(list(scatter.element.uses)) == 1 else None


def _convert(op: linalg.ops.GenericOp, scatter: Scatter) -> None:
    """Put the scatter of what `op` makes of its elements in the place of `op`."""
    view = scatter.root
    assert isinstance(scatter.element, BlockArgument)
    number, inputs = scatter.element.index, list(view.inputs)
    inputs[number] = applied(op, inputs[number], op)
    start = applied(op, view.outputs[0], op)
    body = _retyped(view.op.body.clone(), number, start.type)
    new = create_generic(inputs, [start], body, view.maps, view.op.iterator_types)
    new.attributes.update(view.op.attributes)
    assert op.parent is not None
    op.parent.insert_op_before(new, op)
    carry([view.op, op], [new])
    replace_uses(result_of(op), result_of(new))


def _retyped(body: Region, number: int, type_: object) -> Region:
    """The body of a scatter whose elements and totals are those of `type_`."""
    assert isinstance(type_, TensorType)
    block = body.block
    for at in (number, len(block.args) - 1):
        old = block.args[at]
        replace_uses(old, block.insert_arg(type_.element_type, at))
        block.erase_arg(old)
    end = block.last_op
    assert end is not None
    put = end.operands[0].owner
    assert isinstance(put, arith.SelectOp)
    new = arith.SelectOp(*put.operands)
    block.insert_op_before(new, put)
    replace_uses(put.result, new.result)
    block.erase_op(put)
    return body


EXPORT = ConvertBeforeScattersPass
