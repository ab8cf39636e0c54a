"""A model run node by node, with noise of a rounding or two on what each node reads and makes: how far results depend
on rounding.

This is Monte Carlo arithmetic: sums that cancel, ties, values next to a step of Floor or next to half an integer all
show as a spread of results.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ml_dtypes
import numpy as np
import onnx
from onnx import numpy_helper

from tests.fuzz.evaluate import NodeRunner, Rejected
from tests.fuzz.tensors import BF16, F16, F32, F64, STRING, Array, Value, is_float

EXACT = frozenset(
    "Abs And ArgMax ArgMin BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike Ceil Clip Compress Concat "
    "ConcatFromSequence Constant ConstantOfShape DepthToSpace Dropout Equal Expand EyeLike Flatten Floor Gather "
    "GatherElements GatherND "
    "GlobalMaxPool Greater GreaterOrEqual Hardmax Identity IsInf IsNaN LabelEncoder Less LessOrEqual Max MaxPool Min "
    "Neg NonZero Not "
    "OneHot Optional OptionalGetElement OptionalHasElement Or Pad QuantizeLinear Range ReduceMax ReduceMin Relu "
    "Reshape ReverseSequence "
    "Round SequenceAt SequenceConstruct SequenceErase SequenceInsert SequenceLength Shape Sign Size Slice "
    "SpaceToDepth Split "
    "SplitToSequence Squeeze StringConcat StringNormalizer StringSplit TopK Tile Transpose Trilu Unique Unsqueeze "
    "Where Xor".split()
)
"""Operators that round nothing: what they make is as exact as what they read. (A division stands in QuantizeLinear: see
DIVIDED.)"""

DIVIDED = frozenset({"QuantizeLinear"})
"""Operators whose float operands are divided before they are rounded to integers: their inputs are noisy, their outputs
are not."""

COMPOSITE = frozenset(
    """Acosh Asinh Atanh Celu Cosh Elu GRU Gelu If LSTM LogSoftmax Loop Mish RNN Scan Selu Sinh Softplus Swish
    Tan""".split()
)
"""Operators that subtract inside, where they are written out as others: results have an error relative to the operands,
or to 1."""

OF_ONE = frozenset({"Sigmoid"})
"""Operators with an error relative to 1: onnxruntime's sigmoid of a low number is 1 less that of its opposite in f64,
and 0 below -18 in f32."""

RESAMPLED = frozenset({"GridSample", "Resize", "Upsample"})
"""Operators that count places along a dimension, of which the fractions are weights: an error relative to the operands
times a size."""

SCALED = frozenset({"Resize", "Upsample"})
"""Operators whose operands after the first say what is done: noise would make them other operators."""

RANGED = frozenset({"DynamicQuantizeLinear"})
"""Operators that read the range of their operand: of noise that every element has for itself, the range of many takes
the largest, always."""

OF_A_GRID = frozenset({"DequantizeLinear"})
"""Operators whose result has few numbers, each of them often: what is equal rounds equally (as where a step of a
range divides it), or a range of many would be of the largest noise, always."""

SUMMED = frozenset(
    {
        "GlobalAveragePool",
        "ReduceL1",
        "ReduceL2",
        "ReduceLogSum",
        "ReduceLogSumExp",
        "ReduceMean",
        "ReduceSum",
        "ReduceSumSquare",
    }
)
"""Operators that add many numbers, one behind the other in peers: errors grow as the root of how many there are."""

MEANS = frozenset({"GlobalAveragePool", "ReduceMean"})
"""Those that divide by how many there are."""

LONG = 8.0
"""The root of how many terms a peer adds with one more rounding of its sum."""

DOMAIN = {"Acos": (-1.0, 1.0), "Acosh": (1.0, np.inf), "Asin": (-1.0, 1.0), "Atanh": (-1.0, 1.0)}
"""Where operators are defined that end at a number other than 0: rounding takes no operand out of it."""

RANGE = {
    "Cos": (-1.0, 1.0),
    "Erf": (-1.0, 1.0),
    "HardSigmoid": (0.0, 1.0),
    "Sigmoid": (0.0, 1.0),
    "Sin": (-1.0, 1.0),
    "Softmax": (0.0, 1.0),
    "Tanh": (-1.0, 1.0),
}
"""What operators answer, however they round: `Asin` of a `Sigmoid` is a number in any program."""

PLACES = 8.0
"""A usual size of dimensions here."""

FILTERED = ("Conv", "ConvTranspose")
"""Operators that minimal filters may compute, in f32."""

FILTER_ERROR = 16.0
"""How much larger an error a program may choose for them (docs/numerics.md): in roundings of what they sum up."""

EPSILON = {F64: 2.0**-50, F32: 2.0**-22, F16: 2.0**-10, BF16: 2.0**-7}
"""Relative noise: about two roundings."""


class Stepper:
    """Runs a model node by node; `by_reference` says whether ONNX's reference had to run any of them."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self.model = model
        self.weights = {weight.name: _array(weight) for weight in model.graph.initializer}
        self.runners: dict[int, tuple[NodeRunner, list[str]]] = {}

    @property
    def by_reference(self) -> bool:
        """Whether a node ran on ONNX's reference, which is slower and less tried than onnxruntime."""
        return any(runner.by_reference for runner, _ in self.runners.values())

    def run(
        self,
        feeds: Mapping[str, Array],
        rng: np.random.Generator | None = None,
        scale: float = 1.0,
        *,
        filtered: bool = False,
    ) -> dict[str, Any]:
        """All values by name; with noise where `rng` is given, and that of minimal filters where `filtered`. Raises
        Rejected for a node that cannot be run."""
        values: dict[str, Any] = {**self.weights, **feeds}
        for index, node in enumerate(self.model.graph.node):
            names = [name for name in dict.fromkeys(reads(node)) if name in values]
            noisy = rng is not None and node.op_type not in EXACT
            given = [values[name] for name in names]
            if rng is not None and node.op_type in RANGED and rng.random() < 0.5:  # together, or each on its own
                given = [_moved(array, rng, scale) for array in given]
            elif rng is not None and (noisy or node.op_type in DIVIDED):
                given = [_noisy_operand(node.op_type, at, array, rng, scale) for at, array in enumerate(given)]
            results = self._runner(index, node, names, given).run(given)
            for name, result in zip([name for name in node.output if name], results, strict=True):
                rounded = noisy or _narrows(node, given, result)
                if rng is not None and rounded:
                    size = (
                        _size(node, given)
                        + _sum_size(node, given, result)
                        + (_filter_size(node, given) if filtered else 0.0)
                    )
                    noisy_result = _noisy(result, rng, scale, size, alike=node.op_type in OF_A_GRID)
                    if rng.random() < 0.25:
                        noisy_result = _without_residues(noisy_result)
                    result = _kept(noisy_result, result, RANGE.get(node.op_type))
                values[name] = result
        return values

    def _runner(self, index: int, node: onnx.NodeProto, names: list[str], given: list[Any]) -> NodeRunner:
        """Made when the node is first run, from the types that it meets; weights that must be known stay weights."""
        if index not in self.runners:
            inputs = [_value(name, array) for name, array in zip(names, given, strict=True)]
            self.runners[index] = (NodeRunner(node, inputs, self.model.opset_import), names)
        return self.runners[index][0]


