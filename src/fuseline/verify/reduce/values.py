"""Every value of a model for feeds, by name: what is fed where the nodes that made it are gone."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

import numpy as np
import onnx

from fuseline.compile_options import CompileOptions
from fuseline.errors import FuselineError
from fuseline.verify.bisect.isolated import Ended, isolated
from fuseline.verify.check.original import Original
from fuseline.verify.reduce.candidate import Array, Candidate, reads, weights_of
from fuseline.verify.reduce.warm import warmed

SECONDS = 600


def values_of(candidate: Candidate, options: CompileOptions) -> dict[str, Array]:
    """The tensors of numbers among all values of a candidate: by the interpreter, or where that cannot read the model
    by another runtime. Raises E0603 where none runs it."""
    ended = by_interpreter(candidate, options)
    if ended.answer is None:
        ended = by_runtime(candidate)
    if ended.answer is None:
        reason = str(ended.error) if ended.error is not None else f"it ended with {ended.signal}"
        raise FuselineError("E0603", f"no runtime tells what the model's nodes make: {reason}")
    found: dict[str, Any] = {**weights_of(candidate), **candidate.feeds, **ended.answer}
    return {
        name: value for name, value in found.items() if isinstance(value, np.ndarray) and value.dtype.kind in "biufV"
    }


def by_interpreter(candidate: Candidate, options: CompileOptions) -> Ended:
    """What nodes make (by name), told by the interpreter in the model's own types."""
    warmed()
    model = _telling_all(candidate.model)
    return isolated(lambda: Original(model, options).run(candidate.feeds, double=False), seconds=SECONDS)


def by_runtime(candidate: Candidate) -> Ended:
    """The same, told by onnxruntime where it is installed, else by ONNX's reference."""
    model = _telling_all(candidate.model)
    return isolated(lambda: _elsewhere(model, candidate.feeds), seconds=SECONDS)


def _telling_all(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with every value as an output."""
    told = onnx.ModelProto()
    told.CopyFrom(model)
    known = {output.name for output in told.graph.output}
    more = dict.fromkeys(name for node in told.graph.node for name in node.output if name and name not in known)
    told.graph.output.extend(onnx.ValueInfoProto(name=name) for name in more)
    return told


def _elsewhere(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> dict[str, Any]:
    if find_spec("onnxruntime") is not None:
        import onnxruntime

        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    else:
        from onnx.reference import ReferenceEvaluator

        session = ReferenceEvaluator(model)
    names = [output.name for output in model.graph.output]
    return dict(zip(names, session.run(names, dict(feeds)), strict=True))


def constants_of(model: onnx.ModelProto) -> frozenset[str]:
    """The values that no input has a part in: weights, and what is made of them alone."""
    found = {tensor.name for tensor in model.graph.initializer}
    for node in model.graph.node:
        if set(reads(node)) <= found and not node.op_type.startswith("Random"):
            found |= set(node.output)
    return frozenset(found)
