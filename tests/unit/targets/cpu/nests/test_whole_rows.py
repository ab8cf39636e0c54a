"""Reductions down few columns: all vectors of a workgroup's columns side by side, in one traversal of the rows."""

from __future__ import annotations

import pytest

from fuseline.analysis.column_blocks import MOST_BESIDE
from fuseline.targets.cpu.families.nests.loop_nest import nest_plan
from fuseline.targets.cpu.families.nests.recompute_cost import is_slow
from fuseline.targets.cpu.families.nests.stages import SCRATCH_LIMIT_BYTES
from fuseline.targets.cpu.families.nests.whole_rows import only_reduces, vectors_of
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from tests.draws import RNG

from .generics import empty, fill, function, generic, tensor
from .texts import check, parse

ADD = ("%t = arith.addf %o0, %i0 : f32", [("%t", "f32")])
MOST = ("%t = arith.maximumf %o0, %i0 : f32", [("%t", "f32")])
DEVIATIONS = (
    "%d = arith.subf %i0, %i1 : f32\n%u = arith.mulf %d, %d : f32\n%t = arith.addf %o0, %u : f32",
    [("%t", "f32")],
)
ROWS, COLUMNS = "d0, d1", "d1"
LANES = machine("avx512").f32_lanes


def moments(rows: int | str, columns: int | str, *, first: tuple[str, list[tuple[str, str]]] = ADD) -> str:
    """The sums (or largest) of each column, and those of the squared differences to it."""
    shape, few = (rows, columns), tensor((columns,))
    x = ("%x", tensor(shape))
    lines = [
        fill("z", "0.25", (columns,)),
        generic("%m", [x], [("%z", few)], [ROWS, COLUMNS], "rp", *first),
        generic("%v", [x, ("%m", few)], [("%z", few)], [ROWS, COLUMNS, COLUMNS], "rp", *DEVIATIONS),
    ]
    names = sorted({size for size in shape if isinstance(size, str)})
    return function([("x", shape, "f32")], names, "\n".join(lines), [("%m", few), ("%v", few)])


@pytest.mark.parametrize("first", [ADD, MOST])
@pytest.mark.parametrize("columns", [17, 32, 40, 100, MOST_BESIDE * LANES])
def test_all_columns_in_one_traversal(columns: int, first: tuple[str, list[tuple[str, str]]]):
    check(moments(int(RNG.integers(2, 60)), columns, first=first), isa=machine("avx512"))


@pytest.mark.parametrize("isa", ["baseline", "avx2", "neon"])
@pytest.mark.parametrize("columns", [9, 21, 30])
def test_other_vectors(isa: str, columns: int):
    check(moments(13, columns), isa=machine(isa))


@pytest.mark.parametrize(("rows", "columns"), [("r", 40), (30, "c"), ("r", "c")])
def test_sizes_that_the_run_tells(rows: int | str, columns: int | str):
    check(
        moments(rows, columns),
        sizes={name: int(RNG.integers(1, 70)) for name in (rows, columns) if isinstance(name, str)},
        compiled=True,
    )


def test_natively_between_pages():
    check(moments(29, 40), compiled=True)


@pytest.mark.parametrize(
    ("columns", "starts"),
    [
        (40, [[0, 16, 24]]),  # the last vector ends with the last column
        (48, [[0, 16, 32]]),
        (128, [[0, 16, 32, 48, 64, 80, 96, 112]]),
        (16, []),  # one vector
        (7, []),
        (129, []),  # more than are put side by side
    ],
)
def test_where_vectors_begin(columns: int, starts: list[list[int]]):
    assert vectors_of(KernelBuilder("kernel", machine("avx512")), 0, columns, LANES) == starts


def test_as_many_vectors_as_registers_hold():
    assert vectors_of(KernelBuilder("kernel", machine("avx2")), 0, 44, 8) == [[0, 8, 16], [24, 32, 36]]


def test_columns_that_only_the_run_tells_are_traversed_in_a_loop():
    kernel = KernelBuilder("kernel", machine("avx512"))
    assert vectors_of(kernel, 0, kernel.size(0), LANES) == []


def test_what_is_no_reduction_is_made_once():
    shape, few = (30, 40), tensor((40,))
    lines = [
        fill("z", "0.0", (40,)),
        generic("%m", [("%x", tensor(shape))], [("%z", few)], [ROWS, COLUMNS], "rp", *ADD),
        generic("%y", [("%m", few)], [("%z", few)], [COLUMNS.replace("d1", "d0")] * 2, "p",
                "%t = arith.mulf %i0, %i0 : f32", [("%t", "f32")]),
    ]  # fmt: skip
    text = function([("x", shape, "f32")], [], "\n".join(lines), [("%m", few), ("%y", few)])
    groups = nest_plan(parse(text), machine("avx512")).schedule.groups
    assert not all(only_reduces(group) for group in groups)
    check(text)


