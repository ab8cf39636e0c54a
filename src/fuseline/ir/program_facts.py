"""What a program is besides its ops, as attributes and texts of its module: bounds of sizes, what runs check, what the
reports say of it.

    builtin.module attributes {fuseline.program = {format = 1 : i64, stage = "layout", symbols = {N = "1..512"}, ..}} {

While a program is compiled this is in its context; it goes into a text with `say_facts` and comes from there with
`take_facts`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Attribute

from fuseline.errors import FuselineError
from fuseline.ir.context import CompilerContext, Emitted
from fuseline.ir.dim import Dim, lower_bound, symbol, upper_bound
from fuseline.ir.dim_json import from_name, to_name
from fuseline.ir.resource_section import cut_section
from fuseline.report.records import CompileRecord
from fuseline.size_requirement import RELATIONS, SizeRequirement

PROGRAM_ATTRIBUTE = "fuseline.program"
FORMAT = 1
"""Of the attribute and the texts; raised when what they say changes meaning."""

_NO_BODY = "-"

_HINT = "emit the text again"
_OF_THE_COMPILE = ("version", "model", "target", "threads", "pipeline", "dispatches", "statistics", "phase_seconds")
"""Fields of the records that each compile fills in anew."""

_RECORDS = {field.name: field for field in msgspec.structs.fields(CompileRecord) if field.name not in _OF_THE_COMPILE}


def say_facts(module: ModuleOp, ctx: CompilerContext, emitted: Emitted) -> dict[str, str]:
    """Let `module` say what `ctx` knows of it and who writes it; answers the texts that go behind it."""
    requirements = [[r.relation, to_name(r.left), to_name(r.right), r.node] for r in ctx.requirements.values()]
    taken = [[to_name(left), to_name(right), node] for (left, right), node in ctx.taken_equal.items()]
    facts: dict[str, Attribute] = {
        "format": IntegerAttr(FORMAT, i64),
        **{name: StringAttr(text) for name, text in emitted._replace(body=_NO_BODY)._asdict().items()},
        "symbols": DictionaryAttr({name: StringAttr(_bounds(size)) for name, size in ctx.symbols.items()}),
        "made_up_sizes": _texts(sorted(ctx.made_up_sizes)),
        "requirements": ArrayAttr([_texts(one) for one in requirements]),
        "taken_equal": ArrayAttr([_texts(one) for one in taken]),
        "metadata": StringAttr(json.dumps(ctx.metadata.get("onnx", {}), ensure_ascii=False)),
    }
    if ctx.weight_bytes is not None:
        facts["weight_bytes"] = IntegerAttr(ctx.weight_bytes, i64)
    empty = [key for key, value in facts.items() if isinstance(value, ArrayAttr | DictionaryAttr) and not value.data]
    module.attributes[PROGRAM_ATTRIBUTE] = DictionaryAttr({key: facts[key] for key in facts if key not in empty})
    said = {name: getattr(ctx.records, name) for name in _RECORDS}
    return {name: msgspec.json.encode(value).decode() for name, value in said.items() if value}


def take_facts(module: ModuleOp, ctx: CompilerContext) -> None:
    """Give `ctx` what the text of `module` says of the program, if anything. The attribute goes.

    Raises FuselineError: E0309 for what another format says, E0302 for what cannot be read.
    """
    said = module.attributes.pop(PROGRAM_ATTRIBUTE, None)
    if said is None:
        return
    facts = said.data if isinstance(said, DictionaryAttr) else {}
    _require_format(facts)
    try:
        _take(facts, ctx)
        for name, text in ctx.texts.items():
            if name in _RECORDS:
                setattr(ctx.records, name, msgspec.json.decode(text, type=_RECORDS[name].type))
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, ArithmeticError, RecursionError) as error:
        raise FuselineError("E0302", f"it cannot be read: {error}", node=PROGRAM_ATTRIBUTE, hint=_HINT) from error


def body_digest(text: str) -> str:
    """A digest of the ops in the text of a module: of what stands behind the first line, and before the section of
    resources."""
    return hashlib.blake2b(cut_section(text)[0].strip().partition("\n")[2].encode(), digest_size=8).hexdigest()


def with_body_digest(text: str) -> str:
    """The text of a module, which says the digest of its ops."""
    return text.replace(f'body = "{_NO_BODY}"', f'body = "{body_digest(text)}"', 1)


def _require_format(facts: Mapping[str, Attribute]) -> None:
    found = facts.get("format")
    number = found.value.data if isinstance(found, IntegerAttr) else None
    if number != FORMAT:
        message = f"format {'is missing' if number is None else number}, this fuseline reads {FORMAT}"
        written = _text(facts, "version")
        raise FuselineError(
            "E0309",
            message + (f"; fuseline {written} wrote it" if written else ""),
            node=PROGRAM_ATTRIBUTE,
            hint="emit the text again with this version",
        )


def _take(facts: Mapping[str, Any], ctx: CompilerContext) -> None:
    symbols = facts.get("symbols", DictionaryAttr({}))
    ctx.symbols |= {name: _bounded(name, text.data) for name, text in symbols.data.items()}
    ctx.made_up_sizes |= {name.data for name in facts.get("made_up_sizes", ())}
    for relation, left, right, node in _rows(facts.get("requirements", ())):
        if relation not in RELATIONS:
            raise ValueError(f"no relation of sizes is called {relation!r}")
        ctx.require(SizeRequirement(from_name(left, ctx.symbols), from_name(right, ctx.symbols), node, relation))
    for left, right, node in _rows(facts.get("taken_equal", ())):
        ctx.taken_equal[from_name(left, ctx.symbols), from_name(right, ctx.symbols)] = node
    ctx.metadata["onnx"] = json.loads(_text(facts, "metadata") or "{}")
    weight_bytes = facts.get("weight_bytes")
    ctx.weight_bytes = None if weight_bytes is None else int(weight_bytes.value.data)
    ctx.emitted = Emitted(*(_text(facts, name) for name in Emitted._fields))


def _rows(entries: Iterable[Any]) -> Iterator[Any]:
    for entry in entries:
        yield [text.data for text in entry]


def _texts(texts: Iterable[str]) -> ArrayAttr[Attribute]:
    return ArrayAttr([StringAttr(text) for text in texts])


def _text(facts: Mapping[str, Any], key: str) -> str:
    found = facts.get(key)
    return found.data if isinstance(found, StringAttr) else ""


def _bounds(size: Dim) -> str:
    if isinstance(size, int):
        return str(size)
    low, high = lower_bound(size), upper_bound(size)
    return f"{'' if low is None else low}..{'' if high is None else high}"


def _bounded(name: str, text: str) -> Dim:
    low, dots, high = text.partition("..")
    return symbol(name, int(low), int(high) if high else None) if dots else int(low)
