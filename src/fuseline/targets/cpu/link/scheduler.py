"""The native scheduler: runs a command table on a team of threads.

It is functions of kernel IR, for x86-64 and AArch64, compiled into every image; how threads wait is in
`scheduler_barrier`, copies, fills and the like in `built_in_kernels`. It imports nothing: the addresses of libc's
`syscall`, `sched_yield` and `sched_getcpu` lie in the team state, so that an image stays position-independent and
closed.

Every thread of a run runs the same rows (SPMD) and takes its range of each grid; those of a loop again and again, with
bindings that each thread works out for itself. A flag barrier (one line per thread, no read-modify-write) stands only
where the table says so. Waiting spins shortly, pauses, yields, then sleeps in a futex. A run on one thread touches no
atomics. Layouts: `fuseline.runtime.abi`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from fuseline.errors import FuselineError
from fuseline.runtime import abi
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.kernel_ir.functions import FunctionBuilder
from fuseline.targets.cpu.kernel_ir.printer import print_llvm
from fuseline.targets.cpu.kernel_ir.types import I32, I64, PTR, Function, Kernel, MemRef, Operand, Value
from fuseline.targets.cpu.link.built_in_kernels import built_in_kernels
from fuseline.targets.cpu.link.compile import compile_texts
from fuseline.targets.cpu.link.scheduler_barrier import LINE_WORDS, TEAM_WORDS, WORD, barrier_functions
from fuseline.targets.cpu.link.scheduler_rows import bindings_of, run_rows

RUN_SYMBOL = "fuseline_run"
WORKER_SYMBOL = "fuseline_worker"
CONTEXT_WORDS = abi.CONTEXT_BYTES // WORD

_FUTEX_CALLS = {"x86_64": 202, "aarch64": 98}
_NOWHERE = -2


def scheduler_functions(machine: Machine) -> list[Function | Kernel]:
    """The scheduler and the kernels that every image has; raises FuselineError (E0501) for a machine other than x86-64
    and AArch64."""
    name = machine.triple.split("-")[0]
    if name not in _FUTEX_CALLS:
        raise FuselineError("E0501", f"no scheduler for machine {name!r}", hint=f"use one of {', '.join(_FUTEX_CALLS)}")
    rows = [bindings_of(), run_rows(alone=True), run_rows(alone=False)]
    functions = [_patch(), _place_of_caller(), _summon(), _run(), _worker()]
    return [*barrier_functions(_FUTEX_CALLS[name]), *rows, *functions, *built_in_kernels(machine)]


@cache
def scheduler_object(machine: Machine) -> bytes:
    """Object code of the scheduler (ELF, position-independent) for `machine`."""
    return compile_texts([print_llvm(scheduler_functions(machine), machine)], machine)[0]


def _patch() -> Function:
    """`patch(context)` writes the addresses of the caller's inputs and outputs where bindings are."""
    f = FunctionBuilder("patch", (PTR,))
    context = f.words(f.parameters[0], CONTEXT_WORDS)
    patches, segments = f.pointer(context, abi.CONTEXT_PATCHES), f.pointer(context, abi.CONTEXT_SEGMENTS)

    def apply(i: Operand) -> None:
        patch = f.words(f.advance(patches, f.mul(i, abi.PATCH_BYTES)), abi.PATCH_BYTES // WORD)
        segment = f.words(f.advance(segments, f.mul(f.word(patch, abi.PATCH_SEGMENT), WORD)), 1)
        slot = f.words(f.pointer(patch, abi.PATCH_SLOT), 1)
        f.set_pointer(slot, 0, f.advance(f.pointer(segment), f.word(patch, abi.PATCH_OFFSET)))

    f.loop(0, f.word(context, abi.CONTEXT_PATCH_COUNT), 1, apply)
    return f.finish()


def _place_of_caller() -> Function:
    """`place_of_caller(team)` is the place of the caller's processor; -2 where it is not known."""
    f = FunctionBuilder("place_of_caller", (PTR,))
    team = f.words(f.parameters[0], TEAM_WORDS)
    ask = f.pointer(team, abi.TEAM_GETCPU)

    def place_of(processor: Operand) -> tuple[Operand]:
        places = f.pointer(team, abi.TEAM_PLACES)
        return (f.word(f.words(f.advance(places, f.mul(processor, WORD)), 1), 0),)

    def look() -> Sequence[Operand]:
        processor = f.cast(f.call(ask, (), I32), "i64")
        listed = f.compare("ult", processor, f.word(team, abi.TEAM_PLACE_COUNT))
        return f.when(listed, lambda: place_of(processor), lambda: (_NOWHERE,))

    return f.finish(f.when(f.not_null(ask), look, lambda: (_NOWHERE,))[0])


def _summon() -> Function:
    """`summon(team, context, threads)` hands the context to threads-1 workers, leaving out the first one that is pinned
    to the caller's place."""
    f = FunctionBuilder("summon", (PTR, PTR, I64))
    team, context, threads = f.parameters
    here = f.call("place_of_caller", (team,), I64)
    is_one_spare = f.compare("ge", f.word(f.words(team, TEAM_WORDS), abi.TEAM_WORKERS), threads)

    def give(pointer: Value, worker: MemRef, thread: Operand) -> None:
        f.set_pointer(worker, abi.WORKER_CONTEXT // WORD, context)
        f.set_word(worker, abi.WORKER_THREAD, thread)
        go = f.add(f.word(worker, abi.WORKER_GO), 1)
        f.call("signal", (team, pointer, go, f.advance(pointer, abi.WORKER_SLEEPING)))

    def next_worker(number: Value, thread: Value, may_skip: Value) -> Sequence[Operand]:
        pointer = f.advance(team, f.add(f.mul(number, abi.LINE_BYTES), abi.TEAM_LINES))
        worker = f.words(pointer, LINE_WORDS)
        is_here = f.compare("eq", f.word(worker, abi.WORKER_PLACE), here)

        def take() -> Sequence[Operand]:
            give(pointer, worker, thread)
            return f.add(thread, 1), may_skip

        left = f.when(f.bitand(is_here, may_skip), lambda: (thread, f.const(0, "i1")), take)
        return f.add(number, 1), *left

    f.while_(lambda number, thread, may_skip: f.compare("lt", thread, threads), next_worker, (0, 1, is_one_spare))
    return f.finish()


def _run() -> Function:
    """`fuseline_run(team, context)`: the caller's part of a run, as thread 0."""
    f = FunctionBuilder(RUN_SYMBOL, (PTR, PTR), exported=True)
    team, context_pointer = f.parameters
    context = f.words(context_pointer, CONTEXT_WORDS)
    f.call("patch", (context_pointer,))
    threads = f.word(context, abi.CONTEXT_THREADS)

    def share() -> None:
        state = f.words(team, TEAM_WORDS)
        f.set_word(context, abi.CONTEXT_GENERATION, f.word(state, abi.TEAM_GENERATION))
        f.call("summon", (team, context_pointer, threads))
        end = _run_rows(f, team, context_pointer, 0)
        f.call("await_all", (team, threads, end))
        f.set_word(state, abi.TEAM_GENERATION, end)

    def alone() -> None:
        first, last = f.word(context, abi.CONTEXT_FIRST), f.word(context, abi.CONTEXT_LAST)
        f.call("run_rows_alone", (team, context_pointer, 0, first, last, 0, 0), I64)

    f.when(f.compare("le", threads, 1), alone, share)
    return f.finish()


def _run_rows(f: FunctionBuilder, team: Value, pointer: Value, thread: Operand) -> Value:
    """All rows as one thread of several, and its arrival at the end, whose generation is the answer."""
    context = f.words(pointer, CONTEXT_WORDS)
    first, last, generation = (
        f.word(context, at) for at in (abi.CONTEXT_FIRST, abi.CONTEXT_LAST, abi.CONTEXT_GENERATION)
    )
    reached = f.call("run_rows", (team, pointer, thread, first, last, generation, 0), I64)
    end = f.add(reached, 1)
    f.call("arrive", (team, thread, end))
    return end


def _worker() -> Function:
    """`fuseline_worker(worker)`: a worker's thread, until it is given no context."""
    f = FunctionBuilder(WORKER_SYMBOL, (PTR,), exported=True)
    (pointer,) = f.parameters
    worker = f.words(pointer, LINE_WORDS)
    team = f.pointer(worker, abi.WORKER_TEAM)
    sleeping = f.advance(pointer, abi.WORKER_SLEEPING)

    def is_summoned(go: Value) -> Value:
        f.call("wait", (team, pointer, go, sleeping))
        return f.not_null(f.pointer(worker, abi.WORKER_CONTEXT))

    def join_run(go: Value) -> Sequence[Operand]:
        _run_rows(f, team, f.pointer(worker, abi.WORKER_CONTEXT), f.word(worker, abi.WORKER_THREAD))
        return (f.add(go, 1),)

    f.while_(is_summoned, join_run, (1,))
    return f.finish(0)
