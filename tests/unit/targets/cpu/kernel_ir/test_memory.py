"""Loads, stores and addresses: what they touch, in which type, and what lies where."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.isa import detect, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.memory import Memory
from fuseline.targets.cpu.kernel_ir.types import BITS, Address, Type
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import call

N = 16


def _builder() -> KernelBuilder:
    return KernelBuilder("kernel", machine("avx2"))


def _run(k: KernelBuilder, *arrays: Any, sizes: Any = ()) -> None:
    evaluate(k.finish(), list(arrays), list(sizes))


@pytest.mark.parametrize("lanes", [1, 4, 8])
@pytest.mark.parametrize("active", [None, 0, 1, 3, 8])
@pytest.mark.parametrize("native", [False, True])
def test_only_active_lanes_are_read_and_written(lanes: int, active: int | None, native: bool) -> None:
    isa = detect() if native else machine("avx2")
    k = KernelBuilder("kernel", isa)
    x, y = k.binding(0, "f32", N), k.binding(1, "f32", N, writable=True)
    live = None if active is None else k.size(0)
    k.store(y, 2, k.load(x, 3, lanes, active=live), active=live)
    source, target = np.random.default_rng().standard_normal(N).astype(np.float32), np.full(N, 7, np.float32)
    expected, count = target.copy(), lanes if active is None else min(active, lanes)
    expected[2 : 2 + count] = source[3 : 3 + count]
    kernel, sizes = k.finish(), [] if active is None else [active]
    if native:
        call(kernel, isa, [source, target], sizes)
    else:
        evaluate(kernel, [source, target], sizes)
    np.testing.assert_array_equal(target, expected)


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32"])
@pytest.mark.parametrize("lanes", [4, 8, 16])
@pytest.mark.parametrize("known", [True, False])
def test_nothing_is_written_behind_the_active_lanes_of_a_narrowed_vector(dtype: str, lanes: int, known: bool) -> None:
    isa = detect()
    if BITS[dtype] not in isa.masked_bits:
        pytest.skip("this machine has no such masks")
    for active in range(lanes + 1):
        k = KernelBuilder("kernel", isa)
        x, y = k.binding(0, "i64", N), k.binding(1, dtype, 2 * N, writable=True)
        live = active if known else k.size(0)
        k.store(y, 1, k.cast(k.load(x, 0, lanes, active=live), dtype), active=live)
        source = np.random.default_rng().integers(-100, 100, N)
        target = np.full(2 * N, 77, f"int{BITS[dtype]}")
        expected = target.copy()
        expected[1 : 1 + active] = source[:active]
        call(k.finish(), isa, [source, target], [] if known else [active])
        np.testing.assert_array_equal(target, expected)


def test_inactive_lanes_are_zero() -> None:
    k = _builder()
    x, y = k.binding(0, "i32", 3), k.binding(1, "i32", 8, writable=True)
    k.store(y, 0, k.load(x, 0, 8, active=3))
    out = np.full(8, 9, np.int32)
    _run(k, np.array([4, 5, 6], np.int32), out)
    assert out.tolist() == [4, 5, 6, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("lanes", [1, 8])
def test_a_bool_takes_a_byte(lanes: int) -> None:
    k = _builder()
    x, y = k.binding(0, "i1", 8), k.binding(1, "i1", 8, writable=True)
    value = k.load(x, 0, lanes)
    assert value.type == Type("i1", lanes)
    k.store(y, 0, k.xor(value, k.const(1, "i1", lanes)))
    source, out = np.array([1, 0, 1, 1, 0, 0, 1, 0], np.bool_), np.zeros(8, np.bool_)
    _run(k, source, out)
    assert out[:lanes].tolist() == (~source[:lanes]).tolist()


@pytest.mark.parametrize("stride", [1, 3, "n"])
def test_gather_and_scatter(stride: Any) -> None:
    k = _builder()
    x, y = k.binding(0, "f32", N), k.binding(1, "f32", N, writable=True)
    step = k.size(0) if stride == "n" else stride
    at = k.lane_indices(1, step, 4)
    k.scatter(y, k.lane_indices(0, 2, 4), k.gather(x, at, active=3), active=3)
    source, out = np.arange(N, dtype=np.float32) * 10, np.zeros(N, np.float32)
    _run(k, source, out, sizes=[2] if stride == "n" else [])
    step = 2 if stride == "n" else stride
    expected = np.zeros(N, np.float32)
    expected[[0, 2, 4]] = source[[1, 1 + step, 1 + 2 * step]]
    np.testing.assert_array_equal(out, expected)


def test_one_lane_is_an_element() -> None:
    k = _builder()
    x, y = k.binding(0, "f32", N), k.binding(1, "f32", N, writable=True)
    k.scatter(y, k.lane_indices(5, 3, 1), k.gather(x, k.lane_indices(2, 3, 1)))
    source, out = np.arange(N, dtype=np.float32), np.zeros(N, np.float32)
    _run(k, source, out)
    assert out[5] == 2 and np.count_nonzero(out) == 1


@pytest.mark.parametrize("first", [0, 1])
def test_a_place_may_be_chosen(first: int) -> None:
    k = _builder()
    a, b, y = k.binding(0, "f32", N), k.binding(1, "f32", N), k.binding(2, "f32", 4, writable=True)
    chosen = k.select_mem(k.compare("eq", k.size(0), 1), a, 2, k.address(b, 4), 1)
    k.store(y, 0, k.load_at(chosen, 1, 4))
    sources, out = np.random.default_rng().standard_normal((2, N)).astype(np.float32), np.zeros(4, np.float32)
    _run(k, *sources, out, sizes=[first])
    np.testing.assert_array_equal(out, sources[0, 3:7] if first else sources[1, 6:10])


def test_addresses_keep_their_constants() -> None:
    k = Memory()
    memory, n = k.binding(0, "f32", N), k.pure("size", Type("i64"), ())
    place = k.offset(k.address(memory, k.add(n, 3)), k.add(n, 4))
    assert isinstance(place, Address) and (place.root, place.offset) == (memory, 7) and place.index is k.add(n, n)
    assert k.address(memory, 5).offset == 5 and k.address(memory, 5).index == 0
    for flag in (0, 1):
        chosen = k.select_mem(k.const(flag, "i1"), memory, 2, memory, 9)
        assert chosen.offset == (2 if flag else 9)


def test_buffers_are_asked_for_again() -> None:
    k = Memory()
    one = k.binding(3, "f32", N)
    assert k.binding(3, "f32", N, writable=True) is one and one.writable and one.position == 3
    table = k.table("numbers", [1, 2, 3])
    assert k.table("others", [1, 2, 3]) is table and k.table("numbers", [1.0, 2.0, 3.0], "f32") is not table
    assert table.data == (1, 2, 3) and table.extent == 3


def test_tables_are_read() -> None:
    k = _builder()
    k.store(k.binding(0, "f32", 4, writable=True), 0, k.load(k.table("t", [1.5, -2.0, 3.0, 4.0], "f32"), 0, 4))
    out = np.zeros(4, np.float32)
    _run(k, out)
    assert out.tolist() == [1.5, -2.0, 3.0, 4.0]


def test_scratch_lies_one_behind_the_other_aligned() -> None:
    k = Memory()
    first, second = k.scratch("f32", 5), k.scratch("f64", 3)
    assert (first.position, second.position, k.scratch_bytes) == (0, 64, 88)
    with k.passing_scratch():
        assert k.scratch("i8", 100, align=32).position == 96
    assert k.scratch_bytes == 196
    assert k.scratch("i8", 10, align=1).position == 88  # what was made inside is dead
    assert k.scratch_bytes == 196


def test_a_store_of_another_type_is_refused() -> None:
    k = Memory()
    with pytest.raises(TypeError, match="store of 4xf64 into f32"):
        k.store(k.binding(0, "f32", N, writable=True), 0, k.const(1.0, "f64", 4))


def test_prefetching_touches_nothing() -> None:
    k = _builder()
    x = k.binding(0, "f32", 4, writable=True)
    k.prefetch(x, 1000)
    k.store(x, 0, k.const(2.0, "f32"))
    out = np.zeros(4, np.float32)
    _run(k, out)
    assert out.tolist() == [2, 0, 0, 0]
