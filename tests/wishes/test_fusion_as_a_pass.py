"""Fusion as a pass among others: rounds, rules, vetoes, plans (rows 66 to 68, 71, 72 and 74 of docs/wishes.md; row 73,
the search, has its tests in tests/unit/tuning)."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline import api
from fuseline.cli.main import main
from fuseline.passes.fusion.rule_choice import known_names
from fuseline.pipeline import PASS_PHASES
from tests.draws import RNG, generator
from tests.graphs.onnx_text import onnx_model
from tests.small_models import SMALL_MODELS
from tests.wishes.compared import by_default, compiled, missed, moves

BEFORE = "cleanup,layout,padding,materialize-fills,clone-reads"
FORM = "form-dispatch-regions"
NAMES = known_names(())


def _passes(*rounds: str) -> str:
    return ",".join((BEFORE, *rounds))


# rows 66 and 67: several rounds, each with rules of its own -----------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "between"),
    by_default(
        product(["mlp", "convolutions", "attention", "diamond"], ["bubble-expand-shapes", "canonicalize,cse", ""]), 1
    ),
)
def test_row_66_rounds_with_passes_between_come_to_no_more_dispatches(name: str, between: str):
    model, steps = SMALL_MODELS[name](), [between] if between else []
    once = len(compiled(model, passes=_passes(FORM)).record.groups)
    first = compiled(model, passes=_passes(f"{FORM}{{rules=elementwise-cluster}}", *steps))
    second = compiled(model, passes=_passes(f"{FORM}{{rules=elementwise-cluster}}", *steps, FORM))
    assert len(second.record.groups) <= min(once, len(first.record.groups))
    nothing = compiled(model, passes=_passes(f"{FORM}{{level=none}}", *steps, FORM))
    assert len(nothing.record.groups) <= once


@pytest.mark.parametrize(("name", "rule"), by_default(product(["mlp", "convolutions", "attention"], NAMES), 2))
def test_row_67_a_round_asks_the_rules_that_it_names(name: str, rule: str):
    only = compiled(SMALL_MODELS[name](), passes=_passes(f"{FORM}{{rules={rule}}}"))
    said = {decision.rule for decision in only.record.decisions if decision.verdict == "fused"}
    assert said <= {rule, "fuse-row-bands"}
    both = compiled(SMALL_MODELS[name](), passes=_passes(f"{FORM}{{rules={rule}}}", f"{FORM}{{without={rule}}}"))
    later = {decision.rule for decision in both.record.decisions if decision.round == 2 and decision.verdict == "fused"}
    assert rule not in later and len(both.record.groups) <= len(only.record.groups)


# row 68: rules of the user, vetoes ------------------------------------------------------------------------------------

VETO = '''
"""No {op} beside others."""
from fuseline.analysis.structured import is_generic
from fuseline.passes.fusion.decision import Forbid, NotApplicable
from fuseline.passes.fusion.rule import FusionRule


def has(node):
    return is_generic(node.op) and any(inner.name == "{op}" for inner in node.op.walk())


class Veto(FusionRule):
    """Dispatches with {op} have one op."""

    name = "no-{word}"

    def matches(self, merge, graph):
        odd = next((node for node in merge.members if has(node)), None)
        return NotApplicable() if odd is None else Forbid("no-{word}", "the accelerator has none", odd.name)


EXPORT = Veto
'''


@pytest.mark.parametrize("level", ["default", "aggressive"])
@pytest.mark.parametrize(
    ("op", "body"),
    by_default(
        [
            ("math.tanh", "a = MatMul(x, w)  b = Tanh(a)  y = Exp(b)"),
            ("math.exp", "a = MatMul(x, w)  y = Softmax(a)"),
            ("math.sqrt", "a = Abs(x)  b = Sqrt(a)  c = Neg(b)  d = Add(a, c)  y = MatMul(d, w)"),
            ("arith.divf", "e = Exp(x)  a = Abs(x)  f = Add(e, a)  g = Div(x, f)  h = Mul(g, e)  y = Add(h, g)"),
        ],
        2,
    ),
)
def test_row_68_what_a_rule_forbids_is_kept_apart(op: str, body: str, level: str, tmp_path: Path):
    word = op.partition(".")[2]
    (tmp_path / "veto.py").write_text(VETO.format(op=op, word=word))
    weights = {"w": RNG.standard_normal((12, 12)).astype(np.float32)} if " w)" in body else {}
    model = onnx_model(f"(float[n, 12] x) => (y) {{ {body} }}", weights)
    free = compiled(model, {"n": 5}, fusion=level)
    program = compiled(model, {"n": 5}, fusion=level, rules=[tmp_path / "veto.py"])
    assert program.stats["dispatches"] > free.stats["dispatches"]
    assert any((one.code, one.rule) == (f"no-{word}", f"no-{word}") for one in program.decisions), missed(program)


@pytest.mark.parametrize("rule", by_default(NAMES, 1))
def test_row_68_a_rule_is_switched_off_by_name(rule: str, tmp_path: Path):
    onnx.save(SMALL_MODELS["attention"](), tmp_path / "m.onnx")
    given = [
        "compile",
        str(tmp_path / "m.onnx"),
        "--threads",
        "2",
        "--without-rule",
        rule,
        "-o",
        str(tmp_path / "m.fuse"),
    ]
    assert main(given) == 0
    saved = fuseline.load(tmp_path / "m.fuse")
    assert rule not in {decision.rule for decision in saved.record.decisions}
    compiled(SMALL_MODELS["attention"](), without_rules=[rule])


# row 71: diamonds -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("element", ["float", "float16"])
@pytest.mark.parametrize(
    ("rows", "width", "side"),
    by_default(
        [(64, 96, "s = Softmax<axis = -1>(m)"), (7, 33, "s = Sigmoid(m)"), ("n", 40, "s = Softmax<axis = -1>(m)")], 3
    ),
)
def test_row_71_a_diamond_with_a_product_on_one_side(rows: int | str, width: int, side: str, element: str):
    kind = {"float": np.float32, "float16": np.float16}[element]
    weights = {"w": (RNG.standard_normal((width, width)) / width**0.5).astype(kind)}
    text = f"""({element}[{rows}, {width}] x) => (y) {{ p = Tanh(x)  m = MatMul(p, w)  {side}
        q = Exp(p)  t = Add(q, s)  y = Mul(t, p) }}"""
    program = compiled(onnx_model(text, weights), {"n": 9})
    assert (program.stats["dispatches"], moves(program)) == (1, {}), missed(program)


@pytest.mark.parametrize("seed", by_default(range(12), 4))
def test_row_71_branches_of_any_depth_meet(seed: int):
    """Diamonds in diamonds of elementwise ops, some of them results: one dispatch.

    No subtraction: where two nearly equal values cancel, the rounding of either program is the whole result.
    """
    rng = random.Random(int(generator(str(seed)).integers(1 << 30)))
    lines, values = list[str](), ["x"]
    for i in range(rng.randint(5, 14)):
        one, other = rng.choice(values[-4:]), rng.choice(values)
        lines.append(
            f"v{i} = {rng.choice(['Add', 'Mul', 'Max'])}({one}, {other})"
            if rng.random() < 0.6
            else f"v{i} = Tanh({one})"
        )
        values.append(f"v{i}")
    text = " ".join(lines)
    unread = [value for value in values[1:] if f"({value}" not in text and f" {value})" not in text]
    results = sorted({*unread, rng.choice(values[1:])})
    program = compiled(
        onnx_model(f"(float[n, {rng.randint(1, 40)}] x) => ({', '.join(results)}) {{ {text} }}"), {"n": 6}
    )
    assert program.stats["dispatches"] == 1, (text, missed(program))


# row 72: plans --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", by_default(["mlp", "convolutions", "attention"], 1))
@pytest.mark.parametrize("target", ["cpu", "null"])
def test_row_72_a_plan_is_taken_apart_edge_by_edge(name: str, target: str, tmp_path: Path):
    """Each edge that is fused by default can be forbidden by the plan of a platform, and the rest stays."""
    model = SMALL_MODELS[name]()
    plan = tmp_path / "plan.toml"
    plan.write_text(api.emit(model, "plan", target=target, threads=2))
    free = fuseline.compile(model, target=target, threads=2, cache=False)
    again = fuseline.compile(model, target=target, threads=2, plan=plan, cache=False)
    assert again.record.groups == free.record.groups
    edges = [(one.producer, one.consumer) for one in free.decisions if one.verdict == "fused"][:4]
    for producer, consumer in edges:
        plan.write_text(f'version = 1\nforbid = [["{producer}", "{consumer}"]]\n')
        asked: dict[str, Any] = {"target": target, "plan": plan}
        apart = (
            compiled(model, **asked) if target == "cpu" else fuseline.compile(model, threads=2, cache=False, **asked)
        )
        group_of = {op: number for number, group in enumerate(apart.record.groups) for op in group}
        assert group_of[producer] != group_of[consumer]


# row 74: any order ----------------------------------------------------------------------------------------------------

FREE = ["canonicalize", "cse", "fold-constants", "dead-code", *dict.fromkeys(PASS_PHASES["layout"])]


@pytest.mark.parametrize("seed", by_default(range(12), 2))
def test_row_74_passes_run_in_any_order(seed: int):
    rng = random.Random(int(generator(f"order {seed}").integers(1 << 30)))
    order = rng.sample(FREE, rng.randint(3, len(FREE)))
    at = rng.randint(0, len(order))
    rounds = [FORM] if rng.random() < 0.5 else [f"{FORM}{{level=none}}", rng.choice(FREE), FORM]
    name = rng.choice(sorted(SMALL_MODELS))
    steps = ",".join(("cleanup", *order[:at], *rounds, *(["dead-code"] if at % 2 else [])))
    compiled(SMALL_MODELS[name](), {"batch": 2, "length": 5, "n": 3, "N": 2}, passes=steps)


@pytest.mark.parametrize("target", ["null", "cpu", "interpreter"])
def test_row_74_opt_is_told_of_a_target(target: str, tmp_path: Path):
    source = tmp_path / "m.mlir"
    onnx.save(SMALL_MODELS["mlp"](), tmp_path / "m.onnx")
    assert main(["compile", str(tmp_path / "m.onnx"), "--target", "null", "--emit", "input", "-o", str(source)]) == 0
    given = ["opt", str(source), "-p", "cleanup,layout,fusion", "--target", target]
    assert main([*given, "-o", str(tmp_path / "out.mlir")]) == 0
    assert "flow.dispatch.region" in (tmp_path / "out.mlir").read_text()
