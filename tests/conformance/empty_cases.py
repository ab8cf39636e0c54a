"""The official node tests with nothing along a dimension: of one input, or of every dimension of one size, so that
inputs still fit each other."""

from __future__ import annotations

import copy
import multiprocessing
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray

from tests.conformance.node_cases import RANDOM, NodeCase, node_cases
from tests.one_node import by_onnxruntime

Array = NDArray[Any]
Places = tuple[tuple[int, int], ...]
LEFT_OUT = ("ImageDecoder", *RANDOM, "Bernoulli", "RandomNormal", "RandomUniform", "Dropout")
ATTEMPTS, SECONDS = 3, 60


@dataclass(frozen=True)
class EmptyCase:
    """A test's model and feeds with size 0 at `places` (input, axis); `label` says where."""

    label: str
    model: onnx.ModelProto
    feeds: dict[str, Array]


def empty_cases() -> Iterator[EmptyCase]:
    """For each operator's first test of a version, set of attributes and ranks: every dimension by itself, and all that
    have one size."""
    seen: set[tuple[Any, ...]] = set()
    for name, case in sorted(node_cases().items()):
        nodes = case.model.graph.node
        if len(nodes) != 1 or nodes[0].op_type in LEFT_OUT or not _of_tensors(case):
            continue
        ranks = tuple((value.ndim, value.dtype.kind) for value in case.inputs)
        given = tuple(sorted(attribute.name for attribute in nodes[0].attribute))
        key = (nodes[0].op_type, case.model.opset_import[0].version, given, ranks)
        if key not in seen and not (
            nodes[0].op_type == "Attention" and len(given) > 1
        ):  # hundreds of tests, all alike here
            seen.add(key)
            for places in _places(case):
                yield emptied(case, name, places)


def _of_tensors(case: NodeCase) -> bool:
    shapes = [value.type.tensor_type.shape for value in case.model.graph.input]
    return all(
        isinstance(value, np.ndarray) and value.ndim == len(shape.dim)
        for value, shape in zip(case.inputs, shapes, strict=False)
    )


def _places(case: NodeCase) -> Iterator[Places]:
    every = [(i, axis) for i, value in enumerate(case.inputs) for axis in range(value.ndim)]
    yield from (((i, axis),) for i, axis in every)
    for size in sorted({case.inputs[i].shape[axis] for i, axis in every}):
        alike = tuple((i, axis) for i, axis in every if case.inputs[i].shape[axis] == size)
        if len(alike) > 1:
            yield alike


def emptied(case: NodeCase, name: str, places: Places) -> EmptyCase:
    """The case with nothing at `places`."""
    model, feeds = copy.deepcopy(case.model), list(case.inputs)
    for i, axis in places:
        feeds[i] = np.take(feeds[i], [], axis=axis)
        model.graph.input[i].type.tensor_type.shape.dim[axis].dim_value = 0
    for value in model.graph.output:
        value.type.tensor_type.ClearField("shape")
    named = {value.name: feed for value, feed in zip(model.graph.input, feeds, strict=True)}
    return EmptyCase(f"{name} {places}", model, named)


def accepted(case: EmptyCase) -> list[Any] | None:
    """What onnxruntime answers, None where it refuses; it runs in a process of its own, as nothing is what some of its
    kernels divide by.

    Raises TimeoutError where no process answers or ends.
    """
    for _ in range(ATTEMPTS):
        with suppress(TimeoutError):
            return _by_another_process(case)
    raise TimeoutError(case.label)


def _by_another_process(case: EmptyCase) -> list[Any] | None:
    """The answer of a copy of a process without threads: a copy of this one may wait for what one of its threads
    held."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_answer, args=(theirs, case))
    process.start()
    theirs.close()
    try:
        if not ours.poll(SECONDS):
            raise TimeoutError
        return ours.recv()
    except EOFError:
        return None
    finally:
        process.kill()
        process.join()


def _answer(pipe: Any, case: EmptyCase) -> None:
    try:
        pipe.send(by_onnxruntime(case.model, case.feeds))
    except Exception:  # noqa: BLE001 - whatever it is, onnxruntime refuses
        pipe.send(None)
