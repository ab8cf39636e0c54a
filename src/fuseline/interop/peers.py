"""The runtimes a program is measured against and checked with, behind one small interface; both are optional extras."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from fuseline.errors import FuselineError

Runner = Callable[[], list[np.ndarray]]


class Peer(ABC):
    """A model loaded in another runtime, with a fixed number of threads."""

    name: str
    outputs: list[str]

    @abstractmethod
    def bind(self, feeds: Mapping[str, np.ndarray]) -> Runner:
        """A callable that runs the model once on `feeds` with as little Python around it as the peer allows."""

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The outputs by name."""
        return dict(zip(self.outputs, self.bind(feeds)(), strict=True))


def _module(name: str) -> Any:
    try:
        return import_module(name)
    except ImportError as problem:
        raise FuselineError(
            "E0503", f"{name} is not installed", node=name, hint="pip install 'fuseline[bench]'"
        ) from problem


class OnnxRuntime(Peer):
    """onnxruntime on the CPU, all optimizations, `threads` intra-op threads."""

    name = "onnxruntime"

    def __init__(self, model: Path, threads: int) -> None:
        ort = _module("onnxruntime")
        options = ort.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self._session = ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        self.outputs = [output.name for output in self._session.get_outputs()]

    def bind(self, feeds: Mapping[str, np.ndarray]) -> Runner:
        """`session.run(None, feeds)`."""
        session, given = self._session, dict(feeds)
        return lambda: session.run(None, given)


class OpenVino(Peer):
    """OpenVINO on the CPU for latency, with the f32 hint (its default on some machines is bf16)."""

    name = "openvino"

    def __init__(self, model: Path, threads: int) -> None:
        openvino = _module("openvino")
        config = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": str(threads),
            "NUM_STREAMS": "1",
        }
        self._compiled = openvino.compile_model(str(model), "CPU", config)
        self._names = [port.names for port in self._compiled.inputs]  # also those of casts that were folded into it
        self.outputs = [port.any_name for port in self._compiled.outputs]

    def bind(self, feeds: Mapping[str, np.ndarray]) -> Runner:
        """One infer request that shares memory with the feeds and the outputs."""
        request = self._compiled.create_infer_request()
        given = {i: feeds[name] for i, names in enumerate(self._names) for name in names & feeds.keys()}

        def run() -> list[np.ndarray]:
            found = request.infer(given, share_inputs=True, share_outputs=True)
            return [found[index] for index in range(len(found))]

        return run


PEERS: dict[str, Callable[[Path, int], Peer]] = {"onnxruntime": OnnxRuntime, "openvino": OpenVino}


def load_peer(name: str, model: Path, threads: int) -> Peer:
    """The peer called `name` with `model` loaded. Raises E0501 unknown name, E0503 not installed, E0603 when it refuses
    the model."""
    if name not in PEERS:
        raise FuselineError("E0501", f"no peer is called {name!r}", hint=f"one of {', '.join(PEERS)}")
    try:
        return PEERS[name](model, threads)
    except FuselineError:
        raise
    except Exception as problem:  # the peers raise classes of their own, without a common base
        reason = str(problem).strip().splitlines() or [type(problem).__name__]
        raise FuselineError("E0603", reason[0], node=name, hint="leave this peer out") from problem
