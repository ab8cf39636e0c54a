"""Descriptions that say what a target lacks: operations, types, kinds, rules, each with its line; the same for targets
with and without code."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.ir.target_description import TargetRules
from fuseline.report.records import CompileRecord
from fuseline.targets import create_target
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model

TARGETS = ("cpu", "null")


def _normal(shape: Sequence[int]) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def _file(folder: Path, text: str) -> Path:
    path = folder / "npu.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _layers() -> onnx.ModelProto:
    """Two layers with activations of their own, and a norm of rows; sizes drawn."""
    m, k, n = (int(size) for size in RNG.integers(5, 40, 3))
    text = f"""(float[{m}, {k}] x) => (float[{m}, {n}] z) {{
        a = MatMul(x, w)
        b = Add(a, c)
        d = Tanh(b)
        e = MatMul(d, v)
        f = Relu(e)
        axes = Constant<value_ints = [1]>()
        mean = ReduceMean(f, axes)
        z = Sub(f, mean)
    }}"""
    shapes = {"w": (k, n), "c": (n,), "v": (n, n)}
    return onnx_model(
        text, {name: 0.2 * RNG.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}
    )


def _feeds(model: onnx.ModelProto) -> dict[str, Any]:
    shape = [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
    return {"x": _normal(shape)}


def _record(model: onnx.ModelProto, path: Path, target: str = "null") -> CompileRecord:
    return fuseline.compile(model, target=f"{target}:{path}").record


def _same_as_the_interpreter(model: onnx.ModelProto, path: Path, **choices: Any) -> CompileRecord:
    program, feeds = fuseline.compile(model, target=f"cpu:{path}", **choices), _feeds(model)
    expected = fuseline.compile(model, target="interpreter").run(feeds)
    for name, value in program.run(feeds).items():
        np.testing.assert_allclose(value, expected[name], rtol=0, atol=1e-4)
    return program.record


# operations that are not there ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", TARGETS)
def test_no_tanh_on_this_accelerator_is_a_line(tmp_path: Path, target: str):
    model = _layers()
    record = _record(model, _file(tmp_path, 'name = "npu"\n\n[limits]\nwithout_ops = ["tanh"]\n'), target)
    (host,) = record.host_ops
    assert host.op_type == "Tanh" and host.reason == "target-op: the target has no tanh (npu.toml:4)"
    assert record.statistics["host_ops"] == 1
    assert not any(host.node in member.nodes for dispatch in record.dispatches for member in dispatch.members)


def test_what_the_target_lacks_runs_on_the_host_with_the_same_values(tmp_path: Path):
    record = _same_as_the_interpreter(_layers(), _file(tmp_path, '[limits]\nwithout_ops = ["tanh", "divf"]\n'))
    assert "Tanh" in {host.op_type for host in record.host_ops}


@pytest.mark.parametrize(
    ("limits", "reason", "op_types"),
    [
        ('element_types = ["f32"]', "target-element-type: f64 is none of f32 (npu.toml:2)", {"Cast", "Exp"}),
        ('kinds = ["contraction", "elementwise"]', "target-op-kind: reduction is none of", {"ReduceSum"}),
        ('ops = ["mulf", "addf", "truncf", "extf", "fptosi"]', "target-op: exp is none of mulf, addf", {"Exp"}),
        ('[limits.elementwise]\nwithout_ops = ["exp"]', "target-op: the target has no exp (npu.toml:2)", {"Exp"}),
    ],
    ids=["types", "kinds", "ops", "of a kind"],
)
def test_types_kinds_and_the_only_operations(tmp_path: Path, limits: str, reason: str, op_types: set[str]):
    n = int(RNG.integers(3, 30))
    text = f"""(float[{n}, {n}] x) => (float[{n}, {n}] z) {{
        s = MatMul(x, x)
        axes = Constant<value_ints = [1]>()
        r = ReduceSum(s, axes)
        d = Cast<to = 11>(r)
        e = Exp(d)
        f = Cast<to = 1>(e)
        z = Mul(s, f)
    }}"""
    model = onnx_model(text)
    path = _file(tmp_path, limits if limits.startswith("[") else f"[limits]\n{limits}")
    record = _record(model, path)
    assert {host.op_type for host in record.host_ops} == op_types
    assert any(reason in host.reason for host in record.host_ops)
    program, feeds = (
        fuseline.compile(model, target=f"cpu:{path}"),
        {"x": 0.05 * RNG.standard_normal((n, n)).astype("f4")},
    )
    (found,), (expected,) = (
        program.run(feeds).values(),
        fuseline.compile(model, target="interpreter").run(feeds).values(),
    )
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def test_a_model_in_mlir_has_no_host(tmp_path: Path):
    source = tmp_path / "m.mlir"
    source.write_text(
        """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %y = linalg.generic {indexing_maps = [affine_map<(d0) -> (d0)>, affine_map<(d0) -> (d0)>],
      iterator_types = ["parallel"]} ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>) {
  ^bb0(%a: f32, %b: f32):
    %t = math.tanh %a : f32
    linalg.yield %t : f32
  } -> tensor<4xf32>
  return %y : tensor<4xf32>
}"""
    )
    path = _file(tmp_path, '[limits]\nwithout_ops = ["tanh"]')
    with pytest.raises(FuselineError, match=r"the target has no tanh \(npu.toml:2\)") as caught:
        fuseline.compile(source, target=f"cpu:{path}")
    assert caught.value.code == "E0307"


# dispatches -----------------------------------------------------------------------------------------------------------


def _refusals(record: CompileRecord) -> set[str]:
    return {decision.detail.partition(":")[0] for decision in record.decisions if decision.code == "target"}


def test_limits_of_a_kind_hold_for_dispatches_with_one(tmp_path: Path):
    model = _layers()
    record = _record(model, _file(tmp_path, "[limits.contraction]\nmembers = 2\n[limits.reduction]\nmembers = 1\n"))
    for dispatch in record.dispatches:
        kinds = [member.kind for member in dispatch.members]
        assert len(kinds) <= (1 if "reduction" in kinds else 2 if "contraction" in kinds else len(kinds))
    assert _refusals(record) == {"members-limit"}
    assert any("with a reduction (npu.toml:4)" in decision.detail for decision in record.decisions)


def test_root_kinds_are_what_dispatches_of_several_ops_are_built_around(tmp_path: Path):
    record = _record(_layers(), _file(tmp_path, '[limits]\nroots = ["contraction"]\n'))
    several = [dispatch for dispatch in record.dispatches if len(dispatch.members) > 1]
    assert several and all("contraction" in {member.kind for member in dispatch.members} for dispatch in several)
    assert _same_as_the_interpreter(_layers(), _file(tmp_path, '[limits]\nroots = ["reduction"]\nmembers = 3\n'))


# rules ----------------------------------------------------------------------------------------------------------------

NO_EPILOGUE = """
from fuseline.passes.fusion.decision import Forbid, NotApplicable
from fuseline.passes.fusion.rule import FusionRule


