"""Random calls of every operator of ai.onnx and ai.onnx.ml: types as the schemas allow them, attributes and shapes as
the operators take them.

`draw.py` has what strategies are made of; one file per group of operators has the strategies themselves.
"""

from __future__ import annotations

from tests.conformance.node_calls import elementwise, held, matrices, ml, movement, quantized, reductions, windows
from tests.conformance.node_calls.draw import NAMED, STRATEGIES, Call, Draw

__all__ = ["GROUPS", "NAMED", "STRATEGIES", "Call", "Draw"]

GROUPS = (elementwise, held, matrices, ml, movement, quantized, reductions, windows)
"""The files; importing one registers its strategies."""
