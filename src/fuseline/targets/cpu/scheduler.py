"""The native scheduler: runs a command table on a team of threads.

It is LLVM text for any triple of x86-64 or AArch64, compiled into every image. It imports nothing: the addresses of libc's `syscall`,
`sched_yield` and `sched_getcpu` lie in the team state, so that an image stays position-independent and closed.

Every thread of a run walks the same command table (SPMD) and takes its share of each grid; a flag barrier (one line per thread, no
read-modify-write) stands only where the table says so. Waiting spins shortly, pauses, yields, then sleeps in a futex.
A run on one thread touches no atomics. Layouts: `fuseline.runtime.abi`.
"""

from __future__ import annotations

from fuseline.errors import FuselineError
from fuseline.runtime import abi
from fuseline.targets.cpu.compile import compile_texts
from fuseline.targets.cpu.isa.description import Machine

RUN_SYMBOL = "fuseline_run"
WORKER_SYMBOL = "fuseline_worker"
COPY_SYMBOL = "fuseline_copy"
SIZES_SYMBOL = "fuseline_sizes"

COPY_WORKGROUP_BYTES = 64 * 1024
"""Bytes one workgroup of the built-in copy kernel moves."""

SPINS = 64
"""Loads before the first pause: covers threads that arrive within about 50 ns of each other."""

FEW_THREADS = 4
"""Up to this many threads the barrier is all-to-all."""

_FUTEX_WAIT_PRIVATE, _FUTEX_WAKE_PRIVATE = 128, 129

_MACHINES: dict[str, dict[str, str]] = {
    "x86_64": {"futex": "202", "pause": "call void @llvm.x86.sse2.pause()", "declare": "declare void @llvm.x86.sse2.pause()"},
    "aarch64": {"futex": "98", "pause": "call void @llvm.aarch64.hint(i32 1)", "declare": "declare void @llvm.aarch64.hint(i32)"},
}

_WAIT = """
; Returns once *flag has reached want (difference taken signed).
define internal void @wait(ptr %team, ptr %flag, i64 %want, ptr %sleepers) nounwind noinline {
entry:
  %pauses.p = getelementptr i8, ptr %team, i64 $TEAM_PAUSES
  %pauses = load i64, ptr %pauses.p
  %yields.p = getelementptr i8, ptr %team, i64 $TEAM_YIELDS
  %yields = load i64, ptr %yields.p
  br label %spin
spin:
  %i = phi i64 [0, %entry], [%i1, %spin.next]
  %v0 = load atomic i64, ptr %flag acquire, align 8
  %d0 = sub i64 %v0, %want
  %ok0 = icmp sge i64 %d0, 0
  br i1 %ok0, label %done, label %spin.next
spin.next:
  %i1 = add i64 %i, 1
  %more0 = icmp ult i64 %i1, $SPINS
  br i1 %more0, label %spin, label %pause
pause:
  %j = phi i64 [0, %spin.next], [%j1, %pause.next]
  %more1 = icmp ult i64 %j, %pauses
  br i1 %more1, label %pause.next, label %yield
pause.next:
  $PAUSE
  %j1 = add i64 %j, 1
  %v1 = load atomic i64, ptr %flag acquire, align 8
  %d1 = sub i64 %v1, %want
  %ok1 = icmp sge i64 %d1, 0
  br i1 %ok1, label %done, label %pause
yield:
  %k = phi i64 [0, %pause], [%k1, %yield.next]
  %more2 = icmp ult i64 %k, %yields
  br i1 %more2, label %yield.next, label %sleep
yield.next:
  %k1 = add i64 %k, 1
  %yield.p = getelementptr i8, ptr %team, i64 $TEAM_YIELD
  %yield.f = load ptr, ptr %yield.p
  %yr = call i32 %yield.f()
  %v2 = load atomic i64, ptr %flag acquire, align 8
  %d2 = sub i64 %v2, %want
  %ok2 = icmp sge i64 %d2, 0
  br i1 %ok2, label %done, label %yield
sleep:
  %s0 = atomicrmw add ptr %sleepers, i64 1 seq_cst
  %v3 = load atomic i64, ptr %flag seq_cst, align 8
  %d3 = sub i64 %v3, %want
  %ok3 = icmp sge i64 %d3, 0
  br i1 %ok3, label %woken, label %block
block:
  %low = and i64 %v3, 4294967295
  %syscall.p = getelementptr i8, ptr %team, i64 $TEAM_SYSCALL
  %syscall.f = load ptr, ptr %syscall.p
  %fr = call i64 (i64, ...) %syscall.f(i64 $FUTEX, ptr %flag, i64 $WAIT, i64 %low, ptr null)
  br label %woken
woken:
  %s1 = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  %v4 = load atomic i64, ptr %flag acquire, align 8
  %d4 = sub i64 %v4, %want
  %ok4 = icmp sge i64 %d4, 0
  br i1 %ok4, label %done, label %sleep
done:
  ret void
}
"""

