"""Attention with a mask of integers: `onnx.reference` puts minus infinity of a causal mask into the mask's own type,
which no integer holds."""

from __future__ import annotations

from typing import Any

from onnx.reference.op_run import OpRun

from fuseline.frontends.onnx.reference.corrections import Amended

MASK = 3
"""The place of the mask among the inputs."""


class Attention(Amended):
    """`Attention` whose mask of integers is added to the scores as numbers of their type."""

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        given = list(inputs)
        if len(given) > MASK and given[MASK] is not None and given[MASK].dtype.kind in "iu":
            given[MASK] = given[MASK].astype(given[0].dtype)
        return self.original(*given)


ATTENTION: tuple[type[OpRun], ...] = (Attention,)
"""What to give `ReferenceEvaluator` as `new_ops`."""
