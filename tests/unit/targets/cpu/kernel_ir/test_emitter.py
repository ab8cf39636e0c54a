"""Where operations are placed: shared, hoisted, counted, remembered."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.kernel_ir.emitter import HOISTED, Emitter, Registers, TooMuchCodeError, split
from fuseline.targets.cpu.kernel_ir.types import I64, Block, Type

VECTOR = Type("f32", 8)


@pytest.mark.parametrize(
    ("bits", "type_", "count"),
    [
        (256, VECTOR, 1),
        (128, VECTOR, 2),
        (256, Type("f64", 8), 2),
        (512, I64, 1),
        (256, Type("i1", 8), 1),
        (256, Type("f32", 9), 2),
        (128, Type("ptr", 1), 1),
    ],
)
def test_registers_that_a_value_takes(bits: int, type_: Type, count: int) -> None:
    assert Registers(bits)[type_] == count


def test_equal_operations_are_one_and_effects_are_not() -> None:
    e = Emitter()
    a = e.pure("load", VECTOR, ())
    assert e.pure("load", VECTOR, ()) is a and e.pure("load", Type("f32", 4), ()) is not a
    assert e.effect("load", VECTOR, ()) is not e.effect("load", VECTOR, ())
    assert len(e.block.ops) == 4


def test_what_an_inner_block_makes_is_gone_when_it_closes() -> None:
    e, inner = Emitter(), Block()
    e.open(inner)
    first = e.pure("shuffle", VECTOR, ())
    e.remember("key", 7)
    assert e.recall("key") == 7 and e.depth == 1 and e.block is inner
    assert e.pure("shuffle", VECTOR, ()) is first
    e.close()
    assert e.recall("key") is None and e.depth == 0
    assert e.pure("shuffle", VECTOR, ()) is not first and first.depth == 1


def test_what_an_outer_block_made_is_shared_inside() -> None:
    e = Emitter()
    outer = e.pure("shuffle", VECTOR, ())
    e.remember("key", outer)
    e.open(Block())
    assert e.pure("shuffle", VECTOR, ()) is outer and e.recall("key") is outer


@pytest.mark.parametrize(
    ("op", "type_", "hoisted"),
    [
        ("mul", I64, True),
        ("splat", VECTOR, True),
        ("mask", VECTOR, True),
        ("mul", VECTOR, False),
        ("shuffle", I64, False),
    ],
)
def test_scalar_arithmetic_goes_where_its_operands_are(op: str, type_: Type, hoisted: bool) -> None:
    e = Emitter()
    n = e.pure("size", I64, ())
    e.open(Block())
    e.open(Block())
    assert (e.pure(op, type_, (n, n)).depth == 0) == hoisted and (op in HOISTED or not hoisted)
    assert e.pure(op, type_, (n, 3), safe=False).depth == 2


def test_a_displacement_stays_where_it_is_used() -> None:
    e = Emitter()
    n = e.pure("size", I64, ())
    e.open(Block())
    assert e.pure("add", I64, (n, 4)).depth == 1 and e.pure("add", I64, (n, n)).depth == 0


@pytest.mark.parametrize("budget", [0, 1, 5])
def test_a_budget_is_kept(budget: int) -> None:
    e = Emitter(256, budget)
    with pytest.raises(TooMuchCodeError):
        for i in range(10):
            assert e.code == i
            e.pure("shuffle", VECTOR, (), i)
    assert e.code == budget + 1


def test_wide_values_cost_more() -> None:
    e = Emitter(128)
    e.pure("shuffle", VECTOR, ())
    e.pure("shuffle", VECTOR, ())
    assert e.code == 2
    assert e.fresh_number() < e.fresh_number()


def test_bases_and_constants() -> None:
    e = Emitter()
    n = e.pure("size", I64, ())
    assert (split(7), split(n), split(e.pure("add", I64, (n, 5)))) == ((0, 7), (n, 0), (n, 5))
    both = e.pure("add", I64, (n, n))
    assert split(both) == (both, 0)
