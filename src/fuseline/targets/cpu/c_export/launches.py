"""The steps of a program as C statements: each launch calls its kernel on the whole grid."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fuseline.buffers import BufferRef, LoopOffset
from fuseline.runtime.program import Arm, Command, Loop, Scratch, Step
from fuseline.targets.cpu.c_export.sizes import SizeTable


def launches(steps: Sequence[Step], size: SizeTable) -> Iterator[str]:
    """C lines, with `arena`, `scratch`, `constants`, `inputs`, `outputs` and `code` in scope; `i` counts a loop's
    iterations."""
    for step in steps:
        if isinstance(step, Loop):
            yield f"for (int64_t i = 0; i < {size(step.trips)}; ++i) {{"
            for command in step.commands:
                yield from _launch(command, size)
            yield "}"
        elif isinstance(step, Command):
            yield from _launch(step, size)


def _launch(command: Command, size: SizeTable) -> Iterator[str]:
    for arm in command.arms:
        bindings = ", ".join(_bindings(arm, size)) or "0"
        sizes = ", ".join(size(item) for item in arm.sizes) or "0"
        yield (
            f"{{ void *const b[] = {{{bindings}}}; const int64_t n[] = {{{sizes}}}; "
            f"launch(code + {arm.kernel}, b, n, {size(arm.workgroups)}, {_scratch(command.scratch, size)}); }}"
        )


def _scratch(scratch: Scratch | None, size: SizeTable) -> str:
    return "scratch" if scratch is None else f"arena + {size(scratch.offset)}"


def _bindings(arm: Arm, size: SizeTable) -> Iterator[str]:
    for number, ref in enumerate(arm.bindings):
        yield _moving(ref, arm.loop_offsets[number], size) if arm.loop_offsets else _address(ref, size)


def _moving(ref: BufferRef, move: LoopOffset, size: SizeTable) -> str:
    """As `fuseline.runtime.abi` says of a row's moves."""
    stride = size(move.stride)
    away = f"((i - {move.lag}) & 1) * {stride}" if move.alternates else f"(i - {move.lag}) * {stride}"
    there = f"{_address(ref, size)} + {away}"
    return there if move.special is None else f"i == {size(move.at)} ? {_address(move.special, size)} : {there}"


def _address(ref: BufferRef, size: SizeTable) -> str:
    base = "arena" if ref.segment == "arena" else f"{ref.segment}s[{ref.number}]"
    return f"(char *){base} + {size(ref.offset)}"
