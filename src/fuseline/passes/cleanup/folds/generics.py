"""`linalg.generic`: copies, unused and repeated operands, unused results, splat inputs, inits that nobody reads."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith, linalg, tensor
from xdsl.dialects.builtin import AffineMapAttr
from xdsl.ir import BlockArgument, OpResult, SSAValue
from xdsl.ir.affine import AffineDimExpr

from fuseline.analysis.indexing_maps import is_permutation
from fuseline.analysis.structured import PRODUCTS, kind, splat_value
from fuseline.analysis.structured_op import input_count, iterators_in
from fuseline.ir.build import element_of
from fuseline.ir.fast.create import create_fill, create_generic
from fuseline.ir.fast.direct import (
    body_of,
    erase,
    operand_of,
    operands_of,
    ops_of,
    replace_uses,
    result_of,
    set_operands,
)
from fuseline.ir.reachable import reachable
from fuseline.passes.cleanup.folds.fills import is_made_by, set_empty
from fuseline.passes.cleanup.folds.scalars import constant_op
from fuseline.passes.cleanup.folds.worklist import Fold, Worklist

Generic = linalg.ops.GenericOp


def _is_parallel(op: Generic) -> bool:
    return "reduction" not in iterators_in(op.properties["iterator_types"])


def _yielded(op: Generic) -> Sequence[SSAValue]:
    last = body_of(op).last_op
    assert last is not None
    return operands_of(last)


def _loops_known(op: Generic, kept: Sequence[int]) -> bool:
    """Whether the operands `kept` alone say how long every loop is."""
    maps = op.indexing_maps.data
    known = {e.position for i in kept for e in maps[i].data.results if type(e) is AffineDimExpr}
    return len(known) == len(op.iterator_types)


def _rebuilt(op: Generic, kept: Sequence[int]) -> Generic:
    """`op` with the operands `kept`; the body moves over, dropped arguments must be unused."""
    count = input_count(op)
    body = op.detach_region(op.body)
    block = body.block
    for i in reversed(range(len(block.args))):
        if i not in kept:
            block.erase_arg(block.args[i])
    operands = list(operands_of(op))
    return create_generic(
        [operands[i] for i in kept if i < count],
        [operands[i] for i in kept if i >= count],
        body,
        [op.indexing_maps.data[i].data for i in kept],
        op.iterator_types,
        doc=op.doc,
        library_call=op.library_call,
    )


def fold_copy(op: Generic, work: Worklist) -> bool:
    """A generic that yields its input where it read it.

    linalg.generic {maps = [(d0, d1) -> (d1, d0), (d0, d1) -> (d1, d0)]} ins(%x) { yield %in }   =>   %x
    """
    values = _yielded(op)
    if len(values) != 1 or len(op.results) != 1:
        return False
    (value,) = values
    if type(value) is not BlockArgument or value.owner is not body_of(op) or not _is_parallel(op):
        return False
    source, read, written = (
        operands_of(op)[value.index],
        op.indexing_maps.data[value.index].data,
        op.indexing_maps.data[-1].data,
    )
    if source.type != result_of(op).type or read != written or not is_permutation(read):
        return False
    work.replace(op, [], [source])
    return True


def fold_splat_inputs(op: Generic, work: Worklist) -> bool:
    """Inputs with one value everywhere become a scalar that the body captures.

    Not those of contractions and convolutions: without one operand they would be neither, and lose the kernels made for
    them.
    """
    args = body_of(op).args
    for i, value in enumerate(operands_of(op)[: input_count(op)]):
        number = splat_value(value) if args[i].first_use is not None else None
        if number is None:
            continue
        if kind(op) in PRODUCTS:
            return False
        element = element_of(value)
        scalar = _scalar_behind(value)
        if scalar is None:
            constant = constant_op(number, element)
            constant.location = op.location
            assert op.parent is not None
            op.parent.insert_op_before(constant, op)
            scalar = constant.result
        replace_uses(args[i], scalar)
        work.touch(op)
        return True
    return False


def _scalar_behind(value: SSAValue) -> SSAValue | None:
    """The scalar that a fill spread."""
    op = value.op if type(value) is OpResult else None
    if type(op) is linalg.ops.FillOp:
        return op.inputs[0] if op.inputs[0].type == element_of(value) else None
    return _scalar_behind(op.src) if isinstance(op, tensor.ExpandShapeOp | tensor.CollapseShapeOp) else None


def fold_unused_inputs(op: Generic, work: Worklist) -> bool:
    """Inputs that the body does not read go, unless a loop's length is known from them only (the window of a
    pooling)."""
    args = body_of(op).args
    unused = [i for i in range(input_count(op)) if args[i].first_use is None]
    if not unused:
        return False
    kept = list(range(len(operands_of(op))))
    for i in unused:
        rest = [k for k in kept if k != i]
        if _loops_known(op, rest):
            kept = rest
    if len(kept) == len(operands_of(op)):
        return False
    work.replace(op, [_rebuilt(op, kept)])
    return True


def fold_repeated_inputs(op: Generic, work: Worklist) -> bool:
    """Inputs that are the same tensor under the same map are read once."""
    count = input_count(op)
    if count < 2:
        return False
    if len(set(map(id, operands_of(op)[:count]))) == count:
        return False
    args, maps, seen = body_of(op).args, op.indexing_maps.data, dict[tuple[SSAValue, AffineMapAttr], int]()
    repeated = False
    for i, value in enumerate(operands_of(op)[:count]):
        first = seen.setdefault((value, maps[i]), i)
        if first != i and args[i].first_use is not None:
            replace_uses(args[i], args[first])
            repeated = True
    if repeated:
        work.touch(op)
    return repeated


def fold_unused_results(op: Generic, work: Worklist) -> bool:
    """Results without uses go with their inits, if the other results can be computed without them."""
    if len(op.results) == 1:
        return False
    keep = [k for k, result in enumerate(op.results) if result.first_use is not None]
    if not keep or len(keep) == len(op.results):
        return False
    keep = _with_needed(op, keep)
    count = input_count(op)
    kept = [*range(count), *(count + k for k in keep)]
    if len(keep) == len(op.results) or not _loops_known(op, kept):
        return False
    _drop_body(op, keep)
    old = list(op.results)
    new = _rebuilt(op, kept)
    results = {old[k]: new.results[position] for position, k in enumerate(keep)}
    work.replace(op, [new], [results.get(value, result_of(new)) for value in old])
    return True


def _with_needed(op: Generic, keep: list[int]) -> list[int]:
    """The results `keep`, and those whose accumulators their bodies read."""
    accumulators = body_of(op).args[input_count(op) :]
    found, pending = set(keep), list(keep)
    while pending:
        reached = _reached(_yielded(op)[pending.pop()])
        for k, accumulator in enumerate(accumulators):
            if accumulator in reached and k not in found:
                found.add(k)
                pending.append(k)
    return sorted(found)


def _reached(value: SSAValue) -> set[SSAValue]:
    def read(made: SSAValue) -> list[SSAValue]:
        inside = made.op.walk() if isinstance(made, OpResult) else ()
        return [operand for inner in inside for operand in operands_of(inner)]

    return set(reachable([value], read))


def _drop_body(op: Generic, keep: Sequence[int]) -> None:
    """Yield only the results `keep` and remove what then is unused, so that the accumulators of the others are free."""
    last = body_of(op).last_op
    assert last is not None
    set_operands(last, [operand_of(last, k) for k in keep])
    for inner in reversed(ops_of(body_of(op))):
        if inner is not last and not any(result.uses for result in inner.results):
            erase(inner)


def fold_unread_init(op: Generic, work: Worklist) -> bool:
    """An init that an all-parallel body does not read is an empty tensor."""
    if not _is_parallel(op):
        return False
    args = body_of(op).args
    for i, value in enumerate(operands_of(op)[input_count(op) :], start=input_count(op)):
        if args[i].first_use is None and not is_made_by(value, tensor.EmptyOp) and _writes_all(op, i):
            set_empty(op, i, work)
            return True
    return False


def _writes_all(op: Generic, i: int) -> bool:
    return is_permutation(op.indexing_maps.data[i].data)


def fold_constant_body(op: Generic, work: Worklist) -> bool:
    """A body that yields one value from outside is a fill."""
    values = _yielded(op)
    if len(values) != 1:
        return False
    (value,) = values
    maker = value.op if type(value) is OpResult else None
    inside = value.owner is body_of(op) or (maker is not None and maker.parent is body_of(op))
    if inside and type(maker) is not arith.ConstantOp:
        return False
    if not _is_parallel(op) or not _writes_all(op, len(operands_of(op)) - 1):
        return False
    if inside and type(maker) is arith.ConstantOp:
        constant = maker.clone()
        fill = create_fill(constant.result, operand_of(op, -1))
        work.replace(op, [constant, fill])
        return True
    work.replace(op, [create_fill(value, operand_of(op, -1))])
    return True


GENERIC: tuple[Fold, ...] = (
    fold_copy,
    fold_splat_inputs,
    fold_repeated_inputs,
    fold_unused_inputs,
    fold_unused_results,
    fold_unread_init,
    fold_constant_body,
)
