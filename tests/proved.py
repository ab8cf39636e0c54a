"""Programs whose kernels are proved to stay inside of their memory, for the sizes of a run and whatever data they are
fed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from fuseline.compile_options import CompileOptions
from fuseline.interop import onnx_host
from fuseline.pipeline import lower, prepare, run_phases
from fuseline.program.schedule import PackedConstants, Schedule
from fuseline.runtime import Session
from fuseline.runtime.artifact import Artifact
from fuseline.runtime.bounds import Bounds
from fuseline.runtime.program import Arm
from fuseline.targets.cpu import target as cpu_target
from fuseline.targets.cpu.kernel_ir.check_bounds import check_bounds
from fuseline.targets.cpu.kernel_ir.contents import Range, range_of_bytes
from fuseline.targets.cpu.kernel_ir.index_bounds import IndexBounds
from fuseline.targets.cpu.kernel_ir.types import BYTES, Kernel
from fuseline.targets.cpu.link.program import _link  # pyright: ignore[reportPrivateUsage]
from fuseline.targets.cpu.target import CpuTarget, _compiled  # pyright: ignore[reportPrivateUsage]
from fuseline.targets.target import CompiledKernel

onnx_host.install()  # programs may hold operators that run there


class _Kept(CpuTarget):
    """The CPU; it keeps the kernel IR of what it compiles, by where its code begins."""

    def __init__(self) -> None:
        super().__init__(threads=1)
        self.by_symbol: dict[str, Kernel] = {}
        self.by_offset: dict[int, Kernel] = {}

    def note(self, built: Any, symbol: str, code: bytes) -> CompiledKernel:
        self.by_symbol[symbol] = built.kernel
        return _compiled(built, symbol, code)

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
        self.by_offset = {offset: self.by_symbol[symbol] for (_, symbol), offset in places.items()}
        return super().assemble(schedule, kernels, constants, records=records, metadata=metadata)


class ProvedProgram:
    """`model` compiled for the CPU, on one thread, with dead memory overwritten. Raises what compiling raises."""

    def __init__(self, model: Any, shapes: Mapping[str, Any] | None = None) -> None:
        options = CompileOptions(target="cpu", threads=1, poison=True, shapes=shapes)
        self._target = _Kept()
        in_this_process = mock.patch.object(cpu_target, "PARALLEL_THRESHOLD", 1 << 30)
        with in_this_process, mock.patch.object(cpu_target, "_compiled", self._target.note):
            module, ctx = prepare(model, options, self._target)
            run_phases(module, ctx, options)
            artifact = lower(module, ctx, options, self._target)
        self._session, self._constants = Session(artifact), artifact.constants
        self.host_ops = [host.op_type for host in ctx.records.host_ops]

    def run(self, feeds: Mapping[str, Any]) -> list[NDArray[Any]]:
        """The results. Raises AssertionError for an access that cannot be shown to stay inside, and what running
        raises."""
        launches = set[tuple[int, tuple[int, ...], int, tuple[tuple[int, Range], ...]]]()
        needs: Any = Bounds._needs  # pyright: ignore[reportPrivateUsage]

        def noted(bounds: Any, arm: Any, signatures: Sequence[Any]) -> Any:
            evaluate = bounds._evaluate
            sizes = tuple(evaluate(size) for size in arm.sizes)
            launches.add((arm.kernel, sizes, evaluate(arm.workgroups), tuple(self._contents(arm, sizes, evaluate))))
            return needs(bounds, arm, signatures)

        with mock.patch.object(Bounds, "_needs", noted):
            results = list(self._session.run(dict(feeds)).values())
        for offset, sizes, workgroups, contents in launches:
            kernel = self._target.by_offset.get(offset)  # None: a copy, or sizes written down
            if kernel is not None and workgroups > 0:
                assert check_bounds(kernel, sizes, workgroups, dict(contents)) == []
        return results

    def _contents(self, arm: Arm, sizes: Sequence[int], evaluate: Callable[[Any], int]) -> Iterator[tuple[int, Range]]:
        """What the constants that a launch reads hold, by binding."""
        kernel = self._target.by_offset.get(arm.kernel)
        for memory in () if kernel is None or arm.loop_offsets else kernel.bindings:
            place = arm.bindings[memory.position]
            if kernel is not None and place.segment == "constant":
                elements = (
                    IndexBounds(kernel, sizes, 1, {}).form(memory.extent).constant
                )  # of sizes that are known, a number
                stored = np.frombuffer(self._constants[place.number], np.uint8)[evaluate(place.offset) :]
                found = range_of_bytes(stored[: elements * BYTES[memory.dtype]], memory.dtype)
                if found is not None:
                    yield memory.position, found
