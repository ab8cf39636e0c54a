"""Calls of what is no function of the text, and marks that say nothing about values."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.tensors import Tensor
from fuseline.frontends.stablehlo.hlo import Hlo
from fuseline.frontends.stablehlo.ops.sorting import top_k
from fuseline.frontends.stablehlo.registry import hlo_op, lowering_of

MARKS = (
    "Sharding",
    "SPMDFullToShardShape",
    "SPMDShardToFullShape",
    "annotate_device_placement",
    "xla.sdy.FuncResultSharding",
    "LayoutConstraint",
    "MoveToDevice",
    "MoveToHost",
)
"""Targets of custom calls that answer their operands."""


@hlo_op("optimization_barrier", "sdy.sharding_constraint", "sdy.propagation_barrier", "mhlo.copy")
def unchanged(hlo: Hlo) -> list[Tensor]:
    """The operands."""
    return hlo.inputs


@hlo_op("after_all", "create_token", "sdy.sharding_group", "sdy.mesh")
def nothing(hlo: Hlo) -> list[Tensor]:
    """No tensor."""
    del hlo
    return []


@hlo_op("composite")
def composite(hlo: Hlo) -> Tensor | Sequence[Tensor]:
    """A composite that is known by name (`calls.py` of this folder's parent replaced all others)."""
    lowering = lowering_of(hlo.text("name"))
    if lowering is None:
        raise hlo.refusal(f"there is no {hlo.text('name')} here, and the text has no decomposition")
    return lowering(hlo)


@hlo_op("custom_call")
def custom_call(hlo: Hlo) -> Tensor | Sequence[Tensor]:
    """A call of what somebody else defines, where what it computes is known. Raises FuselineError (E0306) for any
    other."""
    target = hlo.text("call_target_name")
    if target in MARKS and len(hlo.inputs) == len(hlo.op.results):
        return hlo.inputs
    known = _KNOWN.get(target)
    if known is None:
        hint = "hand over the program without it, or write what it computes in array operations"
        raise hlo.refusal(f"calls @{target}, which is not defined here", hint)
    return known(hlo)


def _shape_assertion(hlo: Hlo) -> list[Tensor]:
    """What must hold of sizes; what is computed from sizes was folded. Raises FuselineError: E0107 where it does not
    hold."""
    condition = hlo[0]
    if condition.is_constant and not bool(condition.numbers().all()):
        raise FuselineError("E0107", hlo.text("error_message") or "an assertion about sizes fails", node=hlo.location)
    return []


_KNOWN: dict[str, Callable[[Hlo], Tensor | Sequence[Tensor]]] = {
    "shape_assertion": _shape_assertion,
    "mhlo.topk": top_k,
    "TopK": top_k,
}
