"""How an operand of a root is read through its producers, as a value; `prologue.py` decides it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

PrologueKind = Literal["addressed", "segmented", "filtered", "boxed", "packed", "staged", "strips"]
"""What `prologue.py` lists."""


@dataclass(frozen=True, slots=True)
class Prologue:
    """How an operand is read through its producers.

    Attributes:
        kind: None where reading through them is not cheap; `reason` then says why. recompute: how often each element is
        evaluated in all, at most, at the sizes that are assumed; 1 where nothing is evaluated. Of images in strips, on
        the average of the padded image; below 1 where a root goes in steps, and leaves out what lies between them.
        beside_packed: the same where the other operand is packed, too. operations: arithmetic operations per
        evaluation. pieces: how many stored tensors the operand is read from, as segments. gathered: whether rows are
        traversed across memory, an element at a time.
    """

    kind: PrologueKind | None
    recompute: float = 1.0
    beside_packed: float = 1.0
    operations: float = 0
    pieces: int = 1
    gathered: bool = False
    reason: str = ""