_SIGNAL = """
; Sets *flag and wakes whoever sleeps on it. The exchange is a full fence, so a sleeper is seen or sees the new value.
define internal void @signal(ptr %team, ptr %flag, i64 %value, ptr %sleepers) nounwind alwaysinline {
entry:
  %old = atomicrmw xchg ptr %flag, i64 %value seq_cst
  %n = load atomic i64, ptr %sleepers seq_cst, align 8
  %some = icmp ne i64 %n, 0
  br i1 %some, label %wake, label %done
wake:
  %syscall.p = getelementptr i8, ptr %team, i64 $TEAM_SYSCALL
  %syscall.f = load ptr, ptr %syscall.p
  %r = call i64 (i64, ...) %syscall.f(i64 $FUTEX, ptr %flag, i64 $WAKE, i64 2147483647)
  br label %done
done:
  ret void
}
"""

_BARRIER = """
; Raises the flag of this thread to generation.
define internal void @arrive(ptr %team, i64 %thread, i64 %generation) nounwind {
  %line = mul i64 %thread, $LINE
  %offset = add i64 %line, $TEAM_FLAGS
  %flag = getelementptr i8, ptr %team, i64 %offset
  %sleepers = getelementptr i8, ptr %team, i64 $TEAM_SLEEPERS
  call void @signal(ptr %team, ptr %flag, i64 %generation, ptr %sleepers)
  ret void
}
; Waits until the flags of all threads have reached generation.
define internal void @await_all(ptr %team, i64 %threads, i64 %generation) nounwind {
entry:
  %sleepers = getelementptr i8, ptr %team, i64 $TEAM_SLEEPERS
  %flags = getelementptr i8, ptr %team, i64 $TEAM_FLAGS
  br label %loop
loop:
  %t = phi i64 [0, %entry], [%t1, %next]
  %line = mul i64 %t, $LINE
  %flag = getelementptr i8, ptr %flags, i64 %line
  %v = load atomic i64, ptr %flag acquire, align 8
  %d = sub i64 %v, %generation
  %ok = icmp sge i64 %d, 0
  br i1 %ok, label %next, label %slow
slow:
  call void @wait(ptr %team, ptr %flag, i64 %generation, ptr %sleepers)
  br label %next
next:
  %t1 = add i64 %t, 1
  %more = icmp ult i64 %t1, %threads
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""

_SYNC = """
; The barrier. Few threads watch each other's flags: one hop. Many threads would fetch each other's lines n*n times: thread 0 gathers and
; releases, two hops of n lines each.
define internal void @sync(ptr %team, i64 %thread, i64 %threads, i64 %generation) nounwind {
entry:
  call void @arrive(ptr %team, i64 %thread, i64 %generation)
  %few = icmp ule i64 %threads, $FEW
  %gathers = icmp eq i64 %thread, 0
  %watch = or i1 %few, %gathers
  br i1 %watch, label %gather, label %follow
gather:
  call void @await_all(ptr %team, i64 %threads, i64 %generation)
  br i1 %few, label %done, label %release
release:
  %word = getelementptr i8, ptr %team, i64 $TEAM_RELEASE
  %sleepers = getelementptr i8, ptr %team, i64 $TEAM_SLEEPERS
  call void @signal(ptr %team, ptr %word, i64 %generation, ptr %sleepers)
  ret void
follow:
  %word.f = getelementptr i8, ptr %team, i64 $TEAM_RELEASE
  %sleepers.f = getelementptr i8, ptr %team, i64 $TEAM_SLEEPERS
  call void @wait(ptr %team, ptr %word.f, i64 %generation, ptr %sleepers.f)
  ret void
done:
  ret void
}
"""

_TABLE = """
; Walks the table as thread of threads; returns the generation of the last barrier passed.
define internal i64 @walk(ptr %team, ptr %context, i64 %thread) nounwind noinline {
entry:
  %table = load ptr, ptr %context
  %first.p = getelementptr i8, ptr %context, i64 $CONTEXT_FIRST
  %first = load i64, ptr %first.p
  %last.p = getelementptr i8, ptr %context, i64 $CONTEXT_LAST
  %last = load i64, ptr %last.p
  %threads.p = getelementptr i8, ptr %context, i64 $CONTEXT_THREADS
  %threads = load i64, ptr %threads.p
  %scratch.p = getelementptr i8, ptr %context, i64 $CONTEXT_SCRATCH
  %scratch.0 = load ptr, ptr %scratch.p
  %stride.p = getelementptr i8, ptr %context, i64 $CONTEXT_STRIDE
  %stride = load i64, ptr %stride.p
  %mine = mul i64 %stride, %thread
  %scratch = getelementptr i8, ptr %scratch.0, i64 %mine
  %generation.p = getelementptr i8, ptr %context, i64 $CONTEXT_GENERATION
  %generation.0 = load i64, ptr %generation.p
  %any = icmp ult i64 %first, %last
  br i1 %any, label %loop, label %exit
loop:
  %c = phi i64 [%first, %entry], [%c1, %next]
  %generation = phi i64 [%generation.0, %entry], [%generation.2, %next]
  %co = mul i64 %c, $COMMAND
  %command = getelementptr i8, ptr %table, i64 %co
  %flags.p = getelementptr i8, ptr %command, i64 48
  %flags = load i32, ptr %flags.p
  %bit = and i32 %flags, 1
  %barrier = icmp ne i32 %bit, 0
  br i1 %barrier, label %sync, label %share
sync:
  %generation.1 = add i64 %generation, 1
  call void @sync(ptr %team, i64 %thread, i64 %threads, i64 %generation.1)
  br label %share
share:
  %generation.2 = phi i64 [%generation, %loop], [%generation.1, %sync]
  %participants.p = getelementptr i8, ptr %command, i64 52
  %participants.32 = load i32, ptr %participants.p
  %participants = zext i32 %participants.32 to i64
  %rotate.p = getelementptr i8, ptr %command, i64 56
  %rotate.32 = load i32, ptr %rotate.p
  %rotate = zext i32 %rotate.32 to i64
  %r0 = sub i64 %thread, %rotate
  %negative = icmp slt i64 %r0, 0
  %r1 = add i64 %r0, %threads
  %r = select i1 %negative, i64 %r1, i64 %r0
  %takes = icmp ult i64 %r, %participants
  br i1 %takes, label %cut, label %next
cut:
  %quotient.p = getelementptr i8, ptr %command, i64 32
  %quotient = load i64, ptr %quotient.p
  %remainder.p = getelementptr i8, ptr %command, i64 40
  %remainder = load i64, ptr %remainder.p
  %b0 = mul i64 %r, %quotient
  %early = icmp ult i64 %r, %remainder
  %shift = select i1 %early, i64 %r, i64 %remainder
  %begin = add i64 %b0, %shift
  %one = zext i1 %early to i64
  %e0 = add i64 %begin, %quotient
  %end = add i64 %e0, %one
  %some = icmp ult i64 %begin, %end
  br i1 %some, label %launch, label %next
launch:
  %kernel = load ptr, ptr %command
  %bindings.p = getelementptr i8, ptr %command, i64 8
  %bindings = load ptr, ptr %bindings.p
  %sizes.p = getelementptr i8, ptr %command, i64 16
  %sizes = load ptr, ptr %sizes.p
  call void %kernel(ptr %bindings, ptr %sizes, i64 %begin, i64 %end, ptr %scratch)
  br label %next
next:
  %c1 = add i64 %c, 1
  %more = icmp ult i64 %c1, %last
  br i1 %more, label %loop, label %exit
exit:
  %result = phi i64 [%generation.0, %entry], [%generation.2, %next]
  ret i64 %result
}
; The whole grids, in order, on the calling thread: no atomics.
define internal void @walk_alone(ptr %context) nounwind {
entry:
  %table = load ptr, ptr %context
  %first.p = getelementptr i8, ptr %context, i64 $CONTEXT_FIRST
  %first = load i64, ptr %first.p
  %last.p = getelementptr i8, ptr %context, i64 $CONTEXT_LAST
  %last = load i64, ptr %last.p
  %scratch.p = getelementptr i8, ptr %context, i64 $CONTEXT_SCRATCH
  %scratch = load ptr, ptr %scratch.p
  %any = icmp ult i64 %first, %last
  br i1 %any, label %loop, label %exit
loop:
  %c = phi i64 [%first, %entry], [%c1, %next]
  %co = mul i64 %c, $COMMAND
  %command = getelementptr i8, ptr %table, i64 %co
  %workgroups.p = getelementptr i8, ptr %command, i64 24
  %workgroups = load i64, ptr %workgroups.p
  %some = icmp sgt i64 %workgroups, 0
  br i1 %some, label %launch, label %next
launch:
  %kernel = load ptr, ptr %command
  %bindings.p = getelementptr i8, ptr %command, i64 8
  %bindings = load ptr, ptr %bindings.p
  %sizes.p = getelementptr i8, ptr %command, i64 16
  %sizes = load ptr, ptr %sizes.p
  call void %kernel(ptr %bindings, ptr %sizes, i64 0, i64 %workgroups, ptr %scratch)
  br label %next
next:
  %c1 = add i64 %c, 1
  %more = icmp ult i64 %c1, %last
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

_COPY = """
; Built-in kernel: bindings (source, target), sizes (bytes); a workgroup moves $CHUNK bytes.
define void @fuseline_copy(ptr %bindings, ptr %sizes, i64 %begin, i64 %end, ptr %scratch) nounwind {
entry:
  %source = load ptr, ptr %bindings
  %target.p = getelementptr i8, ptr %bindings, i64 8
  %target = load ptr, ptr %target.p
  %bytes = load i64, ptr %sizes
  %from = mul i64 %begin, $CHUNK
  %to.0 = mul i64 %end, $CHUNK
  %clip = icmp ult i64 %to.0, %bytes
  %to = select i1 %clip, i64 %to.0, i64 %bytes
  %length = sub i64 %to, %from
  %rest = and i64 %length, 63
  %whole = sub i64 %to, %rest
  br label %head
head:
  %i = phi i64 [%from, %entry], [%i1, %body]
  %more = icmp ult i64 %i, %whole
  br i1 %more, label %body, label %tail
body:
  %sp = getelementptr i8, ptr %source, i64 %i
  %v = load <64 x i8>, ptr %sp, align 1
  %tp = getelementptr i8, ptr %target, i64 %i
  store <64 x i8> %v, ptr %tp, align 1
  %i1 = add i64 %i, 64
  br label %head
tail:
  %j = phi i64 [%whole, %head], [%j1, %byte]
  %left = icmp ult i64 %j, %to
  br i1 %left, label %byte, label %exit
byte:
  %bp = getelementptr i8, ptr %source, i64 %j
  %b = load i8, ptr %bp
  %btp = getelementptr i8, ptr %target, i64 %j
  store i8 %b, ptr %btp
  %j1 = add i64 %j, 1
  br label %tail
exit:
  ret void
}
"""


_SIZES = """
; Built-in kernel: bindings (target of 64-bit integers); workgroup i writes size i.
define void @fuseline_sizes(ptr %bindings, ptr %sizes, i64 %begin, i64 %end, ptr %scratch) nounwind {
entry:
  %target = load ptr, ptr %bindings
  br label %head
head:
  %i = phi i64 [%begin, %entry], [%i1, %body]
  %more = icmp ult i64 %i, %end
  br i1 %more, label %body, label %exit
body:
  %sp = getelementptr i64, ptr %sizes, i64 %i
  %v = load i64, ptr %sp
  %tp = getelementptr i64, ptr %target, i64 %i
  store i64 %v, ptr %tp
  %i1 = add i64 %i, 1
  br label %head
exit:
  ret void
}
"""


def scheduler_text(triple: str) -> str:
    """The scheduler as LLVM text for `triple`; raises FuselineError (E0501) for a machine other than x86-64 and AArch64."""
    machine = triple.split("-")[0]
    words = _MACHINES.get(machine)
    if words is None:
        raise FuselineError("E0501", f"no scheduler for machine {machine!r}", hint=f"use one of {', '.join(_MACHINES)}")
    values = {"SPINS": SPINS, "FEW": FEW_THREADS, "CHUNK": COPY_WORKGROUP_BYTES, "WAIT": _FUTEX_WAIT_PRIVATE, "WAKE": _FUTEX_WAKE_PRIVATE}
    values |= {"LINE": abi.LINE_BYTES, "COMMAND": abi.COMMAND_BYTES, "PATCH": abi.PATCH_BYTES}
    values |= {name: value for name, value in vars(abi).items() if name.startswith(("TEAM_", "WORKER_", "CONTEXT_"))}
    text = f'target triple = "{triple}"\n{words["declare"]}\n' + _WAIT + _SIGNAL + _BARRIER + _SYNC + _TABLE + _RUN + _COPY + _SIZES
    text = text.replace("$PAUSE", words["pause"]).replace("$FUTEX", words["futex"])
    for name in sorted(values, key=len, reverse=True):
        text = text.replace(f"${name}", str(values[name]))
    return text


def scheduler_object(machine: Machine) -> bytes:
    """Object code of the scheduler (ELF, position-independent) for `machine`."""
    return compile_texts([scheduler_text(machine.triple)], machine)[0]