MEAN = ("%n = arith.constant 3.0 : f32\n%t = arith.divf %i0, %n : f32", [("%t", "f32")])
ROOT = ("%t = math.sqrt %i0 : f32", [("%t", "f32")])
NORM = ("%d = arith.subf %i0, %i1 : f32\n%t = arith.divf %d, %i2 : f32", [("%t", "f32")])


def norm(rows: int | str, columns: int | str) -> str:
    """Each column less its mean, by a root of what is left: two vectors that all rows read."""
    shape, few = (rows, columns), tensor((columns,))
    x, along = ("%x", tensor(shape)), ["d0"] * 2
    lines = [
        fill("z", "0.25", (columns,)),
        empty("e", shape),
        generic("%m", [x], [("%z", few)], [ROWS, COLUMNS], "rp", *ADD),
        generic("%a", [("%m", few)], [("%z", few)], along, "p", *MEAN),
        generic("%v", [x, ("%a", few)], [("%z", few)], [ROWS, COLUMNS, COLUMNS], "rp", *DEVIATIONS),
        generic("%q", [("%v", few)], [("%z", few)], along, "p", *ROOT),
        generic("%y", [x, ("%a", few), ("%q", few)], [("%e", tensor(shape))], [ROWS, COLUMNS, COLUMNS, ROWS], "pp",
                *NORM),
    ]  # fmt: skip
    names = sorted({size for size in shape if isinstance(size, str)})
    return function([("x", shape, "f32")], names, "\n".join(lines), [("%y", tensor(shape))])


def test_what_all_rows_divide_by_is_made_once_for_each_column():
    plan = nest_plan(parse(norm(int(RNG.integers(2, 99)), int(RNG.integers(2, 1000)))), machine("avx2"))
    staging = plan.schedule.staging
    divided = [op.results[0] for op in staging.ops if op.name == "linalg.generic" and is_slow(op)]
    assert [value in staging.stored for value in divided] == [True] * 3  # the quotients, which are the result
    reducing, writing = plan.schedule.groups
    assert only_reduces(reducing) and not only_reduces(writing)


@pytest.mark.parametrize("isa", ["baseline", "avx2", "avx512", "neon"])
def test_a_norm_of_columns(isa: str):
    check(norm(int(RNG.integers(2, 60)), int(RNG.integers(2, 130))), isa=machine(isa))


def test_a_norm_of_many_columns_natively():
    """More than a workgroup takes, a dimension that alone is more than scratch holds."""
    check(norm(2, int(RNG.integers(33_000, 34_000))), compiled=True)


@pytest.mark.parametrize(("rows", "columns"), [("r", 40), (30, "c"), ("r", "c")])
def test_a_norm_of_sizes_that_the_run_tells(rows: int | str, columns: int | str):
    names = [name for name in (rows, columns) if isinstance(name, str)]
    check(norm(rows, columns), sizes={name: int(RNG.integers(1, 70)) for name in names}, compiled=True)


def softmax_down(outer: int, rows: int, columns: int) -> str:
    """Softmax over the middle one of three dimensions, the largest element aside."""
    shape, few = (outer, rows, columns), tensor((outer, columns))
    x, all_, kept = tensor(shape), "d0, d1, d2", "d0, d2"
    lines = [
        empty("e", shape),
        fill("z", "0.0", (outer, columns)),
        generic("%p", [("%x", x)], [("%e", x)], [all_, all_], "ppp", "%v = math.exp %i0 : f32", [("%v", "f32")]),
        generic("%s", [("%p", x)], [("%z", few)], [all_, kept], "prp", *ADD),
        generic("%y", [("%p", x), ("%s", few)], [("%e", x)], [all_, kept, all_], "ppp",
                "%v = arith.divf %i0, %i1 : f32", [("%v", "f32")]),
    ]  # fmt: skip
    return function([("x", shape, "f32")], [], "\n".join(lines), [("%y", x)])


def test_what_scratch_keeps_of_a_chunk_fits_it():
    """Exponentials of all rows, of as many columns as a workgroup takes."""
    rows = int(RNG.integers(20, 200))
    schedule = nest_plan(parse(softmax_down(70, rows, 4096)), machine("avx2")).schedule
    (lying,) = (stage for stage in schedule.staging.stages if stage.op is None and not any(stage.destinations.values()))
    assert len(lying.parallel) == 3
    assert schedule.chunk < 4096 and schedule.chunk * rows * 4 <= SCRATCH_LIMIT_BYTES


def test_a_softmax_down_columns_of_several_chunks():
    check(softmax_down(2, int(RNG.integers(20, 40)), int(RNG.integers(130, 200))), isa=machine("avx2"))
