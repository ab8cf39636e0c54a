"""Of a model that is read wrongly, the first node whose result is another one than in another runtime."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from fuseline.compile_options import CompileOptions
from fuseline.verify.compare import TOLERANCE, compare
from fuseline.verify.reduce.candidate import Candidate
from fuseline.verify.reduce.values import by_interpreter, by_runtime


def first_node(source: Any, options: CompileOptions, feeds: Mapping[str, Any]) -> onnx.NodeProto | None:
    """The first node, in the order of the model, that the interpreter computes otherwise than onnxruntime (or ONNX's
    reference) does; None where there is none, or no runtime tells."""
    model = source if isinstance(source, onnx.ModelProto) else _loaded(source)
    if model is None:
        return None
    whole = Candidate(model, dict(feeds))
    ours, theirs = by_interpreter(whole, options).answer, by_runtime(whole).answer
    if ours is None or theirs is None:
        return None
    return next((node for node in model.graph.node if _differs(node, ours, theirs)), None)


def _loaded(source: Any) -> onnx.ModelProto | None:
    if isinstance(source, bytes):
        return onnx.load_from_string(source)
    path = Path(source)
    return onnx.load(path) if path.suffix == ".onnx" else None


def _differs(node: onnx.NodeProto, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> bool:
    for name in node.output:
        mine, other = ours.get(name), theirs.get(name)
        if not (isinstance(mine, np.ndarray) and isinstance(other, np.ndarray) and other.dtype.kind in "biuf"):
            continue
        if not compare({name: mine}, {name: other}, {name})[0].passes(TOLERANCE):
            return True
    return False
