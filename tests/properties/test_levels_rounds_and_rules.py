"""Outputs are those of the interpreter under every level, after every round of fusion, with every rule and join of the
tree switched off, one at a time: on graphs in each of which one of them decides, and on random ones."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline.passes.dispatch.form_dispatch_regions import FUSION_LEVELS
from fuseline.passes.fusion.rule_choice import known_names
from tests.draws import RNG
from tests.graphs.onnx_text import onnx_model
from tests.properties.random_models import RandomModel
from tests.small_models import SMALL_MODELS
from tests.wishes.compared import agree, by_default

NAMES = known_names(())
BEFORE = "cleanup,layout,padding,materialize-fills,clone-reads"
BETWEEN = "bubble-expand-shapes,canonicalize,cse"


def _weights(*shape: int) -> Any:
    return (RNG.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32)


def _size(low: int, high: int) -> int:
    return int(RNG.integers(low, high))


def _tiles() -> onnx.ModelProto:
    """Sizes that are no whole tiles: for `slice-epilogue`, and the target that it is for."""
    n, k = _size(2, 9), _size(3, 20)
    return onnx_model(f"(float[{n}, {k}] x) => (y) {{ m = MatMul(x, w)  y = Tanh(m) }}", w=_weights(k, 27))


def _bottleneck() -> onnx.ModelProto:
    side, ins, wide = _size(9, 17), _size(4, 9), _size(12, 40)
    text = f"""(float[1, {ins}, {side}, {side}] x) => (y) {{ a = Conv(x, u)  b = Clip(a, low, high)
        c = Conv<group = {wide}, pads = [1, 1, 1, 1], strides = [2, 2]>(b, v)
        d = Clip(c, low, high)  y = Conv(d, w) }}"""
    weights = {"u": _weights(wide, ins, 1, 1), "v": _weights(wide, 1, 3, 3), "w": _weights(8, wide, 1, 1)}
    return onnx_model(text, weights, low=np.float32(0), high=np.float32(6))


def _parts() -> onnx.ModelProto:
    n, j, k = _size(2, 12), _size(5, 30), _size(5, 30)
    body = "a = MatMul(x, u)  b = MatMul(z, v)  y = Concat<axis = 1>(a, b)"
    return onnx_model(
        f"(float[{n}, {j}] x, float[{n}, {k}] z) => (y) {{ {body} }}", u=_weights(j, 24), v=_weights(k, 16)
    )


def _projections() -> onnx.ModelProto:
    n, k = _size(2, 30), _size(8, 50)
    text = f"(float[{n}, {k}] x) => (p, q, r) {{ p = MatMul(x, u)  q = MatMul(x, v)  r = Tanh(x) }}"
    return onnx_model(text, u=_weights(k, 24), v=_weights(k, 16))


def _towers() -> onnx.ModelProto:
    n, m = _size(2, 30), _size(2, 50)
    return onnx_model(f"(float[{n}, {m}] x, float[{n}, {m}] z) => (a, b) {{ a = Tanh(x)  b = Exp(z) }}")


def _small() -> onnx.ModelProto:
    n, m = _size(2, 30), _size(2, 50)
    return onnx_model(f"(float[{n}, {m}] x, float[5] z) => (a, b) {{ a = Softmax(x)  b = Neg(z) }}")


def _random() -> onnx.ModelProto:
    program = [tuple(int(number) for number in row) for row in RNG.integers(0, 41, (_size(4, 14), 3))]
    return RandomModel(_size(0, 1 << 16)).build([(one[0], one[1], one[2]) for one in program])


GRAPHS: dict[str, Callable[[], onnx.ModelProto]] = {
    "tiles": _tiles,
    "bottleneck": _bottleneck,
    "parts": _parts,
    "projections": _projections,
    "towers": _towers,
    "small": _small,
    **SMALL_MODELS,
    "random": _random,
}


def _check(model: onnx.ModelProto, *programs: dict[str, Any]) -> list[fuseline.CompiledModel]:
    """Each program computes what the interpreter does without fusion."""
    reference = fuseline.compile(model, target="interpreter", fusion="none", cache=False)
    feeds = {
        one.name: RNG.integers(0, 40, shape).astype(one.dtype)
        if one.dtype.kind == "i"
        else RNG.standard_normal(shape).astype(one.dtype)
        for one in reference.inputs
        for shape in [[size if isinstance(size, int) else 5 for size in one.shape]]
    }
    wanted, found = reference.run(feeds), list[fuseline.CompiledModel]()
    for choices in programs:
        found.append(fuseline.compile(model, threads=2, cache=False, **choices))
        outputs = found[-1].run(feeds)
        for name, expected in wanted.items():
            agree(outputs[name], expected, f"{name} of {choices}")
    return found


@pytest.fixture
def target(graph: str, tmp_path: Path) -> str:
    """The CPU; of whole tiles for the graph that is about those."""
    if graph != "tiles":
        return "cpu"
    (tmp_path / "npu.toml").write_text("[tile_multiples]\nM = 4\nN = 16\n")
    return f"cpu:{tmp_path / 'npu.toml'}"


def _decided(name: str, graph: str, target: str) -> bool:
    model = GRAPHS[graph]()
    programs = (fuseline.compile(model, target=target, fusion=level, cache=False) for level in FUSION_LEVELS)
    return any(one.rule == name and one.verdict == "fused" for program in programs for one in program.record.decisions)


@pytest.mark.parametrize(
    ("name", "graph"),
    by_default(
        {
            "slice-epilogue": "tiles",
            "channel-window": "bottleneck",
            "concat-slices": "parts",
            "shared-operand": "projections",
            "same-space": "towers",
            "small-ops": "small",
            "elementwise-cluster": "diamond",
            "elementwise-epilogue": "mlp",
            "row-chain": "mlp",
            "root-chain": "attention",
            "read-in-place": "convolutions",
        }.items(),
        6,
    ),
)
def test_no_rule_is_switched_off_in_vain(name: str, graph: str, target: str):
    assert any(_decided(name, graph, target.replace("cpu:", "null:")) for _ in range(4))


@pytest.mark.parametrize(
    ("without", "graph"), [*by_default(product(NAMES, GRAPHS), 0), *zip(NAMES, [*GRAPHS] * 2, strict=False)]
)
def test_every_level_with_a_rule_switched_off(without: str, graph: str, target: str):
    levels = [{"target": target, "without_rules": [without], "fusion": level} for level in FUSION_LEVELS]
    for program in _check(GRAPHS[graph](), *levels):
        assert without not in {decision.rule for decision in program.record.decisions}


@pytest.mark.parametrize(
    ("without", "level", "graph"), by_default(product(NAMES, FUSION_LEVELS, ["random", *GRAPHS]), 2)
)
def test_every_round_with_a_rule_switched_off(without: str, level: str, graph: str, target: str):
    """First without the rule, then under this level, then without it again: right after each, and never more
    dispatches than after the one before."""
    form = "form-dispatch-regions"
    rounds = [
        BEFORE,
        f"{form}{{without={without}}}",
        BETWEEN,
        f"{form}{{level={level}}}",
        f"{form}{{without={without}}}",
    ]
    programs = _check(GRAPHS[graph](), *({"passes": ",".join(rounds[:count])} for count in (2, 4, 5)))
    counts = [len(program.record.groups) for program in programs]
    assert counts == sorted(counts, reverse=True)


@pytest.mark.parametrize("graph", ["mlp", "attention", "diamond", "convolutions", "projections", "small"])
def test_a_round_with_one_rule_takes_nothing_from_the_next(graph: str):
    """However a first round restricts itself, a second with all rules comes to no more dispatches than one alone."""
    model, form = GRAPHS[graph](), "form-dispatch-regions"
    alone = _check(model, {"passes": f"{BEFORE},{form}"})[0]
    chosen = [NAMES[int(i)] for i in RNG.permutation(len(NAMES))[:4]]
    rounds = [f"{BEFORE},{form}{{{which}={name}}},{form}" for name in chosen for which in ("rules", "without")]
    for program in _check(model, *({"passes": passes} for passes in rounds)):
        assert len(program.record.groups) <= len(alone.record.groups)
