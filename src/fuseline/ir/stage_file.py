"""A program as a text that is complete: IR, what is known besides (`program_facts.py`), and its weights, small ones in
the text, others in a file beside it (`weights_file.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import Any, BinaryIO

from numpy.typing import NDArray
from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import DenseResourceAttr, ModuleOp, StringAttr

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext, Emitted, new_context
from fuseline.ir.program_facts import body_digest, say_facts, take_facts, with_body_digest
from fuseline.ir.tensor_file import DIGEST, TensorFile, write_tensors, wrong
from fuseline.ir.text import parse_module, print_module
from fuseline.ir.weights_file import (
    INLINE_BYTES,
    SUFFIX,
    View,
    file_name,
    load_weights,
    name_weights,
    views_of,
    weights_beside,
)
from fuseline.version import VERSION

LITERAL_ATTRIBUTE = "fuseline.literal"
"""The file of the program for sizes that broadcast as they are, a path from the folder of the text."""

LITERAL_SUFFIX = ".literal.mlir"

WRITER = "fuseline"
"""What our files of weights say of themselves, and with it which version wrote them."""


@dataclass(eq=False)
class StageFile:
    """A program on its way to a file at `path`. `emitted`: what the text says of who writes it; None for a text that
    says nothing of itself. `number`: which module of the text it is. `literal`: the program for sizes that broadcast as
    they are (`fallback.py`), whose text lies beside this one and whose weights are in the same file."""

    module: ModuleOp
    ctx: CompilerContext
    path: Path
    emitted: Emitted | None
    locations: bool = True
    generic: bool = False
    number: int = 0
    literal: tuple[ModuleOp, CompilerContext] | None = None
    digest: str = field(default="", init=False)

    @cached_property
    def weights(self) -> dict[str, NDArray[Any]]:
        """What goes into the file beside the text."""
        own = weights_beside(self.module, self.ctx)
        if self.literal is None:
            return own
        rename_others(*self.literal, own)
        return {**own, **weights_beside(*self.literal)}

    @cached_property
    def views(self) -> dict[str, View]:
        """Those of the weights that lie in others."""
        return views_of(self.weights)

    @property
    def beside(self) -> Path:
        """The file of the weights; that of a further module of a text has its number in the name."""
        return self.path.with_suffix(f".{self.number}{SUFFIX}" if self.number else SUFFIX)

    @property
    def literal_path(self) -> Path:
        """The file of the other program's text."""
        return self.beside.with_suffix(LITERAL_SUFFIX)

    def writers(self) -> dict[Path, Callable[[BinaryIO], object]]:
        """What writes the files beside the text, in order: to be called before `text`. Raises FuselineError (E0502)
        where the weights would overwrite what is no file of ours."""
        found: dict[Path, Callable[[BinaryIO], object]] = {}
        if self.weights:
            require_ours(self.beside, self.path)
            found[self.beside] = self._write
        if self.literal is not None:
            module, ctx = self.literal
            found[self.literal_path] = lambda file: file.write(self._text(module, ctx).encode())
        return found

    def _write(self, file: BinaryIO) -> None:
        stored = {name: array for name, array in self.weights.items() if name not in self.views}
        self.digest = write_tensors(file, stored, {WRITER: VERSION})

    def text(self) -> str:
        """The text, which names the files that were written."""
        if self.literal is not None:
            self.module.attributes[LITERAL_ATTRIBUTE] = StringAttr(self.literal_path.name)
        return self._text(self.module, self.ctx)

    def _text(self, module: ModuleOp, ctx: CompilerContext) -> str:
        own = weights_beside(module, ctx)
        if own:
            views = {name: view for name, view in self.views.items() if name in own}
            name_weights(module, self.beside.name, self.digest, views)
        return self._printed(module, ctx, INLINE_BYTES)

    def alone(self, limit: int) -> str:
        """The text without a file beside it: weights of more than `limit` bytes are names."""
        return self._printed(self.module, self.ctx, limit)

    def _printed(self, module: ModuleOp, ctx: CompilerContext, limit: int) -> str:
        texts = None if self.emitted is None else say_facts(module, ctx, self.emitted)
        form = {"locations": self.locations, "generic": self.generic}
        text = print_module(module, ctx, embed_limit=limit, texts=texts, **form)
        return text if texts is None else with_body_digest(text)


def rename_others(module: ModuleOp, ctx: CompilerContext, taken: Mapping[str, NDArray[Any]]) -> None:
    """Give the weights of `module` that are others than those of the same name in `taken` names of their own."""
    for op in module.walk():
        value = op.value if isinstance(op, ConstantOp) else None
        if isinstance(value, DenseResourceAttr) and not _is_same(value.resource_handle.data, ctx, taken):
            name = value.resource_handle.data
            fresh = next(new for i in count() if (new := f"{name}_literal_{i}") not in taken)
            ctx.resources.setdefault(fresh, ctx.resources[name])
            op.properties["value"] = DenseResourceAttr.from_params(fresh, value.type)


def _is_same(name: str, ctx: CompilerContext, taken: Mapping[str, NDArray[Any]]) -> bool:
    if name not in taken or name not in ctx.resources:
        return True
    one, other = ctx.resources[name], taken[name]
    return one.dtype == other.dtype and one.__array_interface__ == other.__array_interface__


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
    Where `ctx` wants sizes that broadcast as they are, that is the program beside the text.

    Raises FuselineError: E0301, E0302 for the text, E0305 where there is no such program, E0308 for files beside the
    text, E0309 for a text of another format.
    """
    if ctx.literal_broadcasts:
        path = _literal_of(text, name, folder, first_line)
        text, name, first_line = _read(path), path.name, 1
    module = parse_module(text, ctx, name, first_line=first_line)
    take_facts(module, ctx)
    if ctx.emitted is not None and ctx.emitted.body != body_digest(text):
        ctx.emitted = ctx.emitted._replace(body="")
    literal = module.attributes.pop(LITERAL_ATTRIBUTE, None)
    beside = load_weights(module, ctx, folder)
    files = [*([] if beside is None else [beside]), *([] if literal is None else [folder / file_name(literal)])]
    for missing in [path for path in files if not path.is_file()]:
        raise wrong(str(missing), "there is no such file", "keep the files of a text together")
    if files:
        ctx.metadata["external_files"] = [path.relative_to(folder).as_posix() for path in files]
    return module


def _literal_of(text: str, name: str, folder: Path, first_line: int) -> Path:
    """The file of the program for sizes that broadcast as they are."""
    said = parse_module(text, new_context(), name, first_line=first_line).attributes.get(LITERAL_ATTRIBUTE)
    if said is None:
        hint = "emit the text from the model, with -o FILE"
        raise FuselineError("E0305", "the text has no program for sizes of 1 that repeat", node=name, hint=hint)
    return folder / file_name(said)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise wrong(str(path), f"cannot read: {error}", "keep the files of a text together") from error
