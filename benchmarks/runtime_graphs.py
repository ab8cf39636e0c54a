"""What onnxruntime and OpenVINO run of a model, before and after `fuseline fuse --optimized`: whether that is the same
graph, so that a difference in time can only be noise.

    python -m benchmarks.runtime_graphs [--threads 2] MODEL.onnx ...

onnxruntime: the graph that it optimized and laid out (`optimized_model_filepath`, all optimizations). OpenVINO: its
runtime model, with the kernel, the precision and the layout that it chose for each layer (it does not tell attributes
and the numbers in constants). Graphs are the same where their nodes are, whatever they are called: operator,
attributes, constants, and what they read. Prints Markdown: nodes
before and after, `same`, or which operators differ.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import onnx
from onnx import numpy_helper

import fuseline

Graph = Counter[tuple[str, str]]
"""Nodes by operator and by a digest of all that they are computed of."""


def in_onnxruntime(model: Path, threads: int) -> Graph:
    """What onnxruntime made of a model."""
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.log_severity_level = threads, 3
        options.optimized_model_filepath = str(Path(folder) / "optimized.onnx")
        ort.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
        return onnx_graph(onnx.load(options.optimized_model_filepath))


def onnx_graph(model: onnx.ModelProto) -> Graph:
    """The nodes of a model."""
    digests = {value.name: f"input {number}" for number, value in enumerate(model.graph.input)}
    digests |= {one.name: _digest([numpy_helper.to_array(one).tobytes()]) for one in model.graph.initializer}
    found: Graph = Counter()
    for node in model.graph.node:
        attributes = sorted(attribute.SerializeToString(deterministic=True) for attribute in node.attribute)
        read = [digests.get(name, name) for name in node.input]
        digest = _digest([node.op_type.encode(), *attributes, *(text.encode() for text in read)])
        digests |= {name: f"{digest} {number}" for number, name in enumerate(node.output)}
        found[node.op_type, digest] += 1
    return found


def in_openvino(model: Path, threads: int) -> Graph:
    """What OpenVINO made of a model."""
    import openvino as ov

    config = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.Core().compile_model(str(model), "CPU", config)
    digests: dict[str, str] = {}
    found: Graph = Counter()
    inputs = 0
    for op in compiled.get_runtime_model().get_ordered_ops():
        said = {str(key): str(value.value) for key, value in op.get_rt_info().items()}
        kept = ("layerType", "primitiveType", "outputPrecisions", "outputLayouts", "runtimePrecision")
        about = [said.get(key, "") for key in kept]
        sources = [one.get_source_output() for one in op.inputs()]
        read = [f"{digests[one.get_node().get_friendly_name()]} {one.get_index()}" for one in sources]
        kind = str(said.get("layerType", op.get_type_name()))
        if kind in ("Input", "Parameter"):
            about.append(f"input {inputs}")
            inputs += 1
        sizes = [str(output.get_partial_shape()) for output in op.outputs()]
        digest = _digest([text.encode() for text in (*about, *sizes, *read)])
        digests[op.get_friendly_name()] = digest
        found[kind, digest] += 1
    return found


RUNTIMES: dict[str, Callable[[Path, int], Graph]] = {"onnxruntime": in_onnxruntime, "openvino": in_openvino}


def _digest(parts: Iterable[bytes]) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def compared(before: Graph, after: Graph) -> str:
    """`same`, or the operators of which there are more or fewer, or others."""
    if before == after:
        return "same"
    gone, new = before - after, after - before
    fewer, more = _by_operator(gone), _by_operator(new)
    counts = {name: more[name] - fewer[name] for name in sorted({*fewer, *more}) if more[name] != fewer[name]}
    if not counts:
        return f"as many of each operator; {sum(gone.values())} differ in what they read"
    return ", ".join(f"{name} {count:+}" for name, count in counts.items())


def _by_operator(graph: Graph) -> Counter[str]:
    found: Counter[str] = Counter()
    for (kind, _), count in graph.items():
        found[kind] += count
    return found


def row(model: Path, threads: int) -> list[Any]:
    """The cells of one model."""
    cells: list[Any] = [model.stem]
    with tempfile.TemporaryDirectory() as folder:
        optimized = Path(folder) / model.name
        fuseline.optimize(str(model)).save(str(optimized))
        for read in RUNTIMES.values():
            before, after = read(model, threads), read(optimized, threads)
            cells += [f"{before.total()} -> {after.total()}", compared(before, after)]
    return cells


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    print(f"| model | {' | | '.join(RUNTIMES)} | |\n|{'---|' * (1 + 2 * len(RUNTIMES))}")
    for model in options.models:
        print(f"| {' | '.join(map(str, row(model, options.threads)))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
