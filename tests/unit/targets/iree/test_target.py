"""The target `iree` with a stand-in for IREE that evaluates the text which it is given: what is cut, called, split and
stored, and that it computes what the interpreter does."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.errors import FuselineError
from fuseline.interop import iree_host, iree_runtime
from fuseline.runtime.program import HostCall
from fuseline.targets import create_target
from fuseline.targets.iree import compiler
from fuseline.targets.iree.compiler import Failure
from fuseline.targets.iree.flow.regions import region_lines
from fuseline.targets.iree.target import RULE
from fuseline.verify.inputs import generate
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.small_models import SMALL_MODELS
from tests.unit.targets.iree.fake_iree import install


def _same(model: onnx.ModelProto | Path, feeds: dict[str, Any] | None = None, **choices: Any) -> fuseline.CompiledModel:
    """The program, once it was found to compute what the interpreter does."""
    compiled = fuseline.compile(model, target="iree", **choices)
    plain = fuseline.compile(model, target="interpreter")
    given = feeds or generate(plain.inputs, seed=int(RNG.integers(1 << 30)))
    found, expected = compiled.run(given), plain.run(given)
    assert found.keys() == expected.keys()
    for name, array in expected.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        np.testing.assert_allclose(
            np.asarray(found[name], np.float64), np.asarray(array, np.float64), rtol=1e-5, atol=1e-6
        )
    return compiled


def _host_calls(compiled: fuseline.CompiledModel) -> list[str]:
    steps = compiled.session.artifact.program.steps
    return [step.executor for step in steps if isinstance(step, HostCall)]


@pytest.mark.parametrize("name", SMALL_MODELS)
@pytest.mark.parametrize("threads", [1, 2])
def test_a_model_without_host_operators_is_one_call(name: str, threads: int, monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    compiled = _same(SMALL_MODELS[name](), threads=threads)
    assert fake.calls == ["main"] and len(fake.texts) == 1
    assert fake.devices == ["local-sync" if threads == 1 else "local-task"]
    assert _host_calls(compiled) == ["iree"]


def test_statistics_have_the_dispatches_and_the_figures_of_iree(monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch)
    stats = fuseline.compile(SMALL_MODELS["convolutions"](), target="iree").stats
    assert stats["dispatches"] == stats["iree"]["dispatches"] > 1
    assert stats["transient_bytes"] == stats["iree"]["transient_bytes"] == 64
    assert stats["families"] == {"iree": stats["dispatches"]}


CUTS = {
    "between": "(float[8] x) => (y) { t = Relu(x)  i = NonZero(t)  u = Transpose<perm = [1, 0]>(i)  "
    "v = GatherND(x, u)  y = Mul(v, v) }",
    "beside": "(float[6] x) => (y, z) { t = Relu(x)  i = NonZero(t)  y = Neg(i)  z = Tanh(t) }",
    "first": "(float[n] x) => (y) { i = NonZero(x)  y = Mul(i, i) }",
    "last": "(float[n] x) => (y) { t = Exp(x)  y = NonZero(t) }",
    "twice": "(float[7] x) => (y) { a = Relu(x)  i = NonZero(a)  b = Abs(i)  c = Cast<to = 1>(b)  j = NonZero(c)  "
    "y = Neg(j) }",
}


@pytest.mark.parametrize(("text", "stages"), [*zip(CUTS.values(), (2, 2, 1, 1, 3), strict=True)], ids=[*CUTS])
def test_operators_of_the_host_run_between_stages(text: str, stages: int, monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    (size,) = [int(RNG.integers(5, 9))] if "[n]" in text else [int(text.split("[")[1][0])]
    x = RNG.standard_normal(size).astype(np.float32)
    x[0] = 1.0
    compiled = _same(onnx_model(text), {"x": x})
    names = ["main"] if stages == 1 else [f"main_{number}" for number in range(stages)]
    assert sorted(fake.calls) == names and len(fake.texts) == 1
    assert _host_calls(compiled).count("iree") == stages


def test_nothing_is_compiled_where_nothing_is_computed(monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    compiled = _same(onnx_model("(float[4] x) => (y) { y = NonZero(x) }"), {"x": np.ones(4, np.float32)})
    assert not fake.texts and _host_calls(compiled) == ["onnx"]


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool", "float16", "double"])
def test_elements_keep_their_types(dtype: str, monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch)
    text = f"({dtype}[2, n] x) => (y) {{ y = {'Not(x)' if dtype == 'bool' else 'Add(x, x)'} }}"
    _same(onnx_model(text))


def test_weights_are_read_from_the_archive(monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch)
    weights = {"w": RNG.standard_normal((30, 40), np.float32), "m": RNG.random((5, 40)) < 0.5}
    _same(onnx_model("(float[5, 30] x) => (z) { y = MatMul(x, w)  z = Where(m, y, x0) }", weights, x0=np.float32(2)))


def test_loops_are_part_of_a_stage(monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    shapes = {"w": (1, 12, 4), "r": (1, 12, 3)}
    weights = {name: RNG.standard_normal(shape, np.float32) for name, shape in shapes.items()}
    text = "(float[6, 1, 4] x) => (y) { y, h = LSTM<hidden_size = 3>(x, w, r) }"
    _same(onnx_model(text, weights))
    assert "scf.for" in fake.texts[0] and fake.calls == ["main"]


def test_what_is_fed_passes_through(monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch)
    _same(onnx_model("(float[3, n] x) => (y, z, s) { y = Identity(x)  z = Relu(x)  s = Shape(x) }"))


def test_branches_are_programs_of_their_own(monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    branch = "{name} = g () => (t) {{ t = {op}(x) }}"
    both = ", ".join(branch.format(name=f"{name}_branch", op=op) for name, op in (("then", "Neg"), ("else", "Exp")))
    model = onnx_model(f"(float[4] x, bool c) => (y) {{ y = If<{both}>(c) }}")
    for taken in (True, False):
        _same(model, {"x": RNG.standard_normal(4).astype(np.float32), "c": np.array(taken)})
    assert fake.calls == ["main", "main"]


def test_a_stored_program_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    compiled = fuseline.compile(SMALL_MODELS["mlp"](), target="iree")
    feeds = generate(compiled.inputs, seed=int(RNG.integers(1 << 30)))
    compiled.save(tmp_path / "m.fuse")
    iree_host.forget()
    loaded = fuseline.load(tmp_path / "m.fuse", verify=True)
    for name, array in compiled.run(feeds).items():
        np.testing.assert_array_equal(loaded.run(feeds)[name], array)
    assert loaded.stats["iree"] and len(fake.devices) == 1, "loaded once, found again by its content"


def test_programs_of_equal_code_have_their_own_weights(monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    for _ in range(2):
        weights = RNG.standard_normal((30, 40), np.float32)
        _same(onnx_model("(float[5, 30] x) => (y) { y = MatMul(x, w) }", w=weights))
    assert fake.texts[0] == fake.texts[1] and len(fake.devices) == 2


# limits and refusals ------------------------------------------------------------------------------------------------

SOFTMAX = "(float[8, 16] x) => (y) { a = Exp(x)  b = Softmax(a)  y = Neg(b) }"


def _regions(text: str) -> list[str]:
    lines = text.splitlines()
    return ["\n".join(lines[first - 1 : last]) for first, last in region_lines(text)]


def _several(text: str) -> Sequence[Failure]:
    """Fails on every region of more than one structured op, at a line inside of it."""
    lines = text.splitlines()
    return [
        Failure(first + 1, "too much at once")
        for first, last in region_lines(text)
        if "\n".join(lines[first - 1 : last]).count("linalg.generic") > 1
    ]


def test_what_iree_refuses_is_split_and_said(monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch, _several)
    compiled = _same(onnx_model(SOFTMAX))
    assert len(fake.texts) == 2 and all(region.count("linalg.generic") == 1 for region in _regions(fake.texts[1]))
    remarks = [one for one in compiled.record.remarks if one.rule == RULE]
    assert remarks and all("'too much at once'" in one.detail and one.detail.startswith("split") for one in remarks)
    assert compiled.stats["dispatches"] > len(_regions(fake.texts[0]))


def test_what_a_plan_keeps_together_is_left_to_iree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    model, plan = onnx_model(SOFTMAX), tmp_path / "plan.toml"
    plan.write_text(fuseline.compile(model, target="iree").plan)
    fake.judge = _several
    compiled = _same(model, plan=plan)
    assert len(_regions(fake.texts[-1])) < len(_regions(fake.texts[0]))
    assert any("left to IREE" in one.detail for one in compiled.record.remarks if one.rule == RULE)


def test_one_op_that_iree_refuses_is_left_to_its_own_formation(monkeypatch: pytest.MonkeyPatch):
    def judge(text: str) -> Sequence[Failure]:
        return [
            Failure(first, "no tanh") for first, last in region_lines(text) if "math.tanh" in _part(text, first, last)
        ]

    def _part(text: str, first: int, last: int) -> str:
        return "\n".join(text.splitlines()[first - 1 : last])

    fake = install(monkeypatch, judge)
    compiled = _same(onnx_model("(float[8, 16] x) => (y) { a = Tanh(x)  y = ReduceSum(a) }"))
    assert "math.tanh" in fake.texts[-1] and not any("math.tanh" in region for region in _regions(fake.texts[-1]))
    assert any("left to IREE's own formation" in one.detail for one in compiled.record.remarks)


def test_the_dispatches_behind_a_crash_are_found(monkeypatch: pytest.MonkeyPatch):
    def judge(text: str) -> Sequence[Failure]:
        bad = any("math.exp" in region and "math.tanh" in region for region in _regions(text))
        return [Failure(0, "iree-compile ended with -11")] if bad else []

    fake = install(monkeypatch, judge)
    text = "(float[8] x, float[9] v) => (y, z, w) { a = Exp(x)  y = Tanh(a)  b = Sin(v)  z = Cos(b)  w = Abs(v) }"
    compiled = _same(onnx_model(text))
    assert compiled.stats["dispatches"] == 4, "the pair behind the crash is two, the others are as they were"
    (remark,) = [one for one in compiled.record.remarks if one.rule == RULE]
    assert "-11" in remark.detail and len(fake.texts) > 2


def test_what_fails_in_any_form_is_an_error(monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch, lambda text: [Failure(0, "no memory")])
    with pytest.raises(FuselineError, match="IREE does not compile the program: no memory") as caught:
        fuseline.compile(onnx_model(SOFTMAX), target="iree")
    assert caught.value.code == "E0307"


def test_a_backend_that_there_is_not():
    with pytest.raises(FuselineError, match="no backend 'cuda'") as caught:
        create_target("iree:cuda")
    assert caught.value.code == "E0501" and "iree:vmvx" in str(caught.value.hint)


@pytest.mark.parametrize("numerics", ["default", "strict"])
def test_sums_stay_in_order_where_asked(numerics: str, monkeypatch: pytest.MonkeyPatch):
    fake = install(monkeypatch)
    fuseline.compile(SMALL_MODELS["mlp"](), target="iree", numerics=numerics)
    assert ("--iree-llvmcpu-reassociate-fp-reductions=false" in fake.arguments[0]) == (numerics == "strict")


def test_without_the_compiler_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(compiler.importlib.util, "find_spec", lambda name: None)  # pyright: ignore[reportUnknownLambdaType]
    compiler.tool.cache_clear()
    with pytest.raises(FuselineError, match=r"pip install 'fuseline\[iree\]'") as caught:
        fuseline.compile(SMALL_MODELS["mlp"](), target="iree")
    compiler.tool.cache_clear()
    assert caught.value.code == "E0503" and "\n" not in str(caught.value)


def test_without_the_runtime_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch):
    real = iree_host.Module
    install(monkeypatch)
    compiled = fuseline.compile(SMALL_MODELS["mlp"](), target="iree")
    monkeypatch.setattr(iree_host, "Module", real)
    monkeypatch.setitem(sys.modules, "iree.runtime", None)
    iree_runtime._package.cache_clear()  # pyright: ignore[reportPrivateUsage]
    with pytest.raises(FuselineError, match=r"pip install 'fuseline\[iree\]'") as caught:
        compiled.run(generate(compiled.inputs))
    iree_runtime._package.cache_clear()  # pyright: ignore[reportPrivateUsage]
    assert caught.value.code == "E0503"


def test_errors_are_told_by_line_and_a_crash_by_how_it_ended():
    output = (
        "/tmp/x/m.mlir:12:3: error: 'a.b' op failed\n  %1 = a.b\nm.mlir:12:3: note: see\nm.mlir:40:1: error: again\n"
    )
    assert compiler.failures_in(output, 1) == [(12, "'a.b' op failed"), (40, "again")]
    assert compiler.failures_in("Stack dump:\n", -11) == [(0, "iree-compile ended with -11")]
    assert compiler.failures_in("iree-lld: error: undefined symbol: sin\n", 1) == [
        (0, "iree-lld: error: undefined symbol: sin")
    ]


def test_figures_are_read_from_the_statistics():
    lines = ("D->H Syncs: 2", "Submissions: 1, using cumulative 401408 B (0.38 MiB)", "  DMA Fills: 3")
    lines += (" DMA Copies: 4", "Dispatches: 2", "Executables: 2, 0% reuse")
    text = "".join(f"// {line}\n" for line in lines)
    expected = {"dispatches": 2, "executables": 2, "fills": 3, "copies": 4, "transient_bytes": 401408}
    assert compiler.figures_in(text) == expected


@pytest.mark.parametrize(("target", "op", "hosted"), [("iree", "Tan", 1), ("iree", "Exp", 0), ("iree:vmvx", "Sinh", 1)])
def test_operations_without_code_run_on_the_host(target: str, op: str, hosted: int, monkeypatch: pytest.MonkeyPatch):
    install(monkeypatch)
    model = onnx_model(f"(double[5, n] x) => (y) {{ t = Abs(x)  u = {op}(t)  y = Neg(u) }}")
    compiled = fuseline.compile(model, target=target)
    assert compiled.stats["host_ops"] == hosted
    x = RNG.random((5, 3))
    np.testing.assert_allclose(compiled(x), -getattr(np, op.lower())(x), rtol=1e-12)  # pyright: ignore[reportUnknownArgumentType]
    if hosted:
        assert f"math.{op.lower()}" in compiled.record.host_ops[0].reason
