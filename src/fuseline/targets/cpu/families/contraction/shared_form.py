"""What kernels of multiply-add roots have in common that are the same code up to numbers."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SharedForm:
    """What kernels have in common that are the same code up to numbers: tiles of `height` rows, and of one less where
    `short`; behind the whole panels one of so many columns as one of `rests` says; whether there are partial sums;
    whether accumulators go through scratch."""

    height: int
    short: bool
    rests: tuple[int, ...]
    in_partial_sums: bool
    stages: bool
