"""What users hand to fusion and is wrong: rules that contradict each other, regions that are malformed, target files
with what there is not, plans of another round, options of passes. Each is refused with its code, naming rule, op or
line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import fuseline
from fuseline import api
from fuseline.cli.main import main
from fuseline.cli.run_passes import run_passes
from fuseline.errors import FuselineError
from fuseline.passes.fusion.rule_choice import JOINS, known_names
from tests.draws import RNG
from tests.small_models import SMALL_MODELS

FORM = "form-dispatch-regions"


def _refused(code: str, **choices: Any) -> FuselineError:
    asked: dict[str, Any] = {"target": "null", "threads": 2, "cache": False, **choices}
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(SMALL_MODELS["mlp"](), **asked)
    assert caught.value.code == code, caught.value
    return caught.value


# rules that contradict each other -------------------------------------------------------------------------------------

RULES = """
from fuseline.passes.fusion.decision import Forbid, Legal, NotApplicable
from fuseline.passes.fusion.rule import FusionRule

{classes}

EXPORT = [{names}]
"""
RULE = '''
class R{number}(FusionRule):
    """A rule."""

    name = {name!r}
    after = {after!r}

    def matches(self, merge, graph):
        return {answer}
'''


def _pack(path: Path, *rules: tuple[str, tuple[str, ...], str]) -> Path:
    """A file of rules: name, `after`, what it answers."""
    made = [RULE.format(number=i, name=n, after=a, answer=say) for i, (n, a, say) in enumerate(rules)]
    path.write_text(RULES.format(classes="\n".join(made), names=", ".join(f"R{i}" for i in range(len(rules)))))
    return path


NOTHING = "NotApplicable()"


def test_two_packs_with_a_rule_of_one_name(tmp_path: Path):
    packs = [_pack(tmp_path / f"{file}.py", ("mine", (), NOTHING)) for file in ("one", "two")]
    error = _refused("E0704", rules=packs)
    assert error.node == "mine" and all(str(path) in str(error) for path in packs)


@pytest.mark.parametrize("name", [*known_names(()), "plan", "structure", "elide-concats"])
def test_a_rule_with_a_name_that_is_taken(name: str, tmp_path: Path):
    error = _refused("E0704", rules=[_pack(tmp_path / "mine.py", (name, (), NOTHING))])
    assert error.node == name and "mine.py" in str(error)
    assert ("and in" in error.message) == (name in known_names(()) and name not in JOINS)


@pytest.mark.parametrize(
    ("waits", "circle"),
    [
        ({"a": ("a",)}, "a after a"),
        ({"a": ("b",), "b": ("a",)}, "a after b, b after a"),
        ({"a": ("c", "row-chain"), "b": ("a",), "c": ("b",)}, "a after c, c after b, b after a"),
        ({"a": ("b",), "b": ("c",), "c": ("b",)}, "b after c, c after b"),
    ],
    ids=str,
)
def test_rules_that_wait_for_each_other(waits: dict[str, tuple[str, ...]], circle: str, tmp_path: Path):
    packs = [_pack(tmp_path / f"{name}.py", (name, after, NOTHING)) for name, after in waits.items()]
    error = _refused("E0704", rules=packs)
    assert error.node in waits and circle in error.message


def test_a_rule_after_none(tmp_path: Path):
    error = _refused("E0704", rules=[_pack(tmp_path / "mine.py", ("mine", ("rowchain",), NOTHING))])
    assert error.node == "mine" and "rowchain" in error.message


FORBIDS = "Forbid('apart', 'they stay apart', merge.consumer.root.name)"


@pytest.mark.parametrize("order", [("allows", "forbids"), ("forbids", "allows")])
def test_of_a_rule_that_allows_and_one_that_forbids_the_latter_holds(order: tuple[str, str], tmp_path: Path):
    """No error: it is what `Forbid` is for. The record names the rule that forbade."""
    says = {"allows": "Legal()", "forbids": FORBIDS}
    packs = [_pack(tmp_path / f"{name}.py", (name, (), says[name])) for name in order]
    found = fuseline.compile(SMALL_MODELS["mlp"](), target="null", threads=2, rules=packs, cache=False)
    said = {(one.code, one.rule) for one in found.decisions}
    assert ("apart", "forbids") in said and {rule for _, rule in said} <= {"forbids", "structure"}


@pytest.mark.parametrize("entry", ["groups", "force"])
def test_a_plan_that_asks_for_what_a_rule_forbids(entry: str, tmp_path: Path):
    model = SMALL_MODELS["mlp"]()
    record = fuseline.compile(model, target="null", threads=2, cache=False).record
    edge = next(one for one in record.decisions if one.verdict == "fused" and one.rule not in JOINS)
    pair = f'["{edge.producer}", "{edge.consumer}"]'
    plan = tmp_path / "plan.toml"
    text = f"force = [{pair}]\n" if entry == "force" else f"[[group]]\nops = {pair}\n"
    plan.write_text(f"version = 1\n{text}")
    rule = _pack(tmp_path / "veto.py", ("veto", (), FORBIDS))
    error = _refused("E0703", plan=plan, rules=[rule])
    assert "the rule veto forbids it" in str(error.hint) and f"{edge.producer} -> {edge.consumer}" in error.message


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("rules=row-chain without=row-chain", "row-chain is in rules and in without"),
        ("rules=row-chain,root-chain without=read-in-place,root-chain", "root-chain is in rules and in without"),
        ("level=none fusion=aggressive", "'aggressive'"),
        ("level=none fusion=default", "level is 'none' and fusion, which is the same, 'default'"),
        ("fusion=default level=aggressive", "level is 'aggressive' and fusion, which is the same, 'default'"),
        ("level=none level=default", "level is given twice"),
        ("plan-strict=true plan_strict=false", "plan-strict is given twice"),
        ("rules", "rules is an empty list"),
        ("without", "without is an empty list"),
        ("level=high", "level is 'high'"),
        ("level=3", "Incompatible types"),
        ("rules=rowchain", "rowchain"),
        ("levels=none", "levels"),
        ("plan=3", "Incompatible types"),
        ("rules=", "Unknown argument value"),
    ],
)
def test_options_that_contradict_each_other(
    options: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    error = _refused("E0304", passes=f"cleanup,{FORM}{{{options}}}")
    assert said in error.message and FORM in str(error.node)
    onnx.save(SMALL_MODELS["mlp"](), tmp_path / "m.onnx")
    passes = f"cleanup,{FORM}{{{options}}}"
    assert main(["compile", str(tmp_path / "m.onnx"), "-p", passes, "-o", str(tmp_path / "m.fuse")]) == 2
    assert "E0304" in capsys.readouterr().err and not (tmp_path / "m.fuse").exists()
    (tmp_path / "m.mlir").write_text("func.func @main() { return }")
    assert main(["opt", str(tmp_path / "m.mlir"), "-p", passes, "-o", str(tmp_path / "out.mlir")]) == 2
    assert "E0304" in capsys.readouterr().err and not (tmp_path / "out.mlir").exists()


def test_a_rule_that_one_option_names_and_another_leaves_out():
    given = {FORM: {"rules": ["row-chain"]}}
    error = _refused("E0304", pass_options=given, without_rules=["row-chain"])
    assert "row-chain is in rules and in without" in error.message
    assert "empty list" in _refused("E0304", pass_options={FORM: {"rules": []}}).message


@pytest.mark.parametrize(
    ("passes", "code"),
    [
        (",", "E0304"),
        ("cleanup;fusion", "E0304"),
        ("cleanup fusion", "E0304"),
        ("cse{", "E0304"),
        ("cse}", "E0304"),
        ("cse{x=1}", "E0304"),
        ("pad-to-tile{oh=x},cleanup", "E0304"),
        ("cleanup,pad-to-tile{oh=-3}", "E0304"),
        ("cleanup,pad-to-tile{oc=99999999999}", "E0304"),
        ("cleanup,codegen", "E0303"),
        ("cleanup{x=1}", "E0304"),
        ("fusoin", "E0303"),
        ("cleanup,registry", "E0303"),
        ("", "E0305"),
        ("cleanup,dispatch", "E0305"),
    ],
)
def test_pipelines_that_there_are_not(passes: str, code: str):
    _refused(code, passes=passes, target="cpu")


# a round over malformed regions ---------------------------------------------------------------------------------------

REGION = """func.func @main(%x: tensor<9x7xf32>) -> tensor<9x7xf32> {
  %e = tensor.empty() : tensor<9x7xf32>
  %r = flow.dispatch.region -> (tensor<9x7xf32>)ATTRIBUTES {
    %a = linalg.elementwise <abs> ins(%x : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
    %b = linalg.elementwise <exp> ins(%a : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
    flow.return %b : tensor<9x7xf32>
  }
  return %r : tensor<9x7xf32>
}
"""
MEMBERS = 'fuseline.members = ["one", "two"]'
LOOPS = """fuseline.loops = {grids = [["9", "7"]], members = [array<i64: 0, 1>, array<i64: 0, 1>]}"""


def _round(text: str) -> str:
    return run_passes(text, f"generalize-named-ops,{FORM}", source="m.mlir")


def test_what_the_malformed_ones_are_made_of_is_well_formed():
    for attributes in ("", f" attributes {{{MEMBERS}}}", f" attributes {{{MEMBERS}, {LOOPS}}}"):
        assert _round(REGION.replace("ATTRIBUTES", attributes)).count("flow.dispatch.region") == 1


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('["9", "7"]', '["8", "7"]', "loop 0 runs to 9, its grid loop to 8"),
        ("members = [array<i64: 0, 1>, ", "members = [array<i64: 1, 0>, ", "loop 0 runs to 9, its grid loop to 7"),
        ("members = [array<i64: 0, 1>, ", "members = [array<i64: 0, 5>, ", "no|distinct loops of a grid of 2"),
        ("members = [array<i64: 0, 1>, ", "members = [array<i64: 0, 0>, ", "distinct loops"),
        ("members = [array<i64: 0, 1>, ", "members = [array<i64: 0>, ", "it has 2 loops, not 1"),
        ("members = [array<i64: 0, 1>, ", "members = [", "has 1 members, the body has 2"),
        ("members = [array<i64: 0, 1>, ", 'members = ["placed", ', "does not read"),
        ("members = [array<i64: 0, 1>, ", 'members = ["lost", ', "does not read"),
        ("grids = ", "grid = ", "does not read"),
        ('[["9", "7"]]', '"all"', "does not read"),
        ("fuseline.loops = {", "fuseline.loops = {arms = array<i64: 0, 3>, ", "there is no arm 3"),
        ("fuseline.loops = {", "fuseline.loops = {along = [array<i64: 7, 0>], ", "there is no operand 0 of member 7"),
    ],
)
def test_loops_that_are_not_those_of_the_body(old: str, new: str, said: str):
    text = REGION.replace("ATTRIBUTES", f" attributes {{{MEMBERS}, {LOOPS}}}")
    assert old in text
    with pytest.raises(FuselineError, match=said) as caught:
        _round(text.replace(old, new, 1))
    assert (caught.value.code, caught.value.node) == ("E0302", "two")


@pytest.mark.parametrize(
    ("old", "new", "code", "place"),
    [
        ("-> (tensor<9x7xf32>) {", "-> (tensor<9x8xf32>) {", "E0301", "m.mlir:8"),
        ("-> (tensor<9x7xf32>) {", "-> (tensor<9x7xf64>) {", "E0301", "m.mlir:8"),
        ("-> (tensor<9x7xf32>) {", "-> (tensor<9x7xf32>, tensor<9x7xf32>) {", "E0301|E0302", "m.mlir"),
        ("    flow.return %b : tensor<9x7xf32>\n", "", "E0302", "m.mlir:3"),
        ("flow.return %b", "func.return %b", "E0302", "m.mlir:3"),
        ("flow.return %b : tensor<9x7xf32>", "flow.return", "E0302", "m.mlir:3"),
        (
            "flow.return %b : tensor<9x7xf32>",
            "flow.return %x, %b : tensor<9x7xf32>, tensor<9x7xf32>",
            "E0302",
            "m.mlir:3",
        ),
        ("ins(%a :", "ins(%b :", "E0302", "m.mlir:5"),
        ("ins(%x :", "ins(%r :", "E0302", "m.mlir"),
        ("return %r", "return %a", "E0301", "m.mlir"),
        ("    flow.return", "    cf.br ^bb1\n  ^bb1:\n    flow.return", "E0302", "m.mlir:3"),
        ("flow.return", "func.call @nowhere(%b) : (tensor<9x7xf32>) -> ()\n    flow.return", "E0302", "m.mlir:6"),
    ],
)
def test_bodies_that_are_malformed(old: str, new: str, code: str, place: str, tmp_path: Path):
    text = REGION.replace("ATTRIBUTES", "")
    assert old in text
    with pytest.raises(FuselineError) as caught:
        _round(text.replace(old, new, 1))
    assert caught.value.code in code.split("|") and str(caught.value.node).startswith(place), caught.value
    (tmp_path / "m.mlir").write_text(text.replace(old, new, 1))
    with pytest.raises(FuselineError, match=r"E030[12]"):
        fuseline.compile(tmp_path / "m.mlir", cache=False)


def test_a_value_from_inside_another_region():
    text = REGION.replace("ATTRIBUTES", "").replace(
        "  return %r",
        """  %s = flow.dispatch.region -> (tensor<9x7xf32>) {
    %c = linalg.elementwise <exp> ins(%a : tensor<9x7xf32>) outs(%e : tensor<9x7xf32>) -> tensor<9x7xf32>
    flow.return %c : tensor<9x7xf32>
  }
  return %s""",
    )
    with pytest.raises(FuselineError, match=r"E0301.*%a"):
        _round(text)


@pytest.mark.parametrize("attributes", [f" attributes {{{MEMBERS}}}", f" attributes {{{MEMBERS}, {LOOPS}}}"])
def test_what_is_odd_and_means_something_is_computed(attributes: str, tmp_path: Path):
    """A region of the input, with loops or without, is a node like any other; one without members is of another
    compiler, and goes (`tests/unit/frontends/mlir/test_wrappers.py`)."""
    (tmp_path / "m.mlir").write_text(REGION.replace("ATTRIBUTES", attributes))
    program = fuseline.compile(tmp_path / "m.mlir", cache=False)
    x = RNG.standard_normal((9, 7)).astype(np.float32)
    (found,) = program.run({program.inputs[0].name: x}).values()
    np.testing.assert_allclose(found, np.exp(np.abs(x)), rtol=1e-5)
    assert program.stats["dispatches"] == 1 and program.stats["host_ops"] == 0


# a target file with what there is not ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ('name = "npu"\n[limits]\nwithout_ops = ["tahn"]\n', 3, "tahn"),
        ('[limits]\nops = ["addf", "conv2d"]\n', 2, "conv2d"),
        ('[limits]\nkinds = ["contraction", "attention"]\n', 2, "attention"),
        ('[limits]\nroots = ["matmul"]\n', 2, "matmul"),
        ('[limits]\nelement_types = ["f33"]\n', 2, "f33"),
        ("[limits.attention]\nmembers = 2\n", 1, "attention"),
        ('[limits]\nops = ["addf"]\nwithout_ops = ["addf"]\n', 3, "addf"),
        ("[limits.reduction]\nmembers = 0\n", 2, "members"),
        ('name = "npu"\nthraeds = 3\n', 2, "thraeds"),
        ("threads = 0\n", 1, "threads"),
        ("[tile_multiples]\nM = 16\nQ = 16\n", 3, "Q"),
        ("[tile_multiples]\nM = -16\n", 2, "M"),
        ("[tile_multiples.wide]\nOC = 16\n", 1, "wide"),
        ('[fusion]\nwithout = ["rowchain"]\n', 2, "rowchain"),
        ('[fusion]\nonly = ["row-chain"]\nwithout = ["row-chain"]\n', 3, "row-chain"),
        ("threads = 2\nname = 3\n", 2, "name"),
    ],
)
@pytest.mark.parametrize("target", ["null", "cpu"])
def test_a_line_of_a_target_file(target: str, text: str, line: int, said: str, tmp_path: Path):
    (tmp_path / "npu.toml").write_text(text)
    error = _refused("E0501", target=f"{target}:{tmp_path / 'npu.toml'}")
    assert f"npu.toml:{line}" in str(error) and said in str(error)


# a plan made before another round -------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True])
def test_edges_that_another_round_took_away(strict: bool, tmp_path: Path):
    """A plan of the program as it was: after a round with other passes its ids are gone. They are told one by one, and
    refused when strict; a plan of which nothing is left is refused."""
    model = SMALL_MODELS["convolutions"]()
    plan = tmp_path / "plan.toml"
    plan.write_text(api.emit(model, "plan", target="null", threads=2, passes=f"cleanup,{FORM}"))
    asked: dict[str, Any] = {"target": "null", "threads": 2, "cache": False, "plan": plan, "plan_strict": strict}
    other = f"cleanup,layout,{FORM}{{level=none}},collapse-dims"
    with pytest.raises(FuselineError) as caught:
        fuseline.compile(model, **asked, passes=f'{other},{FORM}{{plan="{plan}"}}')
    assert caught.value.code == "E0702" and "no op of the plan is in the graph" in caught.value.message


def test_a_plan_that_keeps_apart_what_is_together(tmp_path: Path):
    model = SMALL_MODELS["mlp"]()
    record = fuseline.compile(model, target="null", threads=2, cache=False, passes=f"cleanup,{FORM}").record
    edge = next(one for one in record.decisions if one.verdict == "fused")
    plan = tmp_path / "plan.toml"
    plan.write_text(f'version = 1\nforbid = [["{edge.producer}", "{edge.consumer}"]]\n')
    error = _refused("E0702", passes=f'cleanup,{FORM},{FORM}{{plan="{plan}"}}')
    assert error.node in (edge.producer, edge.consumer) and "earlier round" in str(error)
