"""`onnx.reference` as this project runs it: with the operators that it lacks, those that it has wrong as the standard
defines them, and those that it computes element by element.

Importing this package imports onnx.
"""

from __future__ import annotations

import onnx
from onnx.reference import ReferenceEvaluator

from fuseline.frontends.onnx.reference.additions import ADDITIONS
from fuseline.frontends.onnx.reference.attention import ATTENTION
from fuseline.frontends.onnx.reference.classical import CLASSICAL
from fuseline.frontends.onnx.reference.corrections import CORRECTIONS
from fuseline.frontends.onnx.reference.elementwise import ELEMENTWISE
from fuseline.frontends.onnx.reference.fourier import FOURIER
from fuseline.frontends.onnx.reference.halves import HALVES
from fuseline.frontends.onnx.reference.movement import MOVEMENT
from fuseline.frontends.onnx.reference.normalization import NORMALIZATION
from fuseline.frontends.onnx.reference.pooling import POOLING
from fuseline.frontends.onnx.reference.recurrent import RECURRENT
from fuseline.frontends.onnx.reference.resize import RESIZE
from fuseline.frontends.onnx.reference.sampling import SAMPLING
from fuseline.frontends.onnx.reference.trees import TREES
from fuseline.frontends.onnx.reference.vectorised import VECTORISED

OURS = (
    *(*CORRECTIONS, *ADDITIONS, *ATTENTION, *CLASSICAL, *ELEMENTWISE, *MOVEMENT, *NORMALIZATION),
    *(*FOURIER, *HALVES, *POOLING, *RECURRENT, *RESIZE, *SAMPLING, *TREES, *VECTORISED),
)
"""What replaces or completes operators of `onnx.reference`."""


def evaluator(model: onnx.ModelProto) -> ReferenceEvaluator:
    """What runs `model` on NumPy arrays; sequences are lists, an empty optional is None."""
    return ReferenceEvaluator(model, new_ops=list(OURS))


__all__ = ["evaluator"]
