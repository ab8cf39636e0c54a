"""What work costs on this machine, measured on the code that fuseline itself generates: small programs, one thread,
medians.

Each figure of `ir/costs.py` that a program can show has one here; the others (what hides behind arithmetic, when
threads pay) keep what is assumed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import onnx
import onnx.helper as oh
from numpy.typing import NDArray
from onnx import TensorProto, numpy_helper

from fuseline.ir.costs import MachineCosts

OPSET, IR_VERSION = 18, 9
CACHED, UNCACHED = 1 << 15, 1 << 25
"""f32 elements that stay in a second-level cache with their result, and that stay in no cache."""

BATCH_SECONDS, BATCHES = 0.02, 9


class Program(Protocol):
    """A compiled model."""

    def run(self, feeds: Mapping[str, Any]) -> object:
        """Run it once."""
        ...


Compile = Callable[..., Program]
"""`fuseline.compile`: a model and keyword options to a program."""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure: its name in `MachineCosts`, what was assumed, what was measured (None: kept as assumed), and how."""

    name: str
    assumed: float
    measured: float | None
    how: str


class Measurement:
    """Measures the figures one by one; `progress(name, done, total)` is told before each."""

    def __init__(
        self,
        compile_: Compile,
        target: str = "cpu",
        progress: Callable[[str, int, int], None] = lambda name, done, total: None,
    ) -> None:
        self.compile, self.target, self.progress = compile_, target, progress
        self.random = np.random.default_rng(0)

    def figures(self, assumed: MachineCosts) -> list[Figure]:
        """All figures, in the order of `MachineCosts`."""
        found: dict[str, tuple[float, str]] = {}
        for done, (name, (measure, how)) in enumerate(_MEASURES.items()):
            self.progress(name, done, len(_MEASURES))
            found[name] = measure(self), how
        kept = "kept as assumed"
        return [
            Figure(name, float(getattr(assumed, name)), *found.get(name, (None, kept)))
            for name in MachineCosts.__slots__
        ]

    # programs ---------------------------------------------------------------------------------------------------------

    def seconds(
        self, model: onnx.ModelProto, feeds: Mapping[str, NDArray[Any]], threads: int = 1, **options: Any
    ) -> float:
        """The median time of a run; the least disturbed of several batches."""
        program = self.compile(model, target=self.target, threads=threads, **options)
        program.run(feeds)
        start = time.perf_counter()
        program.run(feeds)
        count = max(1, int(BATCH_SECONDS / max(time.perf_counter() - start, 1e-6)))
        return min(self._batch(program, feeds, count) for _ in range(BATCHES))

    def _batch(self, program: Program, feeds: Mapping[str, NDArray[Any]], count: int) -> float:
        times: list[float] = []
        for _ in range(count):
            start = time.perf_counter()
            program.run(feeds)
            times.append(time.perf_counter() - start)
        return float(np.median(times))

    def array(self, *shape: int) -> NDArray[Any]:
        """Random f32."""
        return self.random.standard_normal(shape, dtype=np.float32)

    # figures ----------------------------------------------------------------------------------------------------------

    def flops_per_ns(self) -> float:
        """A product of 256 x 512 by 512 x 512."""
        x, w = self.array(256, 512), self.array(512, 512)
        seconds = self.seconds(_model([oh.make_node("MatMul", ["x", "w"], ["y"])], {"x": x}, {"w": w}), {"x": x})
        return 2 * 256 * 512 * 512 / seconds / 1e9

    def operation_ns(self) -> float:
        """The difference between chains of 8 and of 40 operations in one dispatch."""
        x = self.array(CACHED)
        short, long = (self.seconds(_chain(count, x), {"x": x}) for count in (8, 40))
        return max(long - short, 1e-12) / (32 * x.size) * 1e9

    def launch_ns(self) -> float:
        """What a dispatch on two threads takes beyond half of what it takes on one; on a single processor what an
        almost empty one takes."""
        alone = self._each(16, 1)
        if processors() < 2:
            return alone
        return max(self._each(CACHED // 2, 2) - self._each(CACHED // 2, 1) / 2, alone)

    def _each(self, elements: int, threads: int) -> float:
        """Nanoseconds of one dispatch of a chain."""
        x = self.array(elements)
        few, many = (self.seconds(_chain(count, x), {"x": x}, threads, fusion="none") for count in (32, 160))
        return max(many - few, 1e-9) / 128 * 1e9

    def stored_bytes_per_ns(self) -> float:
        """Values that one dispatch stores and the next loads, beyond its launch."""
        x = self.array(CACHED)
        return 2 * x.nbytes / max(self._each(x.size, 1) - self._each(16, 1), 1.0)

    def memory_bytes_per_ns(self) -> float:
        """A dispatch over 128 MiB."""
        x = self.array(UNCACHED)
        return 2 * x.nbytes / (self.seconds(_chain(1, x), {"x": x}) * 1e9)

    @cached_property
    def packed(self) -> float:
        """Bytes per nanosecond: a product of few rows with an operand that is computed at run time, and with a
        constant."""
        x, w = self.array(48, 512), self.array(512, 512)
        node = oh.make_node("MatMul", ["x", "w"], ["y"])
        constant = self.seconds(_model([node], {"x": x}, {"w": w}), {"x": x})
        computed = self.seconds(_model([node], {"x": x, "w": w}, {}), {"x": x, "w": w})
        return w.nbytes / max((computed - constant) * 1e9, 1.0)

    def packing_ns(self) -> float:
        """One f32 of it."""
        return 4 / self.packed

    def filtering_gain(self) -> float:
        """A 3x3 convolution of 64 channels with numerics that leave minimal filtering out, and with it."""
        x, w = self.array(1, 64, 56, 56), self.array(64, 64, 3, 3)
        model = _model([oh.make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1])], {"x": x}, {"w": w})
        direct, filtered = (self.seconds(model, {"x": x}, numerics=numerics) for numerics in ("strict", "default"))
        return max(direct / filtered, 1.0)


