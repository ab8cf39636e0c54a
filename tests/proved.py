"""Programs whose kernels are proved to stay inside of their memory, for the sizes of a run and whatever data they are
fed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from fuseline import targets
from fuseline.compilation import lower
from fuseline.compile_options import CompileOptions
from fuseline.interop import onnx_host
from fuseline.phase_runner import run_phases
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.runtime import Session
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.bounds import Bounds
from fuseline.runtime.program import Arm, Program
from fuseline.source_program import prepare
from fuseline.targets.compiled_kernel import CompiledKernel
from fuseline.targets.cpu import target as cpu_target
from fuseline.targets.cpu.kernel_facts import compiled_kernel
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.contents import Range
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.stored_ranges import range_of_bytes
from fuseline.targets.cpu.kernel_ir.types import BYTES, Kernel
from fuseline.targets.cpu.link.program import _link  # pyright: ignore[reportPrivateUsage]
from fuseline.targets.cpu.target import CpuTarget

onnx_host.install()  # programs may hold operators that run there


class _Compiled(NamedTuple):
    """A program (a branch is one of its own), its kernels by where their code begins and how many sizes they take, and
    its constants."""

    program: Program
    kernels: Mapping[tuple[int, int], Kernel]
    constants: Sequence[Any]

    def is_of(self, part: Program) -> bool:
        """Whether this is the program that `part` is some steps of."""
        return (part.inputs, part.outputs) == (self.program.inputs, self.program.outputs)


class _Launch(NamedTuple):
    """What of a launch its accesses depend on."""

    kernel: Kernel
    sizes: tuple[int, ...]
    workgroups: int
    contents: tuple[tuple[int, Range], ...]


class _Kept(CpuTarget):
    """The CPU; it keeps the kernel IR of what it compiles."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads=threads)
        self.by_code: dict[tuple[str, bytes], list[Kernel]] = {}
        self.compiled: list[_Compiled] = []

    def note(self, built: Any, symbol: str, code: bytes, *more: Any) -> CompiledKernel:
        self.by_code.setdefault((symbol, code), []).append(built.code)  # equal code may leave other sizes unread
        return compiled_kernel(built, symbol, code, *more)

    def assemble(
        self,
        schedule: Schedule,
        kernels: Mapping[str, CompiledKernel],
        constants: PackedConstants,
        *,
        records: bytes,
        metadata: Mapping[str, Any],
    ) -> Artifact:
        _, places = _link(kernels, self.machine)
        by_offset = {
            (offset, len(kernel.sizes)): kernel
            for (code, symbol), offset in places.items()
            for kernel in self.by_code[symbol, code]
        }
        artifact = super().assemble(schedule, kernels, constants, records=records, metadata=metadata)
        self.compiled.append(_Compiled(artifact.program, by_offset, artifact.constants))
        return artifact


class ProvedProgram:
    """`model` compiled for the CPU, for `threads`, with dead memory overwritten. Raises what compiling raises."""

    def __init__(
        self, model: Any, shapes: Mapping[str, Any] | None = None, *, threads: int = 1, **options_: Any
    ) -> None:
        options = CompileOptions(target="cpu", threads=threads, poison=True, shapes=shapes, **options_)
        self._target = _Kept(threads)
        in_this_process = mock.patch.object(cpu_target, "PARALLEL_THRESHOLD", 1 << 30)
        branches = mock.patch.object(targets, "create_target", lambda *_: self._target)
        with in_this_process, branches, mock.patch.object(cpu_target, "compiled_kernel", self._target.note):
            module, ctx = prepare(model, options, self._target)
            run_phases(module, ctx, options)
            artifact = lower(module, ctx, options, self._target)
        self._session = Session(artifact)
        self.inputs, self.host_ops = artifact.program.inputs, ctx.records.host_ops

    @property
    def kernels(self) -> Sequence[Kernel]:
        """The kernel IR of all code."""
        return [kernel for kernels in self._target.by_code.values() for kernel in kernels]

    def run(self, feeds: Mapping[str, Any]) -> list[NDArray[Any]]:
        """The results. Raises AssertionError for an access that cannot be shown to stay inside, and what running
        raises."""
        launches: dict[Any, _Launch] = {}
        start: Any = Bounds.__init__
        needs: Any = Bounds._needs  # pyright: ignore[reportPrivateUsage]
        of: dict[Any, _Compiled] = {}

        def started(bounds: Any, program: Program, *rest: Any) -> None:
            of[bounds] = next(one for one in self._target.compiled if one.is_of(program))
            start(bounds, program, *rest)

        def noted(bounds: Any, arm: Arm, signatures: Sequence[Any]) -> Any:
            for launch in _launches(of[bounds], arm, bounds._evaluate):
                launches[id(launch.kernel), *launch[1:]] = launch
            return needs(bounds, arm, signatures)

        with mock.patch.object(Bounds, "__init__", started), mock.patch.object(Bounds, "_needs", noted):
            results = list(self._session.run(dict(feeds)).values())
        for kernel, sizes, workgroups, contents in launches.values():
            assert check_bounds(kernel, sizes, workgroups, dict(contents)) == []
        return results


def _launches(compiled: _Compiled, arm: Arm, evaluate: Callable[[Any], int]) -> Iterator[_Launch]:
    """The launch of an arm that runs; none of a copy, and of sizes that are written down."""
    kernel, workgroups = compiled.kernels.get((arm.kernel, len(arm.sizes))), evaluate(arm.workgroups)
    if kernel is not None and workgroups > 0:
        sizes = tuple(evaluate(size) for size in arm.sizes)
        yield _Launch(kernel, sizes, workgroups, tuple(_contents(compiled, kernel, arm, sizes, evaluate)))


def _contents(
    compiled: _Compiled, kernel: Kernel, arm: Arm, sizes: Sequence[int], evaluate: Callable[[Any], int]
) -> Iterator[tuple[int, Range]]:
    """What the constants that a launch reads hold, by binding."""
    for memory in () if arm.loop_offsets else kernel.bindings:
        place = arm.bindings[memory.position]
        if place.segment == "constant":
            elements = IndexBounds(kernel, sizes, 1, {}).form(memory.extent).constant  # a number, as the sizes are
            stored = np.frombuffer(compiled.constants[place.number], np.uint8)[evaluate(place.offset) :]
            found = range_of_bytes(stored[: elements * BYTES[memory.dtype]], memory.dtype)
            if found is not None:
                yield memory.position, found
