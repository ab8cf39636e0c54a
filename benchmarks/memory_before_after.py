"""Peak memory of two checkouts of fuseline on the same models: `python -m benchmarks.memory_before_after --before
../before MODEL.onnx ...`.

Each model is compiled and saved in one fresh process, and loaded and run twice in another, by either checkout, nothing
from the cache. The peak is the resident set's high-water mark. Exit code 1 where a peak grows by more than `--limit`
(default 1.03: pages of libraries and of allocators come and go).
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx

import fuseline
from benchmarks.memory import OURS, measured_in
from fuseline.verify.inputs import generate, hints_of

ROOT = Path(__file__).resolve().parents[1]

COMPILE = """
import sys, fuseline
fuseline.compile(sys.argv[1], cache=False).save(sys.argv[2])
"""


def peaks(checkout: Path, model: Path, folder: Path) -> tuple[int, int]:
    """KiB that a compile and a run take at most."""
    artifact, feeds = folder / "model.fuse", folder / "feeds.npz"
    environment = {**os.environ, "PYTHONPATH": str(checkout / "src")}
    compiling = measured_in(COMPILE, model, artifact, environment)["peak"]
    return compiling, measured_in(OURS, artifact, feeds, environment)["peak"]


def save_feeds(model: Path, path: Path) -> None:
    """Inputs for a model, the same for both sides."""
    program = fuseline.compile(model)
    inputs = generate(program.inputs, hints=hints_of(onnx.load(model, load_external_data=False)))
    np.savez(path, **inputs)  # pyright: ignore[reportArgumentType]


def ratios(before: Path, model: Path) -> tuple[float, float]:
    """After / before, of compiling and of running; prints the row."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        save_feeds(model, folder / "feeds.npz")
        old, new = (peaks(checkout, model, folder) for checkout in (before, ROOT))
    compiling, running = (after / earlier for after, earlier in zip(new, old, strict=True))
    cells = " ".join(f"{value / 1024:9.1f}" for value in (old[0], new[0], old[1], new[1]))
    print(f"{model.stem:28} {cells} {compiling:8.3f} {running:8.3f}", flush=True)
    return compiling, running


def main() -> int:
    """One line per model, MiB."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True)
    parser.add_argument("--limit", type=float, default=1.03)
    parser.add_argument("models", nargs="+", type=Path)
    given = parser.parse_args()
    print(f"{'model':28} {'compile':>9} {'after':>9} {'run':>9} {'after':>9} {'compile':>8} {'run':>8}")
    largest = max(max(ratios(given.before, model)) for model in given.models)
    return int(largest > given.limit)


if __name__ == "__main__":
    sys.exit(main())
