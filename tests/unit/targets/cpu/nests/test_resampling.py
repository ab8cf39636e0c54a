"""Gathers at places from tables: resampled images, read and written in any memory order."""

from __future__ import annotations

import numpy as np
import pytest

import fuseline
from fuseline.targets.cpu.families.nests.loop_nest import NestPlan
from fuseline.targets.cpu.families.nests.schedule import Schedule
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.one_node import by_onnxruntime

from .generics import empty, function, generic, tensor
from .texts import build, check, parse

Size = int | str

BETWEEN = """%d = arith.subf %b, %a : f32
%m = arith.mulf %d, %i2 : f32
%s = arith.addf %a, %m : f32"""


def place(name: str, table: str, last: int) -> str:
    """A table's entry, clamped into the source, as a coordinate."""
    lines = f"%{name}z = arith.constant 0 : i64\n%{name}m = arith.constant {last} : i64"
    lines += f"\n%{name}p = arith.maxsi {table}, %{name}z : i64\n%{name}q = arith.minsi %{name}p, %{name}m : i64"
    return f"{lines}\n%{name} = arith.index_cast %{name}q : i64 to index"


def resampled(result: str, source: str, dims: tuple[Size, ...], axis: int, sizes: tuple[int, int], written: str) -> str:
    """A linear resampling of `source[d0, d1, d2]` along `axis` from `sizes[0]` to `sizes[1]`, written in the order
    `written`."""
    before = tuple(sizes[0] if i == axis else size for i, size in enumerate(dims))
    out_loops = tuple(sizes[1] if i == axis else size for i, size in enumerate(dims))
    out = tuple(out_loops[int(d.strip()[1])] for d in written.split(","))
    loops = "\n".join(f"%l{i} = linalg.index {i} : index" for i in range(3) if i != axis)
    reads = "\n".join(
        f"%{name} = tensor.extract {source}[{', '.join(f'%at{name}' if i == axis else f'%l{i}' for i in range(3))}] : "
        f"{tensor(before)}"
        for name in ("a", "b")
    )
    body = "\n".join([place("ata", "%i0", sizes[0] - 1), place("atb", "%i1", sizes[0] - 1), loops, reads, BETWEEN])
    tables = [(f"%{t}{axis}", tensor((sizes[1],), "f32" if t == "w" else "i64")) for t in ("p", "q", "w")]
    lines = [
        empty(f"e{axis}", out),
        generic(
            result, tables, [(f"%e{axis}", tensor(out))], [f"d{axis}"] * 3 + [written], "ppp", body, [("%s", "f32")]
        ),
    ]
    return "\n".join(lines)


def tables(axis: int, size: int) -> list[tuple[str, tuple[Size, ...], str]]:
    """The arguments that `resampled` reads."""
    return [(f"p{axis}", (size,), "i64"), (f"q{axis}", (size,), "i64"), (f"w{axis}", (size,), "f32")]


def both(channels: Size, written: str, old: tuple[int, int] = (5, 4), new: tuple[int, int] = (13, 19)) -> str:
    """Rows, then columns of an image whose channels are innermost."""
    first = resampled("%h", "%x", ("h", old[1], channels), 0, (old[0], new[0]), "d0, d1, d2")
    second = resampled("%y", "%h", (new[0], "w", channels), 1, (old[1], new[1]), written)
    loops = (new[0], new[1], channels)
    out = tuple(loops[int(d.strip()[1])] for d in written.split(","))
    arguments = [*tables(0, new[0]), *tables(1, new[1]), ("x", (*old, channels), "f32")]
    return function(
        arguments, [channels] if isinstance(channels, str) else [], first + "\n" + second, [("%y", tensor(out))]
    )


def schedule(text: str) -> Schedule:
    """The schedule of the dispatch `text`."""
    plan = build(parse(text), machine("avx2")).plan
    assert isinstance(plan, NestPlan)
    return plan.schedule


@pytest.mark.parametrize("written", ["d0, d1, d2", "d2, d0, d1", "d1, d2, d0", "d0, d2, d1"])
@pytest.mark.parametrize("channels", [3, 8, 21])
def test_both_axes(channels: int, written: str) -> None:
    check(both(channels, written), family="elementwise")


@pytest.mark.parametrize("written", ["d0, d1, d2", "d2, d0, d1"])
@pytest.mark.parametrize("channels", [1, 29])
def test_channels_known_at_run_time(channels: int, written: str) -> None:
    check(both("c", written), sizes={"c": channels})


