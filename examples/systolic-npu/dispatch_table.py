"""The dispatches of a model on the systolic NPU as a table in Markdown:

    python examples/systolic-npu/dispatch_table.py deeplabv3.onnx [4x4]

Products are M x N x K, of images height by width for M, of windows height by width by channels for K; as the model has
them, and as they are padded to the array and the grid of cores. `array` is how much of the time the arrays are at work.
What is `inside` are the nodes beside the root whose work is done in its dispatch; pads, slices and the like, which
the DMA does on the way, are counted.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import onnx

import fuseline

TARGET = Path(__file__).parent / "systolic_npu"

HEAD = "| | root | on | M x N x K | padded to | cores | array | cycles | inside | by DMA |"


def dispatches(model: str, variant: str) -> list[dict[str, Any]]:
    """The lines of the listing that are about dispatches, each executable of its own, so that it has its own nodes."""
    program = fuseline.compile(model, target=f"{TARGET}:{variant}", dedup="none")
    lines = program.to_bytes().decode().splitlines()
    return [json.loads(line.partition(" ")[2]) for line in lines if line.startswith("dispatch ")]


def table(model: str, variant: str = "4x4") -> str:
    """The table, and a line of totals."""
    rows = dispatches(model, variant)
    plain = {tuple(row["node"]): row for row in dispatches(model, f"{variant}-untiled")}
    lines = [HEAD, "|" + "---|" * (HEAD.count("|") - 1)]
    types = {node.name: node.op_type for node in onnx.load(model, load_external_data=False).graph.node}
    lines += [_row(row, plain.get(tuple(row["node"]), row), types) for row in rows]
    cycles, alone = sum(row["cycles"]["dispatch"] for row in rows), sum(row["only_moves"] for row in rows)
    inside = sum(len(row["inside"]) for row in rows)
    totals = f"{len(rows)} dispatches, {cycles:,} cycles; {inside} nodes inside of other nodes' dispatches"
    return "\n".join([*lines, "", f"{totals}; {alone} dispatches that only pad, transpose or copy"])


def _row(row: dict[str, Any], plain: dict[str, Any], types: dict[str, str]) -> str:
    cycles, grid = row["cycles"], " x ".join(map(str, row["grid"]))
    used = f"{cycles['array'] / cycles['dispatch']:.0%}" if cycles["array"] else ""
    moves, inside = _counted(row["moves"]), _counted(Counter(types.get(name, name) for name in row["inside"]))
    root = row["node"][-1] if row["node"] else row["name"]
    padded = _sizes(row) if _sizes(row) != _sizes(plain) else ""
    cells = (
        row["number"],
        root,
        row["unit"],
        _sizes(plain),
        padded,
        grid,
        used,
        f"{cycles['dispatch']:,}",
        inside,
        moves,
    )
    return f"| {' | '.join(map(str, cells))} |"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{count} {name}" if count > 1 else name for name, count in counts.items())


def _sizes(row: dict[str, Any]) -> str:
    """M, N and K, each a product of loops."""
    return " x ".join("·".join(map(str, row[name])) or "1" for name in "mnk") if "m" in row else ""


if __name__ == "__main__":
    sys.stdout.write(f"{table(*sys.argv[1:3])}\n")
