"""The linalg dialect as fuseline reads it: xDSL's, with the named ops it lacks and a few of its own replaced.

Named ops come from text input only; `generalize-named-ops` turns all of them into `linalg.generic`.
"""

from __future__ import annotations

from xdsl.dialects import linalg
from xdsl.ir import Dialect

from fuseline.ir.linalg_named.base import TypeFnAttr
from fuseline.ir.linalg_named.contractions import CONTRACTIONS
from fuseline.ir.linalg_named.convolutions import CONVOLUTIONS
from fuseline.ir.linalg_named.elementwise import ElementwiseKindAttr, ElementwiseOp
from fuseline.ir.linalg_named.functions import FUNCTION_ATTRIBUTES, FUNCTIONS
from fuseline.ir.linalg_named.packing import SHAPED_OPS, PackOp, SoftmaxOp, UnPackOp
from fuseline.ir.linalg_named.poolings import POOLINGS
from fuseline.ir.linalg_named.quantized_convolutions import QUANTIZED_CONVOLUTIONS
from fuseline.ir.linalg_named.regions import REGION_OPS, MapOp, ReduceOp

NAMED_OPS = (
    *CONTRACTIONS,
    *CONVOLUTIONS,
    *QUANTIZED_CONVOLUTIONS,
    *POOLINGS,
    *FUNCTIONS,
    ElementwiseOp,
    *REGION_OPS,
    *SHAPED_OPS,
)
"""The ops that fuseline declares."""

_OURS = {op.name for op in NAMED_OPS}

Linalg = Dialect(
    "linalg",
    [*(op for op in linalg.Linalg.operations if op.name not in _OURS), *NAMED_OPS],
    [*linalg.Linalg.attributes, TypeFnAttr, ElementwiseKindAttr, *FUNCTION_ATTRIBUTES],
)
"""xDSL's dialect with ours in place."""

__all__ = ["NAMED_OPS", "ElementwiseOp", "Linalg", "MapOp", "PackOp", "ReduceOp", "SoftmaxOp", "UnPackOp"]
