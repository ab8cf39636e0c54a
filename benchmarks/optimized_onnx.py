"""What `fuseline fuse --optimized` gains in other runtimes: time after / time before, interleaved in one process.

    python -m benchmarks.optimized_onnx [--threads 1,2] [--vs onnxruntime,openvino] [--rounds 15] [--json] MODEL ...

Without models: DeepLabV3 as tf2onnx writes it, ShuffleNets whose shuffles are spelled out (generated weights), and the
light topologies of the onnx wheel with seeded weights. A model whose graph is not changed but for names and constants
is measured, too. `ratio` is the median over rounds of the ratio of medians, `least` the ratio of the fastest runs; the
order of both models turns every round. Exit code 1 where outputs differ by more than 1e-5 of the largest magnitude, or
a ratio is above `--limit`.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import fuseline
from benchmarks.models import seeded_topologies
from benchmarks.shufflenets import shufflenet_v1, shufflenet_v2
from benchmarks.tf_deeplab import Spelling, tf_deeplab
from fuseline.interop.peers import Runner, load_peer
from fuseline.verify.inputs import generate, hints_of

GENERATED: dict[str, Callable[[], onnx.ModelProto]] = {
    "tf_deeplab": tf_deeplab,
    "tf_deeplab_depth": lambda: tf_deeplab(spelling=Spelling(depth=True, clip=True, merged=True)),
    "shufflenet_v1": shufflenet_v1,
    "shufflenet_v1_sliced": lambda: shufflenet_v1(spelling="sliced"),
    "shufflenet_v2_half": lambda: shufflenet_v2(width=0.5),
    "shufflenet_v2": shufflenet_v2,
    "shufflenet_v2_sliced": lambda: shufflenet_v2(spelling="sliced"),
}
DIFFERENCE = 1e-5


@dataclass(frozen=True)
class Row:
    """One model in one runtime: seconds of a run before and after (medians), the ratios, the largest difference of
    results relative to the largest magnitude, and the nodes before and after."""

    model: str
    runtime: str
    threads: int
    before: float
    after: float
    ratio: float
    least: float
    difference: float
    nodes: tuple[int, int]


def generated(folder: Path) -> Iterator[Path]:
    """The generated models, written into `folder`."""
    for name, make in GENERATED.items():
        path = folder / f"{name}.onnx"
        onnx.save(make(), path)
        yield path


def rows(model: Path, options: argparse.Namespace) -> Iterator[Row]:
    """The rows of one model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "optimized.onnx"
        optimized = fuseline.optimize(model)
        optimized.save(path)
        nodes = optimized.summary.before.total(), optimized.summary.after.total()
        del optimized
        feeds = _feeds(model)
        for runtime in options.vs.split(","):
            for threads in map(int, options.threads.split(",")):
                peers = [load_peer(runtime, each, threads) for each in (model, path)]
                runners = [peer.bind(feeds) for peer in peers]
                different = difference(*([np.array(one) for one in run()] for run in runners))
                times = interleaved(runners, options.rounds, options.seconds)
                before, after = (float(np.median(side)) for side in times)
                ratio = float(np.median(np.median(times[1], axis=1) / np.median(times[0], axis=1)))
                least = float(times[1].min() / times[0].min())
                yield Row(model.stem, runtime, threads, before, after, ratio, least, different, nodes)


def _feeds(model: Path) -> dict[str, Any]:
    proto = onnx.load(str(model), load_external_data=False)
    program = fuseline.compile(model, target="null")
    return generate(program.inputs, hints=hints_of(proto))


def interleaved(runners: list[Runner], rounds: int, seconds: float) -> list[np.ndarray]:
    """Seconds of single runs by round, for each runner; a round takes about `seconds` of each."""
    count = max(3, int(seconds / max(_seconds(runners[0]), 1e-6)))
    times = [np.zeros((rounds, count)) for _ in runners]
    for number in range(rounds):
        order = range(len(runners))
        for side in order if number % 2 else reversed(order):
            runners[side]()  # what the other one has left in the caches
            times[side][number] = [_seconds(runners[side]) for _ in range(count)]
    return times


def _seconds(run: Runner) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def difference(expected: list[Any], found: list[Any]) -> float:
    """The largest difference of two lists of results, relative to the largest magnitude of each."""
    worst = 0.0
    for one, other in zip(expected, found, strict=True):
        scale = float(np.abs(one.astype(np.float64)).max(initial=0)) or 1.0
        worst = max(worst, float(np.abs(one.astype(np.float64) - other).max(initial=0)) / scale)
    return worst


def line(row: Row) -> str:
    """One line of the table."""
    return (
        f"{row.model:<32} {row.runtime:<12} {row.threads:>2} {1e3 * row.before:>9.2f} {1e3 * row.after:>9.2f} "
        f"{row.ratio:>7.3f} {row.least:>7.3f} {row.difference:>9.1e}  {row.nodes[0]} -> {row.nodes[1]}"
    )


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--vs", default="onnxruntime,openvino")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--seconds", type=float, default=0.1, help="of each round, for each of the two")
    parser.add_argument("--limit", type=float, default=1.02)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found: list[Row] = []
    if not options.json:
        print(f"{'model':<32} {'runtime':<12} th before ms  after ms   ratio   least difference  nodes")
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        for model in options.models or [*generated(place), *seeded_topologies(place)]:
            for row in rows(model, options):
                found.append(row)
                if not options.json:
                    print(line(row), flush=True)
    if options.json:
        print(json.dumps([asdict(row) for row in found]))
    return int(any(row.difference > DIFFERENCE or row.ratio > options.limit for row in found))


if __name__ == "__main__":
    sys.exit(main())
