"""Peak memory of a process that loads and runs a model, beside onnxruntime's: `python -m benchmarks.memory MODEL.onnx
...`.

Each side runs in a process of its own: import, load, two runs on the same generated inputs. The peak is the resident
set's high-water mark, and `anonymous` what is left of it without pages of mapped files, which the system may take back
at any time.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx

import fuseline
from fuseline.verify.inputs import generate, hints_of

PEAK = """
import json
fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
print(json.dumps({"peak": int(fields["VmHWM"].split()[0]), "anonymous": int(fields["RssAnon"].split()[0])}))
"""

OURS = """
import sys, numpy as np
from fuseline.runtime import load
session = load(sys.argv[1])
feeds = dict(np.load(sys.argv[2]))
session.run(feeds); session.run(feeds)
"""

PEER = """
import sys, numpy as np, onnxruntime
session = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
feeds = dict(np.load(sys.argv[2]))
session.run(None, feeds); session.run(None, feeds)
"""


def measured(script: str, model: Path, feeds: Path) -> dict[str, int]:
    """KiB of a fresh process that runs `script` on a model and saved inputs: the peak, and what of it is anonymous at
    the end."""
    return measured_in(script, model, feeds, os.environ)


def measured_in(script: str, first: Path, second: Path, environment: Mapping[str, str]) -> dict[str, int]:
    """The same with two paths that `script` knows what to do with, in an environment of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script + PEAK, str(first), str(second)],
        check=True,
        capture_output=True,
        text=True,
        env=environment,
    )
    return json.loads(done.stdout.splitlines()[-1])


def compare(model: Path, folder: Path) -> Mapping[str, Any]:
    """Both sides on one model."""
    program = fuseline.compile(model, cache=False)
    artifact, feeds = folder / "model.fuse", folder / "feeds.npz"
    program.save(artifact)
    inputs = generate(program.inputs, hints=hints_of(onnx.load(model, load_external_data=False)))
    np.savez(feeds, **inputs)  # pyright: ignore[reportArgumentType]
    return {
        "model": model.stem,
        "fuseline": measured(OURS, artifact, feeds),
        "onnxruntime": measured(PEER, model, feeds),
    }


def main() -> None:
    """One line per model, MiB."""
    print(f"{'model':32} {'ours':>8} {'anon':>8} {'ort':>8} {'anon':>8} {'ratio':>6}")
    for name in sys.argv[1:]:
        with tempfile.TemporaryDirectory() as folder:
            found = compare(Path(name), Path(folder))
        ours, peer = found["fuseline"], found["onnxruntime"]
        cells = (ours["peak"], ours["anonymous"], peer["peak"], peer["anonymous"])
        print(
            f"{found['model']:32} "
            + " ".join(f"{cell / 1024:8.1f}" for cell in cells)
            + f" {ours['peak'] / peer['peak']:6.2f}"
        )


if __name__ == "__main__":
    main()
