"""The IR as text after passes, for readers: to follow what each one does, or to find the one that did it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from fuseline.ir.context import CompilerContext
from fuseline.ir.text import print_module

START = "input"
"""What an observer of passes is told first: the program as it was read."""

PRINTED_WEIGHT_BYTES = 256
"""Weights up to this size are printed with the IR that people read; a larger one is a name."""


@dataclass(eq=False)
class PrintedAfter:
    """An observer of passes: hands the name of a pass (`layout/fold-unit-dims`) and the IR after it to `put`.

    `named`: the passes, and phases with all of theirs, that are printed each time they run; None for
    every pass that changed the text of the IR.
    """

    put: Callable[[str, str], None]
    named: frozenset[str] | None = None
    _before: str = ""

    def __call__(self, position: str, module: ModuleOp, ctx: CompilerContext) -> None:
        """`position`: the pass that has run, behind its phase where it ran in one; `START` before the first."""
        if self.named is not None and self.named.isdisjoint(position.split("/")):
            return
        text = print_module(module, ctx, embed_limit=PRINTED_WEIGHT_BYTES)
        if position != START and (self.named is not None or text != self._before):
            self.put(position, text)
        self._before = text
