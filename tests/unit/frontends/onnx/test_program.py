"""The function under construction: what is emitted once, what is asked of sizes, and what can be taken back."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import tensor
from xdsl.dialects.builtin import f32, i64
from xdsl.ir.affine import AffineMap

from fuseline.errors import FuselineError
from fuseline.frontends.onnx.program import Program
from fuseline.frontends.onnx.tensors import Tensor, known, known_sizes, view
from fuseline.ir.build import Emitter, tensor_type
from fuseline.ir.constant_budget import words_of
from fuseline.ir.context import new_context
from fuseline.ir.dim import Dim, add, mul, symbol, symbols, upper_bound
from fuseline.size_requirement import SizeRequirement

F32 = np.dtype(np.float32)
N, M = symbol("n", 0), symbol("m", 0)


class _Started:
    """A program with an argument of float32 for each shape."""

    def __init__(self, *shapes: tuple[Dim, ...]) -> None:
        self.ctx = new_context()
        self.program = Program(self.ctx)
        self.emit = Emitter.at_end(self.program.block, ("node",))
        self.inputs: list[Tensor] = []
        for dims in shapes:
            argument = self.program.block.insert_arg(tensor_type(f32, dims), len(self.program.block.args))
            self.program.bind_symbols(argument, dims)
            self.inputs.append(Tensor(F32, dims, value=argument))

    def ops(self) -> list[str]:
        return [op.name for op in self.program.block.ops]


def test_symbols_are_read_off_where_they_stand_alone() -> None:
    started = _Started((mul(N, 2), add(M, 1)), (3, N))
    assert started.program.is_bound(mul(N, 5)) and started.program.is_bound(7)
    assert not started.program.is_bound(M) and not started.program.is_bound(add(N, M))
    value = started.program.index(N, started.emit)
    read = [op for op in started.program.block.ops if isinstance(op, tensor.DimOp)]
    assert [op.source for op in read] == [started.inputs[1].value]
    assert started.program.index(N, started.emit) is value
    count = len(started.ops())
    started.program.index(add(N, 0), started.emit)
    assert len(started.ops()) == count


def test_the_first_place_of_a_symbol_counts() -> None:
    started = _Started((N, N), (N,))
    started.program.index(N, started.emit)
    (read,) = (op for op in started.program.block.ops if isinstance(op, tensor.DimOp))
    assert read.source is started.inputs[0].value


def test_a_size_that_is_an_argument_itself() -> None:
    started = _Started()
    argument = started.program.block.insert_arg(started.emit.index(1).type, 0)
    (size,) = symbols(M)
    started.program.bind_size(size, argument)
    assert started.program.index(M, started.emit) is argument


def test_new_sizes_and_names() -> None:
    started = _Started()
    first, second = started.program.fresh_symbol("a/b", lo=0), started.program.fresh_symbol("a/b")
    third = started.program.fresh_symbol("c", lo=0, hi=9)
    assert (first, second, third) == (symbol("a_b", 0), symbol("a_b_1", 1), symbol("c", 0, 9))
    assert started.ctx.symbols == {"a_b": first, "a_b_1": second, "c": third}
    assert [started.program.unique(stem) for stem in ("x", "x", "", "x", "é")] == ["x", "x_1", "value", "x_2", "_"]


@pytest.mark.parametrize(
    ("dim", "most", "answer", "bound"),
    [
        (5, 5, True, None),
        (6, 5, False, None),
        (symbol("n", 0, 9), 9, True, None),
        (N, 12, True, 12),
        (mul(N, 3), 11, True, 3),
        (add(mul(N, 3), 2), 11, True, 3),
        (add(N, 5), 4, False, None),  # not even of no elements
        (mul(N, M), 100, False, None),
        (add(N, M), 100, False, None),
        (mul(N, -1), -5, False, None),
        (symbol("unfed", 0), 5, False, None),
    ],
)
def test_sizes_of_inputs_are_bounded(dim: Dim, most: int, answer: bool, bound: int | None) -> None:
    started = _Started((N, M))
    assert started.program.limit(dim, most) is answer
    assert upper_bound(started.ctx.symbols.get("n", N)) == bound


def test_a_bound_is_never_loosened() -> None:
    started = _Started((N,))
    for most, bound in ((8, 8), (20, 8), (3, 3)):
        assert started.program.limit(N, most)
        assert upper_bound(started.ctx.symbols["n"]) == bound


def test_what_only_the_sizes_of_inputs_tell() -> None:
    started = _Started((N,))
    made = started.emit.add(tensor.EmptyOp([started.program.index(N, started.emit)], tensor_type(f32, (M,)))).results[0]
    started.program.bind_symbols(made, (M,))
    assert started.program.is_fed(mul(N, 2)) and started.program.is_fed(4)
    assert not started.program.is_fed(M) and not started.program.is_fed(add(N, M))
    assert not started.program.limit(M, 4)  # nobody can be asked to feed less


def test_requirements_on_sizes() -> None:
    started = _Started((N, M))
    program, asked = started.program, started.ctx.requirements
    program.require_at_least(4, 4, "a")
    program.require_at_least(symbol("k", 3), 3, "a")
    program.require_equal(N, N, "a")
    program.require_equal(3, 3, "a")
    assert not asked
    with pytest.raises(FuselineError, match="E0107 .a.: sizes 3 and 4 must be equal"):
        program.require_equal(3, 4, "a")
    program.require_at_least(N, 2, "b")
    program.require_equal(N, 4, "c")
    program.require_equal(N, 4, "d")
    assert list(asked.values()) == [SizeRequirement(N, 2, "b", relation="at_least"), SizeRequirement(N, 4, "c")]


def test_what_is_taken_back() -> None:
    started = _Started((N,))
    program, ctx = started.program, started.ctx
    constant = known(np.arange(40, dtype=np.float32), name="w")
    program.require_equal(N, 4, "before")
    program.ssa(known(np.array([1.0, 2.0], np.float32)), started.emit)
    before, budget, stored = started.ops(), ctx.to_make, dict(ctx.resources)
    mark, undone = program.mark(), list[str]()
    program.on_rollback(lambda: undone.append("first"))
    program.index(N, started.emit)
    program.ssa(constant, started.emit)
    program.require_equal(N, 5, "after")
    program.bind_symbols(started.inputs[0].value, (M,))  # pyright: ignore[reportArgumentType]
    assert program.may_make(1000, F32)
    program.on_rollback(lambda: undone.append("last"))
    assert constant.value is not None and program.is_bound(M) and ctx.to_make < budget
    program.rollback(mark)
    assert undone == ["last", "first"]
    assert (started.ops(), ctx.to_make, ctx.resources) == (before, budget, stored)
    assert constant.value is None and not program.is_bound(M)
    assert [one.node for one in ctx.requirements.values()] == ["before"]
    assert program.index(N, started.emit).owner.parent is program.block  # pyright: ignore[reportAttributeAccessIssue]


def test_constants_may_take_what_the_budget_has() -> None:
    started = _Started()
    whole = started.ctx.to_make
    words = words_of(1000, F32)
    assert started.program.may_make(1000, F32)
    assert started.ctx.to_make == whole - words
    started.ctx.to_make = words - 1
    assert not started.program.may_make(1000, F32)
    started.ctx.to_make = words
    assert started.program.may_make(1000, F32) and started.ctx.to_make == 0


def test_a_view_that_only_adds_units_is_a_reshape() -> None:
    started = _Started((4, 5))
    (x,) = started.inputs
    started.program.ssa(view(x, (4, 1, 5), [0, 2]), started.emit)
    assert "linalg.generic" not in started.ops()
    for turned in (view(x, (5, 4), [1, 0]), view(x, (4, 3, 5), [0, 2])):  # turned, and repeated
        started.program.ssa(turned, started.emit)
        assert started.ops()[-1] == "linalg.generic"
        assert turned.value is not None


def test_views_are_read_through() -> None:
    started = _Started((4, 5))
    (x,) = started.inputs
    turned = view(view(x, (5, 4), [1, 0]), (5, 1, 4), [0, 2])
    value, map_ = started.program.read(turned, [2, None, 0], 3, started.emit)
    assert (value, map_) == (x.value, AffineMap.from_callable(lambda i, j, k: (i, k)))
    assert started.ops() == []


def test_constants_are_read_without_units() -> None:
    started = _Started()
    column = known(np.arange(3, dtype=np.float32).reshape(3, 1))
    value, map_ = started.program.read(column, [1, None], 2, started.emit)
    again, _ = started.program.read(column, [0, 1], 2, started.emit)
    assert (value.type, map_) == (tensor_type(f32, (3,)), AffineMap.from_callable(lambda i, j: (j,)))
    assert again is value


def test_sizes_as_tensors_and_scalars() -> None:
    started = _Started((N,))
    program, emit = started.program, started.emit
    sizes = known_sizes([N, 4])
    assert program.ssa(sizes, emit).type == tensor_type(i64, (2,))
    halved = known(np.array([mul(N, 2)], object), np.dtype(np.int32))
    assert str(program.ssa(halved, emit).type) == "tensor<1xi32>"
    assert [str(program.integer(dim, type_, emit).type) for dim in (N, 3) for type_ in (i64, f32)] == ["i64", "f32"] * 2
    assert program.empty((N, 3), F32, emit).type == tensor_type(f32, (N, 3))
