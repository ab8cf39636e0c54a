"""What a described target takes, beyond the numbers that fusion's rules know: the table `[limits]` of a description
(`targets/caps_file.py` reads it)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from xdsl.dialects import tensor
from xdsl.dialects.builtin import IndexType, TensorType
from xdsl.ir import Operation, SSAValue

from fuseline.analysis.structured import (
    FREE,
    Kind,
    StructuredOp,
    is_generic,
    producer_of,
    splat_value,
    tensor_operands,
)
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.ir.scalar_ops import Arith, Math
from fuseline.targets.target import Refusal

OPERATION_BYTES = 20
"""Code of one operation, about (as for `TargetDescription.code_limit`)."""

KINDS = tuple(sorted(kind.value for kind in Kind if kind not in FREE and kind is not Kind.OTHER))
"""What `kinds` may name."""

ROOTS = ("contraction", "convolution", "depthwise", "pooling", "reduction")
"""What `roots` may name: kinds that a dispatch of several ops is built around."""

ELEMENT_TYPES = ("bf16", "f16", "f32", "f64", "i1", "i8", "i16", "i32", "i64", "index")
"""What `element_types` may name; unsigned integers are told by the ops on them."""

_UNCOUNTED = ("arith.constant",)
OPS = tuple(
    sorted(op.name.partition(".")[2] for op in (*Arith.operations, *Math.operations) if op.name not in _UNCOUNTED)
)
"""What `ops` and `without_ops` may name: scalar operations of bodies, as MLIR's `arith` and `math` call them."""

_NO_KIND = FREE | {Kind.OTHER, Kind.RESHAPE}


@dataclass(frozen=True, slots=True)
class DispatchCaps:
    """The most of each that a dispatch may have, None for any number; the kinds of ops, element types and scalar
    operations that there are, empty for all, and the operations that there are not.

    `roots`: the kinds one of which a dispatch of several ops must have, empty for none. `of_kind`: what holds besides
    for dispatches with an op of a kind, and for these ops. `locations`: where each entry stands (`npu.toml:7`), by its
    name, an operation that there is not by `without_ops.NAME`.
    """

    members: int | None = None
    operands: int | None = None
    results: int | None = None
    loops: int | None = None
    code_bytes: int | None = None
    kinds: tuple[str, ...] = ()
    element_types: tuple[str, ...] = ()
    ops: tuple[str, ...] = ()
    without_ops: tuple[str, ...] = ()
    roots: tuple[str, ...] = ()
    of_kind: tuple[tuple[str, DispatchCaps], ...] = ()
    locations: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)

    def refusal(self, candidate: DispatchCandidate) -> Refusal | None:
        """The first limit that a dispatch is beyond, None where it is within all."""
        return next(self._refusals(candidate), None)

    def op_refusal(self, op: Operation, kind: Kind) -> Refusal | None:
        """Why no dispatch may hold an op, of this kind; None where one may."""
        return next(chain(self._op_refusals(op, kind), self._operand_refusals(op, kind)), None)

    def _refusals(self, candidate: DispatchCandidate) -> Iterator[Refusal]:
        for member in candidate.members:
            yield from self._op_refusals(member.op, member.kind)
        kinds = {member.kind.value for member in candidate.members}
        if self.roots and len(candidate.members) > 1 and not kinds & {*self.roots}:
            yield self._refusal("root-kind", f"several ops around none of {', '.join(self.roots)}", "roots")
        for caps, where in self._holding(kinds):
            yield from caps._count_refusals(candidate, where)

    def _holding(self, kinds: Collection[str]) -> Iterator[tuple[DispatchCaps, str]]:
        """The limits that hold where there are ops of `kinds`, and what a refusal says of that."""
        yield self, ""
        yield from ((caps, f" with a {kind}") for kind, caps in self.of_kind if kind in kinds)

    def _op_refusals(self, op: Operation, kind: Kind) -> Iterator[Refusal]:
        if self.kinds and kind not in _NO_KIND and kind.value not in self.kinds:
            yield self._refusal("op-kind", f"{kind.value} is none of {', '.join(self.kinds)}", "kinds")
        for caps, _ in self._holding([kind.value]):
            yield from caps._body_refusals(op)

    def _operand_refusals(self, op: Operation, kind: Kind) -> Iterator[Refusal]:
        """What an op reads by itself is read by every dispatch that holds it."""
        count = sum(splat_value(value) is None and not _is_place(value) for value in tensor_operands(op))
        for caps, where in self._holding([kind.value]):
            if caps.operands is not None and count > caps.operands:
                yield caps._beyond("operands", count, where)

    def _body_refusals(self, op: Operation) -> Iterator[Refusal]:
        if self.element_types:
            for name in _element_types(op):
                if name not in self.element_types:
                    detail = f"{name} is none of {', '.join(self.element_types)}"
                    yield self._refusal("element-type", detail, "element_types")
        if not (self.ops or self.without_ops):
            return
        for name in _scalar_ops(op):
            if name in self.without_ops:
                yield self._refusal("op", f"the target has no {name}", f"without_ops.{name}")
            if self.ops and name not in self.ops:
                yield self._refusal("op", f"{name} is none of {', '.join(self.ops)}", "ops")

    def _count_refusals(self, candidate: DispatchCandidate, where: str) -> Iterator[Refusal]:
        for name, count in self._counts(candidate):
            if count > getattr(self, name):
                yield self._beyond(name, count, where)

    def _beyond(self, name: str, count: int, where: str) -> Refusal:
        """That there are `count` of something, more than its limit."""
        limit = getattr(self, name)
        numbers = {name: float(count), f"limit_{name}": float(limit)}
        detail = f"{count} {name.replace('_', ' ')}, the target takes {limit}{where}"
        return self._refusal(f"{name.replace('_', '-')}-limit", detail, name, numbers)

    def _refusal(self, code: str, detail: str, entry: str, numbers: Mapping[str, float] | None = None) -> Refusal:
        place = self.locations.get(entry)
        return Refusal(code, detail if place is None else f"{detail} ({place})", numbers or {})

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


def _is_place(value: SSAValue) -> bool:
    """Whether it is only where a result goes to."""
    return type(producer_of(value)) is tensor.EmptyOp


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


def _scalar_ops(op: Operation) -> Iterator[str]:
    """The operations of a body by name; arithmetic on coordinates is none."""
    for inner in op.walk():
        dialect, _, name = inner.name.partition(".")
        if dialect not in ("arith", "math") or inner.name in _UNCOUNTED or inner is op:
            continue
        if not all(isinstance(result.type, IndexType) for result in inner.results):
            yield name
