"""The runtime: loads artifacts and runs them. Needs NumPy and the standard library only; no compiler part is
imported."""

from __future__ import annotations

from fuseline.buffers import TensorSpec as TensorSpec
from fuseline.runtime import branches as branches  # registers its executor
from fuseline.runtime import index_values as index_values  # registers its executor
from fuseline.runtime import repeats as repeats  # registers its executor
from fuseline.runtime.artifact import Artifact, read_artifact
from fuseline.runtime.session import Session, load

__all__ = ["Artifact", "Session", "TensorSpec", "load", "read_artifact"]
