"""Reductions some of whose results have an element per iteration: those become an op of their own, without a reduction.

%e, %sum = generic [parallel, reduction] { e = exp(x); yield e, sum + e } -> (i, j), (i)
    =>     %e = generic [parallel, parallel] -> (i, j)        %sum = generic [parallel, reduction] -> (i)
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import func, linalg
from xdsl.ir import SSAValue

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.structured import StructuredOp
from fuseline.evaluation.nest import needed_ops
from fuseline.frontends.mlir.wrappers import unsupported
from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter
from fuseline.ir.provenance import replace


def separate_results(main: func.FuncOp) -> None:
    """Take results that name reduction loops out of their ops. Raises FuselineError: E0306 for one that is a running
    total, or names some of the loops."""
    for op in list(main.walk()):
        if isinstance(op, linalg.ops.GenericOp) and op.results:
            view = StructuredOp(op)
            named = [
                number for number, map_ in enumerate(view.output_maps) if set(used_dims(map_)) & set(view.reduction)
            ]
            if named:
                _separate(op, view, named)


def _separate(op: linalg.ops.GenericOp, view: StructuredOp, named: Sequence[int]) -> None:
    last = view.body.last_op
    assert last is not None
    yielded, accumulators = list(last.operands), set(view.body.args[view.input_count :])
    for number in named:
        reached = {operand for inner in needed_ops(view.body, [yielded[number]]) for operand in inner.operands} | {
            yielded[number]
        }
        if reached & accumulators or not set(view.reduction) <= set(used_dims(view.output_maps[number])):
            raise unsupported(
                op, "a result names a loop of the reduction", "write it as a reduction, a scan or ops of their own"
            )
    rest = [number for number in range(len(op.results)) if number not in named]
    found = _op_of_results(op, view, named, [PARALLEL] * view.rank) | (
        _op_of_results(op, view, rest, _kinds(view)) if rest else {}
    )
    replace(op, [], [found[number] for number in range(len(op.results))])


def _kinds(view: StructuredOp) -> list[str]:
    return [REDUCTION if loop in view.reduction else PARALLEL for loop in range(view.rank)]


def _op_of_results(
    op: linalg.ops.GenericOp, view: StructuredOp, which: Sequence[int], kinds: Sequence[str]
) -> dict[int, SSAValue]:
    """Results `which` of `op`, by an op of their own."""
    inputs, outputs = view.operands[: view.input_count], view.operands[view.input_count :]
    block, last = view.body, view.body.last_op
    assert last is not None
    kept = [*range(view.input_count), *(view.input_count + number for number in which)]
    wanted = [last.operands[number] for number in which]

    def body(b: Body) -> Sequence[SSAValue]:
        values: dict[SSAValue, SSAValue] = {block.args[old]: b.args[new] for new, old in enumerate(kept)}
        for inner in needed_ops(block, wanted):
            b.add(inner.clone(values))
        return [values.get(value, value) for value in wanted]

    made = Emitter.before(op).generic(
        inputs, [outputs[number] for number in which], [view.maps[position] for position in kept], kinds, body
    )
    return dict(zip(which, made.results, strict=True))
