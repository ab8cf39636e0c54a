"""The ways of IREE to make code that this target drives: what its compiler is told, and where the code runs."""

from __future__ import annotations

from dataclasses import dataclass

from fuseline.errors import FuselineError

STACK_BYTES = 32 * 1024
"""The most that a workgroup may have on the stack: `--iree-llvmcpu-stack-allocation-limit` of IREE's compiler. Beyond
it a dispatch does not compile."""

_TYPES = ("--iree-input-demote-f64-to-f32=false", "--iree-vm-target-truncate-unsupported-floats=false")
"""Numbers stay what they are."""

_STRICT = ("--iree-llvmcpu-reassociate-fp-reductions=false",)


def _math(names: str) -> frozenset[str]:
    return frozenset(f"math.{name}" for name in names.split())


_NO_SINGLE = _math("erfc log10")
_NO_DOUBLE = _math("acos asin atan atan2 cbrt cos erf erfc log10 log2 sin tan tanh") | {"arith.remf"}
"""Calls of a C library, which IREE does not link."""

_NO_BYTECODE = _math("acos acosh asin asinh atanh cbrt copysign cosh erfc sinh tan trunc")


@dataclass(frozen=True, slots=True)
class Backend:
    """One backend. `flags`: what the compiler is told besides; `strict_flags`: where sums must stay in order.
    `without`: the scalar operations that it has no code for, `without_double`: those of f64. Halves are computed in
    f32."""

    name: str
    flags: tuple[str, ...] = ()
    strict_flags: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()
    without_double: frozenset[str] = frozenset()

    def arguments(self, numerics: str) -> list[str]:
        """What `iree-compile` is told for kernels of this exactness."""
        device = ["--iree-hal-target-device=local", f"--iree-hal-local-target-device-backends={self.name}"]
        return [*device, *_TYPES, *self.flags, *(self.strict_flags if numerics == "strict" else ())]

    def lacks(self, operation: str, element: str) -> bool:
        """Whether the backend has no code for a scalar operation (`math.tanh`) on elements of a type (`f32`)."""
        return operation in (self.without_double if element == "f64" else self.without)

    def device(self, threads: int) -> str:
        """The device of IREE's runtime that runs the code: the calling thread, or threads of its own."""
        return "local-sync" if threads == 1 else "local-task"


_HOST = ("--iree-llvmcpu-target-cpu=host", "--iree-opt-level=O2")

BACKENDS = {
    "llvm-cpu": Backend("llvm-cpu", _HOST, _STRICT, without=_NO_SINGLE, without_double=_NO_DOUBLE),
    "vmvx": Backend("vmvx", without=_NO_BYTECODE, without_double=_NO_BYTECODE),
}
"""By name: native code for this machine, and bytecode that any machine interprets."""


def backend_named(name: str | None) -> Backend:
    """The backend called `name`, `llvm-cpu` for None. Raises FuselineError (E0501) for another."""
    found = BACKENDS.get(name or "llvm-cpu")
    if found is None:
        hint = f"use one of {', '.join(f'iree:{known}' for known in BACKENDS)}"
        raise FuselineError("E0501", f"iree has no backend {name!r} here", hint=hint)
    return found
