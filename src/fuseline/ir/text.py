"""MLIR text in and out: what iree-opt prints is read, custom or generic form, and what is printed is read by iree-opt.

Ops without a location in the text get the place where they stand (`file:line:column`), so that every op has a
provenance. The bytes of `dense_resource` constants go to and come from the context's side table, in MLIR's `{-#
dialect_resources #-}` section.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping
from graphlib import CycleError, TopologicalSorter

from xdsl.dialects.builtin import (
    FileLineColLoc,
    LocationAttr,
    ModuleOp,
)
from xdsl.ir import BlockArgument, Operation
from xdsl.printer import Printer
from xdsl.utils.exceptions import DiagnosticException, ParseError, VerifyException

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext
from fuseline.ir.large_constants import cut_constants, store_constants
from fuseline.ir.resource_section import cut_section, resource_constants, section_text, store_blobs, texts_of
from fuseline.ir.source_parser import LineIndex, SourceParser
from fuseline.ir.visible import misplaced_use

SPLIT_MARK = re.compile(r"^// -----.*$", re.MULTILINE)
"""Separates the modules of a file, as in mlir-opt's `--split-input-file`."""

_WORDS = re.compile(r"^[ \t]*(?!//)\S", re.MULTILINE)
"""Where a line says something that is no comment."""

EMBED_LIMIT_BYTES = 1 << 20
"""Weights above this are printed by name only."""

_ALIAS = re.compile(r"^(#loc\d*) = loc\(.*\)$", re.MULTILINE)
_ALIAS_NAME = re.compile(r"#loc\d*")
_UNKNOWN = re.compile(r"^'[\w.]+' is not registered|^Operation \w[\w$]*\.[\w.$]+ is not registered")
_UNKNOWN_HINT = "hand over the program before this was put in; docs/mlir.md lists what is read"
_STRING_OR_COMMENT = re.compile(r'//[^\n]*|"(?:[^"\\\n\v\f]|\\(?:["nt\\]|[0-9A-Fa-f]{2}))*("?)')

# What xDSL's parsers and verifiers of single ops let escape on malformed text besides ParseError.
_FAILURES = (
    VerifyException,
    DiagnosticException,
    ArithmeticError,
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    NotImplementedError,
    RecursionError,
    TypeError,
    ValueError,
)


class _SourcePrinter(Printer):
    """xDSL's printer; block arguments go without locations, which MLIR wants after their attributes."""

    def print_block_argument(self, arg: BlockArgument, print_type: bool = True) -> None:
        debug, self.print_debuginfo = self.print_debuginfo, False
        super().print_block_argument(arg, print_type)
        self.print_debuginfo = debug


def parse_module(
    text: str, ctx: CompilerContext, name: str = "<input>", *, first_line: int = 1, verify: bool = True
) -> ModuleOp:
    """The module in `text`; weights that the text holds go to `ctx.resources`, other texts to `ctx.texts`.

    Raises:
        FuselineError: E0301 with line and column when the text does not parse, E0302 with the op when the IR does not
        verify.
    """
    if not _says_something(text):
        raise FuselineError("E0301", "there is no op in the text", node=f"{name}:{first_line}:1")
    body, section = cut_section(text)
    body, digits = cut_constants(body)
    module = _parsed(_aliases_first(body), ctx, name, first_line)
    if verify:
        verify_module(module)
    store_blobs(module, section, ctx)
    store_constants(module, digits, ctx)
    ctx.texts = texts_of(section)
    return module


def _parsed(text: str, ctx: CompilerContext, name: str, first_line: int) -> ModuleOp:
    line_index = LineIndex(text, first_line)
    parser: SourceParser | None = None
    _check_strings(line_index, name)
    try:
        parser = SourceParser(ctx, text, name, line_index)
        return parser.parse_module()
    except ParseError as error:
        raise _parse_error(line_index, name, error.span.start, error.msg, _code_of(error.msg)) from error
    except _FAILURES as error:
        raise _parse_error(line_index, name, parser.pos if parser else 0, str(error) or type(error).__name__) from error


def split_input(text: str) -> list[tuple[int, str]]:
    """The modules between `// -----` lines, each with the line it starts on. Where nothing stands is none: before the
    first line of a log, behind the last line of a file; a text without modules is one by itself."""
    parts = [(line, part) for line, part in _between_marks(text) if _says_something(part)]
    return parts or [(1, text)]


def _between_marks(text: str) -> Iterator[tuple[int, str]]:
    start, line = 0, 1
    for mark in SPLIT_MARK.finditer(text):
        yield line, text[start : mark.start()]
        line += text.count("\n", start, mark.end())
        start = mark.end()
    yield line, text[start:]


def _says_something(text: str) -> bool:
    """Whether there is anything but blanks and comments."""
    return _WORDS.search(text) is not None


