"""A program and the image that was linked for it: they come back as they were, and only together."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import pytest

import fuseline
from fuseline.runtime.linked import linked, loaded
from fuseline.runtime.memory import Bytes
from tests.graphs.onnx_text import onnx_model


def _artifact(body: str) -> Any:
    return fuseline.compile(
        onnx_model(f"(float[2,3] x) => (float[2,3] y) <int64 one = {{1}}> {{ {body} }}")
    ).session.artifact


def _linked(artifact: Any) -> Any:
    return linked(artifact.program, bytes(artifact.code), artifact.entries, artifact.fixups, artifact.kernels)


def _bytes(data: bytes) -> Bytes:
    return np.frombuffer(data, np.uint8)


def test_what_is_linked_is_loaded():
    artifact = _artifact("y = Exp (x)")
    held = _linked(artifact)
    found = loaded(json.loads(json.dumps(held.program)), _bytes(held.image), artifact.constants)
    assert found["program"] == artifact.program and bytes(found["code"]) == bytes(artifact.code)
    assert dict(found["entries"]) == dict(artifact.entries)
    assert [tuple(fixup) for fixup in found["fixups"]] == [tuple(fixup) for fixup in artifact.fixups]
    assert found["constants"] == tuple(artifact.constants)


def test_the_image_of_another_program_is_refused():
    first, second = (
        _linked(_artifact(body)) for body in ("y = Exp (x)", "z = Abs (x) y = Transpose <perm = [0, 1]> (z)")
    )
    with pytest.raises(ValueError, match="is not the one that the code was linked for"):
        loaded(first.program, _bytes(second.image), ())


def test_a_changed_program_is_refused():
    held = _linked(_artifact("y = Exp (x)"))
    changed = copy.deepcopy(held.program)
    changed["another"] = 1
    with pytest.raises((ValueError, KeyError, TypeError)):
        loaded(changed, _bytes(held.image), ())
    with pytest.raises((ValueError, KeyError, TypeError)):
        loaded({}, _bytes(held.image), ())


def test_a_cut_image_is_refused():
    held = _linked(_artifact("y = Exp (x)"))
    for size in (0, 1, len(held.image) // 2, len(held.image) - 1):
        with pytest.raises((ValueError, KeyError, TypeError, IndexError)):
            loaded(held.program, _bytes(held.image[:size]), ())
