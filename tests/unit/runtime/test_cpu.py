"""CPU features: names of LLVM and of the kernel, and what happens without /proc."""

from __future__ import annotations

import builtins
from collections.abc import Iterator
from typing import Any

import pytest

from fuseline.errors import FuselineError
from fuseline.runtime import cpu

X86 = """processor\t: 0
flags\t\t: fpu pni sse4_1 avx512_vnni avx512f fma bmi1 abm

processor\t: 1
flags\t\t: fpu pni sse4_1 avx512_vnni fma bmi1 abm
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd asimddp bf16 i8mm\n"


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    cpu.machine_features.cache_clear()
    yield
    cpu.machine_features.cache_clear()


def test_names_are_llvms_and_only_what_all_processors_have() -> None:
    assert cpu.features_from_cpuinfo(X86) == {"fpu", "sse3", "sse4.1", "avx512vnni", "fma", "bmi", "lzcnt"}
    assert cpu.features_from_cpuinfo(ARM) == {"fp-armv8", "neon", "dotprod", "bf16", "i8mm"}
    assert cpu.features_from_cpuinfo("") == frozenset()


def test_either_spelling_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cpu, "machine_features", lambda: frozenset({"avx512vnni", "sse4.2"}))
    cpu.check_machine(cpu.machine_name(), ["avx512_vnni", "avx512vnni", "sse4_2", "sse4.2"])
    with pytest.raises(FuselineError, match=r"E0403.*lacks amx, avx2"):
        cpu.check_machine(cpu.machine_name(), ["avx2", "amx", "sse4_2"])


def test_another_machine_is_refused() -> None:
    with pytest.raises(FuselineError, match=r"E0403.*sparc"):
        cpu.check_machine("sparc", [])


def test_without_proc_numpy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> Any:
        raise FileNotFoundError

    here = cpu.machine_features()
    cpu.machine_features.cache_clear()
    monkeypatch.setattr(builtins, "open", refuse)
    found = cpu.machine_features()
    assert (found and {"fma", "avx2"} & here <= found) or cpu.machine_name() != "x86_64"
