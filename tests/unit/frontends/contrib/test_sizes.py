"""Sizes that onnxruntime's own operators refuse though their bodies would broadcast them: refused here too, when the
model is read or, of symbols, by the run."""

from __future__ import annotations

from typing import Any

import pytest

import fuseline
from fuseline.errors import FuselineError
from tests.unit.frontends.contrib.calls import agree, normal, one_call, ort

Shapes = tuple[tuple[int, ...], ...]
SKIPS = ["SkipLayerNormalization", "SkipSimplifiedLayerNormalization"]
GELUS = ["BiasGelu", "FastGelu"]
SKIPPED: list[Shapes] = [
    ((2, 3, 8), (1, 1, 8), (8,)),
    ((2, 3, 8), (8,), (8,)),
    ((2, 3, 8), (2, 3, 1), (8,)),
    ((2, 3, 8), (2, 1, 8), (8,)),
    ((3, 8), (1, 8), (8,)),
    ((3, 8), (1, 3, 8), (8,)),
    ((8,), (8,), (8,)),
    ((2, 2, 3, 8), (2, 2, 3, 8), (8,)),
    ((2, 3, 8), (2, 3, 8), (1,)),
    ((2, 3, 8), (2, 3, 8), (1, 8)),
    ((2, 3, 8), (2, 3, 8), (8,), (1,)),
    ((1, 1, 8), (3, 8), (8,)),
    ((2, 3, 0), (2, 3, 0), (0,)),
]
BIASED: list[Shapes] = [
    ((3, 8), (1,)),
    ((3, 8), (3, 8)),
    ((3, 8), (1, 8)),
    ((3, 1), (8,)),
    ((), (1,)),
    ((3, 8), ()),
    ((0, 8), (3,)),
    ((3, 0), (1,)),
]
REFUSED = [(op, shapes) for op in SKIPS for shapes in SKIPPED] + [(op, shapes) for op in GELUS for shapes in BIASED]
TAKEN: list[tuple[str, Shapes]] = [
    *((op, shapes) for op in GELUS for shapes in (((3, 8), (8,)), ((8,), (8,)), ((0, 8), (8,)), ((2, 1), (1,)))),
    *(
        (op, (shape, skip, (8,)))
        for op in SKIPS
        for shape, skip in (((2, 3, 8), (2, 3, 8)), ((2, 3, 8), (1, 3, 8)), ((2, 3, 8), (3, 8)), ((3, 8), (3, 8)))
    ),
]


def by_onnxruntime(op_type: str, shapes: Shapes) -> None:
    inputs = [normal(*shape) for shape in shapes]
    options = ort.SessionOptions()
    options.log_severity_level = 4
    proto = one_call(op_type, inputs)
    session = ort.InferenceSession(proto.SerializeToString(), options, providers=["CPUExecutionProvider"])
    session.run(None, {f"i{position}": array for position, array in enumerate(inputs)})


@pytest.mark.parametrize(("op_type", "shapes"), REFUSED)
def test_what_onnxruntime_refuses(op_type: str, shapes: Shapes) -> None:
    with pytest.raises(ort.capi.onnxruntime_pybind11_state.InvalidArgument):
        by_onnxruntime(op_type, shapes)
    with pytest.raises(FuselineError, match="needed") as raised:
        fuseline.compile(one_call(op_type, [normal(*shape) for shape in shapes]), target="interpreter")
    assert (raised.value.code, raised.value.node) == ("E0107", "node")


@pytest.mark.parametrize(("op_type", "shapes"), TAKEN)
def test_what_onnxruntime_takes(op_type: str, shapes: Shapes) -> None:
    agree(op_type, [normal(*shape) for shape in shapes], target="interpreter")


def test_a_skip_of_more_batches_than_the_input_is_refused() -> None:
    """onnxruntime takes the first of them and says nothing, which its documentation does not promise."""
    with pytest.raises(FuselineError, match="E0107"):
        fuseline.compile(one_call(SKIPS[0], [normal(1, 3, 8), normal(2, 3, 8), normal(8)]), target="interpreter")


@pytest.mark.parametrize(
    ("op_type", "free", "good", "bad"),
    [
        ("BiasGelu", [["n", "h"], ["k"]], ((3, 5), (5,)), [((3, 5), (1,)), ((3, 1), (5,))]),
        ("FastGelu", [["n", "h"], ["k"]], ((3, 1), (1,)), [((3, 5), (4,))]),
        (
            SKIPS[0],
            [["b", "s", "h"], ["c", "t", "h"], ["k"]],
            ((2, 3, 5),) * 2 + ((5,),),
            [((2, 3, 5), (2, 1, 5), (5,))],
        ),
        (SKIPS[1], [["s", "h"], ["t", "h"], ["k"]], ((3, 5), (3, 5), (5,)), [((3, 5), (3, 5), (1,))]),
    ],
)
def test_symbols_are_checked_by_the_run(op_type: str, free: list[list[str]], good: Shapes, bad: list[Shapes]) -> None:
    proto = one_call(op_type, [normal(*shape) for shape in good])
    for info, names in zip(proto.graph.input, free, strict=True):
        for dim, name in zip(info.type.tensor_type.shape.dim, names, strict=True):
            dim.dim_param = name
    program = fuseline.compile(proto, threads=1)
    assert not program.record.host_ops

    def run(shapes: Shapes) -> Any:
        return next(
            iter(program.run({f"i{position}": normal(*shape) for position, shape in enumerate(shapes)}).values())
        )

    assert run(good).shape == good[0]
    for shapes in bad:
        with pytest.raises(FuselineError, match="E0203"):
            run(shapes)
