"""What to do about a missed edge, by reason code; `docs/why-not.md` has more on each."""

from __future__ import annotations

ADVICE: dict[str, str] = {
    "arms-limit": "split the concat into smaller ones in the model, or compile for a target that takes more arms",
    "binding-limit": (
        "forbid part of the group in a plan so that fewer buffers meet, or compile for a target that binds more"
    ),
    "broadcast": "expand the small operand after the elementwise op in the model, so that both run over one space",
    "code-limit": (
        "nothing is lost but a store and a load; fewer slices and concats of the same values in the model "
        "would be less code"
    ),
    "consumer-reduces": (
        "let the consumer reduce along rows that both share (as softmax and norms do), or put it "
        "behind an elementwise op"
    ),
    "cycle": "fuse the op between them first: `explain` it against either end, or force all three together in a plan",
    "few-steps": "nothing is lost but a second read of the argument; reduce along the same loops if the model can",
    "forbidden": "take the pair out of `forbid`, or put both into one group of the plan",
    "host-op": "replace the operator in the model by ones that are lowered natively; `stats` names it under host ops",
    "indexing-map": (
        "move the transpose, stride or window between them away in the model, so that loops meet one to one"
    ),
    "loop": "nothing: what a loop computes in each step is fused with the rest of the step",
    "multi-use": "give the other readers a producer of their own in the model (duplicate the op), if it is cheap",
    "no-rule": (
        "write a rule about such a pair and give it with --rules (docs/map.md), or nothing: most such pairs "
        "share no loops"
    ),
    "out-of-fuel": "compile without --fuel, which is for finding a decision that does harm (docs/checking.md)",
    "parallelism": (
        "compile for fewer --threads, or force them together in a plan if the measured time is better "
        "(bench --per-dispatch)"
    ),
    "qdq-axis": "quantise with one scale, or one for each output channel, and pad or reshape other dimensions",
    "qdq-groups": "wider groups in the model would be multiplied as integers",
    "qdq-host": "give the node a type and block size that are lowered natively; the detail says what it has",
    "qdq-no-consumer": (
        "put the node beside an op that is computed (a product, elementwise arithmetic), on one side of moves"
    ),
    "qdq-one-side": (
        "quantise the other operand, too; a constant weight of a matrix product stays in 8 bits without that, unless "
        "--numerics strict"
    ),
    "qdq-overflow": "bound the length of the sum (--shape), or quantise to fewer bits",
    "qdq-scale": "give the scale as an f32 tensor or constant",
    "qdq-start": "add the start of the sum (a bias) behind the product",
    "qdq-type": "quantise to 8 bits: the kernels that multiply integers read no others",
    "recompute": (
        "let one reader take each element once, or store the value: it is cheaper unless the arithmetic is trivial"
    ),
    "region": "form the regions in one run, or leave out the earlier one: `opt -p` says which runs there are",
    "reshape-between": (
        "reshape elsewhere in the model (before the producer or after the consumer), so that dimensions stay apart"
    ),
    "roots-limit": "compile for a target that runs more roots in a dispatch, or group fewer of them in a plan",
    "scratch": "bound symbolic sizes tighter (--shape seq=1..128), or compile for a target with more scratch",
    "strided-inner": "put the reduced dimension last in the model (a transpose before it), so that rows are contiguous",
    "target": "compile for another target; the detail says what this one lacks",
    "two-roots": (
        "nothing in general: the two tile different loops. A reduction or elementwise op over shared rows "
        "can follow a root"
    ),
    "unbounded-size": "bound the size: --shape name=1..512",
    "unprofitable": (
        "--fusion aggressive accepts more, and `force` in a plan anything legal; compare with bench --per-dispatch"
    ),
    "walk": "nothing: a scatter takes elementwise ops before it and point by point behind it, a rank nothing",
}


def advice(code: str) -> str | None:
    """The advice for a reason code, None for one this version does not know."""
    return ADVICE.get(code)
