"""What must hold of a model that `fuseline fuse` wrote: ONNX takes it, onnxruntime computes the same from it, and a
compile of it gives the same plan, an export the same model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort

import fuseline
from fuseline.exports.onnx.summary import FusedSummary

_RELATIVE = {2: 2e-3, 4: 1e-5, 8: 1e-12}
"""What float results may differ by, of the largest magnitude, by bytes of an element."""


@dataclass(frozen=True)
class Checked:
    """One model: what was exported, the largest difference of a float result (relative to what it may be; what is no
    float is equal), and whether plan and export come back."""

    summary: FusedSummary
    difference: float
    same_plan: bool
    same_export: bool

    @property
    def equal(self) -> bool:
        """Whether all results are as near as they must be."""
        return self.difference <= 1


def checked(model: Path | onnx.ModelProto, feeds: Mapping[str, Any], folder: Path, **options: Any) -> Checked:
    """Export `model` into `folder` and try all of it; raises AssertionError where something does not hold."""
    fused = fuseline.fuse(model, **options)
    path = folder / "fused.onnx"
    fused.save(path)
    onnx.checker.check_model(str(path), full_check=True)
    source: Any = str(model) if isinstance(model, Path) else model.SerializeToString()
    difference = compare(outputs(source, feeds), outputs(str(path), feeds))
    again = fuseline.fuse(path, **options)
    again.save(folder / "again.onnx")
    return Checked(
        fused.summary,
        difference,
        (fused.summary.plan, fused.summary.graph) == (again.summary.plan, again.summary.graph),
        path.read_bytes() == (folder / "again.onnx").read_bytes(),
    )


def outputs(model: str | bytes, feeds: Mapping[str, Any]) -> list[Any]:
    """What onnxruntime computes."""
    options = ort.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 2
    session: Any = ort.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, dict(feeds))


def compare(expected: list[Any], found: list[Any]) -> float:
    """The largest difference of float results, relative to the largest magnitude of each and to what it may be;
    everything else is equal, or AssertionError."""
    worst = 0.0
    assert len(expected) == len(found)
    for one, other in zip(expected, found, strict=True):
        if not isinstance(one, np.ndarray):
            assert str(one) == str(other)
            continue
        assert one.dtype == other.dtype and one.shape == other.shape
        if one.dtype.kind != "f":
            np.testing.assert_array_equal(one, other)
            continue
        np.testing.assert_array_equal(np.isfinite(one), np.isfinite(other))
        finite = np.isfinite(one)
        wide, scale = one[finite].astype(np.float64), float(np.abs(one[finite]).max(initial=0)) or 1.0
        difference = float(np.abs(wide - other[finite].astype(np.float64)).max(initial=0))
        worst = max(worst, difference / scale / _RELATIVE[one.dtype.itemsize])
    return worst
