"""Objects, the cache, parallel processes, ISA names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.targets.cpu.isa import ISA_NAMES, detect, machine
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import Kernel
from fuseline.targets.cpu.link import compile as c

AVX2 = machine("avx2")


def kernel(number: float) -> Kernel:
    """Stores a number."""
    k = KernelBuilder("kernel", AVX2)
    k.store(k.binding(0, "f32", 1, writable=True), 0, k.const(number, "f32"))
    return k.finish()


def _compiled(kernels: Sequence[Kernel], isa: Machine, *, use_cache: bool = True, processes: int = 0) -> list[bytes]:
    texts = [print_llvm([kernel], isa) for kernel in kernels]
    return c.compile_texts(texts, isa, use_cache=use_cache, processes=processes)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path))
    return tmp_path / "objects"


def test_objects_come_in_order() -> None:
    kernels = [kernel(i) for i in range(9)]
    together = _compiled(kernels, AVX2, use_cache=False, processes=3)
    assert together == [c.emit_object(print_llvm([one], AVX2), AVX2) for one in kernels]


def test_equal_kernels_are_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []
    original = c.emit_object
    monkeypatch.setattr(c, "emit_object", lambda text, isa: calls.append(text) or original(text, isa))
    found = _compiled([kernel(1), kernel(2), kernel(1)], AVX2, use_cache=False)
    assert len(calls) == 2
    assert found[0] == found[2] != found[1]


def test_cache_is_used(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (first,) = _compiled([kernel(1)], AVX2)
    assert len(list(cache.iterdir())) == 1
    monkeypatch.setattr(c, "emit_object", lambda text, isa: pytest.fail("compiled again"))
    assert _compiled([kernel(1)], AVX2) == [first]


def test_cache_can_be_left_alone(cache: Path) -> None:
    _compiled([kernel(1)], AVX2, use_cache=False)
    assert not cache.exists()


@pytest.mark.parametrize("damage", [b"", b"short", b"\0" * 4096])
def test_damaged_entries_are_made_again(cache: Path, damage: bytes) -> None:
    (first,) = _compiled([kernel(1)], AVX2)
    (entry,) = cache.iterdir()
    entry.write_bytes(damage)
    assert _compiled([kernel(1)], AVX2) == [first]
    assert entry.read_bytes() != damage


def test_a_cache_that_cannot_be_written_is_no_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "file"))
    assert _compiled([kernel(1)], AVX2)[0].startswith(b"\x7fELF")


def test_key_names_everything_that_matters() -> None:
    keys = {
        c.object_key("a", AVX2),
        c.object_key("b", AVX2),
        c.object_key("a", machine("avx512")),
        c.object_key("a", replace(AVX2, features=())),
    }
    assert len(keys) == 4


def test_a_failed_child_is_made_up_for(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    parent, original = os.getpid(), c.emit_object

    def only_here(text: str, isa: object) -> bytes:
        if os.getpid() != parent:
            raise MemoryError
        return original(text, AVX2)

    monkeypatch.setattr(c, "emit_object", only_here)
    kernels = [kernel(i) for i in range(6)]
    assert len(_compiled(kernels, AVX2, use_cache=False, processes=2)) == 6


def test_rejected_text_is_our_fault() -> None:
    with pytest.raises(FuselineError) as error:
        c.emit_object("define nonsense", AVX2)
    assert error.value.code == "E0901"


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_every_isa_makes_objects(isa: str) -> None:
    k = KernelBuilder("kernel", machine(isa))
    y = k.binding(0, "f32", 64, writable=True)
    k.loop(0, 64, k.lanes_of("f32"), lambda i: k.store(y, i, k.const(1.0, "f32", k.lanes_of("f32"))))
    (found,) = _compiled([k.finish()], machine(isa), use_cache=False)
    assert found.startswith(b"\x7fELF")
    assert int.from_bytes(found[18:20], "little") == (183 if isa == "neon" else 62)


def test_unknown_isa() -> None:
    with pytest.raises(FuselineError) as error:
        machine("avx1024")
    assert error.value.code == "E0501"


def test_detection_reads_the_flags(tmp_path: Path) -> None:
    source = tmp_path / "cpuinfo"
    source.write_text("flags\t\t: sse4_2 ssse3 popcnt\n")
    assert detect(str(source)).name == "baseline"
    source = tmp_path / "arm"
    source.write_text("Features\t: fp asimd\n")
    assert detect(str(source)).name == "neon"
    source = tmp_path / "none"
    source.write_text("flags\t\t: fpu\n")
    with pytest.raises(FuselineError) as error:
        detect(str(source))
    assert error.value.code == "E0403"


@pytest.mark.parametrize("isa", ISA_NAMES)
def test_objects_need_no_other_symbol(isa: str) -> None:
    """Kernels with everything that LLVM could turn into a call: no libm, no memset, no conversion helpers."""
    from fuseline.targets.cpu.emit import vector_math as vm

    k = KernelBuilder("kernel", machine(isa))
    lanes = k.lanes_of("f32")
    x, y, h = k.binding(0, "f32", 64), k.binding(1, "f32", 64, writable=True), k.binding(2, "f16", 64, writable=True)

    def body(i: object) -> None:
        v = k.load(x, i, lanes)  # pyright: ignore[reportArgumentType]
        for function in (vm.exp, vm.log, vm.erf, vm.tanh, vm.sin, vm.round_half_away):
            v = function(k, v)
        v = k.fma(v, v, k.add(k.floor(v), k.cast(k.cast(v, "i64"), "f32")))
        k.store(y, i, v)  # pyright: ignore[reportArgumentType]
        k.store(h, i, k.cast(k.cast(v, "f64"), "f16"))  # pyright: ignore[reportArgumentType]

    k.loop(0, 64, lanes, body)
    (found,) = _compiled([k.finish()], machine(isa), use_cache=False)
    assert _undefined(found) == []


def _undefined(code: bytes) -> list[str]:
    """Names of the undefined symbols of a 64-bit little-endian ELF object."""
    word = lambda at, size: int.from_bytes(code[at : at + size], "little")  # noqa: E731
    start, size, count = word(40, 8), word(58, 2), word(60, 2)
    sections = [start + i * size for i in range(count)]
    (table,) = [s for s in sections if word(s + 4, 4) == 2]
    names = word(sections[word(table + 40, 4)] + 24, 8)
    found: list[str] = []
    for at in range(word(table + 24, 8) + 24, word(table + 24, 8) + word(table + 32, 8), 24):
        if word(at + 6, 2) == 0:
            begin = names + word(at, 4)
            found.append(code[begin : code.index(b"\0", begin)].decode())
    return found
