"""The native scheduler: runs a command table on a team of threads.

It is LLVM text for any triple of x86-64 or AArch64, compiled into every image; how threads wait is in
`scheduler_barrier`, copies and the like in `built_in_kernels`. It imports nothing: the addresses of libc's `syscall`,
`sched_yield` and `sched_getcpu` lie in the team state, so that an image stays position-independent and closed.

Every thread of a run walks the same rows (SPMD) and takes its range of each grid; those of a loop again and again, with
bindings that each thread works out for itself. A flag barrier (one line per thread, no read-modify-write) stands only
where the table says so. Waiting spins shortly, pauses, yields, then sleeps in a futex. A run on one thread touches no
atomics. Layouts: `fuseline.runtime.abi`.
"""

from __future__ import annotations

from fuseline.errors import FuselineError
from fuseline.runtime import abi
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.link import built_in_kernels, scheduler_barrier
from fuseline.targets.cpu.link.compile import compile_texts

RUN_SYMBOL = "fuseline_run"
WORKER_SYMBOL = "fuseline_worker"
_MACHINES: dict[str, dict[str, str]] = {
    "x86_64": {
        "futex": "202",
        "pause": "call void @llvm.x86.sse2.pause()",
        "declare": "declare void @llvm.x86.sse2.pause()",
    },
    "aarch64": {
        "futex": "98",
        "pause": "call void @llvm.aarch64.hint(i32 1)",
        "declare": "declare void @llvm.aarch64.hint(i32)",
    },
}

