"""What quantises rounds as it becomes an integer: where, and to the same integer whatever is quantised."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects import arith

from fuseline.targets.cpu.emit.rounded_integers import rounding_rules
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest
from fuseline.targets.cpu.isa import ISA_NAMES, cpu_flags, machine
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.link.compile import emit_object
from tests.draws import RNG
from tests.kernels import Runner

from .generics import empty, function, generic, tensor
from .texts import parse

ROUNDED = "%r = math.roundeven %i0 : f32\n"
SHIFTED = "%z = arith.constant {} : f32\n%a = arith.addf %r, %z : f32\n"
ENDS = "%l = arith.constant -128.0 : f32\n%h = arith.constant 127.0 : f32\n"
BOUNDED = "%b = arith.maxnumf {}, %l : f32\n%c = arith.minnumf %b, %h : f32\n"
WHOLE = "%v = arith.fptosi %c : f32 to i32"
BODIES = {
    "bounded": (ROUNDED + ENDS + BOUNDED.format("%r") + WHOLE, 4),
    "in the other order": (
        ROUNDED + ENDS + "%b = arith.minnumf %h, %r : f32\n%c = arith.maxnumf %l, %b : f32\n" + WHOLE, 4,
    ),
    "with an offset": (ROUNDED + SHIFTED.format("7.0") + ENDS + BOUNDED.format("%a") + WHOLE, 5),
    "with the offset first": (
        ROUNDED + SHIFTED.format("-9.0").replace("%r, %z", "%z, %r") + ENDS + BOUNDED.format("%a") + WHOLE, 5,
    ),
    "with an offset that is no integer": (ROUNDED + SHIFTED.format("7.5") + ENDS + BOUNDED.format("%a") + WHOLE, 0),
    "NaN goes on": (ROUNDED + ENDS + BOUNDED.format("%r").replace("maxnumf", "maximumf") + WHOLE, 0),
    "bounded on one side": (ROUNDED + ENDS + BOUNDED.format("%r").replace("minnumf", "maxnumf") + WHOLE, 0),
    "a bound that is no integer": (ROUNDED + ENDS.replace("127.0", "126.5") + BOUNDED.format("%r") + WHOLE, 0),
    "bounds far away": (ROUNDED + ENDS.replace("127.0", "3.0e9") + BOUNDED.format("%r") + WHOLE, 0),
    "rounded down": (ROUNDED.replace("roundeven", "floor") + ENDS + BOUNDED.format("%r") + WHOLE, 0),
    "not rounded": (ENDS + BOUNDED.format("%i0") + WHOLE, 0),
    "read again": (
        ROUNDED + ENDS + BOUNDED.format("%r") + WHOLE.replace("%v", "%w")
        + "\n%again = arith.fptosi %r : f32 to i32\n%v = arith.addi %w, %again : i32", 0,
    ),
}  # fmt: skip


def _view(body: str, size: int):
    x, y = tensor((size,)), tensor((size,), "i32")
    lines = [
        empty("e", (size,), "i32"),
        generic("%y", [("%x", x)], [("%e", y)], ["d0", "d0"], "p", body, [("%v", "i32")]),
    ]
    return parse(function([("x", (size,), "f32")], [], "\n".join(lines), [("%y", y)]))


@pytest.mark.parametrize("name", BODIES)
def test_only_what_is_rounded_and_bounded_by_integers(name: str) -> None:
    body, count = BODIES[name]
    rules = rounding_rules(_view(body, 5).members)
    assert len(rules) == count
    assert not count or any(type(op) is arith.FPToSIOp for op in rules)


@pytest.mark.parametrize("isa", ISA_NAMES)
@pytest.mark.parametrize("name", [name for name, (_, count) in BODIES.items() if count])
def test_the_same_integers(name: str, isa: str) -> None:
    """Halves, what is out of bounds, infinities and NaN; natively where this processor can run it."""
    steps = np.arange(-300, 300, dtype=np.float32) / 2
    near = np.concatenate([np.nextafter(steps, np.float32(end)) for end in (-np.inf, np.inf)])
    others = RNG.integers(0, 1 << 32, 501, dtype=np.uint64).astype(np.uint32).view(np.float32)
    x = np.concatenate([steps, near, others, np.array([np.inf, -np.inf, np.nan, -0.0], np.float32)])
    run = Runner(LoopNest(), _view(BODIES[name][0], len(x)), machine(isa))
    found = run(x)[0] if cpu_flags().issuperset(machine(isa).needs) else run.evaluated(x)[0]
    offset = {"with an offset": 7, "with the offset first": -9}.get(name, 0)
    with np.errstate(invalid="ignore"):
        wanted = np.clip(np.rint(x) + offset, -128, 127)
    nan = 127 if name == "in the other order" else -128
    np.testing.assert_array_equal(found, np.where(np.isnan(x), nan, wanted).astype(np.int32))
    text = print_llvm([run.kernel], machine(isa))
    assert "lrint" in text and "roundeven" not in text and "rint.v" not in text.replace("lrint.v", "")
    assert emit_object(text, machine(isa))