def verify_module(module: Operation) -> None:
    """Verify all of `module`; raises E0302 that names the op at fault and where it came from."""
    try:
        module.verify()
    except _FAILURES as error:
        raise _verify_error(module, error) from error
    found = misplaced_use(module)
    if found is not None:
        op, value = found
        name = f"%{value.name_hint}" if value.name_hint else "a value"
        raise FuselineError(
            "E0302",
            f"{op.name}: uses {name} where it is not defined yet, or not visible",
            node=text_location(op.location),
        )


def _verify_error(module: Operation, error: Exception) -> FuselineError:
    for op in module.walk():
        try:
            op.verify(verify_nested_ops=False)
        except _FAILURES as found:
            return FuselineError("E0302", f"{op.name}: {_first_line(str(found))}", node=text_location(op.location))
    return FuselineError("E0302", _first_line(str(error)))


def text_location(location: LocationAttr) -> str | None:
    """Where in a text an op stands (`file:line:column`); for one that has another location, the source nodes that it
    came from."""
    if isinstance(location, FileLineColLoc):
        return f"{location.filename.data}:{location.line.data}:{location.column.data}"
    from fuseline.ir.provenance import nodes_in

    return ", ".join(nodes_in(location)) or None


def _first_line(message: str) -> str:
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    return (
        next((line for line in reversed(lines) if not line.startswith(("^", "-"))), message)
        if len(lines) > 1
        else message
    )


def _code_of(message: str) -> str:
    """E0306 where the text is well-formed as far as can be told, but names what is unknown here."""
    return "E0306" if _UNKNOWN.search(message) else "E0301"


def _parse_error(line_index: LineIndex, source: str, position: int, message: str, code: str = "E0301") -> FuselineError:
    line, column = line_index.line_and_column(_last_read(line_index.text, position))
    shown = line_index.shown(line)
    at = f": `{shown}`" if shown else ""
    why, hint = f"line {line}, column {column}: {message}{at}", _UNKNOWN_HINT if code == "E0306" else None
    return FuselineError(code, why, node=f"{source}:{line}:{column}", hint=hint)


def _check_strings(line_index: LineIndex, source: str) -> None:
    """Refuse a string literal without an end, on which xDSL's lexer takes exponential time."""
    for match in _STRING_OR_COMMENT.finditer(line_index.text):
        if match.group().startswith('"') and not match.group(1):
            raise _parse_error(line_index, source, match.start(), "this string literal has no end")


def _last_read(text: str, position: int) -> int:
    """`position`, or the end of what precedes it where it is the first of its line: xDSL has read past the op at fault
    by then."""
    start = text.rfind("\n", 0, position) + 1
    return position if text[start:position].strip() or not text[:start].strip() else len(text[:start].rstrip()) - 1


def _aliases_first(text: str) -> str:
    """MLIR prints location aliases last and uses them first; xDSL wants them defined before use. Line numbers are
    kept."""
    aliases = [match.group() for match in _ALIAS.finditer(text)]
    if not aliases:
        return text
    head = " ".join(_in_dependency_order(aliases))
    return head + " " + _ALIAS.sub("", text)


def _in_dependency_order(aliases: list[str]) -> list[str]:
    """Each behind those that it names; as they are where they name each other in a circle."""
    named = {alias.partition(" =")[0]: alias for alias in aliases}
    graph = {
        name: [used for used in _ALIAS_NAME.findall(alias.partition("= ")[2]) if used in named]
        for name, alias in named.items()
    }
    try:
        return [named[name] for name in TopologicalSorter(graph).static_order()]
    except CycleError:
        return aliases


def print_module(
    module: Operation,
    ctx: CompilerContext | None = None,
    *,
    locations: bool = False,
    generic: bool = False,
    embed_limit: int = EMBED_LIMIT_BYTES,
    texts: Mapping[str, str] | None = None,
) -> str:
    """`module` as MLIR text that ends with a newline.

    Args:
        ctx: gives the bytes of the weights named in the IR; those of at most `embed_limit` bytes are printed too.
        locations: print where each op came from.
        generic: print every op in MLIR's generic form.
        texts: what else stands behind the module, each of one line, by name; `CompilerContext.texts` once it is read.
    """
    stream = io.StringIO()
    _SourcePrinter(stream=stream, print_generic_format=generic, print_debuginfo=locations).print_op(module)
    stream.write("\n")
    if ctx is not None:
        names = sorted({attribute.resource_handle.data for attribute in resource_constants(module)})
        held = {name: ctx.resources[name] for name in names if name in ctx.resources}
        stream.write(section_text({name: one for name, one in held.items() if one.nbytes <= embed_limit}, texts or {}))
    return stream.getvalue()
