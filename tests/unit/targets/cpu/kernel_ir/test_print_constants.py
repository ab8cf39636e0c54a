"""Constants of one part of a kernel do not stay in registers through loops that need them all."""

from __future__ import annotations

from itertools import groupby

import numpy as np
import pytest
from xdsl.dialects import arith
from xdsl.ir import SSAValue

from fuseline.ir.build import Body, dims_map
from fuseline.targets.cpu.families.blocked.family import BlockedFamily
from fuseline.targets.cpu.isa import Machine, machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Kernel, Operand, Value
from fuseline.targets.cpu.link.compile import emit_assembly
from tests.draws import RNG
from tests.graphs.program import Program
from tests.kernels import call, kernel_of, plan_of
from tests.unit.targets.cpu.blocked.programs import depthwise

TILES, STEPS, VECTORS = 3, 16, 2
ROWS = {"avx512": 14, "avx2": 6}
NUMBERS = (0.0, 0.5, -1.25, 1.5, 0.0625, -3.5)


def _two_parts(isa: Machine, rows: int, numbers: int, *, summed: bool = False) -> Kernel:
    """Products in tiles, which take all registers, clamped; then their squares, with `numbers` constants. `summed`: of
    what a loop sums, twice each, and without the sign bit."""
    k, lanes, pixels = KernelBuilder("parts", isa), isa.f32_lanes, TILES * rows
    columns = VECTORS * lanes
    x, w = k.binding(0, "f32", pixels * STEPS), k.binding(1, "f32", STEPS * columns)
    y, between = k.binding(2, "f32", pixels * columns, writable=True), k.scratch("f32", pixels * columns)

    def clamped(value: Value) -> Value:
        return k.minimum(k.const(1.5, "f32", lanes), k.maximum(k.const(0.0, "f32", lanes), value))

    def tile(number: Operand) -> None:
        first = k.mul(number, rows)

        def step(i: Operand, *sums: Value) -> tuple[Value, ...]:
            row = [k.load(w, k.add(k.mul(i, columns), v * lanes), lanes) for v in range(VECTORS)]
            left = [k.splat(k.load(x, k.add(k.mul(k.add(first, r), STEPS), i)), lanes) for r in range(rows)]
            return tuple(k.fma(a, b, sums[r * VECTORS + v]) for r, a in enumerate(left) for v, b in enumerate(row))

        zero = k.const(0.0, "f32", lanes)
        for n, total in enumerate(k.loop(0, STEPS, 1, step, (zero,) * (rows * VECTORS))):
            k.store(between, k.add(k.mul(first, columns), n * lanes), clamped(total))

    def square(i: Operand) -> None:
        value = k.load(between, k.mul(i, lanes), lanes)
        if summed:
            bits = k.bitand(k.bitcast(value, "i32"), k.const(0x7FFFFFFF, "i32", lanes))
            part = k.bitcast(bits, "f32")
            (value,) = k.loop(0, 2, 1, lambda _, total: (k.add(total, part),), (k.const(0.0, "f32", lanes),))
        value = k.mul(value, value)
        for number in NUMBERS[:numbers]:
            value = k.add(value, k.maximum(k.const(number, "f32", lanes), value))
        k.store(y, k.mul(i, lanes), clamped(value))

    def workgroup(_: Operand) -> None:
        k.loop(0, TILES, 1, tile)
        k.loop(0, pixels * VECTORS, 1, square)

    k.loop(k.begin, k.end, 1, workgroup)
    return k.finish()


@pytest.mark.parametrize(("isa", "size", "channels"), [("avx512", 14, 32), ("avx512", 28, 96), ("avx2", 28, 96)])
def test_sums_stay_in_registers(isa: str, size: int, channels: int):
    """Those of a product behind a depthwise window that is clamped to 0 and 6."""
    shape, target = (1, size, size, channels), machine(isa)
    p = Program(shape, (3, 3, channels), (channels, 24))

    def clamped(b: Body) -> SSAValue:
        raised = b.op(arith.MaximumfOp, b.args[0], b.constant(0.0, p.element))
        return b.op(arith.MinimumfOp, raised, b.constant(6.0, p.element))

    window, maps = p.over(depthwise(p, p.x[0], p.x[1], *shape), body=clamped), [[0, 1, 2, 4], [4, 3], [0, 1, 2, 3]]
    init = p.zeros(1, size, size, 24)
    view = p.dispatch(p.multiply_add(window, p.x[2], init, [dims_map(5, dims) for dims in maps], "ppppr"))
    family = BlockedFamily()
    text = emit_assembly(print_llvm([kernel_of(family, plan_of(family, view, target), target)], target), target)
    loops = [block for block in text.split("\n.LBB") if block.count("vfmadd") >= 12]
    assert loops and not [line for block in loops for line in block.splitlines() if "rsp" in line and "mm" in line]


@pytest.mark.parametrize(("rows", "numbers", "loads"), [(14, 2, [1, 2]), (14, 6, [1]), (4, 2, []), (12, 2, [])])
def test_what_is_loaded(rows: int, numbers: int, loads: list[int]):
    """Few constants before each part; many, and those that fit beside what the loops carry, are LLVM's."""
    lines = print_llvm([_two_parts(machine("avx512"), rows, numbers)], machine("avx512")).splitlines()
    runs = [len(list(group)) for volatile, group in groupby(lines, lambda line: "load volatile" in line) if volatile]
    assert runs == loads


@pytest.mark.parametrize(("numbers", "loads"), [(4, [1, 3]), (6, [1, 6])])
def test_constants_beside_sums_are_loaded(numbers: int, loads: list[int]):
    """More than three of a part that sums something, zero excepted: its masks, too."""
    lines = print_llvm([_two_parts(machine("avx512"), 14, numbers, summed=True)], machine("avx512")).splitlines()
    runs = [len(list(group)) for volatile, group in groupby(lines, lambda line: "load volatile" in line) if volatile]
    assert runs == loads


@pytest.mark.parametrize("numbers", [0, 2, 6])
@pytest.mark.parametrize("summed", [False, True])
def test_values(numbers: int, summed: bool):
    target = machine()
    rows = ROWS.get(target.name, 6)
    kernel = _two_parts(target, rows, numbers, summed=summed)
    columns = VECTORS * target.f32_lanes
    x, w = (RNG.uniform(-1, 1, shape).astype(np.float32) for shape in ((TILES * rows, STEPS), (STEPS, columns)))
    y = np.zeros((TILES * rows, columns), np.float32)
    call(kernel, target, [x, w, y])
    expected = (np.clip(x.astype(np.float64) @ w, 0, 1.5) * (2 if summed else 1)) ** 2
    for number in NUMBERS[:numbers]:
        expected = expected + np.maximum(number, expected)
    np.testing.assert_allclose(y, np.clip(expected, 0, 1.5), rtol=0, atol=1e-4)
