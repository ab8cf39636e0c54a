"""The StableHLO frontend: a module in text becomes structured ops on tensors, with provenance and symbolic sizes.

text ──ir/hlo──> ops ──calls.py──> one function ──importer.py──> func.func @main
                                        │
                 one function per op, found in ops/ by `@hlo_op`, emitting as the ONNX frontend does
"""

from __future__ import annotations

from fuseline.frontends.stablehlo.program import read_stablehlo

__all__ = ["read_stablehlo"]