_TABLE = """
; Walks the table as thread of threads; returns the generation of the last barrier passed.
define internal i64 @walk(ptr %team, ptr %context, i64 %thread) nounwind noinline {
entry:
  %first.p = getelementptr i8, ptr %context, i64 $CONTEXT_FIRST
  %first = load i64, ptr %first.p
  %last.p = getelementptr i8, ptr %context, i64 $CONTEXT_LAST
  %last = load i64, ptr %last.p
  %generation.p = getelementptr i8, ptr %context, i64 $CONTEXT_GENERATION
  %generation = load i64, ptr %generation.p
  %result = call i64 @walk_rows(ptr %team, ptr %context, i64 %thread, i64 %first, i64 %last, i64 %generation, i64 0)
  ret i64 %result
}
; The bindings of a row in iteration trip of its loop, written to local where it has walks.
define internal ptr @bindings_of(ptr %row, i64 %trip, ptr %local) nounwind {
entry:
  %walks.p = getelementptr i8, ptr %row, i64 40
  %walks = load ptr, ptr %walks.p
  %moves = icmp ne ptr %walks, null
  br i1 %moves, label %begin, label %fixed
fixed:
  %bindings.p = getelementptr i8, ptr %row, i64 8
  %bindings = load ptr, ptr %bindings.p
  ret ptr %bindings
begin:
  %count.p = getelementptr i8, ptr %row, i64 48
  %count = load i64, ptr %count.p
  br label %move
move:
  %i = phi i64 [0, %begin], [%i1, %move]
  %wo = mul i64 %i, $WALK
  %walk = getelementptr i8, ptr %walks, i64 %wo
  %base = load ptr, ptr %walk
  %special.p = getelementptr i8, ptr %walk, i64 8
  %special = load ptr, ptr %special.p
  %at.p = getelementptr i8, ptr %walk, i64 16
  %at = load i64, ptr %at.p
  %step.p = getelementptr i8, ptr %walk, i64 24
  %step = load i64, ptr %step.p
  %mask.p = getelementptr i8, ptr %walk, i64 32
  %mask = load i64, ptr %mask.p
  %steps = and i64 %trip, %mask
  %distance = mul i64 %steps, %step
  %moved = getelementptr i8, ptr %base, i64 %distance
  %is.special = icmp eq i64 %trip, %at
  %address = select i1 %is.special, ptr %special, ptr %moved
  %slot = getelementptr ptr, ptr %local, i64 %i
  store ptr %address, ptr %slot
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %move, label %done
done:
  ret ptr %local
}
; Rows first up to last in iteration trip of the loop they stand in; returns the generation of the last barrier passed.
define internal i64 @walk_rows(ptr %team, ptr %context, i64 %thread, i64 %first, i64 %last, i64 %generation.0,
    i64 %trip) nounwind noinline {
entry:
  %rows = load ptr, ptr %context
  %threads.p = getelementptr i8, ptr %context, i64 $CONTEXT_THREADS
  %threads = load i64, ptr %threads.p
  %scratch.p = getelementptr i8, ptr %context, i64 $CONTEXT_SCRATCH
  %scratch.0 = load ptr, ptr %scratch.p
  %stride.p = getelementptr i8, ptr %context, i64 $CONTEXT_STRIDE
  %stride = load i64, ptr %stride.p
  %mine = mul i64 %stride, %thread
  %scratch = getelementptr i8, ptr %scratch.0, i64 %mine
  %ranges.p = getelementptr i8, ptr %context, i64 $CONTEXT_RANGES
  %ranges.0 = load ptr, ptr %ranges.p
  %ranges.stride.p = getelementptr i8, ptr %context, i64 $CONTEXT_RANGES_STRIDE
  %ranges.stride = load i64, ptr %ranges.stride.p
  %ranges.mine = mul i64 %ranges.stride, %thread
  %ranges = getelementptr i8, ptr %ranges.0, i64 %ranges.mine
  %walks.p = getelementptr i8, ptr %context, i64 $CONTEXT_WALKS
  %walks = load i64, ptr %walks.p
  %local = alloca ptr, i64 %walks, align 16
  %any = icmp ult i64 %first, %last
  br i1 %any, label %loop, label %exit
loop:
  %r = phi i64 [%first, %entry], [%r1, %next]
  %generation = phi i64 [%generation.0, %entry], [%generation.4, %next]
  %ro = mul i64 %r, $ROW
  %row = getelementptr i8, ptr %rows, i64 %ro
  %flags.p = getelementptr i8, ptr %row, i64 32
  %flags = load i64, ptr %flags.p
  %bit = and i64 %flags, $FLAG_BARRIER
  %barrier = icmp ne i64 %bit, 0
  br i1 %barrier, label %sync, label %kind
sync:
  %generation.1 = add i64 %generation, 1
  call void @sync(ptr %team, i64 %thread, i64 %threads, i64 %generation.1)
  br label %kind
kind:
  %generation.2 = phi i64 [%generation, %loop], [%generation.1, %sync]
  %r.next = add i64 %r, 1
  %loop.bit = and i64 %flags, $FLAG_LOOP
  %repeats = icmp ne i64 %loop.bit, 0
  br i1 %repeats, label %repeat, label %share
repeat:
  %trips.p = getelementptr i8, ptr %row, i64 24
  %trips = load i64, ptr %trips.p
  %body.p = getelementptr i8, ptr %row, i64 16
  %body = load i64, ptr %body.p
  %r.end = add i64 %r.next, %body
  %runs = icmp sgt i64 %trips, 0
  br i1 %runs, label %iterate, label %next
iterate:
  %t = phi i64 [0, %repeat], [%t1, %iterate]
  %generation.in = phi i64 [%generation.2, %repeat], [%generation.3, %iterate]
  %generation.3 = call i64 @walk_rows(ptr %team, ptr %context, i64 %thread, i64 %r.next, i64 %r.end,
    i64 %generation.in, i64 %t)
  %t1 = add i64 %t, 1
  %again = icmp slt i64 %t1, %trips
  br i1 %again, label %iterate, label %next
share:
  %range.o = mul i64 %r, $RANGE
  %range = getelementptr i8, ptr %ranges, i64 %range.o
  %begin = load i64, ptr %range
  %end.p = getelementptr i8, ptr %range, i64 8
  %end = load i64, ptr %end.p
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %launch, label %next
launch:
  %kernel = load ptr, ptr %row
  %bindings = call ptr @bindings_of(ptr %row, i64 %trip, ptr %local)
  %sizes.p = getelementptr i8, ptr %row, i64 16
  %sizes = load ptr, ptr %sizes.p
  call void %kernel(ptr %bindings, ptr %sizes, i64 %begin, i64 %end, ptr %scratch)
  br label %next
next:
  %generation.4 = phi i64 [%generation.2, %repeat], [%generation.3, %iterate],
    [%generation.2, %share], [%generation.2, %launch]
  %r1 = phi i64 [%r.end, %repeat], [%r.end, %iterate], [%r.next, %share], [%r.next, %launch]
  %more = icmp ult i64 %r1, %last
  br i1 %more, label %loop, label %exit
exit:
  %result = phi i64 [%generation.0, %entry], [%generation.4, %next]
  ret i64 %result
}
define internal void @walk_alone(ptr %context) nounwind {
entry:
  %first.p = getelementptr i8, ptr %context, i64 $CONTEXT_FIRST
  %first = load i64, ptr %first.p
  %last.p = getelementptr i8, ptr %context, i64 $CONTEXT_LAST
  %last = load i64, ptr %last.p
  call void @walk_rows_alone(ptr %context, i64 %first, i64 %last, i64 0)
  ret void
}
; The whole grids of rows first up to last, in order, on the calling thread: no atomics.
define internal void @walk_rows_alone(ptr %context, i64 %first, i64 %last, i64 %trip) nounwind noinline {
entry:
  %rows = load ptr, ptr %context
  %scratch.p = getelementptr i8, ptr %context, i64 $CONTEXT_SCRATCH
  %scratch = load ptr, ptr %scratch.p
  %walks.p = getelementptr i8, ptr %context, i64 $CONTEXT_WALKS
  %walks = load i64, ptr %walks.p
  %local = alloca ptr, i64 %walks, align 16
  %any = icmp ult i64 %first, %last
  br i1 %any, label %loop, label %exit
loop:
  %r = phi i64 [%first, %entry], [%r1, %next]
  %ro = mul i64 %r, $ROW
  %row = getelementptr i8, ptr %rows, i64 %ro
  %r.next = add i64 %r, 1
  %workgroups.p = getelementptr i8, ptr %row, i64 24
  %workgroups = load i64, ptr %workgroups.p
  %flags.p = getelementptr i8, ptr %row, i64 32
  %flags = load i64, ptr %flags.p
  %loop.bit = and i64 %flags, $FLAG_LOOP
  %repeats = icmp ne i64 %loop.bit, 0
  %some = icmp sgt i64 %workgroups, 0
  br i1 %repeats, label %repeat, label %share
repeat:
  %body.p = getelementptr i8, ptr %row, i64 16
  %body = load i64, ptr %body.p
  %r.end = add i64 %r.next, %body
  br i1 %some, label %iterate, label %next
iterate:
  %t = phi i64 [0, %repeat], [%t1, %iterate]
  call void @walk_rows_alone(ptr %context, i64 %r.next, i64 %r.end, i64 %t)
  %t1 = add i64 %t, 1
  %again = icmp slt i64 %t1, %workgroups
  br i1 %again, label %iterate, label %next
share:
  br i1 %some, label %launch, label %next
launch:
  %kernel = load ptr, ptr %row
  %bindings = call ptr @bindings_of(ptr %row, i64 %trip, ptr %local)
  %sizes.p = getelementptr i8, ptr %row, i64 16
  %sizes = load ptr, ptr %sizes.p
  call void %kernel(ptr %bindings, ptr %sizes, i64 0, i64 %workgroups, ptr %scratch)
  br label %next
next:
  %r1 = phi i64 [%r.end, %repeat], [%r.end, %iterate], [%r.next, %share], [%r.next, %launch]
  %more = icmp ult i64 %r1, %last
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
"""

