"""What random graphs leave out because peers differ there, or because nothing says what is right. docs/numerics.md has
the same list."""

from __future__ import annotations

from tests.fuzz.evaluate import Rejected

EXCLUSIONS = {
    "automatic-pads-of-a-sparse-transpose": (
        "`ConvTranspose` with `auto_pad` whose stride exceeds its window: onnxruntime leaves out the last zeros."
    ),
    "automatic-pads-of-sparse-windows": "Windows with `SAME` padding that leave out two or more places between them, "
    "except in `ConvTranspose`: "
    "onnxruntime cuts places off the image (`Conv`, `LpPool`, `AveragePool` from operator set 19 on) or refuses; "
    "fuseline pads nothing, as "
    "TensorFlow, whose padding it is.",
    "division-by-0-or-minus-1": "`Div` and `Mod` of integers by 0 or -1: a division by 0 is not defined, and "
    "onnxruntime dies of it, as it "
    "does where the lowest number is divided by -1.",
    "doubles-without-a-kernel": (
        "Operators that onnxruntime does not have in f64 (`Erf`, `LRN`, ..): the reference "
        "computes some of them in f32."
    ),
    "gelu-of-doubles": "`Gelu` in f64: peers have its constants in f32.",
    "group-norm-of-doubles": "`GroupNormalization` in f64: peers round its statistics to f32, which is what "
    "`stash_type` says by default; fuseline "
    "keeps them in f64.",
    "hard-swish-of-doubles": "`HardSwish` in f64: peers multiply by the f32 next to a sixth.",
    "infinity-clipped-by-nothing": (
        "`Clip` of infinities without one of its bounds: onnxruntime makes the largest finite number of them."
    ),
    "instance-norm-of-nothing": "`InstanceNormalization` over no element: onnxruntime dies of it in f16.",
    "instance-norm-of-one-element": (
        "`InstanceNormalization` over one element: the answer is the bias; onnxruntime takes `x * s` away from the "
        "bias and adds it again, which costs the digits of `x * s`."
    ),
    "integers-shrunk-in-floats": "`Shrink` of integers by fractions, or beyond 2^24: onnxruntime computes it in f32, "
    "the standard's function in "
    "integers.",
    "mean-variance-of-nearly-equal-numbers": (
        "`MeanVarianceNormalization` of a standard deviation below 0.01: the standard adds 1e-9 to it, onnxruntime "
        "nothing."
    ),
    "not-finite-in-a-sum": "Infinities, NaN and huge numbers in operators that add or multiply many numbers: the "
    "exceptions above. Elementwise "
    "operators, casts, shapes and movement get them.",
    "outside-of-uint32": "`Cast` of infinities, NaN and numbers outside of -2^31 to 2^32 to uint32: nothing says what "
    "they are; onnxruntime makes 0, 2^31, 2^32 - 1 or their low bits of them, by type and by where in the tensor they "
    "stand.",
    "period-beyond-the-digits": "`Sin`, `Cos`, `Tan` and `Mod` of numbers so large that their neighbours are a good "
    "part of a period apart: the last digit of what made them decides.",
    "recurrence-of-no-step": "Recurrent layers over no step: onnxruntime's last state is 0, not the initial one.",
    "reduction-of-nothing": (
        "Reductions of a tensor without elements: a mean is 0 in onnxruntime and NaN in the reference."
    ),
    "resize-to-a-part-of-a-pixel": "`Resize` by a factor that gives no whole number of pixels: peers count places in "
    "the rounded or in the exact "
    "size.",
    "response-norm-of-unlike-channels": (
        "`LRN` of numbers whose squares are large beside `bias`: onnxruntime keeps one sum from channel to channel, "
        "adds what comes and takes away what goes, and with it the digits of small neighbours."
    ),
    "shrink-of-doubles": "`Shrink` in f64: onnxruntime computes it in f32.",
    "sign-of-a-half-that-is-nan": "`Sign` of NaN in f16: onnxruntime answers 0, and NaN in f32.",
    "smaller-than-normal": "Products, quotients, powers and exponentials below the normal numbers of their type: "
    "whether the result is 0, and so its sign, depends on the type.",
    "sum-out-of-range": (
        "Sums and products of integers that leave their type: onnxruntime saturates, fuseline wraps "
        "as the reference does."
    ),
    "top-k-in-any-order": "`TopK` with `sorted = 0`: any order is right.",
    "window-beyond-image": (
        "Windows larger than the padded image: onnxruntime refuses some of them and makes nothing of others."
    ),
    "window-of-padding": "Pools whose padding is as wide as their window: onnxruntime refuses them.",
    "written-twice": (
        "`ScatterElements` and `ScatterND` that write a place twice without a reduction: either value is right."
    ),
}
"""By name, with the reason."""


def exclude(name: str, excluded: bool = True) -> None:
    """Raises Rejected for a choice that an exclusion forbids; KeyError for a name that is none."""
    reason = EXCLUSIONS[name]
    if excluded:
        raise Rejected(f"{name}: {reason}")
