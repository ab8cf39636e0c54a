"""Linking: constants, tables of pointers and calls find each other; what is not closed is refused."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable
from dataclasses import replace
from functools import cache

import llvmlite.binding as llvm
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.errors import FuselineError
from fuseline.runtime.cpu import machine_name
from fuseline.runtime.memory import CodePages
from fuseline.targets.cpu.isa.baseline import MACHINE as BASELINE
from fuseline.targets.cpu.isa.neon import MACHINE as NEON
from fuseline.targets.cpu.link import image as linker
from fuseline.targets.cpu.link.image import Image, link_image
from fuseline.targets.cpu.link.scheduler import scheduler_functions, scheduler_object

TRIPLES = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
HERE = f"{machine_name()}-unknown-linux-gnu"
MACHINES = {machine.triple: machine for machine in (BASELINE, NEON)}

TABLES = """
@weights = private unnamed_addr constant [4 x i64] [i64 10, i64 20, i64 30, i64 40], align 16
@big = internal constant [3 x <4 x float>] [<4 x float> <float 1.0, float 2.0, float 3.0, float 4.0>,
  <4 x float> zeroinitializer, <4 x float> <float 5.0, float 6.0, float 7.0, float 8.0>], align 64
@table = internal constant [2 x ptr] [ptr @twice, ptr @weight]
@zeros = internal constant [64 x i8] zeroinitializer
@shared = constant i64 7

define i64 @twice(i64 %x) noinline { %r = mul i64 %x, 2
  ret i64 %r }
define i64 @weight(i64 %x) noinline {
  %p = getelementptr [4 x i64], ptr @weights, i64 0, i64 %x
  %v = load i64, ptr %p
  ret i64 %v }
define i64 @choose(i64 %which, i64 %x) {
  %p = getelementptr [2 x ptr], ptr @table, i64 0, i64 %which
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 %x)
  %s = load i64, ptr @shared
  %t = add i64 %r, %s
  ret i64 %t }
define i64 @call_twice(i64 %x) {
  %r = call i64 @twice(i64 %x)
  %z = load i8, ptr getelementptr ([64 x i8], ptr @zeros, i64 0, i64 63)
  %w = zext i8 %z to i64
  %s = add i64 %r, %w
  ret i64 %s }
define double @constant(double %x) { %r = fadd double %x, 0x400921FB54442D18
  ret double %r }
define i64 @element(i64 %i, i64 %unused) {
  %p = getelementptr float, ptr @big, i64 %i
  %v = load float, ptr %p
  %r = fptosi float %v to i64
  ret i64 %r }
define i64 @jump(i64 %x, i64 %unused) {
  switch i64 %x, label %other [i64 0, label %a
    i64 1, label %b
    i64 2, label %c
    i64 3, label %d
    i64 4, label %e ]
a: %va = call i64 @twice(i64 50)
  ret i64 %va
b: %vb = call i64 @weight(i64 1)
  ret i64 %vb
c: %vc = call i64 @weight(i64 2)
  ret i64 %vc
d: ret i64 3
e: %ve = call i64 @twice(i64 4)
  ret i64 %ve
other: ret i64 -1 }
"""


def compile_text(text: str, triple: str) -> bytes:
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    module = llvm.parse_assembly(text)
    module.triple = triple
    return (
        llvm.Target.from_triple(triple).create_target_machine(opt=2, reloc="pic", codemodel="small").emit_object(module)
    )


def _loaded(image: Image) -> CodePages:
    return CodePages(image.code, [(fixup.offset, fixup.target) for fixup in image.fixups])


def _function(image: Image, pages: CodePages, name: str, number: int = 0) -> Callable[..., int]:
    prototype = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64, ctypes.c_int64)
    return prototype(pages.base + image.symbols[number][name])


def test_tables_constants_and_calls() -> None:
    image = link_image([compile_text(TABLES, HERE)])
    pages = _loaded(image)
    choose, element, jump = (_function(image, pages, name) for name in ("choose", "element", "jump"))
    assert [choose(0, 21), choose(1, 3)] == [49, 47]
    assert [element(i, 0) for i in range(12)] == [1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8]
    assert [jump(i, 0) for i in range(6)] == [100, 20, 30, 3, 8, -1]
    assert _function(image, pages, "call_twice")(4, 0) == 8
    real = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(pages.base + image.symbols[0]["constant"])
    assert real(1.0) == 4.141592653589793


def test_equal_names_in_two_objects_do_not_meet() -> None:
    objects = [compile_text(f"define i64 @kernel(i64 %x, i64 %y) {{ ret i64 {value} }}", HERE) for value in (1, 2)]
    image = link_image(objects)
    pages = _loaded(image)
    assert [_function(image, pages, "kernel", number)(0, 0) for number in (0, 1)] == [1, 2]


@pytest.mark.parametrize("triple", TRIPLES)
def test_both_machines_link(triple: str) -> None:
    image = link_image([scheduler_object(MACHINES[triple]), compile_text(TABLES, triple)])
    assert image.machine == triple.split("-")[0]
    assert {"choose", "jump", "shared"} <= image.symbols[1].keys()
    assert all(
        0 <= fixup.offset <= len(image.code) - 8 and 0 <= fixup.target < len(image.code) for fixup in image.fixups
    )


def test_linking_is_deterministic() -> None:
    objects = [scheduler_object(MACHINES[HERE]), compile_text(TABLES, HERE)]
    assert link_image(objects) == link_image(objects)


ADDRESSES = """
@hidden = internal constant [8 x i64] [i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8]
@open = constant i64 9
define ptr @hidden_address() { ret ptr @hidden }
define i64 @hidden_load() { %r = load i64, ptr getelementptr (i8, ptr @hidden, i64 16)
  ret i64 %r }
