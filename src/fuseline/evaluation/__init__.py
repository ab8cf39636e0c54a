"""Evaluation of IR with NumPy: the oracle that every pass, target and kernel is compared with.

Whole arrays at a time: an elementwise body runs once on views of its operands, a contraction becomes one matrix
multiplication, and only a reduction whose body does not separate loops in Python. Read `program.py` first.
"""

from __future__ import annotations

# The handler modules register themselves by op name when imported.
from fuseline.evaluation import calls, constants, control, named, numbers, structured, tensors
from fuseline.evaluation.program import HostCall, Program, evaluate_function, evaluate_module, main_function

__all__ = ["HostCall", "Program", "evaluate_function", "evaluate_module", "main_function"]

_HANDLERS = (calls, constants, control, named, numbers, structured, tensors)
