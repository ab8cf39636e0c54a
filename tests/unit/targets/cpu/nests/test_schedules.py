"""What the scheduler decides: grids, lanes, runs, groups, tiles and scratch."""

from __future__ import annotations

import pytest

from fuseline.ir.dim import to_text
from fuseline.targets.cpu.families.family import Refusal
from fuseline.targets.cpu.families.nests.elementwise import Elementwise
from fuseline.targets.cpu.families.nests.evaluations import MOST_OPERATIONS, operations_per_point
from fuseline.targets.cpu.families.nests.loop_nest import nest_plan
from fuseline.targets.cpu.families.nests.rows import Rows
from fuseline.targets.cpu.families.nests.schedule import Schedule
from fuseline.targets.cpu.isa import machine

from .generics import empty, fill, function, generic, tensor
from .test_elementwise import ADD, GELU, unary
from .test_reductions import SUM, layernorm, reduce, softmax
from .texts import build, check, parse

AVX2 = machine("avx2")


def schedule(text: str) -> Schedule:
    """The schedule of a dispatch."""
    return nest_plan(parse(text), AVX2).schedule


def test_elementwise_is_flat() -> None:
    """All axes are one run, cut into chunks."""
    found = schedule(unary((40, 50, 60), GELU, "%r"))
    assert len(found.vector_loops) == 3
    assert found.collapsed_loops == []
    assert found.chunk < 40 * 50 * 60
    assert found.workgroups == -(-40 * 50 * 60 // found.chunk)


def test_a_bias_keeps_its_axis() -> None:
    """Rows form the grid, walked as one; the axis of the bias is the lanes'."""
    t, b = tensor((40, 50, 64)), tensor((64,))
    op = generic("%y", [("%a", t), ("%b", b)], [("%e", t)], ["d0, d1, d2", "d2", "d0, d1, d2"], "ppp", *ADD)
    found = schedule(
        function(
            [("a", (40, 50, 64), "f32"), ("b", (64,), "f32")], [], empty("e", (40, 50, 64)) + "\n" + op, [("%y", t)]
        )
    )
    assert [len(run) for run in found.collapsed_loops] == [2]
    assert found.workgroups == 2000


def test_lanes_run_along_parts_of_what_is_computed_where_it_is_read() -> None:
    """The loop over all of it is nobody's, though most of what is read lies along it."""
    whole, part = tensor((40, 32)), tensor((40, 16))
    magnitude = ("%v = math.absf %i0 : f32", [("%v", "f32")])
    lines = [
        empty("e", (40, 32)),
        empty("f", (40, 16)),
        generic("%y", [("%a", whole)], [("%e", whole)], ["d0, d1"] * 2, "pp", *magnitude),
        f"%l = tensor.extract_slice %y[0, 0] [40, 16] [1, 1] : {whole} to {part}",
        f"%r = tensor.extract_slice %y[0, 16] [40, 16] [1, 1] : {whole} to {part}",
        generic("%z", [("%l", part), ("%r", part)], [("%f", part)], ["d0, d1"] * 3, "pp", *ADD),
    ]
    text = function([("a", (40, 32), "f32")], [], "\n".join(lines), [("%z", part)])
    found = schedule(text)
    assert found.chunked is not None
    assert found.lane_extent == 16
    check(text)


def cascade(steps: int) -> str:
    """Sums of neighbours, padded to the length before: each step reads the one before at two places, and each place in
    two ways where it runs across the lanes."""
    whole, part = tensor((40,)), tensor((39,))
    lines, last, summed = ["%zero = arith.constant 0.0 : f32"], "%a", ""
    for step in range(steps):
        e, left, right, summed, padded = [f"%{letter}{step}" for letter in "elrsp"]
        border = f"^bb0(%i{step}: index): tensor.yield %zero : f32"
        lines += [
            empty(e[1:], (39,)),
            f"{left} = tensor.extract_slice {last}[0] [39] [1] : {whole} to {part}",
            f"{right} = tensor.extract_slice {last}[1] [39] [1] : {whole} to {part}",
            generic(summed, [(left, part), (right, part)], [(e, part)], ["d0"] * 3, "p", *ADD),
            f"{padded} = tensor.pad {summed} low[0] high[1] {{ {border} }} : {part} to {whole}",
        ]
        last = padded
    return function([("a", (40,), "f32")], [], "\n".join(lines), [(summed, part)])


def test_lanes_do_not_make_a_cascade_of_slices_long() -> None:
    """Few are made with lanes; from where they would be more code than they save, values are made one by one."""
    found = [schedule(cascade(steps)) for steps in (2, 4, 9)]
    counts = [operations_per_point(one.staging) for one in found]
    assert counts[0] < counts[1] <= MOST_OPERATIONS < counts[2]
    assert [one.chunked is not None for one in found] == [True, True, False]
    check(cascade(3))


def test_small_work_is_one_workgroup() -> None:
    assert schedule(unary((10, 12), GELU, "%r")).workgroups == 1


def test_runtime_sizes_give_runtime_grids() -> None:
    found = schedule(unary(("n", 8), GELU, "%r"))
    assert "n" in to_text(found.workgroups)


@pytest.mark.parametrize(
    ("body", "row", "stages"),
    [
        ("%v = math.log %i0 : f32", "d0", 3),  # one logarithm per row
        (
            "%s = math.sqrt %i0 : f32\n%v = arith.divf %i0, %s : f32",
            "d0",
            2,
        ),  # plain arithmetic leaves the loop by itself
        ("%v = math.log %i0 : f32", "d0, d1", 2),  # nothing is read again
    ],
)
def test_elementary_functions_of_a_row_are_computed_once(body: str, row: str, stages: int) -> None:
    shape = (6, 40)
    t, r = tensor(shape), tensor((6,)) if row == "d0" else tensor(shape)
    size = (6,) if row == "d0" else shape
    loops, kinds = ("d0", "p") if row == "d0" else ("d0, d1", "pp")
    source = "%t" if row == "d0" else "%x"
    lines = [
        empty("e", shape),
        empty("f", size),
        fill("z", "0.0", (6,)),
        generic("%t", [("%x", t)], [("%z", tensor((6,)))], ["d0, d1", "d0"], "pr", "%s = arith.addf %i0, %o0 : f32",
            [("%s", "f32")]),
        generic("%l", [(source, r)], [("%f", r)], [loops, loops], kinds, body, [("%v", "f32")]),
        generic(
            "%y", [("%x", t), ("%l", r), ("%t", tensor((6,)))], [("%e", t)], ["d0, d1", row, "d0", "d0, d1"], "pp",
            "%a = arith.subf %i0, %i1 : f32\n%b = arith.addf %a, %i2 : f32", [("%b", "f32")],
        ),
    ]  # fmt: skip
    text = function([("x", shape, "f32")], [], "\n".join(lines), [("%y", t)])
    assert len(nest_plan(parse(text), AVX2).schedule.staging.stages) == stages
    check(text)


def test_softmax_shares_loops() -> None:
    """Maximum; exponential and sum together; quotient: three walks over a row, the exponentials in scratch."""
    view = parse(softmax((6, 40)))
    found = nest_plan(view, AVX2).schedule
    assert [len(group.stages) for group in found.groups] == [1, 2, 1]
    assert [len(group.together) for group in found.groups] == [0, 1, 0]
    assert found.workgroups == 6
    assert build(view, AVX2).kernel.scratch_bytes == 40 * 4


def test_cheap_values_are_recomputed() -> None:
    """A layer norm's centred row costs less to make again than to keep."""
    assert build(parse(layernorm(4, 100)), AVX2).kernel.scratch_bytes == 0


def test_rows_of_unknown_length_take_no_scratch() -> None:
    assert build(parse(softmax(("n", "m"))), AVX2).kernel.scratch_bytes == 0


def test_long_rows_take_no_scratch() -> None:
    assert build(parse(softmax((2, 40000))), AVX2).kernel.scratch_bytes == 0


def test_lanes_follow_memory() -> None:
    """Sums of rows run along the row, sums of columns across it."""
    rows, columns = schedule(reduce((64, 64), [0], SUM[0], "0.0")), schedule(reduce((64, 64), [1], SUM[0], "0.0"))
    assert rows.groups[0].lane_reduction is not None
    assert rows.groups[0].lane_axis is None
    assert columns.groups[0].lane_axis is not None
    assert columns.chunked is not None


def test_transposes_are_tiled() -> None:
    t, s = tensor((64, 48)), tensor((48, 64))
    op = generic("%y", [("%x", s)], [("%e", t)], ["d1, d0", "d0, d1"], "pp", "", [("%i0", "f32")])
    found = schedule(function([("x", (48, 64), "f32")], [], empty("e", (64, 48)) + "\n" + op, [("%y", t)]))
    assert len(found.tiled_loops) == 1
    assert found.tile == 32
    assert found.workgroups == 2


def test_named_transposes_are_tiled() -> None:
    t, s = tensor((64, 48)), tensor((48, 64))
    op = f"%y = linalg.transpose ins(%x : {s}) outs(%e : {t}) permutation = [1, 0]"
    found = schedule(function([("x", (48, 64), "f32")], [], empty("e", (64, 48)) + "\n" + op, [("%y", t)]))
    assert len(found.tiled_loops) == 1


@pytest.mark.parametrize(("shape", "source", "channels"), [
    ((6, 9, 3), "d2, d0, d1", 3), ((6, 9, 4), "d2, d0, d1", 4), ((6, 9, 5), "d2, d0, d1", 5),
    ((1, 7, 3), "d2, d0, d1", 3), ((6, 7, 3), "d1, d2, d0", 0), ((1, 3, 3), "d2, d0, d1", 0),
    ((6, 9, 3), "d1, d0, d2", 0),
])  # fmt: skip
def test_few_channels_are_interleaved(shape: tuple[int, int, int], source: str, channels: int) -> None:
    """Less than a vector of them, of several pixels, that are read along a line."""
    read = tuple(shape[int(d.strip()[1])] for d in source.split(","))
    op = generic(
        "%y", [("%x", tensor(read))], [("%e", tensor(shape))], [source, "d0, d1, d2"], "ppp", "", [("%i0", "f32")]
    )
    found = schedule(function([("x", read, "f32")], [], empty("e", shape) + "\n" + op, [("%y", tensor(shape))]))
    assert found.interleaved == channels


def test_short_innermost_axes_join_their_neighbour() -> None:
    """Upsampling by 2: lanes run over pairs, what is read is gathered."""
    t, s = tensor((64, 50, 2)), tensor((64, 50))
    op = generic("%y", [("%x", s)], [("%e", t)], ["d0, d1", "d0, d1, d2"], "ppp", "", [("%i0", "f32")])
    found = schedule(function([("x", (64, 50), "f32")], [], empty("e", (64, 50, 2)) + "\n" + op, [("%y", t)]))
    assert len(found.vector_loops) >= 2


def test_one_number_for_all_means_one_workgroup() -> None:
    x, r = tensor((6, 21)), tensor(())
    lines = [
        empty("e", (6, 21)),
        fill("z", "0.0", ()),
        generic(
            "%s", [("%x", x)], [("%z", r)], ["d0, d1", ""], "rr", "%q = arith.addf %i0, %o0 : f32", [("%q", "f32")]
        ),
        generic(
            "%y",
            [("%x", x), ("%s", r)],
            [("%e", x)],
            ["d0, d1", "", "d0, d1"],
            "pp",
            "%q = arith.subf %i0, %i1 : f32",
            [("%q", "f32")],
        ),
    ]
    assert schedule(function([("x", (6, 21), "f32")], [], "\n".join(lines), [("%y", x)])).workgroups == 1


def test_results_of_a_concat_are_stages_of_their_own() -> None:
    body = f"%y = tensor.concat dim(1) %a, %b : ({tensor((9, 5))}, {tensor((9, 14))}) -> {tensor((9, 19))}"
    found = schedule(function([("a", (9, 5), "f32"), ("b", (9, 14), "f32")], [], body, [("%y", tensor((9, 19)))]))
    assert len(found.staging.stages) == 2
    assert found.workgroups == 9


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (unary((4, 8), GELU, "%r"), "no-reduction"),
        (reduce((64, 64), [1], SUM[0], "0.0"), "not-contiguous"),
        (
            reduce((5, 13), [0], "%q = arith.mulf %o0, %o0 : f32\n%s = arith.addf %q, %i0 : f32", "0.1"),
            "not-a-row-reduction",
        ),
    ],
)
def test_rows_refuse(text: str, code: str) -> None:
    found = Rows().accepts(parse(text), AVX2)
    assert isinstance(found, Refusal)
    assert found.code == code


def test_elementwise_refuses_reductions() -> None:
    found = Elementwise().accepts(parse(reduce((5, 13), [0], SUM[0], "0.0")), AVX2)
    assert isinstance(found, Refusal)
    assert found.code == "reduces"
