"""What the machines say of themselves must fit together, and what LLVM knows."""

from __future__ import annotations

import llvmlite.binding as llvm
import pytest

from fuseline.ir.costs import LINE_BYTES
from fuseline.runtime.cpu import cpuinfo_names
from fuseline.targets.cpu.isa import ISA_NAMES, Machine, core_rates, machine
from fuseline.targets.cpu.isa.avx2 import MACHINE as AVX2
from fuseline.targets.cpu.isa.avx512 import MACHINE as AVX512
from fuseline.targets.cpu.isa.avx512vnni import MACHINE as AVX512VNNI
from fuseline.targets.cpu.isa.avxvnni import MACHINE as AVXVNNI
from fuseline.targets.cpu.isa.core_rates import FMA_LATENCY, FMA_PER_CYCLE
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_assembly, emit_object

X86 = [AVX2, AVXVNNI, AVX512, AVX512VNNI]
WITH_BYTES = [AVXVNNI, AVX512VNNI]


@pytest.mark.parametrize("isa", X86, ids=lambda isa: isa.name)
def test_a_machine_is_found_by_its_name(isa: Machine) -> None:
    assert machine(isa.name) is isa and isa.name in ISA_NAMES


@pytest.mark.parametrize(
    ("isa", "lanes"), [(AVX2, [4, 8, 16, 32, 32]), (AVX512, [8, 16, 32, 64, 64]), (AVX512VNNI, [8, 16, 32, 64, 64])]
)
def test_lanes_of_a_register(isa: Machine, lanes: list[int]) -> None:
    assert [isa.lanes(dtype) for dtype in ("f64", "f32", "bf16", "i8", "i1")] == lanes
    assert isa.f32_lanes == lanes[1]


@pytest.mark.parametrize("isa", X86, ids=lambda isa: isa.name)
def test_what_is_switched_on_is_asked_of_the_processor(isa: Machine) -> None:
    on = [cpuinfo_names(feature[1:]) for feature in isa.features if feature.startswith("+")]
    assert all(sum(need in names for names in on) == 1 for need in isa.needs) and len(on) == len(isa.needs)
    assert dict(isa.attributes)["min-legal-vector-width"] == str(8 * isa.vector_bytes)


def test_the_larger_machine_has_all_that_the_smaller_one_has() -> None:
    assert set(AVX2.needs) < set(AVX512.needs) and AVX2.masked_bits < AVX512.masked_bits
    assert set(AVX512.needs) < set(AVX512VNNI.needs) and set(AVX2.needs) < set(AVXVNNI.needs)
    names = [ISA_NAMES.index(isa.name) for isa in (AVX512VNNI, AVX512, AVXVNNI, AVX2)]
    assert names == sorted(names)  # best first
    assert AVX512.vector_registers == 2 * AVX2.vector_registers and AVX512.l2_bytes > AVX2.l2_bytes


@pytest.mark.parametrize("isa", X86, ids=lambda isa: isa.name)
def test_llvm_makes_code_of_whole_registers(isa: Machine) -> None:
    """The pair product too is an instruction that LLVM knows of this processor."""
    k = KernelBuilder("kernel", isa)
    lanes = isa.lanes("i32")
    x, y = k.binding(0, "i16", 2 * lanes), k.binding(1, "i32", lanes, writable=True)
    pairs = k.load(x, 0, 2 * lanes)
    k.store(y, 0, k.dot_pairs(pairs, pairs, k.load(y, 0, lanes)))
    text = print_llvm([k.finish()], isa)
    assert f"@{isa.pair_dot}" in text
    assert llvm.ObjectFileRef.from_data(emit_object(text, isa)).sections()


@pytest.mark.parametrize("isa", X86, ids=lambda isa: isa.name)
def test_llvm_knows_products_of_bytes(isa: Machine) -> None:
    """And there is an instruction for them on the machines that say so."""
    assert bool(isa.quad_dot) is (isa in WITH_BYTES)
    if not isa.quad_dot:
        return
    k = KernelBuilder("kernel", isa)
    lanes = isa.lanes("i32")
    x, y = k.binding(0, "i8", 4 * lanes), k.binding(1, "i32", lanes, writable=True)
    fours = k.load(x, 0, 4 * lanes)
    k.store(y, 0, k.dot_quads(fours, fours, k.load(y, 0, lanes)))
    text = print_llvm([k.finish()], isa)
    assert f"@{isa.quad_dot}" in text
    assert "vpdpbusd" in emit_assembly(text, isa)


def test_rates_are_those_of_one_core() -> None:
    """From near to far everything gets slower, and a tile of registers can hide the latency of its sums."""
    near = core_rates.LOADS_PER_CYCLE * AVX2.vector_bytes
    second = core_rates.L2_VECTORS_PER_CYCLE * AVX2.vector_bytes
    assert near > second > core_rates.SHARED_BYTES_PER_CYCLE > core_rates.SPILLED_BYTES_PER_CYCLE
    assert core_rates.SPILLED_BYTES_PER_CYCLE > core_rates.MEMORY_BYTES_PER_CYCLE
    assert FMA_LATENCY * FMA_PER_CYCLE < min(isa.vector_registers for isa in X86)
    assert LINE_BYTES * core_rates.L1_SETS == 4096 and core_rates.SHARED_CACHE_BYTES > AVX512.l2_bytes
