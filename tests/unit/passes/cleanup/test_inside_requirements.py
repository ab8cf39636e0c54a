"""What must hold for places to lie inside: nothing where it is proved, a requirement where sizes decide, a refusal
where it never holds."""

from __future__ import annotations

import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import TensorType, f32

from fuseline.errors import FuselineError
from fuseline.ir import dim as d
from fuseline.ir.context import CompilerContext, new_context
from fuseline.passes.cleanup.inside_requirements import require_inside, require_to_fit

N, M = d.symbol("n", 0), d.symbol("m", 0)
READER = tensor.EmptyOp([], TensorType(f32, [4]))


def _ctx() -> CompilerContext:
    ctx = new_context()
    ctx.symbols |= {"n": N, "m": M}
    return ctx


def _noted(ctx: CompilerContext) -> list[tuple[d.Dim, d.Dim, str, bool]]:
    return [(r.left, r.right, r.node, r.relation == "at_least") for r in ctx.requirements.values()]


def test_both_ends_are_asked_for_where_the_loops_run() -> None:
    ctx = _ctx()
    require_inside(ctx, READER, (d.sub(N, 1), d.add(N, 2)), M, [5])
    assert _noted(ctx) == [(d.sub(N, 1), 0, "tensor.empty", True), (M, d.add(N, 3), "tensor.empty", True)]


@pytest.mark.parametrize("ends", [(None, None), (0, d.sub(M, 1)), (None, d.sub(M, 1)), (0, None)])
def test_what_is_proved_or_not_asked_is_not_noted(ends: tuple[d.Dim | None, d.Dim | None]) -> None:
    ctx = _ctx()
    require_inside(ctx, READER, ends, M, [5])
    assert not ctx.requirements


def test_nothing_is_asked_where_nothing_is_read() -> None:
    ctx = _ctx()
    require_inside(ctx, READER, (-1, 7), 4, [0, 5])
    assert not ctx.requirements
    require_inside(ctx, READER, (0, 7), M, [N])
    ((left, right, _, _),) = _noted(ctx)
    assert [d.evaluate(side, {"n": 0, "m": 0}) for side in (left, right)] == [0, 0]
    assert [d.evaluate(side, {"n": 3, "m": 5}) for side in (left, right)] == [5, 8]


@pytest.mark.parametrize(("ends", "text"), [((-1, None), "element -1$"), ((None, 4), "element 4 of 4$")])
def test_places_that_are_never_inside(ends: tuple[d.Dim | None, d.Dim | None], text: str) -> None:
    with pytest.raises(FuselineError) as error:
        require_inside(_ctx(), READER, ends, 4, [5])
    assert (error.value.code, error.value.node) == ("E0107", "tensor.empty")
    assert error.match(f"it reads {text.removesuffix('$')}")


def test_sizes_that_the_caller_cannot_name_are_not_asked_for() -> None:
    ctx = _ctx()
    require_inside(ctx, READER, (0, d.symbol("inner", 0)), M, [5])
    assert not ctx.requirements


def test_a_size_fits_an_integer() -> None:
    ctx = _ctx()
    require_to_fit(ctx, READER, N, 8)
    assert _noted(ctx) == [(127, N, "tensor.empty", True)]
    ctx = _ctx()
    require_to_fit(ctx, READER, d.mul(N, -1), 8)
    assert _noted(ctx) == [(d.mul(N, -1), -128, "tensor.empty", True)]
    ctx = _ctx()
    require_to_fit(ctx, READER, d.symbol("n", 0, 127), 8)
    require_to_fit(ctx, READER, d.sub(d.symbol("n", 0, 127), 128), 8)
    assert not ctx.requirements
