"""What would have to change for a missed edge to fuse, by reason code; `docs/why-not.md` has more on each."""

from __future__ import annotations

ADVICE: dict[str, str] = {
    "arms-limit": "a concat of fewer parts, or a target that takes more arms",
    "binding-limit": "fewer operands and results in the group, or a target that binds more",
    "broadcast": "a consumer over the root's own space, or the producer read in place",
    "consumer-reduces": "a consumer that is all-parallel, or one that reduces along rows both share",
    "cycle": "the op on the path between them joining the group first",
    "forbidden": "the plan allowing this merge",
    "host-op": "a native lowering for the host operator, or another operator in the model",
    "indexing-map": "reads that map the root's parallel loops one to one",
    "multi-use": "one reader only, or a producer that is not stored for the others",
    "no-rule": "a rule about this pair of ops (--rules)",
    "parallelism": "fewer --threads, or more parallel iterations",
    "recompute": "a consumer that reads every element once",
    "reshape-between": "dimensions that need no regrouping between the two",
    "root-loops": "a root whose parallel loops can all stay parallel",
    "roots-limit": "a target that runs more roots in a dispatch",
    "scratch": "smaller upper bounds of symbolic sizes (--shape), or a target with more scratch",
    "strided-inner": "an inner loop over contiguous memory",
    "target": "a kernel family of the target that emits this group",
    "two-roots": "nothing short of one root fewer: a dispatch tiles the loops of one root",
    "unbounded-size": "an upper bound for the size (--shape name=1..512)",
    "unprofitable": "more bytes saved, or less work repeated",
}


def advice(code: str) -> str | None:
    """The advice for a reason code, None for one this version does not know."""
    return ADVICE.get(code)