@pytest.mark.parametrize("written", ["d0, d1, d2", "d2, d0, d1", "d2, d1, d0"])
@pytest.mark.parametrize("new", [3, 8, 100])
def test_one_axis(written: str, new: int) -> None:
    text = resampled("%y", "%x", (6, "w", 20), 1, (9, new), written)
    out = tuple((6, new, 20)[int(d.strip()[1])] for d in written.split(","))
    check(function([*tables(1, new), ("x", (6, 9, 20), "f32")], [], text, [("%y", tensor(out))]))


def test_lanes_along_the_channels_are_turned() -> None:
    """What is gathered across the lanes lies along the channels: no vector is gathered."""
    assert schedule(both(21, "d2, d0, d1")).transposed
    assert "gather" not in print_llvm([build(parse(both(21, "d2, d0, d1")), machine("avx2")).kernel], machine("avx2"))


def test_an_image_with_channels_outside_is_gathered() -> None:
    """Lanes along the channels would meet elements far apart."""
    text = resampled("%y", "%x", (20, 6, "w"), 2, (9, 30), "d0, d1, d2")
    text = function([*tables(2, 30), ("x", (20, 6, 9), "f32")], [], text, [("%y", tensor((20, 6, 30)))])
    assert not schedule(text).transposed
    check(text)


def test_another_input_along_the_lanes_decides_for_them() -> None:
    lines = resampled("%h", "%x", (6, "w", 20), 1, (9, 30), "d2, d0, d1")
    t = tensor((20, 6, 30))
    add = generic(
        "%y",
        [("%h", t), ("%r", t)],
        [("%e", t)],
        ["d0, d1, d2"] * 3,
        "ppp",
        "%s = arith.addf %i0, %i1 : f32",
        [("%s", "f32")],
    )
    arguments = [*tables(1, 30), ("x", (6, 9, 20), "f32"), ("r", (20, 6, 30), "f32")]
    text = function(arguments, [], "\n".join([lines, empty("e", (20, 6, 30)), add]), [("%y", t)])
    assert not schedule(text).transposed
    check(text)


def test_few_channels_are_gathered() -> None:
    assert not schedule(both(3, "d2, d0, d1")).transposed


@pytest.mark.parametrize("channels", [1, 5, 8, 21])
def test_a_row_is_kept_where_what_is_made_of_it_runs_alike(channels: int) -> None:
    """The first step is made once per row, into scratch, and the second picks from there."""
    old, new = ((int(a), int(b)) for a, b in (RNG.integers(2, 9, 2), RNG.integers(10, 40, 2)))
    text = both(channels, "d0, d1, d2", old, new)
    first, second = schedule(text).groups
    assert [stage.op for stage in (*first.stages, *second.stages)] == [None, None]
    assert [axis for axis in first.stages[0].parallel if axis not in second.stages[0].parallel]
    check(text, family="elementwise")


def test_no_row_is_kept_for_fewer_than_threads_want() -> None:
    assert len(schedule(both(1, "d0, d1, d2", new=(3, 40))).groups) == 1


@pytest.mark.parametrize("threads", (1, 2, 5))
@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_an_image_that_is_a_result_and_picked_from_is_written(mode: str, threads: int):
    """However few rows there are for the threads: it lies where the caller gets it."""
    sizes = (int(RNG.integers(1, 3)), int(RNG.integers(1, 5)), int(RNG.integers(9, 40)), int(RNG.integers(5, 30)))
    shape = ", ".join(map(str, sizes))
    model = onnx_model(
        f'(float[{shape}] x) => (float[] a, float[] b, float[] c) {{ a = Resize <mode = "linear"> (x, none, up)'
        f'  b = Resize <mode = "{mode}"> (a, none, across)  c = GlobalAveragePool(b) }}',
        {
            "none": np.zeros(0, np.float32),
            "up": np.array([1, 1, RNG.uniform(1.2, 4), RNG.uniform(1.2, 2)], np.float32),
            "across": np.array([1, 1, RNG.uniform(1.1, 2), RNG.uniform(0.3, 0.9)], np.float32),
        },
        opset=18,
    )
    x = RNG.standard_normal(sizes).astype(np.float32)
    wanted = by_onnxruntime(model, {"x": x})
    found = fuseline.compile(model, threads=threads).run({"x": x}).values()
    for ours, theirs in zip(found, wanted, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
