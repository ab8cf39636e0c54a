"""Whether a result of a kernel may lie exactly where an operand does, which then is read no more: proved of every read
and write of the code, whichever family wrote it.

Let `x` be the operand and `y` the result. It may where for each read of `x` and each write of `y` that touch the same
element

    the read comes before the write, in one iteration of the loops around both, on one thread;

other iterations, and other threads, never touch what both do (`overlap.py`). So a residual that is read where the sum
is stored may give its place, and a row that is read as a whole before any of it is written; what neighbours read (a
window), what is read again later, and what is read at another place (transposed, repeated) may not.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import product

from fuseline.targets.cpu.kernel_ir.accesses import Access, accesses, in_order
from fuseline.targets.cpu.kernel_ir.iterations import IterationBounds
from fuseline.targets.cpu.kernel_ir.overlap import NEVER, OFTEN, ONCE, Overlap, Touched
from fuseline.targets.cpu.kernel_ir.types import BYTES, Kernel, Loop
from fuseline.targets.target import Refusal

Pair = tuple[int, int]
"""A result and an operand, by binding."""


def in_place(
    kernel: Kernel, pairs: Sequence[Pair], workgroups: int | None = None, sizes: Mapping[int, int] | None = None
) -> Mapping[Pair, Refusal | None]:
    """For each result and operand (by binding, of equally many elements) None where the one may take the other's place,
    else why not.

    `workgroups`: the most that the grid can have; `sizes`: by position those that every launch asked about passes.
    Codes: `element-width`, `gathered`, `unlike-places`, `read-later`.
    """
    wanted = {(y, True) for y, _ in pairs} | {(x, False) for _, x in pairs}
    known = IterationBounds(kernel, workgroups, sizes)
    found = [one for one in accesses(kernel) if (one.binding, one.written) in wanted and _happens(known, one)]
    overlap = Overlap(known, found)
    touched: dict[tuple[int, bool], list[Touched]] = {}
    for one in overlap.touched:
        touched.setdefault((one.access.binding, one.access.written), []).append(one)
    widths = {memory.position: BYTES[memory.dtype] for memory in kernel.bindings}
    return {
        (y, x): _element_width(widths, x, y) or _order(overlap, touched.get((x, False), ()), touched.get((y, True), ()))
        for y, x in pairs
    }


def _happens(known: IterationBounds, access: Access) -> bool:
    """Whether an access may be made at all."""
    return not any(isinstance(node, Loop) and known.never_runs(node) for node in access.nodes)


def _element_width(widths: Mapping[int, int], x: int, y: int) -> Refusal | None:
    """Of a binding that the kernel does not touch, nobody asks."""
    if x not in widths or y not in widths or widths[x] == widths[y]:
        return None
    return Refusal("element-width", f"elements of {widths[x]} bytes are read, of {widths[y]} bytes written")


def _order(overlap: Overlap, reads: Sequence[Touched], writes: Sequence[Touched]) -> Refusal | None:
    """Why elements may be read when they have been written."""
    if any(one.access.indexed for one in (*reads, *writes)):
        return Refusal("gathered", "elements are read or written where other data says")
    late = False
    for read, write, meeting in _meetings(overlap, reads, writes):
        if meeting == OFTEN:
            return Refusal("unlike-places", "an element is read in another iteration than it is written in")
        late = late or (meeting == ONCE and _is_late(overlap, read, write))
    return Refusal("read-later", "an element is read after it was written") if late else None


def _meetings(
    overlap: Overlap, reads: Sequence[Touched], writes: Sequence[Touched]
) -> Iterator[tuple[Touched, Touched, str]]:
    """The reads and writes that may touch the same element, and when."""
    for some, others in product(_alike(reads), _alike(writes)):
        meeting = overlap.of_all_alike(some[0], others[0])
        for read, write in product(some, others) if meeting != NEVER else ():
            yield read, write, meeting if meeting == ONCE else overlap.of_these_two(read, write)


def _alike(touched: Sequence[Touched]) -> Collection[Sequence[Touched]]:
    """What is touched by form and branch."""
    found: dict[tuple[int, int], list[Touched]] = {}
    for one in touched:
        found.setdefault((one.form, one.branch), []).append(one)
    return found.values()


def _is_late(overlap: Overlap, read: Touched, write: Touched) -> bool:
    """Whether an element may be read after it was written in one iteration, of places that may meet there."""
    if in_order(read.access, write.access) is not False or overlap.apart(read, write):
        return False
    return overlap.of_these_two(read, write) != NEVER
