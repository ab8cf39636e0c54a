"""What is computed while a model is read: every folder against onnxruntime, on numbers of all types, wrapping, dividing
and comparing as they may.

Values are few and extreme, so that overflow, signs, zeros and not-a-numbers meet often.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx import helper

from fuseline.errors import FuselineError
from tests.conformance.generated_calls import difference
from tests.conformance.node_cases import interpreted
from tests.one_node import by_onnxruntime, feeds_of, one_node

Array = NDArray[Any]
EXAMPLES = 25
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64", "float16")
SPECIAL = (0.0, -0.0, 0.5, -0.5, 1.0, -1.5, 2.5, -7.0, 1e30, float("inf"), float("-inf"), float("nan"))


@st.composite
def arrays(draw: st.DrawFn, dtype: str, shape: tuple[int, ...] | None = None) -> Array:
    """A small array of extreme values."""
    sizes = shape if shape is not None else tuple(draw(st.lists(st.integers(1, 3), max_size=3)))
    kind, count = np.dtype(dtype), int(np.prod(sizes))
    if kind.kind == "b":
        items: list[Any] = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    elif kind.kind in "iu":
        limits = np.iinfo(kind)
        number = st.one_of(
            st.integers(max(limits.min, -9), 9),
            st.sampled_from([int(limits.min), int(limits.max), int(limits.max) - 1]),
        )
        items = draw(st.lists(number, min_size=count, max_size=count))
    else:
        items = draw(st.lists(st.sampled_from(SPECIAL), min_size=count, max_size=count))
    with np.errstate(all="ignore"):
        return np.array(items, kind).reshape(sizes)


def _check(
    op_type: str, inputs: list[Array], attributes: dict[str, Any] | None = None, opset: int = 18, outputs: int = 1
) -> None:
    """Folded, and fed to onnxruntime: the same, unless onnxruntime has no kernel; where it refuses the values, nothing
    raw may escape here."""
    fed = one_node(op_type, inputs, attributes, opset=opset, outputs=outputs)
    held = one_node(op_type, inputs, attributes, opset=opset, outputs=outputs, constants=range(len(inputs)))
    try:
        wanted = by_onnxruntime(fed, feeds_of(inputs))
    except Exception as error:  # onnxruntime makes its exceptions as it goes
        if "onnxruntime" not in type(error).__module__:
            raise
        wanted = None
    try:
        found = interpreted(held, [])[0][0]
    except FuselineError:
        assert wanted is None
        return
    if wanted is not None:
        text = difference(wanted, list(found))
        assert text is None, f"{op_type} {inputs} {attributes}: {text}"


BINARY = st.sampled_from(
    ["Add", "Sub", "Mul", "Min", "Max", "Equal", "Less", "LessOrEqual", "Greater", "GreaterOrEqual"]
)


@given(st.data(), BINARY, st.sampled_from(INTEGERS + FLOATS))
@settings(max_examples=4 * EXAMPLES, deadline=None, derandomize=True)
def test_arithmetic_and_comparison(data: st.DataObject, op_type: str, dtype: str) -> None:
    shape = data.draw(st.sampled_from([(), (3,), (2, 3)]))
    _check(op_type, [data.draw(arrays(dtype, shape)), data.draw(arrays(dtype, shape[-1:]))])


@given(st.data(), st.sampled_from(["Div", "Mod"]), st.sampled_from(INTEGERS + FLOATS), st.booleans())
@settings(max_examples=3 * EXAMPLES, deadline=None, derandomize=True)
def test_division(data: st.DataObject, op_type: str, dtype: str, fmod: bool) -> None:
    """The lowest integer divided by -1 and division by 0 are undefined."""
    x, y = data.draw(arrays(dtype, (4,))), data.draw(arrays(dtype, (4,)))
    if np.dtype(dtype).kind in "iu":
        y = np.where((y == 0) | (y.astype(np.float64) == -1), 3, y).astype(dtype)
    fmod = fmod or np.dtype(dtype).kind == "f"
    _check(op_type, [x, y], {"fmod": 1} if fmod and op_type == "Mod" else None)


@given(
    st.data(),
    st.sampled_from(["Neg", "Abs", "Sqrt", "Reciprocal", "Floor", "Ceil", "Identity"]),
    st.sampled_from(INTEGERS + FLOATS),
)
@settings(max_examples=2 * EXAMPLES, deadline=None, derandomize=True)
def test_one_operand(data: st.DataObject, op_type: str, dtype: str) -> None:
    _check(op_type, [data.draw(arrays(dtype))])


@given(st.data(), st.sampled_from((*INTEGERS, *FLOATS, "bool")), st.sampled_from((*INTEGERS, *FLOATS, "bool")))
@settings(max_examples=3 * EXAMPLES, deadline=None, derandomize=True)
def test_casts(data: st.DataObject, source: str, target: str) -> None:
    """Floats outside an integer's range, and those that are no numbers, convert to anything."""
    x = data.draw(arrays(source))
    if np.dtype(source).kind == "f" and np.dtype(target).kind in "iu":
        limits = np.iinfo(target)
        wide = x.astype(np.float64)
        x = np.where(np.isfinite(wide) & (wide >= limits.min) & (wide <= limits.max), x, np.array(2.5, source))
    _check("Cast", [x], {"to": helper.np_dtype_to_tensor_dtype(np.dtype(target))})


