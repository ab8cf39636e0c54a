"""The same dispatches for every ISA: evaluated with NumPy at that ISA's lanes, compiled to its object code, run where
this CPU can."""

from __future__ import annotations

import pytest

from fuseline.targets.cpu.isa import ISA_NAMES, cpu_flags, machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_assembly, emit_object

from .test_elementwise import GELU, unary
from .test_random_dispatches import Maker
from .test_ranks import rank
from .test_reductions import SUM, layernorm, reduce, softmax
from .test_scans import scan
from .test_scatters import scatter
from .test_selections import selection
from .texts import build, check, parse

TEXTS = {
    "gelu": unary((3, 37), GELU, "%r"),
    "softmax": softmax((3, 45)),
    "layernorm": layernorm(3, 70),
    "half": unary((41,), "%r = arith.truncf %i0 : f32 to f16", "%r", "f32", "f16"),
    "bool": unary((41,), "%z = arith.constant 0.0 : f32\n%r = arith.cmpf ogt, %i0, %z : f32", "%r", "f32", "i1"),
    "integers": reduce((3, 45), [0], "%s = arith.addi %o0, %i0 : i8", "3", "i8"),
    "transposed sums": reduce((45, 3), [1], SUM[0], "0.5"),
    "running sums": scan((5, 21), 0),
    "added at places": scatter((5, 21), 0, 8, shared=True),
    "ranks": rank((5, 21), 1),
    "largest of a row": selection((5, 45)),
} | {f"random{seed}": Maker(seed).text() for seed in range(6)}


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", TEXTS)
def test_every_isa(name: str, isa: str) -> None:
    target = machine(isa)
    run_here = cpu_flags().issuperset(target.needs)
    check(TEXTS[name], isa=target, bits=14, proved=False, compiled=run_here)
    if not run_here:
        assert emit_object(print_llvm([build(parse(TEXTS[name]), target).kernel], target), target)[:4] == b"\x7fELF"


def test_avx512_uses_its_registers() -> None:
    target = machine("avx512")
    text = emit_assembly(print_llvm([build(parse(unary((1000,), GELU, "%r")), target).kernel], target), target)
    assert "zmm" in text
    assert "{z}" in text, "the rest of the loop is masked, not scalar"
