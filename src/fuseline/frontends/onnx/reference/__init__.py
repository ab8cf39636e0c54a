"""`onnx.reference` as this project runs it: with the operators that it lacks, those that it has wrong as the standard
defines them, and those that it computes element by element.

Importing this package imports onnx.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.additions import ADDITIONS
from fuseline.frontends.onnx.reference.corrections import CORRECTIONS
from fuseline.frontends.onnx.reference.elementwise import ELEMENTWISE
from fuseline.frontends.onnx.reference.fourier import FOURIER
from fuseline.frontends.onnx.reference.halves import HALVES
from fuseline.frontends.onnx.reference.labels import LABELS
from fuseline.frontends.onnx.reference.movement import MOVEMENT
from fuseline.frontends.onnx.reference.normalization import NORMALIZATION
from fuseline.frontends.onnx.reference.recurrent import RECURRENT
from fuseline.frontends.onnx.reference.resize import RESIZE
from fuseline.frontends.onnx.reference.sampling import SAMPLING
from fuseline.frontends.onnx.reference.vectorised import VECTORISED

OURS = (
    *(*CORRECTIONS, *ADDITIONS, *ELEMENTWISE, *MOVEMENT, *NORMALIZATION),
    *(*FOURIER, *HALVES, *LABELS, *RECURRENT, *RESIZE, *SAMPLING, *VECTORISED),
)
"""What replaces or completes operators of `onnx.reference`."""


_LOWERED_STANDARD = """Attention AveragePool ConvTranspose GlobalMaxPool Hardmax LRN LogSoftmax LpNormalization LpPool
MaxPool MaxUnpool ReduceLogSum ReduceLogSumExp ReduceSumSquare Softmax"""
_LOWERED_ML = """FeatureVectorizer LinearClassifier LinearRegressor Normalizer SVMClassifier SVMRegressor Scaler
TreeEnsemble TreeEnsembleClassifier TreeEnsembleRegressor"""
LOWERED = frozenset(
    {
        *(("", op_type) for op_type in _LOWERED_STANDARD.split()),
        *(("ai.onnx.ml", op_type) for op_type in _LOWERED_ML.split()),
    }
)
"""Operators (domain and name) that `onnx.reference` has wrong and whose lowering takes every call of known sizes: a
layer above answers them with that (`interop/lowered_operators.py`)."""


def evaluator_with(more: Sequence[type[OpRun]], model: onnx.ModelProto) -> ReferenceEvaluator:
    """What runs `model` on NumPy arrays; sequences are lists, an empty optional is None. `more` are operators for those
    of `LOWERED`, which are wrong without (`interop.onnx_reference.evaluator` has them)."""
    return ReferenceEvaluator(model, new_ops=[*OURS, *more])


__all__ = ["LOWERED", "evaluator_with"]
