"""Folding, sharing, hoisting and structure of the builder."""

from __future__ import annotations

from functools import partial

import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Loop, Type, Value, When
from tests.steps_taken import steps_taken

AVX2 = machine("avx2")


def builder() -> KernelBuilder:
    return KernelBuilder("kernel", AVX2)


def test_python_ints_fold() -> None:
    k = builder()
    assert k.add(2, 3) == 5
    assert k.mul(4, 5) == 20
    assert k.sub(2, 7) == -5
    assert k.div(17, 4) == 4
    assert k.rem(17, 4) == 1
    assert k.min(2, 3) == 2
    assert k.max(2, 3) == 3
    assert k.compare("lt", 2, 3).attr == 1
    assert k.ceil_div(17, 4) == 5
    assert not k.finish().body.ops


def test_neutral_elements_disappear() -> None:
    k = builder()
    n = k.size(0)
    assert k.add(n, 0) is n
    assert k.mul(n, 1) is n
    assert k.mul(n, 0) == 0
    assert k.div(n, 1) is n
    assert k.rem(n, 1) == 0
    assert k.sub(n, n) == 0


def test_constants_stay_outermost() -> None:
    """`(x + 3) * 4 + y` is `(x * 4 + y) + 12`, so that 12 becomes the displacement of an address."""
    k = builder()
    x, y = k.size(0), k.size(1)
    found = k.add(k.mul(k.add(x, 3), 4), y)
    assert found.op == "add"
    assert found.args[1] == 12
    assert k.sub(found, 12) is k.add(k.mul(x, 4), y)


def test_equal_operations_are_one() -> None:
    k = builder()
    a = k.load(k.binding(0, "f32", 8), 0, 8)
    assert k.mul(a, a) is k.mul(a, a)
    assert k.const(1.0, "f32", 8) is k.const(1, "f32", 8)
    assert k.const(0.0, "f32") is not k.const(-0.0, "f32")


def test_loads_are_never_shared() -> None:
    k = builder()
    x = k.binding(0, "f32", 8)
    assert k.load(x, 0, 8) is not k.load(x, 0, 8)


def test_index_arithmetic_leaves_the_loop() -> None:
    k = builder()
    n = k.size(0)

    def body(i: Value) -> None:
        inner = k.mul(n, 8)
        assert inner.depth == 0
        assert k.mul(i, 8).depth == 1
        assert k.add(n, 4).depth == 1, "x + constant stays: it folds into addresses"

    k.loop(0, n, 1, body)
    assert [type(op) for op in k.finish().body.ops] == [Value, Loop]


def test_a_division_stays_where_it_is_guarded() -> None:
    k = builder()
    a, b = k.size(0), k.size(1)

    def divide() -> tuple[Value]:
        quotient = k.div(a, b)
        assert quotient.depth == 1
        return (quotient,)

    k.when(k.compare("ne", b, 0), divide, lambda: (a,))


def test_values_of_a_closed_block_are_not_shared() -> None:
    k = builder()
    x = k.load(k.binding(0, "f32", 8), 0, 8)
    seen: list[Value] = []
    for _ in range(2):
        k.loop(0, k.size(0), 1, lambda i: seen.append(k.mul(x, x)))
    assert seen[0] is not seen[1]


def test_short_loops_are_written_out() -> None:
    k = builder()
    visited: list[int] = []
    assert k.loop(0, 0, 1, lambda i: visited.append(i)) == ()
    k.loop(3, 4, 1, lambda i: visited.append(i))
    k.loop(0, 5, 8, lambda i: visited.append(i))
    assert visited == [3, 0]
    assert k.loop(5, 5, 1, lambda i, c: (c,), (k.const(1.0, "f32"),))[0].attr == 1.0


def test_known_conditions_take_one_branch() -> None:
    k = builder()
    one = k.when(k.compare("lt", 1, 2), lambda: (k.const(1.0, "f32"),), lambda: (k.const(2.0, "f32"),))
    assert one[0].attr == 1.0
    assert not [op for op in k.finish().body.ops if isinstance(op, When)]


def test_types_must_agree() -> None:
    k = builder()
    a, b = k.const(1.0, "f32", 8), k.const(1, "i32", 8)
    with pytest.raises(TypeError, match="differ in type"):
        k.add(a, b)
    with pytest.raises(TypeError, match="store of"):
        k.store(k.binding(0, "i32", 8, writable=True), 0, a)
    with pytest.raises(TypeError, match="loop yields"):
        k.loop(0, k.size(0), 1, lambda i, c: (i,), (a,))
    with pytest.raises(TypeError, match="when yields"):
        k.when(k.compare("lt", k.size(0), 1), lambda: (a,), lambda: (b,))


def test_scalars_meet_vectors_as_splats() -> None:
    k = builder()
    v = k.load(k.binding(0, "f32", 8), 0, 8)
    assert k.add(v, 1.0).type == Type("f32", 8)
    assert k.mul(k.load(k.binding(0, "f32", 8), 0), v).type == Type("f32", 8)


def test_scratch_is_aligned_and_counted() -> None:
    k = builder()
    a, b = k.scratch("i8", 3), k.scratch("f32", 5)
    assert (a.position, b.position, k.scratch_bytes) == (0, 64, 84)


def _sum_of_loads(count: int) -> None:
    k = builder()
    x = k.binding(0, "f32", 4 * count)
    total = k.load(x, 0, 8)
    for i in range(count):
        total = k.add(total, k.load(x, i, 8))
    print_llvm([k.finish()], AVX2)


def test_building_is_cheap() -> None:
    """Some hundred lines for a load and a sum, however many there are."""
    _sum_of_loads(2)  # what is made once
    few, many = (steps_taken(partial(_sum_of_loads, count)) for count in (100, 400))
    assert few < 100 * 500 and many < 5 * few
