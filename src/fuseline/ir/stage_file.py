"""A program as a text that is complete: IR, what is known besides (`program_facts.py`), and its weights, small ones in
the text, others in a file beside it (`weights_file.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext, Emitted
from fuseline.ir.program_facts import say_facts, take_facts
from fuseline.ir.tensor_file import DIGEST, TensorFile, write_tensors
from fuseline.ir.text import parse_module, print_module
from fuseline.ir.weights_file import INLINE_BYTES, SUFFIX, View, load_weights, name_weights, views_of, weights_beside
from fuseline.version import VERSION

WRITER = "fuseline"
"""What our files of weights say of themselves, and with it which version wrote them."""


@dataclass(eq=False)
class StageFile:
    """A program on its way to a file at `path`. `emitted`: what the text says of who writes it; None for a text that
    says nothing of itself. `number`: which module of the text it is."""

    module: ModuleOp
    ctx: CompilerContext
    path: Path
    emitted: Emitted | None
    locations: bool = True
    generic: bool = False
    number: int = 0
    digest: str = field(default="", init=False)

    @cached_property
    def weights(self) -> dict[str, NDArray[Any]]:
        """What goes into the file beside the text."""
        return weights_beside(self.module, self.ctx)

    @cached_property
    def views(self) -> dict[str, View]:
        """Those of the weights that lie in others."""
        return views_of(self.weights)

    @property
    def beside(self) -> Path:
        """The file of the weights; that of a further module of a text has its number in the name."""
        return self.path.with_suffix(f".{self.number}{SUFFIX}" if self.number else SUFFIX)

    def writers(self) -> dict[Path, Callable[[BinaryIO], object]]:
        """What writes the file of weights, where there are any to write: to be called before `text`. Raises
        FuselineError (E0502) where that would overwrite what is no file of ours."""
        if not self.weights:
            return {}
        require_ours(self.beside, self.path)
        return {self.beside: self._write}

    def _write(self, file: BinaryIO) -> None:
        stored = {name: array for name, array in self.weights.items() if name not in self.views}
        self.digest = write_tensors(file, stored, {WRITER: VERSION})

    def text(self) -> str:
        """The text, which names the weights that were written."""
        if self.weights:
            name_weights(self.module, self.beside.name, self.digest, self.views)
        return self.alone(INLINE_BYTES)

    def alone(self, limit: int) -> str:
        """The text without a file beside it: weights of more than `limit` bytes are names."""
        texts = None if self.emitted is None else say_facts(self.module, self.ctx, self.emitted)
        form = {"locations": self.locations, "generic": self.generic}
        return print_module(self.module, self.ctx, embed_limit=limit, texts=texts, **form)


def require_ours(beside: Path, text: Path) -> None:
    """Raises FuselineError (E0502) where the weights of `text` would overwrite something else: the text itself, or a
    file of tensors that somebody else wrote."""
    if beside == text:
        raise FuselineError("E0502", "the weights need this name", node=str(text), hint="call the text x.mlir")
    try:
        ours = not beside.exists() or beside.stat().st_size == 0 or DIGEST in TensorFile(beside).metadata
    except (FuselineError, OSError):
        ours = False
    if not ours:
        message = "the weights go here, and what is there is not of fuseline"
        raise FuselineError("E0502", message, node=str(beside), hint="move that file, or give another place with -o")


def read_stage(text: str, ctx: CompilerContext, name: str, folder: Path, *, first_line: int = 1) -> ModuleOp:
    """The module in `text`, its weights from the file in `folder` that it names, and in `ctx` what it says of itself.

    Raises FuselineError: E0301, E0302 for the text, E0308 for the weights, E0309 for a text of another format.
    """
    module = parse_module(text, ctx, name, first_line=first_line)
    take_facts(module, ctx)
    beside = load_weights(module, ctx, folder)
    if beside is not None:
        ctx.metadata["external_files"] = [beside.relative_to(folder).as_posix()]
    return module
