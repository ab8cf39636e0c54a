"""Two checkouts of fuseline on the same models, interleaved in one run: time after / time before, for a change that
should cost nothing.

    git worktree add ../before COMMIT
    python benchmarks/before_after.py --before ../before [--threads 1] [--rounds 15] MODEL.onnx ...

Each checkout has a process of its own per model, which compiles it and then waits; the processes run in turn, never
together, and the order turns every round. Ratios are medians over rounds of paired medians. Exit code 1 where the
geometric mean is above 1.00 (within what such a run can tell), or a model is above `--limit`.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
GEOMETRIC_LIMIT = 1.005


def serve(model: Path, threads: int) -> None:
    """The process of one checkout: compile, say how long that took, then time as many runs as each line asks for."""
    import onnx

    import fuseline
    from fuseline.verify.inputs import generate, hints_of

    start = time.process_time()
    program = fuseline.compile(model, threads=threads)
    seconds = time.process_time() - start
    feeds = generate(program.inputs, hints=hints_of(onnx.load(str(model), load_external_data=False)))
    print(
        json.dumps(
            {
                "seconds": _median(lambda: program.run(feeds), 3),
                "compile": seconds,
                "dispatches": program.stats["dispatches"],
            }
        ),
        flush=True,
    )
    for line in sys.stdin:
        print(json.dumps(_median(lambda: program.run(feeds), int(line))), flush=True)


def _median(call: Callable[[], object], count: int) -> float:
    call()  # wakes threads and warms the caches that the other process has used
    times: list[float] = []
    for _ in range(count):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


class Contender:
    """A checkout with one model."""

    def __init__(self, checkout: Path, model: Path, threads: int) -> None:
        environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
        command = [sys.executable, __file__, "--serve", str(model), "--threads", str(threads)]
        self.process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.facts: dict[str, Any] = self._answer()

    def seconds(self, count: int) -> float:
        """The median of `count` runs."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{count}\n")
        self.process.stdin.flush()
        return self._answer()

    def close(self) -> None:
        """End the process."""
        self.process.communicate()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("the process has ended: see its message above")
        return json.loads(line)


def compare(model: Path, before: Path, after: Path, threads: int, rounds: int, round_seconds: float) -> dict[str, Any]:
    """The paired ratio of one model, and what each compile took."""
    contenders = [Contender(checkout, model, threads) for checkout in (before, after)]
    count = max(2, int(round_seconds / contenders[0].facts["seconds"]))
    times: list[list[float]] = [[], []]
    for number in range(rounds):
        for side in (0, 1) if number % 2 else (1, 0):
            times[side].append(contenders[side].seconds(count))
    for contender in contenders:
        contender.close()
    facts = [contender.facts for contender in contenders]
    return {
        "model": model.stem,
        "ratio": float(np.median(np.array(times[1]) / np.array(times[0]))),
        "seconds": [float(np.median(side)) for side in times],
        "compile_ratio": facts[1]["compile"] / facts[0]["compile"],
        "dispatches": [fact["dispatches"] for fact in facts],
    }


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--serve", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--before", type=Path)
    parser.add_argument("--after", type=Path, default=ROOT)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--round-seconds", type=float, default=0.2)
    parser.add_argument("--limit", type=float, default=1.03)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if options.serve is not None:
        serve(options.serve, options.threads)
        return 0
    if options.before is None or not options.models:
        parser.error("give --before CHECKOUT and models")
    rows: list[dict[str, Any]] = []
    for model in options.models:
        rows.append(
            compare(model, options.before, options.after, options.threads, options.rounds, options.round_seconds)
        )
        if not options.json:
            print(line(rows[-1]), flush=True)
    mean = float(np.exp(np.mean([np.log(row["ratio"]) for row in rows])))
    print(
        json.dumps({"models": rows, "geometric_mean": mean}) if options.json else f"{'geometric mean':<32} {mean:>7.3f}"
    )
    return int(mean > GEOMETRIC_LIMIT or any(row["ratio"] > options.limit for row in rows))


def line(row: dict[str, Any]) -> str:
    """One line of the table: ratio, times, compile ratio, dispatches before and after."""
    before, after = (1e3 * value for value in row["seconds"])
    dispatches = " -> ".join(map(str, row["dispatches"]))
    return (
        f"{row['model']:<32} {row['ratio']:>7.3f} {before:>10.3f} ms {after:>10.3f} ms  compile "
        f"{row['compile_ratio']:.2f}  {dispatches}"
    )


if __name__ == "__main__":
    sys.exit(main())
