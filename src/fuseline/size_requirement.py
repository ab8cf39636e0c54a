"""What must hold between two sizes for a program to be right: one value for the compiler that finds it out and for the
runtime that checks it.

Sizes are `fuseline.ir.dim.Dim` while a program is compiled and `fuseline.runtime.sizes.Size` in the program.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple, TypeAlias, get_args

Relation: TypeAlias = Literal["equal", "at_least", "differ"]
"""What a requirement says of its two sizes."""

RELATIONS: frozenset[str] = frozenset(get_args(Relation))


class SizeRequirement(NamedTuple):
    """`left` and `right` must be equal when the program runs (or, `at_least`: `left` no smaller; `differ`: not equal):
    `node` (the model's name for it) takes them to be."""

    left: Any
    right: Any
    node: str
    relation: Relation = "equal"
