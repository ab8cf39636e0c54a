"""Replay: a refactor must regenerate identical IR.

Writes the IR of every test model after dispatch formation twice, from the working tree and from another commit (in a
git worktree under `.replay/`), and prints the difference. Exit code 1 when there is one.

    python tools/replay.py [--base main] [--stage dispatch] [MODEL-NAME-REGEX]
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".replay"
LINES_SHOWN = 40


def write_stages(folder: Path, stage: str, wanted: str) -> None:
    """The IR of every test model after `stage`, one file each; what cannot be compiled leaves its error as text."""
    from fuseline.api import emit
    from fuseline.errors import FuselineError

    folder.mkdir(parents=True)
    for name, model in _models(wanted):
        try:
            text = emit(model, stage, threads=1)
        except FuselineError as error:
            text = f"{error}\n"
        (folder / f"{name}.mlir").write_text(text)


def _models(wanted: str) -> list[tuple[str, Any]]:
    import onnx

    from tests.small_models import SMALL_MODELS

    light = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    small = [(name, make()) for name, make in SMALL_MODELS.items() if re.search(wanted, name)]
    return small + [(path.stem, path) for path in sorted(light.glob("*.onnx")) if re.search(wanted, path.stem)]


def _generate(source: Path, folder: Path, stage: str, wanted: str) -> None:
    """Runs this file in a fresh process with the compiler of `source`."""
    shutil.rmtree(folder, ignore_errors=True)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(source / "src"), str(ROOT)])}
    subprocess.run(
        [sys.executable, __file__, "--write", str(folder), "--stage", stage, wanted], env=environment, check=True
    )


def _checkout(base: str) -> Path:
    place = PLACE / "base"
    subprocess.run(["git", "worktree", "remove", "--force", str(place)], cwd=ROOT, check=False, capture_output=True)
    shutil.rmtree(place, ignore_errors=True)
    subprocess.run(["git", "worktree", "prune"], cwd=ROOT, check=True)
    subprocess.run(["git", "worktree", "add", "--quiet", "--detach", str(place), base], cwd=ROOT, check=True)
    return place


def differences(before: Path, after: Path) -> dict[str, list[str]]:
    """Model name to the lines of its diff, for the models that differ."""
    found: dict[str, list[str]] = {}
    for name in sorted({path.name for folder in (before, after) for path in folder.glob("*.mlir")}):
        old, new = (_lines(folder / name) for folder in (before, after))
        if old != new:
            found[name] = list(difflib.unified_diff(old, new, f"base/{name}", f"tree/{name}", lineterm="", n=1))
    return found


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def replay(base: str, stage: str, wanted: str) -> int:
    """Compares the working tree with `base`; 0 for no difference."""
    checkout = _checkout(base)
    try:
        _generate(checkout, PLACE / "before", stage, wanted)
    finally:
        subprocess.run(["git", "worktree", "remove", "--force", str(checkout)], cwd=ROOT, check=False)
    _generate(ROOT, PLACE / "after", stage, wanted)
    found = differences(PLACE / "before", PLACE / "after")
    for lines in found.values():
        print("\n".join(lines[:LINES_SHOWN]))
        print(f"... {len(lines) - LINES_SHOWN} more lines; see .replay/" if len(lines) > LINES_SHOWN else "")
    count = len(list((PLACE / "after").glob("*.mlir")))
    print(f"replay against {base}: {len(found)} of {count} models differ" + "".join(f"\n  {name}" for name in found))
    return 1 if found else 0


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="?", default="", help="a regular expression; default: all")
    parser.add_argument("--base", default="main", help="the commit to compare with")
    parser.add_argument("--stage", default="dispatch", help="the stage whose IR is compared")
    parser.add_argument("--write", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write is not None:
        write_stages(arguments.write, arguments.stage, arguments.models)
        return 0
    return replay(arguments.base, arguments.stage, arguments.models)


if __name__ == "__main__":
    sys.exit(main())
