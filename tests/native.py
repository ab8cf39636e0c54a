"""Whether a model of one node is lowered natively and computes what onnxruntime does, on the interpreter and on the
CPU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

import fuseline
from tests.one_node import by_onnxruntime, feeds_of, one_node

Array = NDArray[Any]
TARGETS = ("interpreter", "cpu")


def assert_as_onnxruntime(
    op_type: str, inputs: Sequence[Array | None], *, rtol: float = 1e-5, atol: float = 1e-5, **options: Any
) -> None:
    """One node, see `one_node` for `options`; integers must be equal, NaN where it is NaN."""
    model, feeds = one_node(op_type, inputs, **options), feeds_of(inputs, options.get("constants", ()))
    assert_same(native(model, feeds), by_onnxruntime(model, feeds), rtol, atol)


def native(model: onnx.ModelProto, feeds: Mapping[str, Array], **options: Any) -> list[list[Array]]:
    """The outputs on each target; nothing may run on the host."""
    answers: list[list[Array]] = []
    for target in TARGETS:
        program = fuseline.compile(model, threads=1, target=target, **options)
        assert not program.record.host_ops, program.record.host_ops
        answers.append(list(program.run(dict(feeds)).values()))
    return answers


def assert_same(
    answers: Sequence[Sequence[Array]], wanted: Sequence[Array], rtol: float = 1e-5, atol: float = 1e-5
) -> None:
    """Each answer has the types, shapes and values of `wanted`."""
    for target, answer in zip(TARGETS, answers, strict=True):
        for ours, theirs in zip(answer, wanted, strict=True):
            assert (ours.dtype, ours.shape) == (theirs.dtype, theirs.shape), target
            if theirs.dtype.kind == "f":
                np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=atol, err_msg=target)
            else:
                np.testing.assert_array_equal(ours, theirs, err_msg=target)