define ptr @open_address() { ret ptr @open }
define i64 @call() { call void @leaf()
  ret i64 0 }
define void @leaf() noinline { ret void }
"""


def _arm(image: Image, name: str) -> tuple[int, list[int]]:
    place = image.symbols[0][name]
    return place, list(struct.unpack_from("<8I", image.code + bytes(32), place))


def _adrp(place: int, word: int) -> int:
    assert word & 0x9F000000 == 0x90000000
    pages = ((word >> 5) & 0x7FFFF) << 2 | (word >> 29) & 3
    return (place & ~4095) + ((pages ^ (1 << 20)) - (1 << 20)) * 4096


def test_aarch64_instructions_are_patched() -> None:
    """Decoded by hand (Arm A64 encodings), since the code cannot run here. Padding moves the constants to another
    page."""
    filler = (
        '@filler = internal constant [5000 x i8] c"'
        + "x" * 5000
        + '"\ndefine ptr @filler_address() { ret ptr @filler }\n'
    )
    image = link_image([compile_text(filler + ADDRESSES, TRIPLES[1])])
    place, (adrp, add, *_) = _arm(image, "hidden_address")
    assert add & 0xFFC00000 == 0x91000000
    hidden = _adrp(place, adrp) + ((add >> 10) & 0xFFF)
    assert image.code[hidden : hidden + 24] == struct.pack("<3q", 1, 2, 3)
    place, (adrp, load, *_) = _arm(image, "hidden_load")
    if load & 0xFFC00000 == 0xF9400000:
        assert _adrp(place, adrp) + ((load >> 10) & 0xFFF) * 8 == hidden + 16
    place, (adrp, load, *_) = _arm(image, "open_address")
    assert load & 0xFFC00000 == 0xF9400000
    slot = _adrp(place, adrp) + ((load >> 10) & 0xFFF) * 8
    assert {fixup.offset: fixup.target for fixup in image.fixups}[slot] == image.symbols[0]["open"]
    place, words = _arm(image, "call")
    at, branch = next((i, word) for i, word in enumerate(words) if word >> 26 == 0b100101)
    distance = ((branch & 0x3FFFFFF) ^ (1 << 25)) - (1 << 25)
    assert place + 4 * at + 4 * distance == image.symbols[0]["leaf"]


REFUSED = {
    "undefined function": (
        "declare i64 @labs(i64)\ndefine i64 @f(i64 %x) { %r = call i64 @labs(i64 %x)\n ret i64 %r }",
        "'labs' is undefined",
    ),
    "undefined data": (
        "@x = external global i64\ndefine i64 @f() { %r = load i64, ptr @x\n ret i64 %r }",
        "'x' is undefined",
    ),
    "implied library call": (
        (
            "declare double @llvm.sin.f64(double)\ndefine double @f(double %x) { %r = call double @llvm.sin.f64(double "
            "%x)\n ret double %r }"
        ),
        "'sin' is undefined",
    ),
    "writable data": ("@x = global i64 5\ndefine i64 @f() { %r = load i64, ptr @x\n ret i64 %r }", "writable"),
    "writable zeros": ("@x = internal global [9 x i64] zeroinitializer\ndefine ptr @f() { ret ptr @x }", "writable"),
    "common data": ("@x = common global i64 0\ndefine ptr @f() { ret ptr @x }", "not in a section|writable"),
    "thread-local data": ("@x = thread_local global i64 0\ndefine ptr @f() { ret ptr @x }", "thread-local"),
}


@pytest.mark.parametrize("triple", TRIPLES)
@pytest.mark.parametrize("case", REFUSED)
def test_what_is_not_closed_is_refused(case: str, triple: str) -> None:
    text, reason = REFUSED[case]
    with pytest.raises(FuselineError, match=reason) as caught:
        link_image([compile_text(text, triple)])
    assert caught.value.code == "E0404"


def test_objects_of_two_machines_are_refused() -> None:
    with pytest.raises(FuselineError, match="cannot be linked together"):
        link_image([scheduler_object(MACHINES[triple]) for triple in TRIPLES])


@pytest.mark.parametrize(
    ("at", "value", "reason"),
    [(16, 2, "not a 64-bit"), (18, 40, "machine 40"), (4, 1, "not a 64-bit"), (5, 2, "not a 64-bit")],
)
def test_other_kinds_of_elf_are_refused(at: int, value: int, reason: str) -> None:
    data = bytearray(compile_text(TABLES, HERE))
    data[at] = value
    with pytest.raises(FuselineError, match=reason):
        link_image([bytes(data)])


def _patched_section(kind: int, field: int, format_: str, value: int) -> bytes:
    """The object with one field of its first section of `kind` changed."""
    out = bytearray(compile_text(TABLES, HERE))
    (start,) = struct.unpack_from("<Q", out, 0x28)
    for i in range(struct.unpack_from("<H", out, 0x3C)[0]):
        if struct.unpack_from("<I", out, start + 64 * i + 4)[0] == kind:
            struct.pack_into(format_, out, start + 64 * i + field, value)
            return bytes(out)
    raise AssertionError("no such section")


def test_relocations_without_addends_and_absurd_sections_are_refused() -> None:
    with pytest.raises(FuselineError, match="without addends"):
        link_image([_patched_section(4, 4, "<I", 9)])
    for field in (32, 48):  # size, alignment
        with pytest.raises(FuselineError, match="claims"):
            link_image([_patched_section(1, field, "<Q", 1 << 40)])


def test_aarch64_reach_and_alignment_are_checked() -> None:
    for bits in (
        lambda: linker._arm_adr(1 << 20),  # pyright: ignore[reportPrivateUsage]
        lambda: linker._arm_adr(-(1 << 20) - 1),  # pyright: ignore[reportPrivateUsage]
        lambda: linker._arm_low(4, 3),  # pyright: ignore[reportPrivateUsage]
    ):
        with pytest.raises(FuselineError, match="E0404"):
            bits()
    for distance, width in ((2, 26), (1 << 27, 26), (-(1 << 27) - 4, 26), (1 << 15, 14)):
        with pytest.raises(FuselineError, match="out of reach"):
            linker._arm_branch(distance, width, 0)  # pyright: ignore[reportPrivateUsage]
    assert linker._arm_branch(-4, 26, 0) == (1 << 26) - 1 and linker._arm_low(24, 3) == 3 << 10  # pyright: ignore[reportPrivateUsage]


def _patched_relocation(data: bytes, kind: int) -> bytes:
    """The object with the type of its first relocation changed."""
    out = bytearray(data)
    (start,) = struct.unpack_from("<Q", out, 0x28)
    count = struct.unpack_from("<H", out, 0x3C)[0]
    for i in range(count):
        section = struct.unpack_from("<IIQQQQIIQQ", out, start + 64 * i)
        if section[1] == 4:
            struct.pack_into("<I", out, section[4] + 8, kind)
            return bytes(out)
    raise AssertionError("no relocations")


@pytest.mark.parametrize("triple", TRIPLES)
def test_unknown_relocations_are_refused(triple: str) -> None:
    with pytest.raises(FuselineError, match=r"E0404.*relocation 99 is not supported"):
        link_image([_patched_relocation(compile_text(TABLES, triple), 99)])


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", bytes(100), b"\x7fELF\x02\x01" + bytes(100), b"\x7fELF\x01\x01" + bytes(100)]
)
def test_other_files_are_refused(data: bytes) -> None:
    with pytest.raises(FuselineError, match="E0404"):
        link_image([data])


@cache
def _tables_object() -> bytes:
    return compile_text(TABLES, HERE)


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 10**9), st.integers(0, 255))
def test_damaged_objects_never_crash_the_linker(position: int, value: int) -> None:
    data = bytearray(_tables_object())
    data[position % len(data)] = value
    try:
        link_image([bytes(data)])
    except FuselineError as error:
        assert error.code == "E0404"


def test_a_scheduler_for_another_machine_is_refused() -> None:
    with pytest.raises(FuselineError, match="E0501"):
        scheduler_functions(replace(BASELINE, triple="riscv64-unknown-linux-gnu"))
