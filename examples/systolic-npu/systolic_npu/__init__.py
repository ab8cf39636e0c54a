"""A systolic NPU: a grid of cores, each with a weight-stationary array of 16 by 16 and a vector unit behind it. Writes
instructions and cycle counts.

`machine` is what the NPU is, `vetoes` what it does not take, `plan` how a dispatch runs on it, `target` what fuseline
asks.
"""

from __future__ import annotations

from .machine import machine
from .target import NpuTarget


def create(variant: str | None, threads: int | None, numerics: str) -> NpuTarget:
    """The NPU with a grid of cores, `4x4` if left out; `4x4-untiled` takes extents as they are. Raises E0501."""
    return NpuTarget(machine(variant), numerics)
