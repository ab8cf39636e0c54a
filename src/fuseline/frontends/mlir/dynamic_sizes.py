"""Whether an op has an operand for each size, offset or step that its text leaves open: MLIR's verifiers ask, xDSL's do
not, and whoever reads such an op would find nothing there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from xdsl.dialects import tensor
from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, TensorType
from xdsl.ir import Operation

from fuseline.errors import FuselineError
from fuseline.ir.text import text_location

_OPEN = {
    "static_offsets": "offsets",
    "static_sizes": "sizes",
    "static_strides": "strides",
    "static_low": "low",
    "static_high": "high",
    "static_output_shape": "dynamic_output_shape",
}
"""Properties with numbers, some of them open, and the operands in their places."""


def check_dynamic_sizes(op: Operation) -> None:
    """Raises FuselineError (E0302) where there are too few operands, or too many."""
    for what, numbers, given in _mixed(op):
        wanted = list(numbers).count(DYNAMIC_INDEX)
        if wanted != given:
            raise FuselineError(
                "E0302",
                f"{op.name}: {what} leave {wanted} open, and {given} operands tell them",
                node=text_location(op.location),
            )


def _mixed(op: Operation) -> Iterator[tuple[str, Sequence[int], int]]:
    """What is given partly as numbers: its name, the numbers, and how many operands there are."""
    if isinstance(op, tensor.EmptyOp):
        (result,) = op.results
        assert isinstance(result.type, TensorType)
        yield "its sizes", result.type.get_shape(), len(op.operands)
        return
    for name, operands in _OPEN.items():
        numbers = op.properties.get(name)
        if isinstance(numbers, DenseArrayBase) and hasattr(op, operands):
            yield f"`{name}`", [int(number) for number in numbers.get_values()], len(getattr(op, operands))
