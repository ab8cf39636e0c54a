"""The walk of docs/map.md, from an ONNX node to its machine code: of an earlier file a later one imports the value that
it is handed, a class, and nothing that does something."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "fuseline"
HEADING = "## One convolution, from the ONNX node to its machine code"
COMPILED_LIKE_KERNELS = "targets/cpu/link/scheduler.py"
"""Where the walk ends, at run time; made when a program is assembled, of kernel IR, by what makes code of kernels."""


def _walk() -> list[str]:
    text = (ROOT / "docs" / "map.md").read_text(encoding="utf-8")
    section = text.split(HEADING)[1].split("\n## ")[0]
    rows = [line.split("|")[2:4] for line in section.splitlines() if line.startswith("|")]
    return re.findall(r"`([\w/]+\.py)`", " ".join(part for row in rows for part in row))


WALK = _walk()


def _taken(file: str) -> dict[str, list[str]]:
    """What a file imports, by the file that has it."""
    found: dict[str, list[str]] = {}
    for node in ast.walk(ast.parse((SOURCE / file).read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("fuseline."):
            parts = node.module.split(".")[1:]
            found.setdefault("/".join(parts) + ".py", []).extend(alias.name for alias in node.names)
            for alias in node.names:
                found.setdefault("/".join([*parts, alias.name]) + ".py", []).append(f"the module {alias.name}")
    return found


def test_the_walk_is_there():
    assert len(WALK) > 30 and len(set(WALK)) == len(WALK)
    assert [file for file in WALK if not (SOURCE / file).is_file()] == []


@pytest.mark.parametrize("file", [file for file in WALK if file != COMPILED_LIKE_KERNELS])
def test_no_step_leads_up(file: str):
    taken = _taken(file)
    earlier = WALK[: WALK.index(file)]
    up = {one: [name for name in taken.get(one, ()) if not name[0].isupper()] for one in earlier}
    assert {one: names for one, names in up.items() if names} == {}
