"""Parts of a returned concat: each arm writes its own where it belongs."""

from __future__ import annotations

import numpy as np
import pytest

from fuseline.runtime import Session
from fuseline.runtime.program import Command
from tests.unit.targets.cpu.arms.programs import (
    check,
    close,
    compiled,
    elementwise,
    interpreted,
    program,
    random,
    record_of,
)


def _convolution(name: str, size: int, channels: int, outputs: int, window: int, image: str) -> str:
    """A convolution of `image` (1 x size x size x channels) without padding, and relu."""
    out = f"1x{size}x{size}x{outputs}"
    padded = size + window - 1
    return f"""
    %e_{name} = tensor.empty() : tensor<{out}xf32>
    %f_{name} = linalg.fill ins(%z : f32) outs(%e_{name} : tensor<{out}xf32>) -> tensor<{out}xf32>
    %c_{name} = linalg.generic {{
      indexing_maps = [affine_map<(n, h, w, o, i, j, c) -> (n, h + i, w + j, c)>,
          affine_map<(n, h, w, o, i, j, c) -> (i, j, c, o)>,
                       affine_map<(n, h, w, o, i, j, c) -> (n, h, w, o)>],
      iterator_types = ["parallel", "parallel", "parallel", "parallel", "reduction", "reduction", "reduction"]
    }} ins(%{image}, %w_{name} : tensor<1x{padded}x{padded}x{channels}xf32>,
        tensor<{window}x{window}x{channels}x{outputs}xf32>)
      outs(%f_{name} : tensor<{out}xf32>) {{
    ^bb0(%a: f32, %b: f32, %s: f32):
      %p = arith.mulf %a, %b : f32
      %t = arith.addf %s, %p : f32
      linalg.yield %t : f32
    }} -> tensor<{out}xf32>
    {elementwise(name, [f"c_{name}"], out, "%v = arith.maximumf %a0, %z : f32")}"""


def _pad(size: int, channels: int) -> str:
    wide = size + 2
    return f"""
    %padded = tensor.pad %x low[0, 1, 1, 0] high[0, 1, 1, 0] {{
    ^bb0(%i0: index, %i1: index, %i2: index, %i3: index):
      tensor.yield %z : f32
    }} : tensor<1x{size}x{size}x{channels}xf32> to tensor<1x{wide}x{wide}x{channels}xf32>"""


@pytest.mark.parametrize("outputs", [(16, 24), (5, 11), (1, 3)])
def test_two_convolutions_into_channels(outputs: tuple[int, int]) -> None:
    """The expand layer of SqueezeNet: 1x1 and 3x3 over one image."""
    size, channels = 9, 7
    total = sum(outputs)
    types = [f"tensor<1x{size}x{size}x{n}xf32>" for n in outputs]
    body = f"""%z = arith.constant 0.0 : f32
    {_pad(size, channels)}
    {_convolution("one", size, channels, outputs[0], 1, "x")}
    {_convolution("three", size, channels, outputs[1], 3, "padded")}
    %y = tensor.concat dim(3) %one, %three : ({", ".join(types)}) -> tensor<1x{size}x{size}x{total}xf32>"""
    inputs = {
        "x": (1, size, size, channels),
        "w_one": (1, 1, channels, outputs[0]),
        "w_three": (3, 3, channels, outputs[1]),
    }
    text = program(inputs, body, {"%y": f"tensor<1x{size}x{size}x{total}xf32>"})
    artifact = check(text, {name: random(shape, i) for i, (name, shape) in enumerate(inputs.items())})
    (step,) = artifact.program.steps
    assert isinstance(step, Command) and len(step.arms) == 2
    record = record_of(artifact)
    assert record.statistics["dispatches"] == 1 and record.statistics["copies"] == 0
    (dispatch,) = record.dispatches
    assert dispatch.name == "000_convolution" and dispatch.root == "convolution x2" and len(dispatch.loops) == 7


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_any_axis_and_an_argument_among_the_parts(axis: int) -> None:
    shapes = [[5, 6, 7], [5, 6, 7], [5, 6, 7]]
    for shape, size in zip(shapes, (3, 9, 4), strict=True):
        shape[axis] = size
    types = ["x".join(map(str, shape)) for shape in shapes]
    total = list(shapes[0])
    total[axis] = 16
    out = "tensor<" + "x".join(map(str, total)) + "xf32>"
    body = f"""%z = arith.constant 0.0 : f32
    {elementwise("p", ["a"], types[0], "%v = math.absf %a0 : f32")}
    {elementwise("q", ["b"], types[1], "%v = arith.maximumf %a0, %z : f32")}
    %y = tensor.concat dim({axis}) %p, %c, %q : (tensor<{types[0]}xf32>, tensor<{types[2]}xf32>,
        tensor<{types[1]}xf32>) -> {out}"""
    feeds = {"a": random(shapes[0], 1), "b": random(shapes[1], 2), "c": random(shapes[2], 3)}
    text = program({name: array.shape for name, array in feeds.items()}, body, {"%y": out})
    expected = np.concatenate([np.abs(feeds["a"]), feeds["c"], np.maximum(feeds["b"], 0)], axis)
    artifact = check(text, feeds, [expected])
    assert isinstance(artifact.program.steps[0], Command) and len(artifact.program.steps[0].arms) == 3
    assert record_of(artifact).statistics["copies"] == 1  # %c


