"""`make bench`: every given model against onnxruntime and OpenVINO at 1 and 2 threads, one table.

    python benchmarks/models.py [--threads 1,2] [--rounds N] MODEL.onnx ...

Without models: the light topologies of the onnx wheel with seeded weights. Each model runs in its own process, all
contenders of one model interleaved in that process. Quote the ratios, never the times: they are paired within one run,
the machine is not the same tomorrow.
"""

from __future__ import annotations

import argparse
import json
import math
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any


def seeded_topologies(folder: Path) -> list[Path]:
    """The wheel's topologies with seeded weights, written into `folder`."""
    import onnx

    from fuseline.verify.seeded_weights import with_seeded_weights

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    paths: list[Path] = []
    for source in sorted(light.glob("*.onnx")):
        paths.append(folder / source.name.removeprefix("light_"))
        onnx.save(with_seeded_weights(onnx.load(source)), paths[-1])
    return paths


def measure(model: Path, threads: str, rounds: int, peers: str) -> list[dict[str, Any]]:
    """The results of `fuseline bench --json` for one model; one row with the error where it failed."""
    command = [
        sys.executable,
        "-m",
        "fuseline",
        "bench",
        str(model),
        "--vs",
        peers,
        "--threads",
        threads,
        "--rounds",
        str(rounds),
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    if "error" in document:
        return [{"threads": threads, "error": f"{document['error']['code']}: {document['error']['message']}"}]
    return document["results"]


def line(model: Path, row: dict[str, Any]) -> str:
    """One line of the table."""
    if "error" in row:
        return f"{model.stem:<32} {row['threads']:>7}  {row['error']}"
    medians = " ".join(f"{1e3 * value:>10.3f}" for value in row["median_seconds"].values())
    ratio = row["ratios"][row["best_peer"]]
    error = max(row["relative_error"].values())
    return (
        f"{model.stem:<32} {row['threads']:>7} {medians} {ratio['value']:>7.3f} [{ratio['low']:.3f}, "
        f"{ratio['high']:.3f}] {error:>9.1e}"
    )


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", type=Path)
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--vs", default="onnxruntime,openvino")
    arguments = parser.parse_args()
    print(
        f"{'model':<32} threads   fuseline {' '.join(f'{name:>10}' for name in arguments.vs.split(','))} ms   ratio "
        f"to the best [95 %]    error"
    )
    ratios: dict[int, list[float]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for model in arguments.models or seeded_topologies(Path(folder)):
            for row in measure(model, arguments.threads, arguments.rounds, arguments.vs):
                print(line(model, row), flush=True)
                if "error" not in row:
                    ratios.setdefault(row["threads"], []).append(row["ratio_best_peer"])
    for threads, values in ratios.items():
        print(
            f"geometric mean at {threads} threads over {len(values)} models: "
            f"{math.exp(sum(map(math.log, values)) / len(values)):.3f}"
        )


if __name__ == "__main__":
    main()
