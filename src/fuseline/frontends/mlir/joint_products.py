"""Several products in one op are products of their own: kernels for products make one each, and fusion puts them side
by side again.

%q, %k = generic { yield q + x * wq, k + x * wk }    =>    %q = generic { q + x * wq }    %k = generic { k + x * wk }
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith, func, linalg
from xdsl.ir import BlockArgument, Operation, OpResult, SSAValue

from fuseline.analysis.indexing_maps import used_dims
from fuseline.analysis.structured import StructuredOp
from fuseline.evaluation.nest import needed_ops
from fuseline.ir.build import PARALLEL, REDUCTION, Body, Emitter
from fuseline.ir.provenance import replace

_SUMS, _PRODUCTS = (arith.AddfOp, arith.AddiOp), (arith.MulfOp, arith.MuliOp)


def separate_products(main: func.FuncOp) -> None:
    """Take apart every op all of whose results are products of two inputs, of which neither has all loops of the
    result."""
    for op in list(main.walk()):
        if isinstance(op, linalg.ops.GenericOp) and len(op.results) > 1:
            view = StructuredOp(op)
            found = [_product(view, number) for number in range(len(op.results))]
            if all(found):
                replace(op, [], [_alone(view, one) for one in found if one is not None])


@dataclass(frozen=True)
class _Product:
    """Result `number` and the inputs that are multiplied."""

    number: int
    inputs: tuple[int, ...]


def _product(view: StructuredOp, number: int) -> _Product | None:
    """What result `number` adds up, None where it is no product."""
    last = view.body.last_op
    assert last is not None
    total, accumulator = last.operands[number], view.body.args[view.input_count + number]
    term = _other(_made_by(total, _SUMS), accumulator)
    product = _made_by(term, _PRODUCTS)
    if product is None:
        return None
    needed = {operand for op in needed_ops(view.body, [total]) for operand in op.operands}
    if needed & set(view.body.args[view.input_count :]) != {accumulator}:
        return None
    arguments = {value.index for value in needed if isinstance(value, BlockArgument) and value.owner is view.body}
    inputs = tuple(sorted(index for index in arguments if index < view.input_count))
    return _Product(number, inputs) if _contracts(view, number, inputs) else None


def _made_by(value: SSAValue | None, kinds: tuple[type[Operation], ...]) -> Operation | None:
    return value.op if isinstance(value, OpResult) and isinstance(value.op, kinds) else None


def _other(total: Operation | None, accumulator: SSAValue) -> SSAValue | None:
    """What is added to the accumulator."""
    if total is None or list(total.operands).count(accumulator) != 1:
        return None
    return next(operand for operand in total.operands if operand is not accumulator)


def _contracts(view: StructuredOp, number: int, inputs: tuple[int, ...]) -> bool:
    """Whether two inputs tell all loops, and neither has all of the result's."""
    written, read = used_dims(view.output_maps[number]), [used_dims(view.input_maps[place]) for place in inputs]
    return (
        len(inputs) == 2
        and set[int]().union(*read) == set(range(view.rank))
        and not any(set(written) <= set(loops) for loops in read)
    )


def _alone(view: StructuredOp, product: _Product) -> SSAValue:
    kept = [*product.inputs, view.input_count + product.number]
    last = view.body.last_op
    assert last is not None
    wanted = last.operands[product.number]

    def body(b: Body) -> list[SSAValue]:
        values: dict[SSAValue, SSAValue] = {view.body.args[old]: b.args[new] for new, old in enumerate(kept)}
        for inner in needed_ops(view.body, [wanted]):
            b.add(inner.clone(values))
        return [values[wanted]]

    kinds = [REDUCTION if loop in view.reduction else PARALLEL for loop in range(view.rank)]
    inputs = [view.inputs[place] for place in product.inputs]
    made = Emitter.before(view.op).generic(
        inputs, [view.outputs[product.number]], [view.maps[place] for place in kept], kinds, body
    )
    return made.results[0]
