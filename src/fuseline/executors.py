"""The names of those who run host steps: the compiler writes one on each declaration (`fuseline.executor`) and into the
program, and the runtime finds by it who registered."""

from __future__ import annotations

ONNX = "onnx"
"""Operators of ONNX, in onnxruntime or NumPy: who runs where nobody is named."""

IREE = "iree"
"""What IREE compiled."""

INDEX = "index"
"""Index arithmetic as an array."""

BRANCHES = "branches"
"""Programs of which a run takes one."""

REPEATS = "repeats"
"""Compiled programs that are repeated until one says stop."""

REPEAT_TEXTS = "repeat-texts"
"""The same, whose programs are MLIR text yet."""
