"""Which values a dispatch computes."""

from xdsl.dialects import arith, tensor
from xdsl.dialects.builtin import TensorType
from xdsl.ir import OpResult, SSAValue

from fuseline.analysis.structured import splat_value


def is_internal(value: SSAValue) -> bool:
    """Whether `value` is computed by the dispatch: neither an argument, nor a constant, nor uninitialised."""
    if not isinstance(value, OpResult) or not isinstance(value.type, TensorType) or splat_value(value) is not None:
        return False
    return not isinstance(value.op, tensor.EmptyOp | arith.ConstantOp)
