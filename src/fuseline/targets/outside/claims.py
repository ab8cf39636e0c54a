"""What a target from outside may say: each function answers what is wrong with a value, None for a good one."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping, Sequence
from math import isfinite
from typing import Any, cast

from xdsl.dialects.func import FuncOp

from fuseline.dispatch.view import DispatchView
from fuseline.ir.costs import MachineCosts
from fuseline.ir.dim import Expr, symbols
from fuseline.ir.target_description import NUMERICS, TILE_CLASSES, TILE_ROLES, TargetDescription, TargetRules
from fuseline.targets.compiled_kernel import FORMS, CompiledKernel, KernelArm
from fuseline.targets.target import Refusal, SharingPrice
from fuseline.weight_layouts import PackedLayout

_CODE = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")
_MOST = 1e12
_LARGEST_TILE = 1 << 16
_READ_BY_OTHERS = (".onnx", ".mlir", ".fuse", ".toml", ".json", ".py", ".html", ".bin", ".data", ".pb", ".npy", ".npz")
_MAY_BE_ZERO = ("code_limit", "streamed_points")
_DIMS = ("workgroups", "flops", "bytes_read", "bytes_written")


def refusal_complaint(answer: object) -> str | None:
    """Of a `Refusal`, or of None, which takes what it was asked about."""
    if answer is None:
        return None
    if not isinstance(answer, Refusal):
        return f"answered {_short(answer)}, which is neither a Refusal nor None"
    code, detail, numbers = cast("tuple[object, ...]", (answer.code, answer.detail, answer.numbers))
    if not isinstance(code, str) or not _CODE.fullmatch(code):
        return f"gave the code {code!r}; write it in kebab-case"
    if not _is_line(detail):
        return f"gave the detail {detail!r}, which is no line of text"
    if not isinstance(numbers, Mapping) or not all(_is_figure(key, value) for key, value in numbers.items()):
        return f"gave the numbers {_short(numbers)}, which are not finite numbers by name"
    return None


def price_complaint(answer: object) -> str | None:
    """Of a `SharingPrice`, or of None, which is free."""
    if answer is None:
        return None
    if not isinstance(answer, SharingPrice):
        return f"answered {_short(answer)}, which is neither a SharingPrice nor None"
    if not _is_number(answer.ns) or answer.ns < 0:
        return f"gave the price {answer.ns!r} ns, which is none"
    return None if _is_line(answer.reason) else f"gave the reason {answer.reason!r}, which is no line of text"


def suffix_complaint(answer: object) -> str | None:
    """Of how files end: empty, or a dot and more."""
    if answer in _READ_BY_OTHERS:
        return f"is {answer!r}, which other files have"
    good = answer == "" or (isinstance(answer, str) and answer[0] == "." and len(answer) > 1 and "/" not in answer)
    return None if good else f"is {answer!r}, which is none: write '.lst'"


# descriptions ---------------------------------------------------------------------------------------------------------


def description_complaint(answer: object) -> str | None:
    """Of a `TargetDescription`: the first field that no machine has."""
    if not isinstance(answer, TargetDescription):
        return f"is {_short(answer)}, which is no TargetDescription"
    if not _is_line(answer.name):
        return f"says name = {answer.name!r}, which is no line of text"
    for field in dataclasses.fields(TargetDescription):
        value: object = getattr(answer, field.name)
        least = 0 if field.name in _MAY_BE_ZERO else 1
        if field.type == "int" and not _is_whole(value, least):
            return f"says {field.name} = {value!r}, which is no whole number from {least} on"
        if field.type == "bool" and not isinstance(value, bool):
            return f"says {field.name} = {value!r}, which is neither True nor False"
    if answer.numerics not in NUMERICS:
        return f"says numerics = {answer.numerics!r}, none of {', '.join(NUMERICS)}"
    return _tiles_complaint(answer) or _costs_complaint(answer.costs) or _rules_complaint(answer.rules)


def _tiles_complaint(description: TargetDescription) -> str | None:
    classes: object = description.class_multiples
    if not _are_pairs(classes) or not all(name in TILE_CLASSES for name, _ in cast("Any", classes)):
        return (
            f"says class_multiples = {_short(classes)}, which are no pairs of {', '.join(TILE_CLASSES)} and multiples"
        )
    for where, table in (("tile_multiples", description.tile_multiples), *cast("Any", classes)):
        if not _are_pairs(table):
            return f"says {where} = {_short(table)}, which are no pairs of a role and a number"
        for role, multiple in table:
            if role not in TILE_ROLES or not _is_whole(multiple, 1) or multiple > _LARGEST_TILE:
                return f"says {where} = {{{role!r}: {multiple!r}}}; whole numbers to {_LARGEST_TILE} by role"
    return None


def _costs_complaint(costs: object) -> str | None:
    if not isinstance(costs, MachineCosts):
        return f"says costs = {_short(costs)}, which are no MachineCosts"
    for field in dataclasses.fields(MachineCosts):
        value: object = getattr(costs, field.name)
        whole = field.type != "int" or _is_whole(value, 1)
        if not whole or not _is_number(value) or not 1 / _MOST < cast("float", value) < _MOST:
            return f"says costs.{field.name} = {value!r}, which no machine has"
    return None


def _rules_complaint(rules: object) -> str | None:
    if not isinstance(rules, TargetRules):
        return f"says rules = {_short(rules)}, which are no TargetRules"
    for name in ("files", "only", "without"):
        entry: object = getattr(rules, name)
        if not isinstance(entry, tuple) or not all(isinstance(item, str) for item in cast("Any", entry)):
            return f"says rules.{name} = {_short(entry)}, which is no tuple of names"
    return None


# kernels --------------------------------------------------------------------------------------------------------------


def kernels_complaint(answer: object, entries: Sequence[FuncOp], *, splits: bool) -> str | None:
    """Of the kernels of `entries`: one for each, in order."""
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
        return f"answered {_short(answer)}, which is no list of kernels"
    kernels: Sequence[object] = answer
    if len(kernels) != len(entries):
        return f"answered {len(kernels)} kernels for {len(entries)} entries"
    for kernel, entry in zip(kernels, entries, strict=True):
        found = kernel_complaint(kernel, entry, splits=splits)
        if found is not None:
            return f"{found}, for @{entry.sym_name.data}"
    return None


def kernel_complaint(kernel: object, entry: FuncOp, *, splits: bool = False) -> str | None:
    """Of the kernel of one entry function."""
    if not isinstance(kernel, CompiledKernel):
        return f"answered {_short(kernel)}, which is no CompiledKernel"
    view = DispatchView(entry)
    if kernel.too_long and not splits:
        return "answered a kernel that is too_long, where nothing can be split"
    for arm in cast("Sequence[object]", kernel.arms):
        if not isinstance(arm, KernelArm) or not isinstance(cast("object", arm.kernel), CompiledKernel):
            return f"answered a kernel with the arms {_short(kernel.arms)}"
        if _fields_complaint(arm.kernel) is not None:
            return f"{_fields_complaint(arm.kernel)}, in an arm"
    return (
        _fields_complaint(kernel)
        or _sizes_complaint(kernel, view.size_names)
        or _places_complaint(kernel, len(view.tensors), len(view.results))
    )


def _fields_complaint(kernel: CompiledKernel) -> str | None:
    for name, good in (
        ("symbol", _is_line(kernel.symbol)),
        ("family", _is_line(kernel.family)),
        ("object_code", isinstance(cast("object", kernel.object_code), bytes)),
        ("scratch_bytes", _is_whole(kernel.scratch_bytes, 0)),
        ("form", kernel.form in FORMS),
        ("extra_constants", all(isinstance(cast("object", block), bytes) for block in kernel.extra_constants)),
        ("notes", isinstance(cast("object", kernel.notes), Mapping)),
        ("numbers", all(_is_whole(number, -(1 << 63)) for number in kernel.numbers)),
    ):
        if not good:
            return f"answered a kernel whose {name} is {_short(getattr(kernel, name))}"
    return None


def _sizes_complaint(kernel: CompiledKernel, known: Collection[str]) -> str | None:
    for name in _DIMS:
        value: object = getattr(kernel, name)
        if isinstance(value, Expr):
            strange = sorted({symbol.name for symbol in symbols(value)} - {*known})
            if strange:
                return f"answered a kernel whose {name} has the size {strange[0]}, which the entry has not"
        elif not _is_whole(value, 0):
            return f"answered a kernel whose {name} is {_short(value)}"
    return None


def _places_complaint(kernel: CompiledKernel, operands: int, results: int) -> str | None:
    for pair in cast("Sequence[object]", kernel.in_place):
        good = isinstance(pair, tuple) and len(cast("Any", pair)) == 2
        result, operand = cast("Any", pair) if good else (None, None)
        if not _is_place(result, results) or not _is_place(operand, operands):
            return f"answered a kernel that says {pair!r} is in place, of {results} results and {operands} operands"
    for position, layout in cast("Mapping[object, object]", kernel.constant_layouts).items():
        if not _is_place(position, operands) or not isinstance(layout, PackedLayout):
            return f"answered a kernel that lays operand {position!r} of {operands} out as {_short(layout)}"
    return None


# values ---------------------------------------------------------------------------------------------------------------


def _is_place(value: object, count: int) -> bool:
    return _is_whole(value, 0) and cast("int", value) < count


def _is_whole(value: object, least: int) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and isfinite(value)


def _is_figure(key: object, value: object) -> bool:
    return isinstance(key, str) and _is_number(value)


def _is_line(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip()) and "\n" not in value


def _are_pairs(value: object) -> bool:
    if not isinstance(value, tuple):
        return False
    return all(isinstance(item, tuple) and len(cast("Any", item)) == 2 for item in cast("tuple[object, ...]", value))


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
