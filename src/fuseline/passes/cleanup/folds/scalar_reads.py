"""One element of an argument at a place that is fed: a slice of one element, which is read where it lies.

linalg.generic {} { yield tensor.extract %x[%i, 3] }     =>     %s = tensor.extract_slice %x[%i, 3] [1, 1] [1, 1]
                                                                tensor.collapse_shape %s []
"""

from __future__ import annotations

from xdsl.dialects import linalg, tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, ArrayAttr
from xdsl.ir import SSAValue

from fuseline.analysis.views import base_of, is_fed, is_known_before
from fuseline.ir.build import element_of, shape_of
from fuseline.ir.fast import attributes
from fuseline.ir.fast.direct import body_of, operands_of
from fuseline.passes.cleanup.folds.worklist import Worklist


def fold_scalar_read(op: linalg.ops.GenericOp, work: Worklist) -> bool:
    """A generic without loops that yields an element of an argument as it is."""
    read = _read_of(op)
    if read is None or not is_fed(base_of(read.tensor)) or not all(map(is_known_before, read.indices)):
        return False
    rank = len(shape_of(read.tensor))
    one = attributes.tensor_type(element_of(read.tensor), (1,) * rank)
    ones = attributes.dense((1,) * rank)
    found = tensor.ExtractSliceOp.build(
        operands=[read.tensor, list(read.indices), [], []],
        result_types=[one],
        properties={
            "static_offsets": attributes.dense((DYNAMIC_INDEX,) * rank),
            "static_sizes": ones,
            "static_strides": ones,
        },
    )
    flat = tensor.CollapseShapeOp.build(
        operands=[found.result], result_types=[op.results[0].type], properties={"reassociation": ArrayAttr([])}
    )
    work.replace(op, [found, flat])
    return True


def _read_of(op: linalg.ops.GenericOp) -> tensor.ExtractOp | None:
    """The read that is all that `op` does, of a tensor with dimensions."""
    body = body_of(op)
    first, last = body.first_op, body.last_op
    if op.iterator_types.data or len(op.results) != 1 or not isinstance(first, tensor.ExtractOp) or last is None:
        return None
    same: tuple[SSAValue, ...] = (first.result,)
    plain = first.next_op is last and operands_of(last) == same and bool(shape_of(first.tensor))
    return first if plain else None
