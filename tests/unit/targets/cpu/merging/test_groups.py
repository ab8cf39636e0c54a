"""Which kernels share code: those of one outline, where nothing takes longer; why others do not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from fuseline.ir.costs import MachineCosts
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Kernel, Operand, Value
from fuseline.targets.cpu.merging.groups import Candidate, grouped, reasons_of
from fuseline.targets.cpu.merging.outline import first_difference, outline
from fuseline.targets.cpu.merging.price import price

ISA = replace(machine("avx2"), costs=MachineCosts(sharing_loss=0.03))
MOST = ISA.costs.sharing_loss


def kernel(build: Callable[[KernelBuilder], None], *, keeps_loops: bool) -> Kernel:
    k = KernelBuilder("one", ISA, keeps_loops=keeps_loops)
    build(k)
    return k.finish()


def candidate(build: Callable[[KernelBuilder], None], kind: str = "family") -> Candidate:
    return Candidate(kind, kernel(build, keeps_loops=True))


def columns(rows: int, width: int, streams: int, *, relu: bool = False) -> Callable[[KernelBuilder], None]:
    """Sums over the rows of a matrix, of the first elements of `streams` equal parts of a row."""
    return scattered(rows, [width * part for part in range(streams)], width * streams, relu=relu)


def scattered(rows: int, places: Sequence[int], width: int, *, relu: bool = False) -> Callable[[KernelBuilder], None]:
    """Sums over the rows of a matrix, `width` wide, of the elements at `places` of a row."""
    streams = len(places)

    def build(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", rows * width), k.binding(1, "f32", streams, writable=True)

        def row(i: Operand, *sums: Operand) -> tuple[Operand, ...]:
            return tuple(
                k.add(total, k.load(x, k.add(k.mul(i, width), place)))
                for place, total in zip(places, sums, strict=True)
            )

        for part, total in enumerate(k.loop(0, rows, 1, row, (k.const(0.0, "f32"),) * streams)):
            k.store(y, part, k.max(total, 0.0) if relu else total)

    return build


def pairs(width: int, streams: int) -> Callable[[KernelBuilder], None]:
    """The first pair of each of `streams` rows, `width` pairs long, times a pair, in sums of i32."""

    def build(k: KernelBuilder) -> None:
        x, w = k.binding(0, "i16", 2 * width * streams), k.binding(1, "i16", 16)
        y = k.binding(2, "i32", 8 * streams, writable=True)

        def step(i: Operand, *sums: Value) -> tuple[Value, ...]:
            weights = k.load(w, 0, 16)
            rows = [k.load(x, k.add(k.mul(i, 2), 2 * width * row), 2) for row in range(streams)]
            spread = [k.shuffle(row, None, [0, 1] * 8) for row in rows]
            return tuple(k.dot_pairs(a, weights, total) for a, total in zip(spread, sums, strict=True))

        for row, total in enumerate(k.loop(0, width, 1, step, (k.const(0, "i32", 8),) * streams)):
            k.store(y, 8 * row, total)

    return build


def test_integer_pairs_move_their_rows_with_one_index():
    groups, unshared = grouped([candidate(pairs(width, 8)) for width in (5, 9)], "k", ISA)
    assert [group.members for group in groups] == [(0, 1)] and unshared == []


def test_kernels_that_differ_in_bounds_share_their_code():
    groups, unshared = grouped([candidate(columns(rows, 8, 2)) for rows in (3, 5, 9)], "k", ISA)
    assert [group.members for group in groups] == [(0, 1, 2)]
    assert groups[0].merged.numbers == ((3,), (5,), (9,))
    assert unshared == []


def test_distances_in_an_innermost_loop_have_a_price():
    places = ((0, 70, 170, 300, 460, 650, 870), (0, 90, 200, 370, 510, 740, 1000))
    few, many = ([candidate(scattered(3, one[:count], 1024)) for one in places] for count in (2, 7))
    for candidates, lost in ((few, False), (many, True)):
        groups, unshared = grouped(candidates, "k", ISA)
        assert (groups == []) is lost
        assert [(one.candidate, one.other, one.share > MOST) for one in unshared] == [(1, 0, True)] * lost


def test_what_each_loses_is_known_up_to_the_limit():
    places = ((0, 70, 170, 300, 460, 650, 870), (0, 90, 200, 370, 510, 740, 1000))
    candidates = [candidate(scattered(3, one, 1024)) for one in places]
    generous = replace(ISA, costs=MachineCosts(sharing_loss=1.0))
    (group,), unshared = grouped([candidates[0], replace(candidates[1], lost=0.2)], "k", generous)
    assert unshared == [] and MOST < group.lost[0] < 1.0
    assert round(group.lost[1] - group.lost[0], 6) == 0.2


def test_rows_a_stride_apart_have_none():
    groups, unshared = grouped([candidate(columns(3, width, 8)) for width in (8, 12)], "k", ISA)
    assert [group.members for group in groups] == [(0, 1)] and unshared == []
    assert groups[0].merged.numbers == ((8,), (12,))


def test_what_a_launch_loses_already_counts():
    one, other = (candidate(columns(rows, 8, 2)) for rows in (3, 5))
    slow = replace(other, lost=MOST + 0.01)
    groups, unshared = grouped([one, slow], "k", ISA)
    assert groups == [] and [round(why.share, 3) for why in unshared] == [round(MOST + 0.01, 3)]


def test_a_kernel_has_no_price_against_itself():
    one = candidate(columns(3, 8, 8))
    assert price(one.kernel, one.kernel) == 0


def test_kinds_are_not_compared_and_outlines_not_merged():
    made = [candidate(columns(3, 8, 2)), candidate(columns(4, 8, 2), "other"), candidate(columns(3, 8, 2, relu=True))]
    groups, unshared = grouped(made, "k", ISA)
    assert groups == []
    assert [(one.candidate, one.other) for one in unshared] == [(0, 2), (2, 0)]
    reasons = reasons_of(unshared, ["a", "b", "c"])
    assert reasons[0] == (f"@c: {unshared[0].reason}",)
    assert "max f32" in reasons[2][0]


def test_outlines_say_where_they_differ():
    one, other = (outline(kernel(columns(3, 8, streams), keeps_loops=True)) for streams in (2, 3))
    assert first_difference(one, one) == "nothing but numbers"
    assert "2 values" in first_difference(one, other) and "3 values" in first_difference(one, other)
    assert first_difference(one[:3], one).endswith(f"the end beside {one[3]}")
