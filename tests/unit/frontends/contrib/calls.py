"""Calls of onnxruntime's own operators: a model of one node, and whether it gives onnxruntime's numbers."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray

import fuseline
from tests.draws import RNG
from tests.graphs.onnx_text import call, declared, onnx_model
from tests.proved import ProvedProgram

ort = pytest.importorskip("onnxruntime")

Array = NDArray[Any]


def normal(*shape: int) -> Array:
    """f32."""
    return RNG.standard_normal(shape).astype(np.float32)


def ints(below: int, *shape: int, dtype: Any = np.int32) -> Array:
    """Numbers from 0 on."""
    return RNG.integers(0, below, shape).astype(dtype)


def one_call(
    op_type: str,
    inputs: Sequence[Array | None],
    *,
    constants: Collection[int] = (),
    asked: Sequence[int] = (0,),
    free: Collection[int] = (),
    **attributes: Any,
) -> onnx.ModelProto:
    """`op_type` on `i0`, `i1`, .. (None: left out), of which `asked` outputs are named; `free` are sizes that are
    symbols, equal ones the same."""
    names = ["" if array is None else f"i{position}" for position, array in enumerate(inputs)]
    results = [f"o{position}" if position in asked else "" for position in range(max(asked) + 1)]
    given = {f"i{position}": array for position, array in enumerate(inputs) if array is not None}
    held = {name: given.pop(name) for name in [f"i{position}" for position in constants] if name in given}
    shapes = {name: [f"size{n}" if n in free else n for n in array.shape] for name, array in given.items()}
    node = call(f"com.microsoft.{op_type}", *names, results=results, name="node", **attributes)
    text = f"({declared(given, shapes)}) => ({', '.join(filter(None, results))}) {{ {node} }}"
    return onnx_model(text, held, imports={"": 17, "com.microsoft": 1})


def agree(
    op_type: str,
    inputs: Sequence[Array | None],
    *,
    constants: Collection[int] = (),
    host: int | None = 0,
    target: str = "cpu",
    **more: Any,
) -> None:
    """The program gives onnxruntime's outputs, and runs `host` nodes on the host (None: any number); its kernels are
    proved to stay inside of their memory."""
    proto = one_call(op_type, inputs, constants=constants, **more)
    feeds = {
        f"i{position}": array
        for position, array in enumerate(inputs)
        if array is not None and position not in constants
    }
    session = ort.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    ours, host_ops = _proved(proto, feeds) if target == "cpu" else _interpreted(proto, feeds)
    assert host is None or host_ops == host
    answers: Sequence[Any] = session.run(None, feeds)
    for found, expected in zip(ours, answers, strict=True):
        assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
        tolerance = 1 if expected.dtype.itemsize == 1 else 3e-5 * max(1.0, float(np.abs(expected).max(initial=0)))
        np.testing.assert_allclose(found.astype(np.float64), expected.astype(np.float64), rtol=1e-5, atol=tolerance)


def _proved(proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> tuple[Sequence[Array], int]:
    program = ProvedProgram(proto)
    return program.run(feeds), len(program.host_ops)


def _interpreted(proto: onnx.ModelProto, feeds: Mapping[str, Any]) -> tuple[Sequence[Array], int]:
    program = fuseline.compile(proto, target="interpreter")
    return list(program.run(feeds).values()), program.stats["host_ops"]
