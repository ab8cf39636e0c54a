"""The same dispatches for every ISA: evaluated with NumPy at that ISA's lanes, compiled to its object code, run where
this CPU can."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.analysis.evaluation.program import evaluate_function
from fuseline.targets.cpu.isa import ISA_NAMES, cpu_flags, machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_assembly, emit_object

from .test_elementwise import GELU, unary
from .test_random_dispatches import Maker
from .test_reductions import layernorm, softmax
from .texts import build, check, compare, evaluated, inputs, parse

TEXTS = {
    "gelu": unary((3, 37), GELU, "%r"),
    "softmax": softmax((3, 45)),
    "layernorm": layernorm(3, 70),
    "half": unary((41,), "%r = arith.truncf %i0 : f32 to f16", "%r", "f32", "f16"),
    "bool": unary((41,), "%z = arith.constant 0.0 : f32\n%r = arith.cmpf ogt, %i0, %z : f32", "%r", "f32", "i1"),
} | {f"random{seed}": Maker(seed).text() for seed in range(6)}


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", TEXTS)
def test_every_isa(name: str, isa: str) -> None:
    view, target = parse(TEXTS[name]), machine(isa)
    arrays = inputs(view, {}, 1)
    for found, expected in zip(evaluated(view, arrays, {}, target), evaluate_function(view.entry, arrays), strict=True):
        compare(found, np.asarray(expected), 14)
    kernel = build(view, target)[2]
    assert emit_object(print_llvm([kernel], target), target).startswith(b"\x7fELF")
    if cpu_flags().issuperset(target.needs):
        check(TEXTS[name], isa=target, bits=14)


def test_avx512_uses_its_registers() -> None:
    target = machine("avx512")
    text = emit_assembly(print_llvm([build(parse(unary((1000,), GELU, "%r")), target)[2]], target), target)
    assert "zmm" in text
    assert "{z}" in text, "the rest of the loop is masked, not scalar"
