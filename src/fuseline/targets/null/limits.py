"""What a described target takes in one dispatch, beyond the numbers that fusion's rules know: the table `[limits]` of a
description.

[limits]
members = 8                                  # ops
operands = 4                                 # tensors read
results = 1                                  # tensors written
loops = 5                                    # loops of one op
code_bytes = 16384
kinds = ["convolution", "elementwise"]       # what ops do, as reports name it
element_types = ["f32", "i8", "i32"]
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Operation

from fuseline.analysis.structured import FREE, Kind, StructuredOp, is_generic
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.errors import FuselineError
from fuseline.targets.description_file import is_positive
from fuseline.targets.target import Refusal

OPERATION_BYTES = 20
"""Code of one operation, about (as for `TargetDescription.code_limit`)."""

KINDS = tuple(sorted(kind.value for kind in Kind if kind not in FREE and kind is not Kind.OTHER))
"""What `kinds` may name."""

ELEMENT_TYPES = ("bf16", "f16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index")
"""What `element_types` may name; unsigned integers are told by the ops on them."""


@dataclass(frozen=True, slots=True)
class DispatchCaps:
    """The most of each that a dispatch may have, None for any number; the kinds of ops and the element types that there
    are, empty for all."""

    members: int | None = None
    operands: int | None = None
    results: int | None = None
    loops: int | None = None
    code_bytes: int | None = None
    kinds: tuple[str, ...] = ()
    element_types: tuple[str, ...] = ()

    def refusal(self, candidate: DispatchCandidate) -> Refusal | None:
        """The first limit that a dispatch is beyond, None where it is within all."""
        return next(self._refusals(candidate), None)

    def _refusals(self, candidate: DispatchCandidate) -> Iterator[Refusal]:
        for member in candidate.members:
            if self.kinds and member.kind.value not in self.kinds:
                yield Refusal("op-kind", f"{member.kind.value} is none of {', '.join(self.kinds)}")
            wrong = (
                next((name for name in _element_types(member.op) if name not in self.element_types), None)
                if self.element_types
                else None
            )
            if wrong is not None:
                yield Refusal("element-type", f"{wrong} is none of {', '.join(self.element_types)}")
        for name, count in self._counts(candidate):
            limit = getattr(self, name)
            if count > limit:
                numbers = {name: float(count), f"limit_{name}": float(limit)}
                yield Refusal(
                    f"{name.replace('_', '-')}-limit",
                    f"{count} {name.replace('_', ' ')}, the target takes {limit}",
                    numbers,
                )

    def _counts(self, candidate: DispatchCandidate) -> Iterator[tuple[str, int]]:
        """What of a dispatch is limited, counted."""
        if self.members is not None:
            yield "members", len(candidate.members)
        if self.operands is not None:
            yield "operands", len(candidate.operands)
        if self.results is not None:
            yield "results", len(candidate.results)
        if self.loops is not None:
            yield "loops", max((_loops(member.op) for member in candidate.members), default=0)
        if self.code_bytes is not None:
            yield "code_bytes", candidate.operations * OPERATION_BYTES


ANY_DISPATCH = DispatchCaps()
"""Of a target that takes everything."""


def _loops(op: Operation) -> int:
    """The loops of an op: those of a structured one, or the dimensions of its result."""
    return (
        StructuredOp(op).rank
        if is_generic(op)
        else max((len(type_.get_shape()) for type_ in _tensor_types(op)), default=0)
    )


def _element_types(op: Operation) -> Iterator[str]:
    yield from (str(type_.element_type) for type_ in _tensor_types(op))


def _tensor_types(op: Operation) -> Iterator[TensorType[Any]]:
    yield from (value.type for value in (*op.operands, *op.results) if isinstance(value.type, TensorType))


def caps_of(value: object, path: Path) -> DispatchCaps:
    """The table `[limits]` of the description at `path`. Raises E0501 naming the entry that limits nothing."""
    if not isinstance(value, Mapping):
        raise FuselineError("E0501", f"limits is no table: {value!r}", node=str(path), hint="write a section [limits]")
    known = {"kinds": KINDS, "element_types": ELEMENT_TYPES}
    names = [field.name for field in dataclasses.fields(DispatchCaps)]
    given: dict[str, Any] = {}
    for name, entry in cast("Mapping[str, object]", value).items():
        if name not in names:
            raise FuselineError(
                "E0501", f"limits: {name} limits nothing", node=str(path), hint=f"it says {', '.join(names)}"
            )
        given[name] = _names(name, entry, known[name], path) if name in known else _number(name, entry, path)
    return DispatchCaps(**given)


def _number(name: str, entry: object, path: Path) -> object:
    if not is_positive(entry):
        raise FuselineError("E0501", f"limits: {name} is no positive integer: {entry!r}", node=str(path))
    return entry


def _names(name: str, entry: object, known: tuple[str, ...], path: Path) -> tuple[str, ...]:
    entries = cast("list[object]", entry) if isinstance(entry, list) else [entry]
    wrong = next((item for item in entries if item not in known), None)
    if not isinstance(entry, list) or not entries or wrong is not None:
        hint = f"a list of some of {', '.join(known)}"
        raise FuselineError("E0501", f"limits: {name} = {entry!r}", node=str(path), hint=hint)
    return tuple(str(item) for item in entries)
