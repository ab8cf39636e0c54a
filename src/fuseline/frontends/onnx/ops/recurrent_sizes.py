"""The sizes that the inputs of a recurrent layer must have, so that no step reads beyond them."""

from __future__ import annotations

from collections.abc import Sequence

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.node import OnnxNode
from fuseline.frontends.onnx.tensors import Tensor, static_size
from fuseline.ir.dim import Dim, to_text

_GATES = {"RNN": 1, "GRU": 3, "LSTM": 4, "DynamicQuantizeLSTM": 4}
_NAMES = ("X", "W", "R", "B", "sequence_lens", "initial_h", "initial_c", "P")


def check_sizes(node: OnnxNode, x: Tensor, directions: int) -> None:
    """Compare every input of the layer that has numbers for sizes with what `x` [steps, batch, features] and R ask for.

    Raises:
        FuselineError: E0107, naming the input.
    """
    hidden, gates = static_size(node[2].dims[2]), _GATES[node.op_type]
    if hidden == 0 or node.integer("hidden_size", hidden) != hidden:
        raise FuselineError(
            "E0107", f"hidden_size is {node.integer('hidden_size', hidden)}, R has states of {hidden}", node=node.label
        )
    state = (x.dims[1], directions, hidden) if node.integer("layout") else (directions, x.dims[1], hidden)
    wanted: list[Sequence[Dim]] = [
        (directions, gates * hidden, x.dims[2]),
        (directions, gates * hidden, hidden),
        (directions, 2 * gates * hidden),
        (x.dims[1],),
        state,
        state,
        (directions, 3 * hidden),
    ]
    for number, sizes in enumerate(wanted, 1):
        given = node.get(number)
        if given is not None and not _fits(given.dims, sizes):
            found, asked = (", ".join(map(to_text, dims)) for dims in (given.dims, sizes))
            raise FuselineError(
                "E0107", f"{_NAMES[number]} has sizes [{found}], the layer takes [{asked}]", node=node.label
            )


def _fits(found: Sequence[Dim], wanted: Sequence[Dim]) -> bool:
    """Whether no two numbers differ; symbols are compared when the program runs."""
    return len(found) == len(wanted) and all(
        a == b or not (isinstance(a, int) and isinstance(b, int)) for a, b in zip(found, wanted, strict=True)
    )
