"""The model skeletons that lie beside the checkout (`../shared/models`, or where `FUSELINE_MODELS` says), filled into a
cache folder on first use."""

from __future__ import annotations

import importlib.util
import os
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import onnx
import platformdirs
import pytest

ROOT = Path(os.environ.get("FUSELINE_MODELS", Path(__file__).resolve().parents[3] / "shared" / "models"))


@cache
def _tool(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"skeleton_{name}", ROOT / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def filled(name: str) -> Path:
    """The path of a skeleton with its weights regenerated; skips the test where the skeletons are not at hand."""
    skeleton = ROOT / "skeletons" / f"{name}.onnx"
    if not skeleton.is_file():
        pytest.skip(f"no model skeletons at {ROOT}")
    target = Path(platformdirs.user_cache_dir("fuseline")) / "test-models" / f"{name}-{skeleton.stat().st_size}.onnx"
    if not target.is_file():
        target.parent.mkdir(parents=True, exist_ok=True)
        model = _tool("skeleton").fill(onnx.load(str(skeleton), load_external_data=False))
        temporary = target.with_suffix(f".{os.getpid()}.tmp")
        onnx.save(model, str(temporary))
        temporary.replace(target)
    return target


def inputs_of(path: Path, seed: int = 0) -> dict[str, Any]:
    """Feeds with the kinds and ranges that the model's metadata asks for."""
    return _tool("inputs").make_inputs(str(path), seed)
