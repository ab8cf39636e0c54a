"""A model without its weights: the same graph, every large tensor replaced by seeded numbers, so that it compiles and
can be handed on.

All large tensors of a dtype lie in one file, `weights-<dtype>.bin`, and overlap there: it is as long as the largest of
them and compresses well.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto
from onnx.external_data_helper import load_external_data_for_tensor

from fuseline.runtime.artifact import read_artifact

SMALL = 64
"""Elements: fewer are structure (axes, shapes, scales) rather than weights, and are kept."""

_PERIOD = 4093
_STEP = 64
_WEIGHTS: dict[int, str] = {
    TensorProto.FLOAT: "float32",
    TensorProto.DOUBLE: "float64",
    TensorProto.FLOAT16: "float16",
    TensorProto.BFLOAT16: "bfloat16",
    TensorProto.INT8: "int8",
    TensorProto.UINT8: "uint8",
}
"""Dtypes of weights; wider integers are indices and sizes, which the graph's meaning hangs on."""


def write_stripped(source: Path, target: Path) -> None:
    """Write the model at `source` without its weights to `target`, the files with seeded numbers beside it."""
    model = onnx.load(source, load_external_data=False)
    files = _Files(target.parent)
    for tensor, in_graph in _tensors(model.graph):
        dtype, elements = _WEIGHTS.get(tensor.data_type), int(np.prod(tensor.dims, dtype=np.int64))
        if dtype is None or elements < SMALL:
            _take_in(tensor, source.parent)
        elif in_graph:
            files.point(tensor, dtype, elements)
        else:
            _clear(tensor)
            tensor.raw_data = seeded_bytes(elements * _item_bytes(dtype), dtype).tobytes()
    files.write()
    target.write_bytes(model.SerializeToString())


def write_stripped_artifact(source: Path, target: Path) -> None:
    """Write the artifact at `source` with seeded bytes in the place of all constants, those of its fallback too, to
    `target`. Raises FuselineError: E0401 to E0403, E0502."""
    artifact = read_artifact(source)
    fallback = artifact.fallback
    every = [*artifact.constants, *(fallback.constants if fallback is not None else ())]
    stripped = {id(block): seeded_bytes(len(block)) for block in every}  # what both share stays shared
    if fallback is not None:
        fallback = fallback._replace(constants=[stripped[id(block)] for block in fallback.constants], sources={})
    constants = [stripped[id(block)] for block in artifact.constants]
    artifact._replace(constants=constants, sources={}, fallback=fallback).save(target)


def _take_in(tensor: TensorProto, folder: Path) -> None:
    """Let a small tensor that lies outside lie in the model."""
    if tensor.data_location == TensorProto.EXTERNAL:
        load_external_data_for_tensor(tensor, str(folder))
        tensor.data_location = TensorProto.DEFAULT
        del tensor.external_data[:]


def _clear(tensor: TensorProto) -> None:
    for field in ("raw_data", "float_data", "int32_data", "int64_data", "double_data"):
        tensor.ClearField(field)  # pyright: ignore[reportArgumentType]
    tensor.data_location = TensorProto.DEFAULT
    del tensor.external_data[:]


class _Files:
    """The files of seeded numbers, one for each dtype."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lengths: dict[str, int] = {}
        self.count = 0

    def point(self, tensor: TensorProto, dtype: str, elements: int) -> None:
        """Let the tensor lie in the file of its dtype, a little behind the last one that does: equal weights would be
        merged."""
        size, offset = elements * _item_bytes(dtype), _STEP * self.count
        self.count += 1
        self.lengths[dtype] = max(self.lengths.get(dtype, 0), offset + size)
        _clear(tensor)
        tensor.data_location = TensorProto.EXTERNAL
        for name, value in (("location", f"weights-{dtype}.bin"), ("offset", str(offset)), ("length", str(size))):
            entry = tensor.external_data.add()
            entry.key, entry.value = name, value

    def write(self) -> None:
        """Write them, each as long as what points into it."""
        for dtype, length in self.lengths.items():
            (self.folder / f"weights-{dtype}.bin").write_bytes(seeded_bytes(length, dtype).tobytes())


def _item_bytes(dtype: str) -> int:
    return 2 if dtype == "bfloat16" else np.dtype(dtype).itemsize


def seeded_bytes(length: int, dtype: str = "float32") -> NDArray[np.uint8]:
    """`length` bytes of seeded numbers between 0.01 and 0.1 (integers: small ones), the same every few thousand;
    64-byte aligned."""
    rng = np.random.default_rng(7)
    if dtype in ("int8", "uint8"):
        pattern = rng.integers(0, 16, _PERIOD).astype(dtype)
    elif dtype == "bfloat16":
        pattern = rng.uniform(0.01, 0.1, _PERIOD).astype(np.float32).view(np.uint16)[1::2].copy()
    else:
        pattern = rng.uniform(0.01, 0.1, _PERIOD).astype(dtype)
    raw = np.empty(length + _STEP, np.uint8)
    whole = raw[-raw.ctypes.data % _STEP :][:length]
    whole[:] = np.resize(pattern.view(np.uint8), length)
    return whole


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[TensorProto, bool]]:
    """Every stored tensor, subgraphs included, and whether it is an initializer of the outermost graph."""
    yield from ((tensor, True) for tensor in graph.initializer)
    for node in graph.node:
        for attribute in node.attribute:
            if attribute.HasField("t"):
                yield attribute.t, False
            yield from ((tensor, False) for tensor in attribute.tensors)
            for inner in (attribute.g, *attribute.graphs):
                yield from ((tensor, False) for tensor, _ in _tensors(inner))
