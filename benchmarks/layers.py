"""Single layers against onnxruntime and the machine's peak, worst first: `python -m benchmarks.layers [group ...]
[--seconds 0.1] [--json]`.

One thread. A layer of images stands between two convolutions, as in a network, so that its image lies as the compiler
wants it; then the time is that of the dispatches that hold the layer, and onnxruntime's that of the same nodes, by its
profiler. Any other layer is a whole model, and its time that of a run.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime as ort

from benchmarks.kernels.timing import best
from benchmarks.layer_blocks import BLOCKS
from benchmarks.layer_models import Array, Layer
from benchmarks.layer_table import GROUPS as SINGLE
from fuseline.compilation import compile_program
from fuseline.interop import onnx_host
from fuseline.pipeline import CompileOptions
from fuseline.report.records import CompileRecord, DispatchRecord, decode
from fuseline.runtime import Artifact, Session
from fuseline.runtime.program import Command

GROUPS = SINGLE | BLOCKS

REPEATS = 16
"""Launches of a dispatch per run: one alone is below what a run costs."""


@dataclass(frozen=True)
class Row:
    """Seconds of a layer, ours and theirs; the rates are ours. `error`: the largest difference over the largest
    magnitude."""

    layer: str
    seconds: float
    peer_seconds: float
    ratio: float
    gflops: float
    gbytes: float
    error: float
    dispatches: list[str]


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("groups", nargs="*", default=list(GROUPS), help=f"of {', '.join(GROUPS)}")
    parser.add_argument("--seconds", type=float, default=0.1, help="time per layer and contender")
    parser.add_argument("--only", default="", help="layers whose name contains this")
    parser.add_argument("--json", action="store_true", help="one document instead of the table")
    options = parser.parse_args()
    onnx_host.install()
    rows: list[Row] = []
    for layer in (make() for group in options.groups for make in GROUPS[group]):
        if options.only in layer.name:
            rows.append(measure(layer, options.seconds))
            print(_line(rows[-1]), file=sys.stderr, flush=True)
    rows.sort(key=lambda row: -row.ratio)
    print(json.dumps([asdict(row) for row in rows], indent=1) if options.json else _table(rows))


def _table(rows: list[Row]) -> str:
    head = f"{'layer':44} {'us':>9} {'ort us':>9} {'ratio':>6} {'GFLOP/s':>8} {'GB/s':>6} {'error':>8}  dispatches"
    mean = float(np.exp(np.mean([np.log(row.ratio) for row in rows]))) if rows else 1.0
    return "\n".join(["", head, *(_line(row) for row in rows), f"geometric mean of {len(rows)} ratios: {mean:.3f}"])


def _line(row: Row) -> str:
    times = f"{row.seconds * 1e6:9.1f} {row.peer_seconds * 1e6:9.1f} {row.ratio:6.2f}"
    return f"{row.layer:44} {times} {row.gflops:8.1f} {row.gbytes:6.1f} {row.error:8.1e}  {', '.join(row.dispatches)}"


def measure(layer: Layer, seconds: float) -> Row:
    """Compile, compare, and time a layer."""
    artifact = compile_program(layer.model, CompileOptions(threads=1))
    session, peer = Session(artifact, threads=1), _peer(layer)
    error = _error(session.run(layer.feeds), peer.run(None, layer.feeds))
    own = _own(decode(artifact.records), layer)
    ours, theirs = _times(layer, artifact, own, (session, peer), seconds)
    moved = [int(str(n)) for d in own for n in (d.bytes_read, d.bytes_written)]
    families = [f"{d.family}{'' if len(d.members) < 2 else f'+{len(d.members) - 1}'}" for d in own]
    return Row(
        layer.name, ours, theirs, ours / theirs, layer.flops / ours / 1e9, sum(moved) / ours / 1e9, error, families
    )


def _peer(layer: Layer, profile: str = "") -> Any:
    options = ort.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    options.enable_profiling = bool(profile)
    options.profile_file_prefix = profile
    return ort.InferenceSession(layer.model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _error(found: Mapping[str, Array] | list[Array], expected: list[Array]) -> float:
    values = found.values() if isinstance(found, Mapping) else found
    return max(
        float(np.abs(np.asarray(a, np.float64) - b).max() / max(np.abs(b).max(), 1e-30))
        for a, b in zip(values, expected, strict=True)
    )


def _is_framed(layer: Layer) -> bool:
    return len(layer.nodes) < len(layer.model.graph.node)


def _own(record: CompileRecord, layer: Layer) -> list[DispatchRecord]:
    """The dispatches that hold the layer's own nodes; all of them where it has vanished into its neighbours."""
    return [d for d in record.dispatches if not layer.nodes.isdisjoint(_nodes(d))] or record.dispatches


def _nodes(dispatch: DispatchRecord) -> set[str]:
    return {node for member in dispatch.members for node in member.nodes}


def _times(
    layer: Layer, artifact: Artifact, own: list[DispatchRecord], sessions: tuple[Any, Any], seconds: float
) -> tuple[float, float]:
    if not _is_framed(layer):
        ours, theirs = best([lambda: sessions[0].run(layer.feeds), lambda: sessions[1].run(None, layer.feeds)], seconds)
        return ours, theirs
    names = {d.executable for d in own}
    commands = [c for c in artifact.program.steps if isinstance(c, Command) and c.label in names]
    many = tuple(c._replace(barrier=True) for c in commands) * REPEATS
    none, all_ = best([_repeated(artifact, steps, layer.feeds) for steps in ((), many)], seconds)
    return (all_ - none) / REPEATS, _profiled(layer, layer.nodes.union(*map(_nodes, own)), seconds)


def _repeated(artifact: Artifact, steps: tuple[Command, ...], feeds: Mapping[str, Array]) -> Callable[[], object]:
    part = artifact.program._replace(steps=steps, serial_below_ns=0)
    session = Session(artifact._replace(program=part, kernels=None), threads=1)  # which leaves outputs unwritten
    return lambda: session.run(feeds)


def _profiled(layer: Layer, nodes: frozenset[str], seconds: float) -> float:
    """The sum of the least times of `nodes` in onnxruntime."""
    with tempfile.TemporaryDirectory() as folder:
        session = _peer(layer, f"{folder}/layer")
        best([lambda: session.run(None, layer.feeds)], seconds)
        events: list[dict[str, Any]] = json.loads(Path(session.end_profiling()).read_text())
    outside = {n.name for n in layer.model.graph.node} - nodes
    times: dict[str, float] = {}
    for event in events:
        name = event["name"].removesuffix("_kernel_time")
        if event.get("cat") == "Node" and name != event["name"] and not _belongs(name, outside):
            times[name] = min(times.get(name, float("inf")), event["dur"] / 1e6)
    return sum(times.values())


def _belongs(name: str, outside: set[str]) -> bool:
    return name in outside or any(name.startswith(n + "_") for n in outside) or name.startswith("Reorder")


if __name__ == "__main__":
    main()
