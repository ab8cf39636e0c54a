"""Reads and writes of a kernel with where they stand: order within an iteration, loops in common, branches."""

from __future__ import annotations

from typing import Any

from fuseline.targets.cpu.kernel_ir.accesses import accesses, common_nodes, in_order
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.types import Kernel, Loop, When

from .index_algebra import AVX2


def _kernel() -> Kernel:
    """A read before a loop; in it a read, and a write in either branch; a write of 4 lanes behind it."""
    k = KernelBuilder("kernel", AVX2)
    x, y = k.binding(0, "f32", 64), k.binding(1, "f32", 64, writable=True)
    first = k.load(x, 5)

    def body(i: Any) -> None:
        inner = k.load(x, i)
        k.when(k.compare("slt", i, 8), lambda: k.store(y, i, inner), lambda: k.store(y, 63, first))

    k.loop(0, 16, 1, body)
    k.store(y, 32, k.load(x, 32, 4, active=3), active=3)
    return k.finish()


def test_what_is_touched_and_how_much_of_it() -> None:
    found = accesses(_kernel())
    assert [(one.binding, one.written, one.lanes) for one in found] == [
        (0, False, 1),
        (0, False, 1),
        (1, True, 1),
        (1, True, 1),
        (0, False, 4),
        (1, True, 4),
    ]
    assert [one.active for one in found[-2:]] == [3, 3] and not any(one.indexed for one in found)


def test_loops_and_branches_around() -> None:
    first, inner, then, otherwise, *last = accesses(_kernel())
    assert first.nodes == () == last[0].nodes
    assert [type(node) for node in inner.nodes] == [Loop]
    assert [type(node) for node in then.nodes] == [Loop, When]
    assert common_nodes(inner, then) == list(inner.nodes)
    assert common_nodes(then, otherwise) == list(then.nodes)
    assert common_nodes(first, then) == []


def test_order_within_one_iteration() -> None:
    first, inner, then, otherwise, read, written = accesses(_kernel())
    assert in_order(first, inner) and in_order(inner, then) and in_order(otherwise, read) and in_order(read, written)
    assert in_order(written, first) is False and in_order(then, inner) is False
    assert in_order(then, otherwise) is None, "only one of the two happens"


def test_an_address_that_is_chosen_counts_on_both_sides() -> None:
    k = KernelBuilder("kernel", AVX2)
    buffers = k.binding(0, "f32", 64), k.binding(1, "f32", 64), k.binding(2, "f32", 64, writable=True)

    def body(i: Any) -> None:
        chosen = k.select_mem(k.compare("slt", i, 8), buffers[0], i, buffers[1], 7)
        k.store(buffers[2], i, k.load_at(chosen))

    k.loop(0, 16, 1, body)
    assert [(one.binding, one.written) for one in accesses(k.finish())] == [(0, False), (1, False), (2, True)]
