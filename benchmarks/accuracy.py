"""Rounding errors end to end against the same model in float64, beside onnxruntime's: `python -m benchmarks.accuracy
[--json] MODEL.onnx ...`.

Each model runs on the interpreter with every float32 widened to float64, then as `--numerics strict` and `default` and
in onnxruntime, all on the same inputs. Errors are relative to the largest magnitude of an output (`max`) and in the
root mean square (`rms`), the worst output of each. Limits: strict at most 4 times onnxruntime's error; default at most
16 times strict's RMS per layer (docs/numerics.md) and 1e-4 end to end.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import fuseline
from benchmarks.widened import in_float64
from fuseline.interop.peers import OnnxRuntime
from fuseline.verify.inputs import generate, hints_of

Arrays = Mapping[str, np.ndarray]
MODES = ("strict", "default")


def exact_outputs(model: onnx.ModelProto, feeds: Arrays) -> Arrays:
    """The outputs in float64."""
    program = fuseline.compile(in_float64(model), target="interpreter", fusion="none")
    dtypes = {item.name: item.dtype for item in program.inputs}
    return program.run({name: array.astype(dtypes[name]) for name, array in feeds.items()})


def errors(found: Arrays, exact: Arrays) -> dict[str, float]:
    """The worst `max` and `rms` error among the float outputs, relative to the output's largest magnitude."""
    worst = {"max": 0.0, "rms": 0.0}
    for name, expected in exact.items():
        if expected.dtype != np.float64:
            continue
        difference = np.abs(found[name].astype(np.float64) - expected)
        scale = float(np.abs(expected).max(initial=0.0)) or 1.0
        measured = {
            "max": float(difference.max(initial=0.0)) / scale,
            "rms": float(np.sqrt((difference**2).mean())) / scale,
        }
        worst = {key: max(value, measured[key]) for key, value in worst.items()}
    return worst


def accuracy(path: Path) -> dict[str, Any]:
    """The errors of each side on one model and their ratios to onnxruntime's."""
    model = onnx.load(path)
    described = fuseline.compile(path, target="null")
    feeds = generate(described.inputs, hints=hints_of(model))
    exact = exact_outputs(model, feeds)
    sides = {mode: fuseline.compile(path, numerics=mode).run(feeds) for mode in MODES}
    found = {
        side: errors(outputs, exact)
        for side, outputs in {**sides, "onnxruntime": OnnxRuntime(path, 1).run(feeds)}.items()
    }
    peer = found["onnxruntime"]
    ratios = {
        mode: {key: found[mode][key] / peer[key] if peer[key] else float("nan") for key in peer} for mode in MODES
    }
    return {"model": path.stem, "errors": found, "ratios": ratios}


def main() -> None:
    """One line per model, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    if not options.json:
        print(
            f"{'model':32} {'strict':>9} {'default':>9} {'ort':>9}  {'strict/ort':>10} {'default/ort':>11}   (rms; "
            f"ratio of rms, of max)"
        )
    for path in options.models:
        row = accuracy(path)
        print(json.dumps(row) if options.json else line(row), flush=True)


def line(row: Mapping[str, Any]) -> str:
    """One row of the table."""
    rms = " ".join(f"{row['errors'][side]['rms']:9.1e}" for side in (*MODES, "onnxruntime"))
    ratios = "  ".join(f"{row['ratios'][mode]['rms']:5.2f} {row['ratios'][mode]['max']:5.2f}" for mode in MODES)
    return f"{row['model']:32} {rms}  {ratios}"


if __name__ == "__main__":
    main()
