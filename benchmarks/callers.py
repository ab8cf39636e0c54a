"""How one session serves several callers: runs per second from N threads, against one thread alone and onnxruntime.

    python -m benchmarks.callers [--callers 1,2,4] [--threads 1] [--rounds 20] MODEL.onnx ...

Every round measures, in turn, each contender with each number of callers for `--round-seconds`; printed are medians of
runs per second and of the paired ratios: N callers / one caller of the same session, and ours / onnxruntime's at N.
`async` are as many runs in flight by `run_async`, from one thread. All callers feed arrays of their own; what they get
is compared with what the same feeds gave alone, bit by bit.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime

import fuseline
from fuseline.compiled_model import CompiledModel
from fuseline.verify.inputs import generate, hints_of

Feeds = Mapping[str, Any]
Load = Callable[[float], float]
"""Serves for so many seconds; answers runs per second."""


def from_threads(run: Callable[[Feeds], Any], feeds: Sequence[Feeds]) -> Load:
    """One thread for each of `feeds`, calling over and over."""

    def serve(seconds: float) -> float:
        counts = [0] * len(feeds)
        start = threading.Barrier(len(feeds) + 1)
        end = [0.0]

        def call(i: int) -> None:
            start.wait()
            while time.perf_counter() < end[0]:
                run(feeds[i])
                counts[i] += 1

        callers = [threading.Thread(target=call, args=(i,)) for i in range(len(feeds))]
        for caller in callers:
            caller.start()
        begin = time.perf_counter()
        end[0] = begin + seconds
        start.wait()
        for caller in callers:
            caller.join()
        return sum(counts) / (time.perf_counter() - begin)

    return serve


def in_flight(model: CompiledModel, feeds: Sequence[Feeds]) -> Load:
    """As many runs under way as there are `feeds`, started by one thread."""

    def serve(seconds: float) -> float:
        begin, count = time.perf_counter(), 0
        waiting = deque((i, model.run_async(one)) for i, one in enumerate(feeds))
        while time.perf_counter() - begin < seconds:
            i, future = waiting.popleft()
            future.result()
            count += 1
            waiting.append((i, model.run_async(feeds[i])))
        for _, future in waiting:
            future.result()
        return (count + len(waiting)) / (time.perf_counter() - begin)

    return serve


def is_shared_safely(model: CompiledModel, feeds: Sequence[Feeds], seconds: float = 1.0) -> bool:
    """Whether callers beside each other get what each gets alone."""
    alone = [model.run(one) for one in feeds]
    wrong: list[int] = []

    def checked(one: Feeds) -> None:
        i = next(i for i, other in enumerate(feeds) if other is one)
        found = model.run(one)
        equal = (np.array_equal(found[k], v, equal_nan=v.dtype.kind == "f") for k, v in alone[i].items())
        if not all(equal):
            wrong.append(i)

    from_threads(checked, feeds)(seconds)
    return not wrong


def contenders(
    path: Path, threads: int, callers: Sequence[int]
) -> tuple[CompiledModel, dict[tuple[str, int], Load], list[Feeds]]:
    """Every way to serve the model, by name and number of callers."""
    model = fuseline.compile(path, threads=threads)
    hints = hints_of(onnx.load(str(path), load_external_data=False))
    feeds: list[Feeds] = [generate(model.inputs, seed=i, hints=hints) for i in range(max(callers))]
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    peer = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    found: dict[tuple[str, int], Load] = {}
    for n in callers:
        found["ours", n] = from_threads(model.run, feeds[:n])
        found["async", n] = in_flight(model, feeds[:n])
        found["onnxruntime", n] = from_threads(lambda one: peer.run(None, dict(one)), feeds[:n])
    return model, found, feeds


def measure(path: Path, threads: int, callers: Sequence[int], rounds: int, seconds: float) -> None:
    """Prints the table of one model."""
    model, loads, feeds = contenders(path, threads, callers)
    safe = is_shared_safely(model, feeds)
    for load in loads.values():
        load(seconds / 4)
    rates: dict[tuple[str, int], list[float]] = {key: [] for key in loads}
    for _ in range(rounds):
        for key, load in loads.items():
            rates[key].append(load(seconds))
    print(f"{path.stem}, {threads} threads a run, results {'equal' if safe else 'NOT EQUAL'}")
    for name, n in rates:
        one, peer = rates[name, callers[0]], rates["onnxruntime", n]
        scaled = statistics.median(a / b for a, b in zip(rates[name, n], one, strict=True))
        beside = statistics.median(a / b for a, b in zip(rates[name, n], peer, strict=True))
        rate = statistics.median(rates[name, n])
        said = f"{rate:>9.1f} runs/s  x{scaled:.2f} of {callers[0]}  {beside:.2f} of onnxruntime"
        print(f"  {name:<12} {n:>3} callers {said}")


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--callers", default="1,2,4")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--round-seconds", type=float, default=0.3)
    options = parser.parse_args()
    callers = [int(n) for n in options.callers.split(",")]
    for model in options.models:
        measure(model, options.threads, callers, options.rounds, options.round_seconds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