_RUN = """
define internal void @patch(ptr %context) nounwind {
entry:
  %patches.p = getelementptr i8, ptr %context, i64 $CONTEXT_PATCHES
  %patches = load ptr, ptr %patches.p
  %count.p = getelementptr i8, ptr %context, i64 $CONTEXT_PATCH_COUNT
  %count = load i64, ptr %count.p
  %segments.p = getelementptr i8, ptr %context, i64 $CONTEXT_SEGMENTS
  %segments = load ptr, ptr %segments.p
  %any = icmp ne i64 %count, 0
  br i1 %any, label %loop, label %exit
loop:
  %i = phi i64 [0, %entry], [%i1, %loop]
  %o = mul i64 %i, $PATCH
  %patch = getelementptr i8, ptr %patches, i64 %o
  %slot = load ptr, ptr %patch
  %segment.p = getelementptr i8, ptr %patch, i64 8
  %segment = load i64, ptr %segment.p
  %offset.p = getelementptr i8, ptr %patch, i64 16
  %offset = load i64, ptr %offset.p
  %base.p = getelementptr ptr, ptr %segments, i64 %segment
  %base = load ptr, ptr %base.p
  %value = getelementptr i8, ptr %base, i64 %offset
  store ptr %value, ptr %slot
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
; The place of the caller's processor; -2 where it is not known.
define internal i64 @place_of_caller(ptr %team) nounwind {
entry:
  %getcpu.p = getelementptr i8, ptr %team, i64 $TEAM_GETCPU
  %getcpu = load ptr, ptr %getcpu.p
  %known = icmp ne ptr %getcpu, null
  br i1 %known, label %ask, label %unknown
ask:
  %cpu.32 = call i32 %getcpu()
  %cpu = sext i32 %cpu.32 to i64
  %count.p = getelementptr i8, ptr %team, i64 $TEAM_PLACE_COUNT
  %count = load i64, ptr %count.p
  %listed = icmp ult i64 %cpu, %count
  br i1 %listed, label %look, label %unknown
look:
  %places.p = getelementptr i8, ptr %team, i64 $TEAM_PLACES
  %places = load ptr, ptr %places.p
  %place.p = getelementptr i64, ptr %places, i64 %cpu
  %place = load i64, ptr %place.p
  ret i64 %place
unknown:
  ret i64 -2
}
; Hands the context to threads-1 workers, leaving out the first one that is pinned to the caller's place.
define internal void @summon(ptr %team, ptr %context, i64 %threads) nounwind {
start:
  %here = call i64 @place_of_caller(ptr %team)
  %workers.p = getelementptr i8, ptr %team, i64 $TEAM_WORKERS
  %workers = load i64, ptr %workers.p
  %spare = sub i64 %workers, %threads
  %surplus = icmp sge i64 %spare, 0
  br label %loop
loop:
  %w = phi i64 [0, %start], [%w1, %next]
  %t = phi i64 [1, %start], [%t1, %next]
  %mayskip = phi i1 [%surplus, %start], [%mayskip.1, %next]
  %wl = mul i64 %w, $LINE
  %wo = add i64 %wl, $TEAM_LINES
  %worker = getelementptr i8, ptr %team, i64 %wo
  %place.p = getelementptr i8, ptr %worker, i64 $WORKER_PLACE
  %pinned = load i64, ptr %place.p
  %same = icmp eq i64 %pinned, %here
  %skip = and i1 %same, %mayskip
  br i1 %skip, label %next, label %give
give:
  %context.p = getelementptr i8, ptr %worker, i64 $WORKER_CONTEXT
  store ptr %context, ptr %context.p
  %thread.p = getelementptr i8, ptr %worker, i64 $WORKER_THREAD
  store i64 %t, ptr %thread.p
  %go = load i64, ptr %worker
  %go1 = add i64 %go, 1
  %sleeping = getelementptr i8, ptr %worker, i64 $WORKER_SLEEPING
  call void @signal(ptr %team, ptr %worker, i64 %go1, ptr %sleeping)
  %tg = add i64 %t, 1
  br label %next
next:
  %t1 = phi i64 [%t, %loop], [%tg, %give]
  %mayskip.1 = phi i1 [false, %loop], [%mayskip, %give]
  %w1 = add i64 %w, 1
  %more = icmp ult i64 %t1, %threads
  br i1 %more, label %loop, label %exit
exit:
  ret void
}
define void @fuseline_run(ptr %team, ptr %context) nounwind {
entry:
  call void @patch(ptr %context)
  %threads.p = getelementptr i8, ptr %context, i64 $CONTEXT_THREADS
  %threads = load i64, ptr %threads.p
  %alone = icmp ule i64 %threads, 1
  br i1 %alone, label %serial, label %parallel
serial:
  call void @walk_alone(ptr %context)
  ret void
parallel:
  %generation = load i64, ptr %team
  %generation.p = getelementptr i8, ptr %context, i64 $CONTEXT_GENERATION
  store i64 %generation, ptr %generation.p
  call void @summon(ptr %team, ptr %context, i64 %threads)
  %reached = call i64 @walk(ptr %team, ptr %context, i64 0)
  %end = add i64 %reached, 1
  call void @arrive(ptr %team, i64 0, i64 %end)
  call void @await_all(ptr %team, i64 %threads, i64 %end)
  store i64 %end, ptr %team
  ret void
}
define ptr @fuseline_worker(ptr %worker) nounwind {
entry:
  %team.p = getelementptr i8, ptr %worker, i64 $WORKER_TEAM
  %team = load ptr, ptr %team.p
  %sleeping = getelementptr i8, ptr %worker, i64 $WORKER_SLEEPING
  %context.p = getelementptr i8, ptr %worker, i64 $WORKER_CONTEXT
  %thread.p = getelementptr i8, ptr %worker, i64 $WORKER_THREAD
  br label %loop
loop:
  %go = phi i64 [1, %entry], [%go1, %run]
  call void @wait(ptr %team, ptr %worker, i64 %go, ptr %sleeping)
  %context = load ptr, ptr %context.p
  %quit = icmp eq ptr %context, null
  br i1 %quit, label %exit, label %run
run:
  %thread = load i64, ptr %thread.p
  %reached = call i64 @walk(ptr %team, ptr %context, i64 %thread)
  %end = add i64 %reached, 1
  call void @arrive(ptr %team, i64 %thread, i64 %end)
  %go1 = add i64 %go, 1
  br label %loop
exit:
  ret ptr null
}
"""