def _value(name: str, array: Any) -> Value:
    if isinstance(array, list):
        return Value(name, array[0].dtype if array else F32, (array,), kind="seq")
    if array is None:
        return Value(name, F32, (array,), kind="optional")
    return Value(name, array.dtype, (array,))


def _array(weight: onnx.TensorProto) -> Array:
    if weight.data_type == onnx.TensorProto.STRING:
        return np.array([item.decode() for item in weight.string_data], object).reshape(tuple(weight.dims))
    return numpy_helper.to_array(weight)


def reads(node: onnx.NodeProto) -> list[str]:
    """The names that a node reads, those of its subgraphs included."""
    found = [name for name in node.input if name]
    for attribute in node.attribute:
        if attribute.HasField("g"):
            found += [name for child in attribute.g.node for name in reads(child)]
    return found


def _size(node: onnx.NodeProto, given: list[Any]) -> float:
    """How large an error inside a composite operator is, in roundings of 1; 0 for others."""
    if node.op_type in OF_ONE:
        return 1.0
    if node.op_type not in COMPOSITE | RESAMPLED:
        return 0.0
    floats = [array.astype(np.float64) for array in given if isinstance(array, np.ndarray) and is_float(array.dtype)]
    with np.errstate(all="ignore"):
        largest = max(
            (float(np.nan_to_num(np.max(np.abs(array), initial=0.0), nan=1.0, posinf=1.0)) for array in floats),
            default=0.0,
        )
    return (largest + 1.0) * (PLACES if node.op_type in RESAMPLED else 1.0)


def _sum_size(node: onnx.NodeProto, given: list[Any], result: Any) -> float:
    """How large an error a long sum makes, in roundings of 1; 0 for other operators. It is relative to what the terms
    come to if none cancel."""
    if node.op_type not in SUMMED or not is_float(result.dtype) or not result.size:
        return 0.0
    terms = np.abs(given[0].astype(np.float64))
    count, largest = terms.size / result.size, np.max(np.abs(result.astype(np.float64)), initial=0.0)
    usual = np.mean(terms) * (1.0 if node.op_type in MEANS else count)
    return float(np.nan_to_num(2 * max(largest, usual) * count**0.5 / LONG, posinf=0.0))


