"""Memory layouts shared by the native scheduler (written by `targets/cpu/link/scheduler.py`) and the Python runtime.

All structures are little-endian with natural alignment. A change here changes what saved artifacts mean: raise
`FORMAT_VERSION`.

Run context (one per shape-instantiated program), bytes:

    0 rows*   8 first   16 last   24 threads   32 scratch*   40 scratch stride   48 generation
    56 patches*   64 patch count   72 segments*   80 ranges*   88 ranges stride   96 most moves of a row

Row (`ROW_BYTES` bytes), one for each arm of each command: kernel*, bindings*, sizes*, workgroups, flags, moves*, move
count, scratch* (0: that of the context), scratch stride. Flag bit 0: a barrier stands before the row. A run on one
thread takes whole grids; with more, thread `t` runs the workgroups from `begin` up to `end` of row `r`, two words
(`RANGE_BYTES`) at `ranges + t * ranges stride + r * RANGE_BYTES`.

A row with flag bit 1 launches nothing: the `sizes` (a number) rows behind it are run `workgroups` times. Those have
moves in place of bindings (else moves* is 0): base*, special*, at, stride, mask. In iteration `i` the binding is
`special` where `i` is `at`, else `base + (i & mask) * stride`: a mask of -1 moves on, one of 1 alternates between two
places, and an `at` of -1 stands for no iteration.

Team: places* is an array of `place count` words, by processor number: the place (core or processor) that a worker must
not share with the caller. Each worker's line holds its own place.

Patch: slot*, segment, offset: before a run `*slot = segments[segment] + offset` (the caller's inputs and outputs move
from run to run).
"""

from __future__ import annotations

FORMAT_VERSION = 12
"""Version of the artifact file and of every layout in this module. Who raises it stores a file of the new one for
docs/deploy.md's promise: `python -m tests.unit.runtime.stored.write`."""

ALIGNMENT = 64
"""Alignment of every tensor a kernel sees, bytes: one cache line and one AVX-512 vector."""

ROW_BYTES = 72
ROW_KERNEL, ROW_BINDINGS, ROW_SIZES, ROW_WORKGROUPS, ROW_FLAGS, ROW_MOVES, ROW_MOVE_COUNT = 0, 8, 16, 24, 32, 40, 48
ROW_SCRATCH, ROW_SCRATCH_STRIDE = 56, 64
RANGE_BYTES = 16
RANGE_BEGIN, RANGE_END = 0, 8
MOVE_BYTES = 40
MOVE_BASE, MOVE_SPECIAL, MOVE_AT, MOVE_STRIDE, MOVE_MASK = 0, 8, 16, 24, 32
FLAG_BARRIER, FLAG_LOOP = 1, 2

CONTEXT_BYTES = 128
CONTEXT_ROWS, CONTEXT_FIRST, CONTEXT_LAST, CONTEXT_THREADS = 0, 8, 16, 24
CONTEXT_SCRATCH, CONTEXT_STRIDE, CONTEXT_GENERATION = 32, 40, 48
CONTEXT_PATCHES, CONTEXT_PATCH_COUNT, CONTEXT_SEGMENTS = 56, 64, 72
CONTEXT_RANGES, CONTEXT_RANGES_STRIDE, CONTEXT_MOST_MOVES = 80, 88, 96

PATCH_BYTES = 24
PATCH_SLOT, PATCH_SEGMENT, PATCH_OFFSET = 0, 8, 16

MAX_THREADS = 256
"""Most threads one run may use."""

LINE_BYTES = 128
"""Distance of words that different threads write: two cache lines, since adjacent lines are prefetched in pairs."""

TEAM_GENERATION, TEAM_PAUSES, TEAM_YIELDS = 0, 8, 16
TEAM_SYSCALL, TEAM_YIELD, TEAM_GETCPU, TEAM_WORKERS = 24, 32, 40, 48
TEAM_PLACES, TEAM_PLACE_COUNT = 56, 64
TEAM_SLEEPERS = 128
TEAM_RELEASE = 256
TEAM_FLAGS = 384
TEAM_LINES = TEAM_FLAGS + MAX_THREADS * LINE_BYTES
TEAM_BYTES = TEAM_LINES + (MAX_THREADS + 1) * LINE_BYTES

WORKER_GO, WORKER_CONTEXT, WORKER_THREAD, WORKER_SLEEPING, WORKER_PLACE, WORKER_TEAM = 0, 8, 16, 24, 32, 40