class Apart(FusionRule):
    name = "apart"

    def matches(self, merge, graph):
        at = merge.consumer.root.name
        return Forbid("{code}", "products run alone", at) if merge.producer.heavy else NotApplicable()


EXPORT = Apart
"""


def test_rules_of_a_target_lie_beside_its_file_and_take_part(tmp_path: Path):
    (tmp_path / "npu_rules.py").write_text(NO_EPILOGUE.format(code="no-epilogue"))
    record = _record(_layers(), _file(tmp_path, '[fusion]\nrules = ["npu_rules.py"]\nwithout = ["shared-operand"]\n'))
    assert "no-epilogue" in {decision.code for decision in record.decisions}
    for command in (["compile"], ["stats"]):
        onnx.save(_layers(), tmp_path / "m.onnx")
        more = ["-o", str(tmp_path / "m.fuse")] if command == ["compile"] else []
        assert main([*command, str(tmp_path / "m.onnx"), "--target", f"cpu:{tmp_path / 'npu.toml'}", *more]) == 0


@pytest.mark.parametrize("target", TARGETS)
def test_rules_by_name(tmp_path: Path, target: str):
    model = _layers()
    without = _record(model, _file(tmp_path, '[fusion]\nwithout = ["elementwise-epilogue"]\n'), target)
    assert "elementwise-epilogue" not in {one.rule for one in without.decisions if one.verdict == "fused"}
    only = _record(model, _file(tmp_path, '[fusion]\nonly = ["elementwise-epilogue"]\n'), target)
    assert {one.rule for one in only.decisions if one.verdict == "fused"} == {"elementwise-epilogue"}
    path = tmp_path / "npu.toml"
    assert not any(
        one.verdict == "fused"
        for one in fuseline.compile(
            model, target=f"{target}:{path}", without_rules=["elementwise-epilogue"]
        ).record.decisions
    )


def test_rules_of_the_command_line_are_asked_besides_those_that_a_target_names(tmp_path: Path):
    rules = tmp_path / "more.py"
    rules.write_text(NO_EPILOGUE.format(code="besides"))
    path = _file(tmp_path, '[fusion]\nonly = ["elementwise-epilogue", "row-chain"]\n')
    record = fuseline.compile(_layers(), target=f"null:{path}", rules=[rules]).record
    assert "besides" in {decision.code for decision in record.decisions}


def test_options_that_choose_nothing_of_a_target(tmp_path: Path):
    path = _file(tmp_path, '[fusion]\nonly = ["row-chain"]\n')
    with pytest.raises(FuselineError, match="E0501.*the target has none of the rules root-chain"):
        fuseline.compile(
            _layers(), target=f"null:{path}", pass_options={"form-dispatch-regions": {"rules": ["root-chain"]}}
        )


def test_a_program_from_the_cache_knows_the_rules_of_its_target(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("FUSELINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("FUSELINE_NO_CACHE", raising=False)
    path, model = _file(tmp_path, '[fusion]\nrules = ["npu_rules.py"]\n'), _layers()
    for code in ("first", "second"):
        (tmp_path / "npu_rules.py").write_text(NO_EPILOGUE.format(code=code))
        program = fuseline.compile(model, target=f"cpu:{path}")
        assert code in {decision.code for decision in program.record.decisions} and not program.from_cache


# what is wrong --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('[limits]\nwithout_ops = ["tahn"]', 2, "'tahn', which is none"),
        ('[limits]\nmembers = 3\nops = [\n  "addf",\n  "warp",\n]', 5, "'warp', which is none"),
        ('[limits]\nops = ["addf"]\nwithout_ops = ["addf"]', 3, "addf is in ops and in without_ops"),
        ('[limits]\nroots = ["gather"]', 2, "'gather', which is none"),
        ('[limits]\nkinds = ["elementwise"]\nroots = ["contraction"]', 3, "contraction is limited, and none of kinds"),
        ('[limits]\nkinds = ["elementwise"]\n\n[limits.pooling]\nmembers = 2', 4, "pooling is limited"),
        ("[limits.pooling]\nkinds = 2", 2, "limits.pooling: kinds limits nothing"),
        ("[limits.pooling]\nmembers = -2", 2, "members is no positive integer: -2"),
        ("[limits]\npooling = 3", 2, "limits.pooling is no table"),
        ("[limits.matmul]\nmembers = 2", 1, "matmul limits nothing"),
        ("fusion = 3", 1, "fusion is no table"),
        ("[fusion]\nrule = []", 2, "rule says nothing of rules"),
        ("[fusion]\nonly = []", 2, "only = "),
        ('[fusion]\nonly = ["row-chain"]\nwithout = ["row-chain"]', 3, "row-chain is in only and in without"),
        ("[tile_multiples.depthwise]\nIC = 4", 2, "tile_multiples.depthwise: IC = 4"),
        ("[tile_multiples.pointwise]\nM = 4", 2, "tile_multiples.pointwise: M = 4"),
        ("[tile_multiples]\nM = 1000000000", 2, "M = 1000000000"),
        ("[tile_multiples]\npointwise = 4", 2, "pointwise = 4"),
        ("\n[costs]\nlaunch_ns = -1", 3, "launch_ns is no positive number"),
        ("class_multiples = 3", 1, "class_multiples is nothing"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", TARGETS)
def test_what_a_file_cannot_say_is_refused_with_its_line(tmp_path: Path, target: str, text: str, line: int, said: str):
    path = _file(tmp_path, text)
    with pytest.raises(FuselineError) as caught:
        create_target(f"{target}:{path}")
    assert caught.value.code == "E0501" and said in caught.value.message
    assert caught.value.node == f"{path}:{line}"


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('\n[fusion]\nwithout = ["row-chian"]', 3, "no fusion rule is called 'row-chian'"),
        ('[fusion]\nonly = [\n "row-chain", "rows"]', 3, "no fusion rule is called 'rows'"),
    ],
)
def test_names_of_rules_are_checked_where_rules_are_known(tmp_path: Path, text: str, line: int, said: str):
    path = _file(tmp_path, text)
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(_layers(), target=f"null:{path}")
    assert caught.value.code == "E0501" and said in caught.value.message and caught.value.node == f"{path}:{line}"


def test_a_file_with_rules_that_is_not_there(tmp_path: Path):
    path = _file(tmp_path, '[fusion]\nrules = ["gone.py"]')
    with pytest.raises(FuselineError, match="E0704.*gone.py"):
        fuseline.compile(_layers(), target=f"cpu:{path}")


@pytest.mark.parametrize("name", ["scratch_bytes_limit", "binding_limit", "arms_limit", "roots_limit", "code_limit"])
def test_a_cpu_can_be_less_and_not_more(tmp_path: Path, name: str):
    most = getattr(create_target("cpu").description, name)
    assert getattr(create_target(f"cpu:{_file(tmp_path, f'{name} = {most - 1}')}").description, name) == most - 1
    with pytest.raises(FuselineError, match=f"E0501.*{name} is {most + 1}, kernels for a CPU have {most}"):
        create_target(f"cpu:{_file(tmp_path, f'{name} = {most + 1}')}")


def test_both_targets_read_one_file(tmp_path: Path):
    text = (
        'name = "npu"\nthreads = 3\n[limits]\noperands = 4\n[tile_multiples]\nK = 16\n[fusion]\nonly = ["row-chain"]\n'
    )
    path = _file(tmp_path, text)
    for target in TARGETS:
        found = create_target(f"{target}:{path}").description
        assert (found.name, found.threads, found.tile_multiples) == ("npu", 3, (("K", 16),))
        assert found.rules == TargetRules(only=("row-chain",)) and found.has_tiles
        assert create_target(f"{target}:{path}", 2).description.threads == 2
    record = _same_as_the_interpreter(_layers(), path, threads=2)
    assert record.target == "npu"


# tiles ----------------------------------------------------------------------------------------------------------------


def _inverted_bottleneck() -> onnx.ModelProto:
    """Pointwise, depthwise and pointwise convolutions between ReLUs over an image, of sizes that are no multiples."""
    c, h, w = (int(size) for size in RNG.choice([3, 5, 7, 9, 11, 13], 3))
    text = f"""(float[1, {c}, {h}, {w}] x) => (float[1, 5, {h}, {w}] z) {{
        a = Conv(x, e, eb)
        b = Relu(a)
        d = Conv<group = 17, pads = [1, 1, 1, 1]>(b, f)
        g = Relu(d)
        z = Conv(g, p)
    }}"""
    shapes = {"e": (17, c, 1, 1), "eb": (17,), "f": (17, 1, 3, 3), "p": (5, 17, 1, 1)}
    return onnx_model(text, {name: 0.3 * _normal(shape) for name, shape in shapes.items()})


def _loops(record: CompileRecord, kind: str) -> list[list[int]]:
    found = (node.loops for node in record.fusion_nodes.values() if node.kind == kind)
    return [[int(extent) for extent in loops] for loops in found]


def test_pointwise_and_depthwise_convolutions_have_multiples_of_their_own(tmp_path: Path):
    path = _file(tmp_path, "[tile_multiples.pointwise]\nOC = 8\nIC = 4\n[tile_multiples.depthwise]\nOC = 16\n")
    record = _same_as_the_interpreter(_inverted_bottleneck(), path)
    (depthwise,), products = _loops(record, "depthwise"), _loops(record, "contraction")
    assert 32 in depthwise, "17 channels grow to two tiles of 16"
    assert len(products) == 2 and all(loops[-2] % 8 == 0 and loops[-1] % 4 == 0 for loops in products)
    plain = _same_as_the_interpreter(_inverted_bottleneck(), _file(tmp_path, "[tile_multiples]\nOC = 8\nIC = 4\n"))
    assert 17 in _loops(plain, "depthwise")[0], "others have none unless they are named"


def test_a_pointwise_convolution_has_the_multiples_of_convolutions_beside_none_of_products(tmp_path: Path):
    c, h, w, stride = (int(RNG.choice(sizes)) for sizes in ([3, 5, 7], [5, 7], [9, 11], [1, 2]))
    rows, columns = -(-h // stride), -(-w // stride)
    model = onnx_model(
        f"""(float[1, {c}, {h}, {w}] x) => (float[1, 5, {rows}, {columns}] z) {{
            a = Conv<strides = [{stride}, {stride}]>(x, w)  z = Relu(a) }}""",
        {"w": _normal((5, c, 1, 1))},
    )
    record = _same_as_the_interpreter(model, _file(tmp_path, "[tile_multiples]\nOC = 16\n"))
    found = [*_loops(record, "convolution"), *_loops(record, "contraction")]
    assert len(found) == 1 and 16 in found[0]
    both = _same_as_the_interpreter(model, _file(tmp_path, "[tile_multiples]\nOC = 16\nM = 1\nN = 8\n"))
    assert stride == 2 or 8 in _loops(both, "contraction")[0]


def test_a_pointwise_convolution_with_strides_is_one(tmp_path: Path):
    c = int(RNG.choice([3, 5, 7]))
    model = onnx_model(
        f"(float[1, {c}, 9, 11] x) => (float[1, 5, 5, 6] z) {{ z = Conv<strides = [2, 2]>(x, w) }}",
        {"w": _normal((5, c, 1, 1))},
    )
    record = _same_as_the_interpreter(model, _file(tmp_path, "[tile_multiples.pointwise]\nOC = 8\nOW = 4\n"))
    found = [*_loops(record, "convolution"), *_loops(record, "contraction")]
    assert len(found) == 1 and 8 in found[0]