@given(st.data(), st.sampled_from(("int64", "float32", "uint8", "bool")))
@settings(max_examples=EXAMPLES, deadline=None, derandomize=True)
def test_choices(data: st.DataObject, dtype: str) -> None:
    x, y = data.draw(arrays(dtype, (2, 3))), data.draw(arrays(dtype, (3,)))
    _check("Where", [data.draw(arrays("bool", (2, 1))), x, y])


@given(st.data(), st.sampled_from(["And", "Or"]))
@settings(max_examples=EXAMPLES // 3, deadline=None, derandomize=True)
def test_logic(data: st.DataObject, op_type: str) -> None:
    x, y = data.draw(arrays("bool", (2, 3))), data.draw(arrays("bool", (3,)))
    _check(op_type, [x, y])
    _check("Not", [x])


@given(st.data(), st.sampled_from(("int32", "int64", "float32", "float64")))
@settings(max_examples=2 * EXAMPLES, deadline=None, derandomize=True)
def test_ranges(data: st.DataObject, dtype: str) -> None:
    small = (
        st.integers(-9, 9)
        if dtype.startswith("int")
        else st.sampled_from([-3.3, -1.0, -0.1, 0.0, 0.1, 0.3, 0.7, 1.0, 2.5, 9.9])
    )
    start, limit, step = (np.array(data.draw(small), dtype) for _ in range(3))
    _check("Range", [start, limit, step if step else np.array(1, dtype)], opset=11)


@given(st.data())
@settings(max_examples=3 * EXAMPLES, deadline=None, derandomize=True)
def test_slices(data: st.DataObject) -> None:
    x = data.draw(arrays("int64", (4, 3)))
    axes = data.draw(st.permutations([0, 1, -1, -2]))[:1]
    bound = st.one_of(st.integers(-7, 7), st.sampled_from([-(2**63), 2**63 - 1, 2**31 - 1]))
    step = data.draw(st.sampled_from([1, 2, 3, -1, -2]))
    end = data.draw(bound.filter(lambda value: step > 0 or value < 2**31 - 1))
    _check("Slice", [x, *(np.array([v]) for v in (data.draw(bound), end, axes[0], step))])


@given(st.data())
@settings(max_examples=2 * EXAMPLES, deadline=None, derandomize=True)
def test_movement(data: st.DataObject) -> None:
    x = data.draw(arrays("int64", (2, 1, 3)))
    op_type, rest, attributes = data.draw(
        st.sampled_from(
            [
                ("Gather", [np.array([-3, 2, 0])], {"axis": 2}),
                ("Gather", [np.array(-1)], {"axis": -3}),
                ("Squeeze", [np.array([-2])], None),
                ("Squeeze", [], None),
                ("Unsqueeze", [np.array([-1, 0])], None),
                ("Unsqueeze", [np.array([3, 1])], None),
                ("Reshape", [np.array([0, -1])], None),
                ("Reshape", [np.array([3, 0, 2])], None),
                ("Reshape", [np.array([-1])], None),
                ("Expand", [np.array([2, 4, 1])], None),
                ("Expand", [np.array([2, 1, 1, 1])], None),
                ("Transpose", [], {"perm": [2, 0, 1]}),
                ("Transpose", [], None),
                ("Shape", [], {"start": -5, "end": -1}),
                ("Shape", [], {"start": 2, "end": 1}),
                ("Size", [], None),
            ]
        )
    )
    _check(op_type, [x, *rest], attributes)


@given(st.lists(st.integers(-99, 99), min_size=1, max_size=4), st.booleans())
@settings(max_examples=EXAMPLES // 3, deadline=None, derandomize=True)
def test_products(items: list[int], keep: bool) -> None:
    """Those that fit: onnxruntime cuts others off."""
    _check("ReduceProd", [np.array(items), np.array([-1])], {"keepdims": int(keep)})


@given(st.data(), st.integers(-3, 2))
@settings(max_examples=EXAMPLES // 2, deadline=None, derandomize=True)
def test_concatenation(data: st.DataObject, axis: int) -> None:
    _check(
        "Concat", [data.draw(arrays("int32", (2, 1, 3))) for _ in range(data.draw(st.integers(1, 3)))], {"axis": axis}
    )


WRONG = [
    ("Gather", [np.arange(3), np.array([5])], {}),
    ("Reshape", [np.arange(6), np.array([4, -1])], {}),
    ("Reshape", [np.arange(6), np.array([-1, -1])], {}),
    ("Squeeze", [np.arange(6), np.array([0])], {}),
    ("Expand", [np.arange(3), np.array([4])], {}),
    ("ConstantOfShape", [np.array([-1])], {}),
    ("Range", [np.array(0), np.array(4), np.array(0)], {}),
    ("Concat", [np.zeros((2, 3)), np.zeros((3, 3))], {"axis": 1}),
    ("Transpose", [np.zeros((2, 3))], {"perm": [0, 0]}),
    ("Div", [np.arange(3), np.zeros(3, np.int64)], {}),
    ("Mod", [np.arange(3), np.zeros(3, np.int64)], {}),
    ("Split", [np.arange(5), np.array([2, 2])], {"axis": 0}),
    ("TopK", [np.arange(3.0), np.array([9])], {}),
    ("STFT", [np.zeros((1, 8, 1), np.float32), np.array(-2), None, np.array(-4)], {}),
    ("DFT", [np.zeros((1, 8, 1), np.float32), np.array(-2)], {}),
    ("HannWindow", [np.array(-3)], {}),
    ("OneHot", [np.array([1]), np.array(-2), np.array([0.0, 1.0])], {}),
    ("Tile", [np.arange(3), np.array([-1])], {}),
    ("Pad", [np.arange(3), np.array([-2, -2])], {}),
    ("EyeLike", [np.arange(3)], {}),
    ("Unsqueeze", [np.arange(3), np.array([0, 0])], {}),
    ("Trilu", [np.arange(3)], {}),
    ("MatMul", [np.zeros((2, 3)), np.zeros((2, 3))], {}),
    ("GatherND", [np.zeros((2, 3)), np.array([[9, 9]])], {}),
    ("ScatterElements", [np.zeros(3), np.array([7]), np.ones(1)], {}),
    ("CumSum", [np.arange(3), np.array(4)], {}),
    ("Compress", [np.arange(3), np.array([True] * 9)], {}),
    ("ReverseSequence", [np.zeros((2, 3)), np.array([9, 9])], {}),
    ("SplitToSequence", [np.arange(5), np.array([9, 9])], {}),
    ("Einsum", [np.zeros((2, 3)), np.zeros((2, 3))], {"equation": "ij,jk->ik"}),
    ("BlackmanWindow", [np.array(-1)], {}),
    ("MelWeightMatrix", [np.array(-1), np.array(8), np.array(100), np.array(0.0), np.array(50.0)], {}),
    ("CenterCropPad", [np.arange(3), np.array([-2])], {}),
    ("Resize", [np.zeros((1, 1, 2, 2), np.float32), None, np.array([1, 1, -1, 2], np.float32)], {}),
    ("Upsample", [np.zeros((1, 1, 2, 2), np.float32), np.array([1, 1, -1, 2], np.float32)], {}),
    ("NonMaxSuppression", [np.zeros((1, 2, 3), np.float32), np.zeros((1, 1, 2), np.float32)], {}),
]
"""Constants that no answer is right for: refused with a code, or whatever a run may give, but nothing raw."""


REFUSED = frozenset(
    "Gather Reshape Squeeze Expand ConstantOfShape Range Concat Transpose Split OneHot Tile ReverseSequence Resize "
    "Upsample".split()
)
"""Those of them whose sizes cannot be: a model with them is refused."""


def test_nothing_raw_escapes() -> None:
    for op_type, inputs, attributes in WRONG:
        held = one_node(
            op_type, inputs, attributes, opset=9 if op_type == "Upsample" else 18, constants=range(len(inputs))
        )
        try:
            interpreted(held, [])
        except FuselineError as error:
            assert error.code != "E0901" and error.node, f"{op_type}: {error}"
        except Exception as error:
            error.add_note(op_type)
            raise
        else:
            assert op_type not in REFUSED, op_type
