"""`onnx.reference` as this project runs it: with the operators that it lacks, those that it has wrong as the standard defines them, and those
that it computes element by element.

Importing this package imports onnx.
"""

from __future__ import annotations

import onnx
from onnx.reference import ReferenceEvaluator

from fuseline.frontends.onnx.reference.additions import ADDITIONS
from fuseline.frontends.onnx.reference.corrections import CORRECTIONS
from fuseline.frontends.onnx.reference.pooling import POOLING
from fuseline.frontends.onnx.reference.recurrent import RECURRENT
from fuseline.frontends.onnx.reference.vectorised import VECTORISED


def evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    """What runs `model` on NumPy arrays; sequences are lists, an empty optional is None."""
    return ReferenceEvaluator(model, new_ops=[*CORRECTIONS, *ADDITIONS, *POOLING, *RECURRENT, *VECTORISED])


__all__ = ["evaluator"]