def scheduler_text(triple: str) -> str:
    """The scheduler as LLVM text for `triple`; raises FuselineError (E0501) for a machine other than x86-64 and
    AArch64."""
    machine = triple.split("-")[0]
    words = _MACHINES.get(machine)
    if words is None:
        raise FuselineError("E0501", f"no scheduler for machine {machine!r}", hint=f"use one of {', '.join(_MACHINES)}")
    values = {**scheduler_barrier.VALUES, **built_in_kernels.VALUES, "LINE": abi.LINE_BYTES, "PATCH": abi.PATCH_BYTES}
    values |= {"ROW": abi.ROW_BYTES, "RANGE": abi.RANGE_BYTES, "WALK": abi.WALK_BYTES}
    values |= {
        name: value for name, value in vars(abi).items() if name.startswith(("TEAM_", "WORKER_", "CONTEXT_", "FLAG_"))
    }
    parts = words["declare"], scheduler_barrier.BARRIER_TEXT, _TABLE, _RUN, built_in_kernels.KERNELS_TEXT
    text = f'target triple = "{triple}"\n' + "\n".join(parts)
    text = text.replace("$PAUSE", words["pause"]).replace("$FUTEX", words["futex"])
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f"${name}", str(values[name]))
    return text


def scheduler_object(machine: Machine) -> bytes:
    """Object code of the scheduler (ELF, position-independent) for `machine`."""
    return compile_texts([scheduler_text(machine.triple)], machine)[0]