def test_a_part_in_two_concats_and_returned() -> None:
    body = f"""%z = arith.constant 0.0 : f32
    {elementwise("p", ["a"], "4x9", "%v = math.absf %a0 : f32")}
    {elementwise("q", ["b"], "4x5", "%v = arith.maximumf %a0, %z : f32")}
    %y0 = tensor.concat dim(1) %p, %q : (tensor<4x9xf32>, tensor<4x5xf32>) -> tensor<4x14xf32>
    %y1 = tensor.concat dim(1) %q, %a, %p : (tensor<4x5xf32>, tensor<4x9xf32>, tensor<4x9xf32>) -> tensor<4x23xf32>"""
    feeds = {"a": random((4, 9), 1), "b": random((4, 5), 2)}
    text = program(
        {"a": (4, 9), "b": (4, 5)},
        body,
        {"%y0": "tensor<4x14xf32>", "%p": "tensor<4x9xf32>", "%y1": "tensor<4x23xf32>"},
    )
    p, q = np.abs(feeds["a"]), np.maximum(feeds["b"], 0)
    check(text, feeds, [np.concatenate([p, q], 1), p, np.concatenate([q, feeds["a"], p], 1)])


def test_a_product_with_expanded_columns_among_the_parts() -> None:
    """The two dimensions that its columns become lie apart in the result: no one run of memory."""
    body = f"""%z = arith.constant 0.0 : f32
    %e = tensor.empty() : tensor<13x16xf32>
    %f = linalg.fill ins(%z : f32) outs(%e : tensor<13x16xf32>) -> tensor<13x16xf32>
    %m = linalg.matmul ins(%x, %w : tensor<13x9xf32>, tensor<9x16xf32>) outs(%f : tensor<13x16xf32>)
        -> tensor<13x16xf32>
    %t = tensor.expand_shape %m [[0], [1, 2]] output_shape [13, 2, 8] : tensor<13x16xf32> into tensor<13x2x8xf32>
    {elementwise("p", ["a"], "13x2x5", "%v = math.absf %a0 : f32")}
    %y = tensor.concat dim(2) %p, %t : (tensor<13x2x5xf32>, tensor<13x2x8xf32>) -> tensor<13x2x13xf32>"""
    feeds = {"x": random((13, 9), 1), "w": random((9, 16), 2), "a": random((13, 2, 5), 3)}
    text = program({name: array.shape for name, array in feeds.items()}, body, {"%y": "tensor<13x2x13xf32>"})
    check(text, feeds, [np.concatenate([np.abs(feeds["a"]), (feeds["x"] @ feeds["w"]).reshape(13, 2, 8)], 2)])


