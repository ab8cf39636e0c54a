"""Values that bounds decide: the side that a minimum or maximum always is, a quotient or rest that is one number."""

from __future__ import annotations

from typing import Any, Protocol

from fuseline.targets.cpu.kernel_ir.affine import Affine
from fuseline.targets.cpu.kernel_ir.types import Value


class Known(Protocol):
    """What is known about index values (`IndexBounds`)."""

    def form(self, operand: Any) -> Affine:
        """An index value as an affine form."""
        ...

    def most(self, form: Affine) -> int | None:
        """A number that `form` does not exceed, whatever the conditions in force; None if none is found."""
        ...

    def least(self, form: Affine) -> int | None:
        """A number that `form` is not below, whatever the conditions in force; None if none is found."""
        ...


def side_of(known: Known, extreme: Value) -> Affine | None:
    """The side that a minimum or maximum always is; None where that is not known."""
    sides = [known.form(arg) for arg in extreme.args]
    for side, other in (sides, sides[::-1]):
        above = side.plus(other, -1) if extreme.op == "min" else other.plus(side, -1)
        most = known.most(above)
        if most is not None and most <= 0:
            return side
    return None


def number_of(known: Known, form: Affine) -> Affine | None:
    """The number that a form always is; None where it may be several, or nobody knows."""
    least, most = known.least(form), known.most(form)
    return Affine(least) if least is not None and least == most else None
