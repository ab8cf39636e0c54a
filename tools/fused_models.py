"""The table of docs/onnx-export.md: what `fuseline fuse` makes of whole models, and whether it holds.

    python tools/fused_models.py model.onnx ..

Each is written with a function for each dispatch, checked by ONNX, run in onnxruntime beside the model itself on drawn
inputs, and written again from what was written.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import onnx

import fuseline
from fuseline.verify.inputs import generate, hints_of
from tests.fused import Checked, checked

_HEAD = ("model", "nodes", "dispatches", "functions", "that share one", "expanded", "repeated", "difference", "same")


def _row(path: Path) -> list[Any]:
    with TemporaryDirectory() as folder:
        found: Checked = checked(path, _feeds(path), Path(folder))
    one = found.summary
    together = sum(len(labels) for labels in one.shared)
    counts = [one.nodes, one.dispatches, one.functions, together, len(one.expanded), one.repeated]
    same = "yes" if found.same_plan and found.same_export else "NO"
    return [path.stem, *counts, f"{found.difference:.0e}", same]


def _feeds(path: Path) -> dict[str, Any]:
    program = fuseline.compile(path, target="null")
    return generate(program.inputs, hints=hints_of(onnx.load(str(path), load_external_data=False)))


def main(paths: list[Path]) -> None:
    print(f"| {' | '.join(_HEAD)} |")
    print(f"|---|{'---:|' * (len(_HEAD) - 2)}---|")
    for path in paths:
        print(f"| {' | '.join(map(str, _row(path)))} |", flush=True)


if __name__ == "__main__":
    main([Path(word) for word in sys.argv[1:]])