def test_nested_and_reshaped_concats() -> None:
    body = f"""%z = arith.constant 0.0 : f32
    {elementwise("p", ["a"], "3x4x5", "%v = math.absf %a0 : f32")}
    {elementwise("q", ["b"], "3x2x5", "%v = arith.maximumf %a0, %z : f32")}
    {elementwise("s", ["c"], "3x6x3", "%v = arith.negf %a0 : f32")}
    %i = tensor.concat dim(1) %p, %q : (tensor<3x4x5xf32>, tensor<3x2x5xf32>) -> tensor<3x6x5xf32>
    %o = tensor.concat dim(2) %s, %i : (tensor<3x6x3xf32>, tensor<3x6x5xf32>) -> tensor<3x6x8xf32>
    %y = tensor.collapse_shape %o [[0, 1], [2]] : tensor<3x6x8xf32> into tensor<18x8xf32>"""
    feeds = {"a": random((3, 4, 5), 1), "b": random((3, 2, 5), 2), "c": random((3, 6, 3), 3)}
    text = program(
        {name: array.shape for name, array in feeds.items()},
        body,
        {"%y": "tensor<18x8xf32>", "%i": "tensor<3x6x5xf32>"},
    )
    inner = np.concatenate([np.abs(feeds["a"]), np.maximum(feeds["b"], 0)], 1)
    artifact = check(text, feeds, [np.concatenate([-feeds["c"], inner], 2).reshape(18, 8), inner])
    assert isinstance(artifact.program.steps[0], Command) and len(artifact.program.steps[0].arms) == 3


@pytest.mark.parametrize("parts", ["%p, %q", "%a, %b"])
def test_a_concat_that_is_read_inside_is_no_seam(parts: str) -> None:
    """Its readers need all of it: what makes the parts hangs together, and parts that are arguments are read once."""
    body = f"""%z = arith.constant 0.0 : f32
    {elementwise("p", ["a"], "4x9", "%v = math.absf %a0 : f32")}
    {elementwise("q", ["b"], "4x5", "%v = arith.negf %a0 : f32")}
    %c = tensor.concat dim(1) {parts} : (tensor<4x9xf32>, tensor<4x5xf32>) -> tensor<4x14xf32>
    {elementwise("y", ["c"], "4x14", "%v = math.floor %a0 : f32")}"""
    feeds = {"a": random((4, 9), 1), "b": random((4, 5), 2)}
    text = program({"a": (4, 9), "b": (4, 5)}, body, {"%y": "tensor<4x14xf32>", "%c": "tensor<4x14xf32>"})
    artifact = check(text, feeds)
    assert isinstance(artifact.program.steps[0], Command) and len(artifact.program.steps[0].arms) == 1


@pytest.mark.parametrize("axis", [0, 1])
def test_sizes_known_at_run_time(axis: int) -> None:
    out = "tensor<?x7xf32>" if axis == 0 else "tensor<?x11xf32>"
    types = ("?x7", "?x7") if axis == 0 else ("?x7", "?x4")
    outside = f"""%zero = arith.constant 0 : index
  %n = tensor.dim %a, %zero : tensor<?x7xf32>
  %m = tensor.dim %b, %zero : tensor<{types[1]}xf32>
  %t = arith.addi %n, %m : index"""
    body = f"""%z = arith.constant 0.0 : f32
    {elementwise("p", ["a"], types[0], "%v = math.absf %a0 : f32", sizes="%n")}
    {elementwise("q", ["b"], types[1], "%v = arith.maximumf %a0, %z : f32", sizes="%m")}
    %y = tensor.concat dim({axis}) %p, %q : (tensor<{types[0]}xf32>, tensor<{types[1]}xf32>) -> {out}"""
    rows = "m" if axis == 0 else "n"
    text = program(
        {"a": ("n", 7), "b": (rows, 7 - 3 * axis)},
        body,
        {"%y": out + ("{%t}" if axis == 0 else "{%n}")},
        outside=outside,
    )
    session = Session(compiled(text, 2))
    for n, m in ((1, 1), (13, 5), (4, 200)):
        feeds = {"a": random((n, 7), n), "b": random((m if axis == 0 else n, 7 - 3 * axis), m)}
        expected = np.concatenate([np.abs(feeds["a"]), np.maximum(feeds["b"], 0)], axis)
        close(interpreted(text, feeds)[0], expected)
        for _ in range(2):
            close(session.run(feeds)["result0"], expected)
