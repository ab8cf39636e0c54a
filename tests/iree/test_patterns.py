"""What IREE 3.13 cannot take, a program each: every one still fails, so that it is noticed when IREE mends it, and the
refusal in `targets/iree/limits.py` (or `backends.py`) can go.

The comment of a file says how: `fails: TEXT` (the compiler reports an error with this text), `crashes`, or `wrong` (it
compiles, and computes something else); `backend: NAME` where it is another than `llvm-cpu`.
"""

from __future__ import annotations

import importlib.util
import re
import subprocess
from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.interop.iree_runtime import Module
from fuseline.targets.iree.backends import backend_named
from fuseline.targets.iree.compiler import compile_text, tool
from fuseline.verify.inputs import generate
from tests.draws import RNG

FOLDER = Path(__file__).parent / "patterns"
PATTERNS = sorted(FOLDER.glob("*.mlir"))
DOCS = Path(__file__).parents[2] / "docs" / "iree.md"
_SAID = re.compile(r"^// (fails|crashes|wrong|backend)(?:: (.*))?$", re.MULTILINE)

needs_iree = pytest.mark.skipif(
    importlib.util.find_spec("iree") is None, reason="needs iree-base-compiler and iree-base-runtime"
)


def _said(path: Path) -> dict[str, str]:
    return dict(_SAID.findall(path.read_text()))


@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_a_pattern_is_described(path: Path):
    assert len({"fails", "crashes", "wrong"} & _said(path).keys()) == 1
    assert f"`{path.stem}`" in DOCS.read_text()


@pytest.mark.iree
@needs_iree
@pytest.mark.parametrize("path", PATTERNS, ids=lambda path: path.stem)
def test_iree_still_fails_on(path: Path):
    said = _said(path)
    arguments = backend_named(said.get("backend")).arguments("default")
    if "wrong" in said:
        assert _differs(path, arguments), "IREE computes it rightly now"
        return
    run = subprocess.run(
        [str(tool()), str(path), "-o", "/dev/null", *arguments], capture_output=True, text=True, check=False
    )
    assert run.returncode != 0, "IREE compiles it now"
    if "crashes" in said:
        assert run.returncode < 0 and said["crashes"] in run.stderr
    else:
        assert run.returncode > 0 and said["fails"] in run.stderr


def _differs(path: Path, arguments: list[str]) -> bool:
    plain = fuseline.compile(path, target="interpreter")
    feeds = generate(plain.inputs, seed=int(RNG.integers(1 << 30)))
    compiled = compile_text(path.read_text(), arguments)
    assert compiled.code, compiled.failures
    module = Module(np.frombuffer(compiled.code, np.int8), np.empty(0, np.int8), "local-task")
    found = module.call("main", list(feeds.values()))
    expected = plain.run(feeds).values()
    return not all(np.allclose(a, b, rtol=1e-4, atol=1e-5) for a, b in zip(found, expected, strict=True))
