"""Recipes by group; importing this fills the table."""

from __future__ import annotations

from tests.fuzz.recipes import (
    casts,
    contraction,
    control_flow,
    convolution,
    elementwise,
    indexing,
    movement,
    normalization,
    quantization,
    recurrent,
    reductions,
    resampling,
    sequences,
    shape_values,
    strings,
)

GROUPS = (
    casts,
    contraction,
    control_flow,
    convolution,
    elementwise,
    indexing,
    movement,
    normalization,
    quantization,
    recurrent,
    reductions,
    resampling,
    sequences,
    shape_values,
    strings,
)
