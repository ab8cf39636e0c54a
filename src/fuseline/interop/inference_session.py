"""`InferenceSession`: onnxruntime's interface over a fuseline program, so that a script changes one import."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fuseline.errors import FuselineError
from fuseline.interop import onnx_reference
from fuseline.runtime import Session, TensorSpec, load
from fuseline.runtime.sizes import symbol_of

onnx_reference.install()

_TYPE_NAMES = {"float32": "float", "float64": "double"}


@dataclass(frozen=True, slots=True)
class NodeArg:
    """An input or output as onnxruntime describes it: `type` is like `tensor(float)`, a free extent of `shape` is its name."""

    name: str
    type: str
    shape: list[int | str | None]


def _node_arg(spec: TensorSpec) -> NodeArg:
    shape = [dim if isinstance(dim, int) else symbol_of(dim) for dim in spec.dims]
    type_ = spec.type or f"tensor({spec.dtype})"
    for ours, theirs in _TYPE_NAMES.items():
        type_ = type_.replace(f"({ours})", f"({theirs})")
    return NodeArg(spec.name, type_, shape)


class InferenceSession:
    """A drop-in for `onnxruntime.InferenceSession`.

    Args:
        path_or_bytes: an ONNX file, a .fuse artifact, or a serialized ONNX model.
        sess_options: anything with `intra_op_num_threads` (0: all processors); the rest of it is ignored.
        providers: accepted and ignored: the program runs on the CPU.

    Raises FuselineError as `fuseline.compile` and `fuseline.load` do.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: Any = None,
        providers: Sequence[Any] | None = None,
        provider_options: Sequence[Any] | None = None,
    ) -> None:
        del providers, provider_options
        threads: int | None = getattr(sess_options, "intra_op_num_threads", 0) or None
        self._session = _session(path_or_bytes, threads)

    def run(self, output_names: Sequence[str] | None, input_feed: Mapping[str, Any], run_options: Any = None) -> list[Any]:
        """The outputs named, all for None. Raises FuselineError: E0201 to E0204 for the feeds, E0205 for an unknown output."""
        del run_options
        outputs = self._session.run(input_feed)
        if output_names is None:
            return list(outputs.values())
        unknown = [name for name in output_names if name not in outputs]
        if unknown:
            raise FuselineError("E0205", "the model has no such output", node=unknown[0], hint=f"its outputs: {', '.join(outputs)}")
        return [outputs[name] for name in output_names]

    def get_inputs(self) -> list[NodeArg]:
        """Name, shape and type of every input."""
        return [_node_arg(spec) for spec in self._session.inputs]

    def get_outputs(self) -> list[NodeArg]:
        """Name, shape and type of every output."""
        return [_node_arg(spec) for spec in self._session.outputs]

    def get_providers(self) -> list[str]:
        """What onnxruntime calls a program on the CPU."""
        return ["CPUExecutionProvider"]


def _session(source: str | bytes | os.PathLike[str], threads: int | None) -> Session:
    if not isinstance(source, bytes) and Path(source).suffix == ".fuse":
        return load(source, threads=threads)
    from fuseline.pipeline import CompileOptions, compile_program

    return Session(compile_program(source if isinstance(source, bytes) else Path(source), CompileOptions(threads=threads)), threads=threads)