_MEASURES: dict[str, tuple[Callable[[Measurement], float], str]] = {
    "flops_per_ns": (Measurement.flops_per_ns, "256x512 by 512x512"),
    "operation_ns": (Measurement.operation_ns, "chains of 8 and 40 operations"),
    "stored_bytes_per_ns": (Measurement.stored_bytes_per_ns, "128 KiB through chains of 32 and 160 dispatches"),
    "packed_bytes_per_ns": (lambda measurement: measurement.packed, "512x512 computed or constant, 48 rows"),
    "packing_ns": (Measurement.packing_ns, "one f32 of that"),
    "memory_bytes_per_ns": (Measurement.memory_bytes_per_ns, "128 MiB, read and written"),
    "launch_ns": (Measurement.launch_ns, "chains of 32 and 160 dispatches, one thread and two"),
    "filtering_gain": (Measurement.filtering_gain, "3x3 of 64 channels, 56x56"),
}


def measured(assumed: MachineCosts, figures: list[Figure]) -> MachineCosts:
    """The costs with what was measured, to three digits."""
    found = {figure.name: float(f"{figure.measured:.3g}") for figure in figures if figure.measured is not None}
    return replace(assumed, **found)  # pyright: ignore[reportArgumentType]


def processors() -> int:
    """How many this process may run on."""
    return len(os.sched_getaffinity(0))


def _chain(count: int, x: NDArray[Any]) -> onnx.ModelProto:
    """`count` additions and multiplications, one after the other."""
    values = ["x", *(f"v{i}" for i in range(1, count)), "y"]
    nodes = [oh.make_node(("Add", "Mul")[i % 2], [values[i], ("a", "m")[i % 2]], [values[i + 1]]) for i in range(count)]
    return _model(
        nodes, {"x": x}, {"a": np.float32(0.3) * np.ones(x.shape, np.float32), "m": np.full(x.shape, 0.97, np.float32)}
    )


def _model(
    nodes: list[onnx.NodeProto], inputs: Mapping[str, NDArray[Any]], weights: Mapping[str, NDArray[Any]]
) -> onnx.ModelProto:
    given = [oh.make_tensor_value_info(name, TensorProto.FLOAT, list(array.shape)) for name, array in inputs.items()]
    constants = [
        numpy_helper.from_array(array, name)
        for name, array in weights.items()
        if any(name in node.input for node in nodes)
    ]
    graph = oh.make_graph(nodes, "machine", given, [oh.make_tensor_value_info("y", TensorProto.FLOAT, None)], constants)
    return oh.make_model(graph, opset_imports=[oh.make_opsetid("", OPSET)], ir_version=IR_VERSION)