def _filter_size(node: onnx.NodeProto, given: list[Any]) -> float:
    """How large an error a minimal filter makes in a convolution in f32, in roundings of 1; 0 for others.

    It is relative to what the products sum up to if none cancel: a pixel times the norm of what it meets.
    """
    if node.op_type not in FILTERED or given[0].dtype != F32:
        return 0.0
    pixels, weights = (np.abs(array.astype(np.float64)) for array in given[:2])
    others = [axis for axis in range(weights.ndim) if axis != (0 if node.op_type == "Conv" else 1)]
    norm = np.max(np.sqrt(np.sum(weights * weights, tuple(others))), initial=0.0)
    return float(np.nan_to_num(FILTER_ERROR / 2 * np.max(pixels, initial=0.0) * norm, posinf=0.0))


def _narrows(node: onnx.NodeProto, given: list[Any], result: Any) -> bool:
    """Whether a cast has fewer digits to write than it read: a program in wider numbers keeps them."""
    if node.op_type not in ("Cast", "CastLike") or not (is_float(given[0].dtype) and is_float(result.dtype)):
        return False
    return EPSILON[result.dtype] > EPSILON[given[0].dtype]


def _without_residues(array: Any) -> Any:
    """0 for what is a rounding of the largest number or less: a sum that cancels is 0 in one order or width, and what
    its roundings leave in another."""
    if not isinstance(array, np.ndarray) or array.dtype == STRING or not is_float(array.dtype) or not array.size:
        return array
    wide = np.abs(array.astype(np.float64))
    largest = float(np.max(wide, where=np.isfinite(wide), initial=0.0))
    return np.where(wide <= EPSILON[array.dtype] * largest, np.zeros_like(array), array)


def _moved(array: Array, rng: np.random.Generator, scale: float) -> Array:
    """All elements with the same noise, relative to the largest."""
    largest = np.max(np.abs(array.astype(np.float64)), initial=0.0)
    return np.asarray(array + scale * EPSILON[array.dtype] * rng.uniform(-1, 1) * largest).astype(array.dtype)


def _noisy(array: Any, rng: np.random.Generator, scale: float, size: float = 0.0, *, alike: bool = False) -> Any:
    if not isinstance(array, np.ndarray) or array.dtype == STRING or not is_float(array.dtype) or not array.size:
        return array
    wide = array.astype(np.float64)
    with np.errstate(all="ignore"):
        noise = scale * EPSILON[array.dtype] * _uniform(rng, wide, alike)
        return np.asarray(wide + noise * (_rounded_at(wide, array.dtype) + size / 2)).astype(array.dtype)


def _uniform(rng: np.random.Generator, array: Array, alike: bool) -> Array:
    """A number from -1 to 1 per element; `alike`: equal ones have one."""
    if not alike:
        return rng.uniform(-1, 1, array.shape)
    numbers, places = np.unique(array, return_inverse=True)
    return rng.uniform(-1, 1, numbers.size)[places].reshape(array.shape)


def _rounded_at(wide: Array, dtype: np.dtype[Any]) -> Array:
    """How large a number is whose rounding a program makes here, per element: that of the smallest normal number for
    subnormal ones, which have fewer digits; 0 stays 0."""
    return np.where(wide == 0, 0.0, np.maximum(np.abs(wide), float(ml_dtypes.finfo(dtype).smallest_normal)))


def _noisy_operand(op_type: str, at: int, array: Any, rng: np.random.Generator, scale: float) -> Any:
    """Operand number `at`: what says which operator it is, and what it is defined for, stays."""
    if at and op_type in SCALED:
        return array
    noisy = _noisy(array, rng, scale, alike=op_type in RANGED)
    if at and op_type == "Pow" and noisy is not array:
        return np.where(array == np.round(array), array, noisy)  # of negative numbers there are whole powers only
    return _kept(noisy, array, DOMAIN.get(op_type))


def _kept(noisy: Any, exact: Any, limits: tuple[float, float] | None) -> Any:
    """`noisy`, within `limits` where `exact` is."""
    if limits is None or noisy is exact:
        return noisy
    low, high = limits
    inside = (exact >= low) & (exact <= high)
    return np.where(inside, np.clip(noisy, low, high), noisy).astype(noisy.dtype)


__all__ = ["EXACT", "Rejected", "Stepper", "reads"]
