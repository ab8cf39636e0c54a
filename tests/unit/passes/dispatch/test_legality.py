"""What a target is shown of a merge, and what becomes of its answer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from fuseline.analysis.shapes import ShapeAnalysis
from fuseline.analysis.structured import Kind
from fuseline.dispatch.candidate import DispatchCandidate
from fuseline.dispatch.fused_loops import LOOPS_ATTRIBUTE
from fuseline.dispatch.loops_attribute import from_attribute
from fuseline.errors import FuselineError
from fuseline.ir.build import dims_map
from fuseline.ir.context import CompilerContext, new_context
from fuseline.ir.flow import DispatchRegionOp
from fuseline.passes.dispatch.form_dispatch_regions import FormDispatchRegionsPass
from fuseline.targets.target import Legality, Refusal
from tests.unit.passes.fusion.programs import Program


def _formed(p: Program, legal: Legality, fusion: str = "default") -> CompilerContext:
    ctx = new_context()
    ctx.legal = legal
    FormDispatchRegionsPass(fusion=fusion).apply(ctx, p.module)
    return ctx


def _regions(p: Program) -> list[DispatchRegionOp]:
    return [op for op in p.module.walk() if isinstance(op, DispatchRegionOp)]


def _normed() -> Program:
    """A product, the sum of each row of it, and the product over that; a pad of the argument is read in place."""
    p = Program((6, 3), (5, 4), (7, 4))
    product = p.matmul(p.pad(p.x[0], [0, 1], [0, 1]), p.x[1])
    return p.done(p.binary(product, p.reduce(product), dims_map(2, [0])))


class _Seen:
    """A target that takes everything and remembers what it was shown."""

    def __init__(self) -> None:
        self.last: DispatchCandidate | None = None
        self.kinds: list[tuple[Kind, ...]] = []

    def __call__(self, candidate: DispatchCandidate) -> Refusal | None:
        self.last = candidate
        self.kinds.append(tuple(member.kind for member in candidate.members))
        return None


def test_what_is_shown_is_the_dispatch_that_comes_of_it():
    p, shown = _normed(), _Seen()
    operands, results = set(p.x[:2]), list(p.function.body.block.last_op.operands)  # pyright: ignore[reportOptionalMemberAccess]
    seen: list[tuple[object, ...]] = []

    def legal(candidate: DispatchCandidate) -> Refusal | None:
        if len(candidate.members) == 4:
            flags = [(member.kind, member.reduces, member.inlined) for member in candidate.members]
            seen.append(
                (
                    flags,
                    set(candidate.operands),
                    list(candidate.results),
                    candidate.loops,
                    candidate.has_root,
                    candidate.operations,
                )
            )
            assert (
                (candidate.scratch_bytes or 0) > 0
                and list(candidate.arms) == [candidate]
                and isinstance(candidate.shapes, ShapeAnalysis)
            )
        return shown(candidate)

    _formed(p, legal)
    (region,) = _regions(p)
    flags, read, written, loops, has_root, operations = seen[-1]
    assert flags == [
        (Kind.PAD, False, True),
        (Kind.CONTRACTION, True, False),
        (Kind.REDUCTION, True, False),
        (Kind.ELEMENTWISE, False, False),
    ]
    assert (read, written, has_root) == (operands, results, True)
    assert loops == replace(from_attribute(region.attributes[LOOPS_ATTRIBUTE], {}), classes=())
    assert isinstance(operations, int) and operations > 4


def test_independent_components_are_shown_as_arms():
    p, seen = Program((64, 64), (64, 32), (64, 16)), _Seen()
    _formed(p.done(p.matmul(p.x[0], p.x[1]), p.matmul(p.x[0], p.x[2])), seen)
    assert seen.last is not None
    assert [[member.kind for member in arm.members] for arm in seen.last.arms] == [[Kind.CONTRACTION]] * 2
    assert len(seen.last.operands) == 3 and len(seen.last.loops.grids) == 2


@pytest.mark.parametrize("fusion", ["none", "default", "aggressive"])
def test_every_dispatch_is_shown_once_more_when_it_stands(fusion: str):
    p, seen = _normed(), _Seen()
    records = _formed(p, seen, fusion=fusion).records
    formed = [sorted(records.fusion_nodes[name].kind for name in names) for names in records.groups]
    assert sorted(sorted(kind.value for kind in kinds) for kinds in seen.kinds[-len(formed) :]) == sorted(formed)


def _refuses(kind: Kind) -> Callable[[DispatchCandidate], Refusal | None]:
    return lambda candidate: (
        Refusal("op-kind", f"no {kind.value}") if any(member.kind is kind for member in candidate.members) else None
    )


@pytest.mark.parametrize("fusion", ["none", "default"])
def test_an_op_that_is_refused_even_alone_is_an_error_with_its_name(fusion: str):
    with pytest.raises(FuselineError, match=r"E0307 \[n3\]: reduction\.\w+: op-kind: no reduction"):
        _formed(_normed(), _refuses(Kind.REDUCTION), fusion=fusion)


def test_a_target_that_refuses_everything_leaves_nothing_half_done():
    p = _normed()
    with pytest.raises(FuselineError, match="E0307"):
        _formed(p, lambda candidate: Refusal("closed", "takes nothing"))
    assert not _regions(p)


def test_the_refusal_is_in_the_record():
    def legal(candidate: DispatchCandidate) -> Refusal | None:
        return (
            Refusal("too-many", "three at most", {"members": float(len(candidate.members))})
            if len(candidate.members) > 3
            else None
        )

    ctx = _formed(_normed(), legal)
    missed = [decision for decision in ctx.records.decisions if decision.verdict == "missed"]
    assert {(d.code, d.detail, d.numbers["members"], bool(d.at)) for d in missed} == {
        ("target", "too-many: three at most", 4.0, True)
    }
