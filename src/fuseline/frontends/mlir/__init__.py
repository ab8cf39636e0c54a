"""MLIR text as a program. Read `program.py` first; the other files take apart what IREE's and MLIR's tools put around
tensor programs."""

from __future__ import annotations

from fuseline.frontends.mlir.program import read_mlir, read_text

__all__ = ["read_mlir", "read_text"]
