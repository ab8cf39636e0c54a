"""What trials of tests compile: a configuration is arguments of the compile, and one word says what goes wrong."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from fuseline.tuning.setting import SearchSetting
from tests.graphs.onnx_text import onnx_model

TEXT = """(float[4, 8] x) => (y) {
    a = Exp(x)
    b = MatMul(a, w)
    y = Tanh(b)
}"""

OTHER = TEXT.replace("Tanh", "Sigmoid")


def written(folder: Path, text: str = TEXT, name: str = "m.onnx", **weights: Any) -> Path:
    """The model as a file."""
    path = folder / name
    path.write_bytes(onnx_model(text, **weights).SerializeToString())
    return path


def plain(setting: SearchSetting, configuration: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Choices are arguments."""
    del folder
    return {**setting.options, **configuration}


def harmful(setting: SearchSetting, configuration: Mapping[str, str], folder: Path) -> dict[str, Any]:
    """Choices are arguments, but for `harm`."""
    harm = configuration.get("harm")
    if harm == "raise":
        raise ValueError("nobody foresaw this")
    if harm == "memory":
        raise MemoryError
    if harm == "fault":
        os.kill(os.getpid(), signal.SIGSEGV)
    if harm == "exit":
        os._exit(3)
    if harm == "hang":
        time.sleep(600)
    return plain(setting, {name: choice for name, choice in configuration.items() if name != "harm"}, folder)
