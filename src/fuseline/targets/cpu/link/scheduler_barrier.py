"""How the scheduler's threads wait for each other, as LLVM text: `wait`, `signal`, and the barrier `sync` made of them.

One flag per thread on a line of its own, no read-modify-write; who waits spins shortly, pauses, yields, then sleeps in
a futex. `$NAME` stands for a number of `VALUES`, of `fuseline.runtime.abi`, or of the machine;
`targets/cpu/link/scheduler.py` puts them in.
"""

from __future__ import annotations

SPINS = 64
"""Loads before the first pause: covers threads that arrive within about 50 ns of each other."""

FEW_THREADS = 4
"""Up to this many threads the barrier is all-to-all."""

_FUTEX_WAIT_PRIVATE, _FUTEX_WAKE_PRIVATE = 128, 129

VALUES = {"SPINS": SPINS, "FEW": FEW_THREADS, "WAIT": _FUTEX_WAIT_PRIVATE, "WAKE": _FUTEX_WAKE_PRIVATE}

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
; The barrier. Few threads watch each other's flags: one hop. Many threads would fetch each other's lines n*n times:
; thread 0 gathers and releases, two hops of n lines each.
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


BARRIER_TEXT = _WAIT + _SIGNAL + _BARRIER + _SYNC
