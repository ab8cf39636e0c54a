"""Which CPU features this machine has, in LLVM's names (`avx512vnni`, not `/proc/cpuinfo`'s `avx512_vnni`)."""

from __future__ import annotations

import os
from collections.abc import Iterable
from functools import cache
from importlib import import_module

from fuseline.errors import FuselineError

_CPUINFO_NAMES = {
    "abm": "lzcnt",
    "asimd": "neon",
    "asimddp": "dotprod",
    "asimdhp": "fullfp16",
    "avx_vnni": "avxvnni",
    "bmi1": "bmi",
    "fp": "fp-armv8",
    "lahf_lm": "sahf",
    "pclmulqdq": "pclmul",
    "pni": "sse3",
    "sse4_1": "sse4.1",
    "sse4_2": "sse4.2",
    "cmpxchg16b": "cx16",
    "rdrand": "rdrnd",
    "sha_ni": "sha",
    "lrcpc": "rcpc",
    "atomics": "lse",
}
_NUMPY_NAMES = {
    "FMA3": "fma",
    "SSE41": "sse4.1",
    "SSE42": "sse4.2",
    "ASIMD": "neon",
    "ASIMDDP": "dotprod",
    "ASIMDHP": "fullfp16",
}


def features_from_cpuinfo(text: str) -> frozenset[str]:
    """LLVM names of the features that every processor in a `/proc/cpuinfo` text has.

    >>> sorted(features_from_cpuinfo("flags\\t\\t: fma avx512_vnni sse4_1\\n"))
    ['avx512vnni', 'fma', 'sse4.1']
    """
    lines = [
        line.partition(":")[2].split()
        for line in text.splitlines()
        if line.partition(":")[0].strip() in ("flags", "Features")
    ]
    common = set[str](lines[0]).intersection(*lines[1:]) if lines else set[str]()
    return frozenset(_llvm_name(word) for word in common)


def _llvm_name(word: str) -> str:
    return _CPUINFO_NAMES.get(word, word.replace("avx512_", "avx512") if word.startswith("avx512_") else word)


def cpuinfo_names(feature: str) -> set[str]:
    """The words of `/proc/cpuinfo` that stand for a feature with this name in LLVM.

    >>> sorted(cpuinfo_names("avx512vnni")), sorted(cpuinfo_names("bmi"))
    (['avx512_vnni', 'avx512vnni'], ['bmi', 'bmi1'])
    """
    known = {word for word, name in _CPUINFO_NAMES.items() if name == feature}
    return {feature, *known, *({feature.replace("avx512", "avx512_", 1)} if feature.startswith("avx512") else ())}


def _features_from_numpy() -> frozenset[str]:
    try:
        found: dict[str, bool] = import_module("numpy._core._multiarray_umath").__cpu_features__
    except (ImportError, AttributeError):  # a private name: a later NumPy may move it
        return frozenset()
    return frozenset(_NUMPY_NAMES.get(name, name.lower().replace("_", "")) for name, there in found.items() if there)


@cache
def machine_features() -> frozenset[str]:
    """Features of this machine, from `/proc/cpuinfo`, or what NumPy detected where there is none."""
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            found = features_from_cpuinfo(file.read())
    except OSError:
        found = frozenset[str]()
    return found or _features_from_numpy()


def machine_name() -> str:
    """The instruction set, as in a target triple: `x86_64`, `aarch64`."""
    name = os.uname().machine
    return {"amd64": "x86_64", "arm64": "aarch64"}.get(name, name)


def check_machine(machine: str, features: Iterable[str]) -> None:
    """Raise FuselineError (E0403) unless this machine is a `machine` with all `features` (LLVM's or `/proc/cpuinfo`'s
    names)."""
    if machine != machine_name():
        raise FuselineError(
            "E0403",
            f"the artifact is for {machine}, this machine is {machine_name()}",
            hint="compile the model for this machine",
        )
    missing = sorted({_llvm_name(feature) for feature in features} - machine_features())
    if missing:
        raise FuselineError("E0403", f"this CPU lacks {', '.join(missing)}", hint="compile the model for this machine")
