"""LLVM text of loads, stores, gathers, scatters and prefetches: whole ones, and those of some lanes."""

from __future__ import annotations

from collections.abc import Callable

import llvmlite.binding as llvm
import pytest

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.print_memory import HANDLERS
from fuseline.targets.cpu.kernel_ir.printer import print_llvm

MACHINE = machine("avx2")


def _text(emit: Callable[[KernelBuilder], object]) -> str:
    """The module of a kernel, which LLVM takes."""
    k = KernelBuilder("made", MACHINE)
    emit(k)
    text = print_llvm([k.finish()], MACHINE)
    llvm.parse_assembly(text).verify()
    return text


def _copy(lanes: int, *, masked: bool) -> Callable[[KernelBuilder], None]:
    def emit(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 64), k.binding(1, "f32", 64, writable=True)
        live = k.size(0) if masked else None
        k.store(y, 3, k.load(x, 5, lanes, active=live), active=live)

    return emit


@pytest.mark.parametrize(("lanes", "type_"), [(1, "float"), (8, "<8 x float>")])
def test_whole_loads_and_stores_are_plain(lanes: int, type_: str):
    text = _text(_copy(lanes, masked=False))
    assert f"load {type_}, ptr" in text and f"store {type_} " in text and "llvm.masked" not in text


def test_some_lanes_are_loaded_and_stored_under_a_mask():
    text = _text(_copy(8, masked=True))
    assert "call <8 x float> @llvm.masked.load.v8f32.p0(ptr align 4" in text and "zeroinitializer)" in text
    assert "call void @llvm.masked.store.v8f32.p0(<8 x float>" in text
    assert text.count("declare <8 x float> @llvm.masked.load.v8f32.p0(ptr, <8 x i1>, <8 x float>)") == 1
    assert text.count("declare void @llvm.masked.store.v8f32.p0(<8 x float>, ptr, <8 x i1>)") == 1


@pytest.mark.parametrize("masked", [False, True])
def test_lanes_from_anywhere_and_to_anywhere(masked: bool):
    def emit(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 640), k.binding(1, "f32", 640, writable=True)
        places, live = k.lane_indices(k.size(0), 9, 8), k.size(1) if masked else None
        k.scatter(y, places, k.gather(x, places, active=live), active=live)

    text = _text(emit)
    assert "call <8 x float> @llvm.masked.gather.v8f32.v8p0(<8 x ptr> align 4" in text
    assert "call void @llvm.masked.scatter.v8f32.v8p0(<8 x float>" in text
    assert text.count("<8 x i1> splat (i1 true)") == (0 if masked else 2)


def test_a_prefetch_reads_nothing():
    text = _text(lambda k: k.prefetch(k.binding(0, "f32", 64), 16, 2))
    assert "call void @llvm.prefetch.p0(ptr" in text and "i32 0, i32 2, i32 1)" in text and "load float" not in text


def test_every_operation_on_memory_has_a_text():
    assert set(HANDLERS) == {"load", "store", "gather", "scatter", "prefetch"}
