"""Kernels as text for people: what is bound, and operations as they nest."""

from __future__ import annotations

import re
from collections.abc import Callable

from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.text import kernel_text


def _text(emit: Callable[[KernelBuilder], object]) -> list[str]:
    """The lines between the first and the last, their values numbered as they come."""
    k = KernelBuilder("made", machine("avx2"))
    emit(k)
    numbers: dict[str, str] = {}
    text = re.sub(r"%\d+", lambda found: numbers.setdefault(found[0], f"%{len(numbers)}"), kernel_text(k.finish()))
    first, *lines, last, after = text.split("\n")
    assert first.startswith("kernel @made(workgroups %0 to %1") and (last, after) == ("}", "")
    assert all(line.startswith("  ") for line in lines)
    return [line[2:] for line in lines]


def test_buffers_say_how_long_they_are_and_what_is_done_to_them():
    def emit(k: KernelBuilder) -> None:
        k.binding(1, "f32", 64, writable=True)
        k.binding(0, "i8", k.size(0))
        k.scratch("f32", 16)
        k.table("few", [1, 2, 3])
        k.table("many", list(range(17)))

    read, written, scratch, few, many = _text(emit)
    assert re.fullmatch(r"binding 0: \w+ i8\[%2\] read", read)
    assert re.fullmatch(r"binding 1: \w+ f32\[64\] read and written", written)
    assert re.fullmatch(r"scratch at 0: \w+ f32\[16\]", scratch)
    assert few.endswith("i64[3] = <1, 2, 3>") and many.endswith("14, 15, ..>") and "16" not in many.split("=")[1]


def test_loops_nest_and_places_are_indexed_names():
    def emit(k: KernelBuilder) -> None:
        x, y = k.binding(0, "f32", 64), k.binding(1, "f32", 64, writable=True)

        def body(i: object, *_: object) -> tuple[()]:
            at = k.mul(i, 8)  # pyright: ignore[reportArgumentType]
            value = k.load(x, at, lanes=8)
            k.store(y, k.add(at, 3), k.add(value, value))
            return ()

        k.loop(k.begin, k.end, 1, body)

    lines = _text(emit)[2:]
    assert lines[0] == "for %2 = %0 to %1 step 1 {" and lines[-1] == "}"
    assert all(line.startswith("  ") for line in lines[1:-1])
    (load,) = [line.strip() for line in lines if "load" in line]
    (store,) = [line.strip() for line in lines if "store" in line]
    assert re.fullmatch(r"%\d+: 8xf32 = load b0\[%\d+\]", load)
    assert re.fullmatch(r"store b1\[%\d+ \+ 3\], %\d+", store)


def test_what_loops_carry_and_branches_give_is_written_beside_them():
    def emit(k: KernelBuilder) -> None:
        out = k.binding(0, "i64", 4, writable=True)
        (total,) = k.loop(0, k.size(0), 2, lambda i, n: (k.add(n, i),), (7,))
        less = k.compare("lt", total, k.size(1))
        (chosen,) = k.when(less, lambda: (k.add(total, 1),), lambda: (total,))
        (grown,) = k.while_(lambda i: k.compare("lt", i, k.size(0)), lambda i: (k.add(i, i),), (chosen,))
        k.store(out, 0, grown)
        k.when(less, lambda: k.store(out, 1, total))

    text = "\n".join(_text(emit))
    assert re.search(r"^%\d+ = for %\d+ = 0 to %\d+ step 2 with \(%\d+: i64 = 7\) \{$", text, re.MULTILINE)
    assert re.search(r"^%\d+ = if %\d+ \{$", text, re.MULTILINE) and text.count("} else {") == 1
    assert re.search(r"^%\d+ = while with \(%\d+: i64 = %\d+\) \{$", text, re.MULTILINE)
    assert re.search(r"^\} test %\d+ \{$", text, re.MULTILINE)
    assert len(re.findall(r"^  yield %\d+$", text, re.MULTILINE)) == 4
    assert text.count("{") == text.count("}") and re.search(
        r"^%\d+: i1 = compare\{slt\} %\d+, %\d+$", text, re.MULTILINE
    )


def test_sizes_are_named_in_the_head():
    k = KernelBuilder("made", machine("avx2"))
    k.size(1)
    assert re.match(r"kernel @made\(workgroups %\d+ to %\d+, sizes %\d+, %\d+\) \{\n", kernel_text(k.finish()))
