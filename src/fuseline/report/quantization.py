"""Quantize and dequantize nodes that stayed: those of products that run in float, those that no neighbour took into its
dispatch, and those on the host."""

from __future__ import annotations

from fuseline.report.advice import advice
from fuseline.report.quantities import shortened
from fuseline.report.records import CompileRecord

QUANTIZATION_CODES: dict[str, str] = {
    "qdq-axis": "the scale varies along the sum, or along a dimension that is padded or reshaped on the way",
    "qdq-groups": "groups of a convolution have too few output channels for the kernels that multiply integers",
    "qdq-host": "the node runs on the host",
    "qdq-no-consumer": "no neighbour took the node into its dispatch",
    "qdq-one-side": "the other operand of the product is not quantised",
    "qdq-overflow": "the sum may not fit 32 bits",
    "qdq-scale": "the scale is neither an f32 number nor an f32 tensor",
    "qdq-start": "the sum starts from something else than 0",
    "qdq-type": "what is stored is wider than 8 bits",
}
"""Every reason why a Quantize or DequantizeLinear stayed, one line each."""


def quantization_lines(record: CompileRecord, nodes: frozenset[str] | None = None) -> list[str]:
    """A line about each node that stayed, and what would change it; `nodes`: about these only."""
    told = [one for one in record.quantization if nodes is None or nodes & {*one.nodes, *one.readers}]
    lines: list[str] = []
    for one in told:
        reader = f" before {shortened(one.readers, 4)}" if one.readers else ""
        lines += [f"  {one.code} {shortened(one.nodes, 4)}{reader}: {one.detail}"]
        lines += [f"    to change it: {advice(one.code)}"]
    return lines
