"""Why a product of dequantised tensors runs in float: what `multiply-in-integers` met, as records about the
DequantizeLinear nodes in front of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from xdsl.dialects import linalg
from xdsl.dialects.builtin import f32
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.stored_integers import refused_integers, stored_integers
from fuseline.analysis.structured import PRODUCTS, StructuredOp, is_generic, kind, multiply_add_operands
from fuseline.ir.build import element_of
from fuseline.ir.fast.direct import result_of
from fuseline.ir.provenance import provenance
from fuseline.passes.cleanup.quantized_operands import moved_source
from fuseline.report.records import CompileRecord, QuantizationRecord
from fuseline.targets.target import Refusal

ONE_SIDE = "qdq-one-side"

CODE_OF = {
    "narrow-groups": "qdq-groups",
    "not-from-zero": "qdq-start",
    "scale-moved": "qdq-axis",
    "scale-in-sum": "qdq-axis",
    "sum-overflow": "qdq-overflow",
}
"""The reason code of each refusal of a product both of whose operands are integers."""


def record_refused(record: CompileRecord, root: linalg.ops.GenericOp, refused: Refusal) -> None:
    """Record that the product `root` of two dequantised operands was not computed in integers."""
    nodes = [node for value in _factors(root) for node in _quantize_nodes(record, value)]
    _add(record, [_found(nodes, root, Refusal(CODE_OF[refused.code], refused.detail))] if nodes else [])


def float_product(record: CompileRecord, root: linalg.ops.GenericOp) -> list[QuantizationRecord]:
    """What keeps the operands of the product `root` in float, where a DequantizeLinear makes one of them."""
    if kind(root) not in PRODUCTS or element_of(result_of(root)) != f32:
        return []
    refused = ((_quantize_nodes(record, value), _refusal(value)) for value in _factors(root))
    return [_found(nodes, root, why) for nodes, why in refused if nodes and why is not None]


def record_float_product(record: CompileRecord, found: Iterable[QuantizationRecord], *, narrow: bool) -> None:
    """Record what was found about a product that runs in float. `narrow`: one operand of it is read in 8 bits even so,
    and only what keeps the other from being an integer is to be told."""
    _add(record, (one for one in found if not (narrow and one.code == ONE_SIDE)))


def _factors(root: linalg.ops.GenericOp) -> Sequence[SSAValue]:
    view = StructuredOp(root)
    sides = multiply_add_operands(root) if view.reduction else None
    return [view.inputs[side] for side in sides if side < view.input_count] if sides is not None else []


def _refusal(value: SSAValue) -> Refusal | None:
    """Why a factor is not taken as integers; None where it is not dequantised at all."""
    op = moved_source(value)[0]
    if op is None or not is_generic(op):
        return None
    if stored_integers(op) is not None:
        return Refusal(ONE_SIDE, "the other operand of the product is no tensor of 8-bit integers")
    refused = refused_integers(op)
    return Refusal(*refused) if refused is not None else None


def _quantize_nodes(record: CompileRecord, value: SSAValue) -> list[str]:
    source: Operation | None = moved_source(value)[0]
    known = set(record.quantize_nodes)
    return [node for node in provenance(source) if node in known] if source is not None else []


def _found(nodes: Sequence[str], root: Operation, refused: Refusal) -> QuantizationRecord:
    return QuantizationRecord(
        nodes=tuple(dict.fromkeys(nodes)), readers=provenance(root), code=refused.code, detail=refused.detail
    )


def _add(record: CompileRecord, found: Iterable[QuantizationRecord]) -> None:
    record.quantization += [one for one in found if one not in record.quantization]
