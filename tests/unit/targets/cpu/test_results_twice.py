"""What a root makes is written wherever it goes: returned as it is, into its slice of a concat, through an epilogue; of
every kernel family, whatever else is made beside it."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from onnx import parser

import fuseline
from fuseline.errors import FuselineError
from fuseline.targets.cpu.families.family import Plan
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.kernel_ir.builder import KernelBuilder
from fuseline.targets.cpu.written_results import check_results_written
from tests.draws import RNG
from tests.unit.targets.cpu.nests.generics import function, generic, tensor
from tests.unit.targets.cpu.nests.texts import parse

N = 8
ROOTS = {
    "ArgMin": ("int64", "q = ArgMin <axis = 1, keepdims = 1> (x)"),
    "TopK": ("int64", "v, q = TopK <axis = 1> (x, some)"),
    "TopK of columns": ("int64", "v, q = TopK <axis = 0, largest = 0> (x, some)"),
    "NonZero": ("int64", "q = NonZero (x)"),
    "ReduceMax": ("float", "q = ReduceMax <axes = [1], keepdims = 1> (x)"),
    "MatMul": ("float", "q = MatMul (x, x)"),
    "Softmax": ("float", "q = Softmax <axis = 1> (x)"),
    "CumSum": ("float", "q = CumSum (x, one)"),
    "ScatterElements": ("float", 'q = ScatterElements <axis = 1, reduction = "add"> (x, i, x)'),
    "ScatterND": ("float", "q = ScatterND (x, rows, two)"),
    "squares": ("float", "s = Softmax <axis = 1> (x) q = ReduceSumSquare <axes = [1]> (s)"),
    "squares of columns": ("float", "s = Softmax <axis = 0> (x) q = ReduceSumSquare <axes = [0]> (s)"),
    "norm of columns": ("float", "s = Softmax <axis = 0> (x) q = ReduceL2 <axes = [0]> (s)"),
}
READERS = {
    "returned": ("q", ""),
    "read": ("n", "n = Neg (q)"),
    "both": ("q, n", "n = Neg (q)"),
    "alone": ("", ""),
}


def _model(root: str, reader: str, axis: int) -> onnx.ModelProto:
    kind, text = ROOTS[root]
    results, more = READERS[reader]
    outs = ["y", *(results.split(", ") if results else ()), *(["v"] if root.startswith("TopK") else [])]
    typed = ", ".join(f"{'float' if out == 'v' else kind}[{out}0, {out}1] {out}" for out in outs)
    places = ", ".join(map(str, RNG.integers(0, N, N * N)))
    numbers = ", ".join(str(float(v)) for v in RNG.standard_normal(2 * N).round(3))
    return parser.parse_model(
        f'<ir_version: 9, opset_import: ["": 17]> g (float[M,{N}] x) => ({typed}) '
        f"<int64 one = {{1}}, int64[1] ones = {{1}}, int64[1] some = {{3}}, int64[{N},{N}] i = {{{places}}}, "
        f"int64[2,1] rows = {{5, 2}}, float[2,{N}] two = {{{numbers}}}> "
        f"{{ {text} {more} h = Shape (q) k = ConstantOfShape <value = {kind}[1] {{3}}> (h) "
        f"y = Concat <axis = {axis}> (q, k) }}"
    )


@pytest.mark.parametrize(("root", "reader"), list(product(ROOTS, READERS)))
def test_against_onnxruntime(root: str, reader: str) -> None:
    feeds = {"x": RNG.standard_normal((N, N)).astype(np.float32)}
    for axis in (0, 1):
        model = _model(root, reader, axis)
        names = [output.name for output in model.graph.output]
        session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        expected: Any = dict(zip(names, session.run(None, feeds), strict=True))
        for shapes in ({}, {"M": N}):
            found = fuseline.compile(model, shapes=shapes).run(feeds)
            for name in names:
                np.testing.assert_allclose(found[name], expected[name], rtol=1e-4, atol=1e-4, err_msg=f"{name} {axis}")


@pytest.mark.parametrize(("shape", "workgroups"), [((3, 4), 1), ((0, 4), 1), ((3, 4), 0)])
def test_a_result_that_is_never_written(shape: tuple[int, int], workgroups: int) -> None:
    T = tensor(shape)
    abs_, neg = (
        generic(name, [("%x", T)], [("%x", T)], ["d0, d1"] * 2, "pp", f"%v = {op} %i0 : f32", [("%v", "f32")])
        for name, op in (("%p", "math.absf"), ("%q", "arith.negf"))
    )
    view = parse(function([("x", shape, "f32")], [], f"{abs_}\n{neg}", [("%p", T), ("%q", T)]))
    plan, kernel = Plan(view=view, workgroups=workgroups), KernelBuilder("kernel", machine("avx2"))
    kernel.binding(1, "f32", 12, writable=True)
    if 0 in shape or workgroups == 0:
        check_results_written(plan, kernel, "forgetful")
        return
    with pytest.raises(FuselineError, match="forgetful kernel never writes result 1") as raised:
        check_results_written(plan, kernel, "forgetful")
    assert raised.value.code == "E0901"
    kernel.binding(2, "f32", 12)
    with pytest.raises(FuselineError):
        check_results_written(plan, kernel, "forgetful")  # a buffer that is only read
    kernel.binding(2, "f32", 12, writable=True)
    check_results_written(plan, kernel, "forgetful")
