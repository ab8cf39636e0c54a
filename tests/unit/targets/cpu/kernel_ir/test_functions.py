"""Functions of kernel IR: loops with a condition, pointers, calls and atomics, evaluated, printed and checked."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fuseline.errors import FuselineError
from fuseline.runtime.memory import CodePages
from fuseline.targets.cpu.isa.detection import machine
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import I32, I64, PTR, VOID, Function
from fuseline.targets.cpu.link.compile import compile_texts
from fuseline.targets.cpu.link.image import link_image
from tests.kernel_ir.evaluate_functions import AddressSpace, call_function


def _native(functions: list[Function], symbol: str, *types: Any) -> Any:
    here = machine()
    image = link_image(compile_texts([print_llvm(functions, here)], here, use_cache=False))
    pages = CodePages(image.code, [(fixup.offset, fixup.target) for fixup in image.fixups])
    call = ctypes.CFUNCTYPE(ctypes.c_int64, *types)(pages.base + image.symbols[0][symbol])
    return lambda *arguments: (call(*arguments), pages)[0]


def _both(functions: list[Function], symbol: str, arguments: list[int], space: AddressSpace | None = None) -> int:
    """What a function answers, by evaluation and by machine code, which must agree."""
    found = call_function({f.symbol: f for f in functions}, symbol, arguments, space or AddressSpace())
    assert _native(functions, symbol, *[ctypes.c_int64] * len(arguments))(*arguments) == found
    return found


def _greatest_divisor() -> list[Function]:
    """Euclid's, once as a loop and once as a function that calls itself."""
    f = FunctionBuilder("divisor", (I64, I64), exported=True)
    a, _ = f.while_(lambda a, b: f.compare("ne", b, 0), lambda a, b: (b, f.rem(a, b)), f.parameters)
    g = FunctionBuilder("again", (I64, I64), exported=True)
    x, y = g.parameters
    more = g.when(g.compare("ne", y, 0), lambda: (g.call("again", (y, g.rem(x, y)), I64),), lambda: (x,))
    return [f.finish(a), g.finish(more[0])]


@given(st.integers(0, 10**6), st.integers(0, 10**6))
def test_a_loop_with_a_condition_and_a_recursion_agree_with_arithmetic(a: int, b: int) -> None:
    functions = {f.symbol: f for f in _greatest_divisor()}
    wanted = int(np.gcd(a, b))
    assert [call_function(functions, symbol, (a, b), AddressSpace()) for symbol in functions] == [wanted] * 2


@pytest.mark.parametrize("symbol", ["divisor", "again"])
@pytest.mark.parametrize("given", [(0, 5), (5, 0), (1071, 462), (17, 4)])
def test_machine_code_does_the_same(symbol: str, given: tuple[int, int]) -> None:
    assert _both(_greatest_divisor(), symbol, list(given)) == np.gcd(*given)


def _shift_up(count: int) -> Function:
    """Each word of a structure moves to the next by way of the stack; answers the atomic sum of the first two."""
    f = FunctionBuilder("shift", (PTR,), exported=True)
    words, kept = f.words(f.parameters[0], 4), f.words(f.stack(count), count)
    f.loop(0, count, 1, lambda i: f.store(kept, i, f.load(words, i)))
    f.loop(1, 4, 1, lambda i: f.store(words, i, f.load(kept, f.sub(i, 1))))
    second = f.words(f.advance(f.parameters[0], 8), 1)
    before = f.atomic("add", words, f.atomic_load(second, "acquire"))
    return f.finish(f.add(before, f.atomic("xchg", second, 7)))


def test_structures_stack_and_atomics() -> None:
    space = AddressSpace()
    address, words = space.words(4)
    words[:] = 5, 6, 7, 8
    assert call_function({"shift": _shift_up(3)}, "shift", (address,), space) == 10
    assert words.tolist() == [10, 7, 6, 7] and check_bounds(_shift_up(3)) == []
    memory = np.array([5, 6, 7, 8], np.int64)
    assert _native([_shift_up(3)], "shift", ctypes.c_int64)(memory.ctypes.data) == 10
    assert memory.tolist() == words.tolist()


def test_an_access_beside_a_structure_is_found_twice() -> None:
    space = AddressSpace()
    with pytest.raises(IndexError, match="word 2 of"):
        call_function({"shift": _shift_up(2)}, "shift", (space.words(4)[0],), space)
    assert [problem.operation for problem in check_bounds(_shift_up(2))] == ["load"]


@pytest.mark.parametrize(("least", "problems"), [(1, 0), (0, 1)])
def test_the_condition_of_a_loop_is_known_inside(least: int, problems: int) -> None:
    f = FunctionBuilder("spin", (PTR, I64))
    words = f.words(f.parameters[0], f.parameters[1])
    f.while_(lambda _: f.compare("ge", f.parameters[1], least), lambda _: (f.word(words, 0),), (0,))
    assert len(check_bounds(f.finish())) == problems


def test_pointers_to_functions_are_called_with_and_without_results() -> None:
    f = FunctionBuilder("both", (PTR, PTR, I64), exported=True)
    first, second, n = f.parameters
    f.call(first, (n,), VOID)
    known = f.when(f.not_null(second), lambda: (f.cast(f.call(second, (n, 1), I32), "i64"),), lambda: (-1,))
    function, seen, space = f.finish(known[0]), list[int](), AddressSpace()
    addresses = space.function(seen.append), space.function(lambda n, one: -n - one)
    assert call_function({"both": function}, "both", (*addresses, 20), space) == -21 and seen == [20]
    assert call_function({"both": function}, "both", (addresses[0], 0, 21), space) == -1 and seen == [20, 21]
    callbacks = (
        ctypes.CFUNCTYPE(None, ctypes.c_int64)(seen.append),
        ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_int64, ctypes.c_int64)(lambda n, one: -n - one),
    )
    call = _native([function], "both", ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    pointers = [ctypes.cast(callback, ctypes.c_void_p).value for callback in callbacks]
    assert call(*pointers, 20) == -21 and call(pointers[0], None, 21) == -1 and seen == [20, 21, 20, 21]


def test_an_address_of_nobody_is_refused() -> None:
    f = FunctionBuilder("read", (PTR,))
    function, space = f.finish(f.word(f.words(f.parameters[0], 1), 0)), AddressSpace()
    with pytest.raises(IndexError, match="nothing lies at 8"):
        call_function({"read": function}, "read", (8,), space)
    with pytest.raises(IndexError, match="no function lies at 8"):
        space.call(8, ())


def test_waiting_for_what_does_not_come_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.kernel_ir import evaluate

    monkeypatch.setattr(evaluate, "_MOST_ROUNDS", 100)
    f = FunctionBuilder("forever", (PTR,))
    f.while_(lambda: f.compare("eq", f.word(f.words(f.parameters[0], 1), 0), 0), lambda: None)
    function, space = f.finish(), AddressSpace()
    with pytest.raises(FuselineError, match="E0901"):
        call_function({"forever": function}, "forever", (space.words(1)[0],), space)
