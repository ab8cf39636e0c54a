"""The same kernels natively and on the NumPy evaluator; what either must refuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from fuseline.targets.cpu.isa import ISA_NAMES, Machine, detect, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.link.compile import emit_object
from tests.kernel_ir.evaluate import evaluate
from tests.kernels import Guarded, call

HOST = detect()
N = 8
Step = Callable[[KernelBuilder, Any, Any], Any]

FLOATS: dict[str, Step] = {
    "add": lambda k, a, b: k.add(a, b),
    "sub": lambda k, a, b: k.sub(a, b),
    "mul": lambda k, a, b: k.mul(a, b),
    "div": lambda k, a, b: k.div(a, b),
    "min": lambda k, a, b: k.min(a, b),
    "max": lambda k, a, b: k.max(a, b),
    "minimum": lambda k, a, b: k.minimum(a, b),
    "maximum": lambda k, a, b: k.maximum(a, b),
    "neg": lambda k, a, b: k.neg(a),
    "abs": lambda k, a, b: k.abs(a),
    "sqrt": lambda k, a, b: k.sqrt(k.abs(a)),
    "floor": lambda k, a, b: k.floor(a),
    "ceil": lambda k, a, b: k.ceil(a),
    "rint": lambda k, a, b: k.rint(a),
    "trunc": lambda k, a, b: k.trunc(a),
    "fma": lambda k, a, b: k.fma(a, b, 2.0),
    "select": lambda k, a, b: k.select(k.compare("lt", a, b), a, b),
    "scalar_select": lambda k, a, b: k.select(k.compare("lt", k.extract(a, 1), k.extract(b, 1)), a, b),
    "shuffle": lambda k, a, b: k.shuffle(a, b, [7, 8, 0, 15, 3, 3, 12, 1]),
    "concat": lambda k, a, b: k.concat(k.lanes(a, 2, 4), k.lanes(b, 4, 4)),
    "insert": lambda k, a, b: k.insert(a, k.extract(b, 6), 2),
    "reduce": lambda k, a, b: k.splat(k.reduce("add", k.mul(a, b)), N),
    "bits": lambda k, a, b: k.bitcast(k.bitand(k.bitcast(a, "i32"), 0x7FFFFFFF), "f32"),
    "through_bf16": lambda k, a, b: k.cast(k.cast(a, "bf16"), "f32"),
    "through_f16": lambda k, a, b: k.cast(k.cast(a, "f16"), "f32"),
    "through_f64": lambda k, a, b: k.cast(k.cast(k.cast(a, "f64"), "f16"), "f32"),
    "through_i32": lambda k, a, b: k.cast(k.cast(a, "i32"), "f32"),
    "uno": lambda k, a, b: k.cast(k.compare("uno", a, b), "f32"),
    "ueq": lambda k, a, b: k.cast(k.compare("ueq", a, b), "f32"),
    "ult": lambda k, a, b: k.cast(k.compare("ult", a, b), "f32"),
    "one": lambda k, a, b: k.cast(k.compare("one", a, b), "f32"),
}


def binary(step: Step, dtype: str = "f32", isa: Machine = HOST) -> Kernel:
    """`y = step(a, b)` on one vector."""
    k = KernelBuilder("kernel", isa)
    a, b, y = k.binding(0, dtype, N), k.binding(1, dtype, N), k.binding(2, dtype, N, writable=True)
    k.store(y, 0, step(k, k.load(a, 0, N), k.load(b, 0, N)))
    return k.finish()


def both(kernel: Kernel, arrays: list[Any], sizes: tuple[int, ...] = (), end: int = 1) -> None:
    """Run natively and on NumPy; all arrays must end equal."""
    copies = [a.copy() for a in arrays]
    guarded = [Guarded(a.shape, a.dtype, at_end=True) for a in arrays]
    for guard, array in zip(guarded, arrays, strict=True):
        guard.array[...] = array
    call(kernel, HOST, [g.array for g in guarded], sizes, 0, end)
    evaluate(kernel, copies, sizes, 0, end)
    for guard, copy in zip(guarded, copies, strict=True):
        np.testing.assert_array_equal(guard.array, copy)


def special(rng: np.random.Generator) -> Any:
    """Floats with everything unusual among them."""
    x = (rng.standard_normal(N) * 10).astype(np.float32)
    x[rng.integers(N)] = rng.choice([np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-40, 65519.0, 1e-7])
    return x


@pytest.mark.parametrize("name", FLOATS)
def test_floats(name: str) -> None:
    rng = np.random.default_rng(abs(hash(name)) % 2**32)
    kernel = binary(FLOATS[name])
    for _ in range(4):
        a, b = special(rng), special(rng)
        if name in ("through_i32", "reduce"):
            a, b = np.nan_to_num(a, posinf=1, neginf=-1), np.nan_to_num(b, posinf=1, neginf=-1)
        both(kernel, [a, b, np.zeros(N, np.float32)])


INTEGERS: dict[str, Step] = {
    name: (lambda k, a, b, n=name: getattr(k, n)(a, b))
    for name in "add sub mul min max umin umax bitand bitor xor".split()
} | {
    "sdiv": lambda k, a, b: k.sdiv(a, k.bitor(k.abs(b), 1)),
    "srem": lambda k, a, b: k.srem(a, k.bitor(k.abs(b), 1)),
    "udiv": lambda k, a, b: k.div(a, k.bitor(b, 1)),
    "urem": lambda k, a, b: k.rem(a, k.bitor(b, 1)),
    "shl": lambda k, a, b: k.shl(a, k.bitand(b, 7)),
    "lshr": lambda k, a, b: k.lshr(a, k.bitand(b, 7)),
    "ashr": lambda k, a, b: k.ashr(a, k.bitand(b, 7)),
    "neg": lambda k, a, b: k.neg(a),
    "abs": lambda k, a, b: k.abs(a),
    "ult": lambda k, a, b: k.select(k.compare("ult", a, b), a, b),
    "sge": lambda k, a, b: k.select(k.compare("ge", a, b), a, b),
    "leading": lambda k, a, b: k.leading_zeros(a),
    "trailing": lambda k, a, b: k.trailing_zeros(a),
    "ones": lambda k, a, b: k.count_ones(a),
}


@pytest.mark.parametrize("dtype", ["i8", "i16", "i32", "i64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_integers(name: str, dtype: str) -> None:
    rng = np.random.default_rng(abs(hash((name, dtype))) % 2**32)
    kind = np.dtype(f"int{dtype[1:]}")
    limits = np.iinfo(kind)
    kernel = binary(INTEGERS[name], dtype)
    a, b = (rng.integers(limits.min + 1, limits.max, N, endpoint=True).astype(kind) for _ in range(2))
    a[0], b[1] = 0, 0
    both(kernel, [a, b, np.zeros(N, kind)])


@pytest.mark.parametrize("active", range(N + 1))
def test_masked_accesses_touch_only_live_lanes(active: int) -> None:
    k = KernelBuilder("kernel", HOST)
    n = k.size(0)
    x, y = k.binding(0, "f32", n), k.binding(1, "f32", n, writable=True)
    k.store(y, 0, k.add(k.load(x, 0, N, active=n), 1.0), active=n)
    both(k.finish(), [np.arange(active, dtype=np.float32), np.zeros(active, np.float32)], (active,))


@pytest.mark.parametrize("dtype", ["f32", "i64", "i8", "i1"])
def test_gather_and_scatter(dtype: str) -> None:
    k = KernelBuilder("kernel", HOST)
    x, at, y = k.binding(0, dtype, 20), k.binding(1, "i64", N), k.binding(2, dtype, 20, writable=True)
    indices = k.load(at, 0, N)
    k.scatter(y, indices, k.gather(x, indices, active=5), active=3)
    rng = np.random.default_rng(3)
    values = rng.integers(0, 2, 20).astype({"f32": np.float32, "i64": np.int64, "i8": np.int8, "i1": np.bool_}[dtype])
    both(k.finish(), [values, rng.permutation(20)[:N].astype(np.int64), np.zeros_like(values)])


@pytest.mark.parametrize("trips", [0, 1, 5])
def test_loops_carry_values(trips: int) -> None:
    k = KernelBuilder("kernel", HOST)
    x, y = k.binding(0, "f32", 16), k.binding(1, "f32", 2, writable=True)

    def body(i: Any, total: Any, count: Any) -> Any:
        (added,) = k.when(k.compare("eq", k.rem(i, 2), 0), lambda: (k.add(total, k.load(x, i)),), lambda: (total,))
        return added, k.add(count, 1)

    total, count = k.loop(0, k.size(0), 1, body, (k.const(0.0, "f32"), 0))
    k.store(y, 0, total)
    k.store(y, 1, k.cast(count, "f32"))
    both(k.finish(), [np.arange(16, dtype=np.float32), np.zeros(2, np.float32)], (trips,))


def test_chosen_addresses() -> None:
    """Padding without a branch: outside the image a zero page is read."""
    k = KernelBuilder("kernel", HOST)
    x, zero, y = k.binding(0, "f32", 16), k.scratch("f32", 8), k.binding(1, "f32", 32, writable=True)
    k.store(zero, 0, k.const(0.0, "f32", 8))

    def body(i: Any) -> None:
        inside = k.compare("ult", k.sub(i, 1), 2)
        place = k.select_mem(inside, x, k.mul(k.sub(i, 1), 8), zero, 0)
        k.store(y, k.mul(i, 8), k.concat(k.load_at(place, 0, 4), k.load_at(place, 4, 4)))

    k.loop(0, 4, 1, body)
    both(k.finish(), [np.arange(16, dtype=np.float32), np.ones(32, np.float32)])


@pytest.mark.parametrize("dtype", ["i64", "f32", "f16", "i1", "bf16"])
def test_tables(dtype: str) -> None:
    k = KernelBuilder("kernel", HOST)
    y = k.binding(0, "f32", 3, writable=True)
    table = k.table("numbers", [1, 0, 3] if dtype != "i1" else [1, 0, 1], dtype)
    assert k.table("numbers", table.data, dtype) is table
    k.loop(0, 3, 1, lambda i: k.store(y, i, k.cast(k.load(table, i), "f32")))
    both(k.finish(), [np.zeros(3, np.float32)])


def test_evaluator_sees_accesses_outside() -> None:
    k = KernelBuilder("kernel", HOST)
    x, y = k.binding(0, "f32", 8), k.binding(1, "f32", 8, writable=True)
    k.store(y, 0, k.load(x, 1, 8))
    with pytest.raises(IndexError, match="element 8 of b0, which has 8"):
        evaluate(k.finish(), [np.zeros(8, np.float32), np.zeros(8, np.float32)])


def test_evaluator_sees_writes_to_inputs() -> None:
    k = KernelBuilder("kernel", HOST)
    x = k.binding(0, "f32", 8)
    k.store(x, 0, k.const(0.0, "f32"))
    with pytest.raises(IndexError, match="read-only"):
        evaluate(k.finish(), [np.zeros(8, np.float32)])


def test_evaluator_sees_a_wrong_binding() -> None:
    k = KernelBuilder("kernel", HOST)
    k.load(k.binding(0, "f32", 8), 0)
    with pytest.raises(ValueError, match="9 elements"):
        evaluate(k.finish(), [np.zeros(9, np.float32)])


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_every_operation_compiles_for_every_isa(isa: str) -> None:
    kernels = [binary(step, "f32", machine(isa)) for step in FLOATS.values()]
    kernels += [binary(step, dtype, machine(isa)) for step in INTEGERS.values() for dtype in ("i8", "i64")]
    for kernel in kernels[::3]:
        assert emit_object(print_llvm([kernel], machine(isa)), machine(isa)).startswith(b"\x7fELF")
