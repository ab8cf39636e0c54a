"""What sharing executables costs: time at a level of `--dedup` / time at `none`, interleaved in one process.

    python -m benchmarks.dedup [--level constants] [--rounds 50] [--threads 2] [--limit 1.02] MODEL.onnx ...

Prints per model executables and bytes of code at both levels, the median of the paired ratios and its interval of 95 %.
Exit code 1 where the upper end of an interval is above `--limit`, or results are not equal.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import onnx

import fuseline
from fuseline.passes.dedup.levels import LEVELS
from fuseline.verify.inputs import generate, hints_of
from fuseline.verify.measure import Ratio, interleaved, paired_ratio


@dataclass(frozen=True, slots=True)
class Row:
    """One model: executables and bytes of code at `none` and at the level, the ratio, and whether all results are
    equal, bit by bit."""

    executables: tuple[int, int]
    code_bytes: tuple[int, int]
    ratio: Ratio
    equal: bool


def measure(model: Path, level: str, threads: int, rounds: int, round_seconds: float) -> Row:
    """Both levels on the same random inputs, in turn."""
    programs = {name: fuseline.compile(model, threads=threads, dedup=name) for name in ("none", level)}
    own, shared = programs["none"], programs[level]
    feeds = generate(own.inputs, hints=hints_of(onnx.load(str(model), load_external_data=False)))
    results = zip(own.run(feeds).values(), shared.run(feeds).values(), strict=True)
    equal = all(np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in results)
    calls = {name: partial(program.run, feeds) for name, program in programs.items()}
    times = interleaved(calls, rounds=rounds, round_seconds=round_seconds)
    return Row(
        (own.stats["executables"], shared.stats["executables"]),
        (own.stats["code_bytes"], shared.stats["code_bytes"]),
        paired_ratio(times[level], times["none"]),
        equal,
    )


def line(model: Path, row: Row) -> str:
    """One line of the table."""
    ratio = f"{row.ratio.value:>7.3f}  {row.ratio.low:.3f} .. {row.ratio.high:.3f}"
    counts = f"{row.executables[0]:>4} -> {row.executables[1]:<4} {row.code_bytes[0]:>8} -> {row.code_bytes[1]:<8}"
    return f"{model.stem:<28} {counts} {ratio}  {'equal' if row.equal else 'NOT EQUAL'}"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--level", default="constants", choices=[level for level in LEVELS if level != "none"])
    parser.add_argument("--rounds", type=int, default=50)
    parser.add_argument("--round-seconds", type=float, default=0.1)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--limit", type=float, default=1.02)
    options = parser.parse_args()
    failed = False
    print(f"{'model':<28} executables        bytes of code     time at {options.level} / none, and 95 %")
    for model in options.models:
        row = measure(model, options.level, options.threads, options.rounds, options.round_seconds)
        print(line(model, row), flush=True)
        failed = failed or row.ratio.high > options.limit or not row.equal
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
