"""The table of ONNX operators that have a native lowering: one function per operator, found in `ops/` by its
decorator."""

from __future__ import annotations

import importlib
import pkgutil
from bisect import bisect_right
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.wide_halves import as_sequence, rounded, with_wide_inputs

if TYPE_CHECKING:
    from fuseline.frontends.onnx.host_values import Value
    from fuseline.frontends.onnx.node import OnnxNode

Lowering: TypeAlias = "Callable[[OnnxNode], Value | Sequence[Value | None]]"
LoweringT = TypeVar("LoweringT", bound="Callable[[OnnxNode], Value | Sequence[Value | None]]")

_TABLE: dict[tuple[str, str], list[tuple[int, Lowering]]] = {}
_OF_SEQUENCES: set[Lowering] = set()


def onnx_op(
    op_type: str,
    *,
    since: int = 1,
    domain: str = "",
    ranks: Sequence[int] = (),
    least_ranks: Sequence[int] = (),
    in_f32: bool = False,
    of_sequences: bool = False,
) -> Callable[[LoweringT], LoweringT]:
    """Register a function as the lowering of an operator from operator-set version `since` on (until a later
    registration). The function raises NoNativeLowering, with a reason code, for what the host runs instead, and
    FuselineError (E0105, E0107: attributes, shapes) for a node that the standard does not allow.

    Args:
        ranks: how many dimensions the standard gives each input, where it fixes them; the function is only called with
        such inputs.
        least_ranks: how many dimensions each input has at least, likewise.
        in_f32: whether it computes more than sums of halves, which it gets as f32; its results are rounded once
        (`wide_halves.py`).
        of_sequences: whether it takes sequences that are known while reading (`OnnxNode.sequence`).

    Raises:
        KeyError: the operator has a lowering for this version already.
    """

    def register(function: LoweringT) -> LoweringT:
        versions = _TABLE.setdefault((domain, op_type), [])
        if any(version == since for version, _ in versions):
            raise KeyError(f"two lowerings for {op_type} since {since}")
        lowering = _with_ranks(function, ranks, least_ranks) if ranks or least_ranks else function
        lowering = _in_f32(lowering, domain) if in_f32 else lowering
        versions.append((since, lowering))
        if of_sequences:
            _OF_SEQUENCES.add(lowering)
        versions.sort(key=lambda entry: entry[0])
        return function

    return register


def _with_ranks(function: Lowering, ranks: Sequence[int], least: Sequence[int]) -> Lowering:
    def checked(node: OnnxNode) -> Value | Sequence[Value | None]:
        for index, (t, rank) in enumerate(zip(node.inputs, ranks, strict=False)):
            if t is not None and t.rank != rank:
                raise _wrong_rank(node, index, t.rank, f"{rank}")
        for index, (t, rank) in enumerate(zip(node.inputs, least, strict=False)):
            if t is not None and t.rank < rank:
                raise _wrong_rank(node, index, t.rank, f"at least {rank}")
        return function(node)

    return checked


def _wrong_rank(node: OnnxNode, index: int, rank: int, wanted: str) -> FuselineError:
    found = f"input {index} of {node.op_type} has {rank} dimensions, must have {wanted}"
    return FuselineError("E0107", found, node=node.label)


def _in_f32(function: Lowering, domain: str) -> Lowering:
    def widened(node: OnnxNode) -> Value | Sequence[Value | None]:
        return rounded(node, domain, as_sequence(function(with_wide_inputs(node))))

    return widened


@cache
def _discover() -> None:
    from fuseline.frontends.onnx import ops

    for module in pkgutil.iter_modules(ops.__path__):
        importlib.import_module(f"{ops.__name__}.{module.name}")


def lowering_of(domain: str, op_type: str, version: int) -> Lowering | None:
    """The function that lowers an operator at an operator-set version, None where there is none."""
    _discover()
    versions = _TABLE.get((domain, op_type), [])
    at = bisect_right([since for since, _ in versions], version)
    return versions[at - 1][1] if at else None


def takes_sequences(domain: str, op_type: str, version: int) -> bool:
    """Whether the function that lowers an operator takes sequences that are known while reading."""
    return lowering_of(domain, op_type, version) in _OF_SEQUENCES


def lowered_ops() -> list[tuple[str, str, int]]:
    """Every registered `(domain, operator, since)`, sorted."""
    _discover()
    return sorted((domain, op_type, since) for (domain, op_type), versions in _TABLE.items() for since, _ in versions)
