"""What the NPU does not take, as a list: each veto answers why not, in words, or None."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from xdsl.dialects.builtin import Float64Type, TensorType
from xdsl.ir import Operation

from fuseline.analysis.structured import FREE, Kind, is_generic
from fuseline.dispatch.candidate import CandidateMember, DispatchCandidate
from fuseline.targets.target import Refusal

ON_ARRAY = (Kind.CONTRACTION, Kind.CONVOLUTION)
BY_DMA = FREE | {Kind.PAD, Kind.SLICE, Kind.TRANSPOSE, Kind.COPY, Kind.RESHAPE, Kind.BROADCAST, Kind.CONCAT}
"""What only moves: the DMA addresses it."""

IN_VECTORS = ("math.absf", "math.absi", "math.ceil", "math.floor", "math.fma", "math.round", "math.roundeven")
IN_VECTORS += ("math.rsqrt", "math.sqrt", "math.trunc")
"""What the vector unit has of `math`; all else is the scalar core's."""


def scalar_ops(op: Operation) -> Iterator[str]:
    """What of an op's body only the scalar core has."""
    return (inner.name for inner in op.walk() if inner.name.startswith("math.") and inner.name not in IN_VECTORS)


def one_product(candidate: DispatchCandidate) -> str | None:
    """The array is loaded anew for each product."""
    products = len(_on_array(candidate))
    return f"{products} products, there is one array" if products > 1 else None


def no_prologue(candidate: DispatchCandidate) -> str | None:
    """The vector unit is behind the array: what the array reads lies in memory, moved and padded by the DMA at most."""
    makers = {id(result): member for member in candidate.members for result in member.op.results}
    waiting = [value for product in _on_array(candidate) for value in product.op.operands]
    while waiting:
        member = makers.get(id(waiting.pop()))
        if member is not None and member.kind not in BY_DMA:
            return f"{member.kind.value} in front of the array"
        waiting += member.op.operands if member is not None else ()
    return None


def one_pass(candidate: DispatchCandidate) -> str | None:
    """Sums behind the array need all of its columns, which are on several cores."""
    behind = [member.kind.value for member in candidate.members if member.reduces and member.kind not in ON_ARRAY]
    return f"{behind[0]} beside a product" if behind and _on_array(candidate) else None


def no_scalar_core(candidate: DispatchCandidate) -> str | None:
    """The array does not wait for the scalar core."""
    names = [name for member in candidate.members for name in scalar_ops(member.op)]
    return f"{names[0]} runs on the scalar core, the array would wait" if names and _on_array(candidate) else None


def few_streams(candidate: DispatchCandidate) -> str | None:
    """A core has eight channels of DMA inwards and two outwards."""
    ins, outs = len(candidate.operands), len(candidate.results)
    return f"{ins} tensors in and {outs} out, there are 8 and 2 channels" if ins > 8 or outs > 2 else None


VETOES: dict[str, Callable[[DispatchCandidate], str | None]] = {
    "one-product": one_product,
    "no-prologue": no_prologue,
    "one-pass": one_pass,
    "scalar-core": no_scalar_core,
    "dma-channels": few_streams,
}


def refusal(candidate: DispatchCandidate) -> Refusal | None:
    """The first veto of a dispatch; one op alone is always taken."""
    if len(candidate.members) < 2:
        return None
    for code, veto in VETOES.items():
        detail = veto(candidate)
        if detail is not None:
            return Refusal(code, detail)
    return None


def op_refusal(op: Operation) -> Refusal | None:
    """Doubles run on the host."""
    types = [value.type for value in (*op.operands, *op.results) if isinstance(value.type, TensorType)]
    doubles = any(isinstance(type_.element_type, Float64Type) for type_ in types)
    return Refusal("element-type", "no unit computes in f64") if doubles and is_generic(op) else None


def _on_array(candidate: DispatchCandidate) -> list[CandidateMember]:
    return [member for member in candidate.members if member.kind in ON_ARRAY]
