"""Plans and rules on the command line: written, edited, followed, refused."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import onnx
import pytest

import fuseline
from fuseline.cli.main import main
from tests.small_models import attention, mlp

RULE = '''
from fuseline.passes.fusion.decision import WhyNot
from fuseline.passes.fusion.rule import FusionRule

class Refuse(FusionRule):
    """Keeps all apart."""

    name = "refuse"

    def matches(self, merge, graph):
        {body}

EXPORT = Refuse
'''


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    onnx.save(mlp(), tmp_path / "m.onnx")
    onnx.save(attention(), tmp_path / "a.onnx")
    return tmp_path


def _json(arguments: list[str], capsys: pytest.CaptureFixture[str], code: int = 0) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def _stats(model: Path, capsys: pytest.CaptureFixture[str], *more: str) -> dict[str, Any]:
    return _json(["stats", str(model), "--target", "null", "--threads", "2", *more], capsys)


def _plan(model: Path, *more: str) -> Path:
    path = model.with_suffix(".toml")
    assert (
        main(["compile", str(model), "--emit", "plan", "-o", str(path), "--target", "null", "--threads", "2", *more])
        == 0
    )
    return path


def test_a_plan_is_written_and_followed(folder: Path, capsys: pytest.CaptureFixture[str]):
    model = folder / "a.onnx"
    plan = _plan(model)
    followed = _stats(model, capsys, "--plan", str(plan), "--plan-strict")
    assert followed["warnings"] == []
    assert followed["dispatches"] == _stats(model, capsys)["dispatches"] == plan.read_text().count("[[group]]")


def test_groups_taken_out_of_a_plan_change_the_program(folder: Path, capsys: pytest.CaptureFixture[str]):
    model = folder / "a.onnx"
    plan = _plan(model, "--fusion", "none")
    alone = plan.read_text().count("[[group]]")
    assert _stats(model, capsys, "--plan", str(plan))["dispatches"] == alone > _stats(model, capsys)["dispatches"]


def test_a_stale_entry_is_a_warning_and_strict_refuses_it(folder: Path, capsys: pytest.CaptureFixture[str]):
    plan = _plan(folder / "m.onnx")
    plan.write_text(plan.read_text() + '[[group]]\nops = ["copy.00000000"]\n')
    number = plan.read_text().count("[[group]]")
    words = f"group {number} does not match: 00000000 not in the graph"
    assert _stats(folder / "m.onnx", capsys, "--plan", str(plan))["warnings"] == [f"plan: {words}; skipped"]
    capsys.readouterr()
    assert main(["explain", str(folder / "m.onnx"), "--target", "null", "--threads", "2", "--plan", str(plan)]) == 0
    assert words in capsys.readouterr().err
    error = _json(
        ["stats", str(folder / "m.onnx"), "--target", "null", "--plan", str(plan), "--plan-strict"], capsys, 1
    )["error"]
    assert (error["code"], error["message"]) == ("E0702", words)


def test_what_the_plan_was_made_for_is_told(folder: Path, capsys: pytest.CaptureFixture[str]):
    plan = _plan(folder / "m.onnx")
    plan.write_text(re.sub("threads = 2", "threads = 7", plan.read_text()))
    assert _stats(folder / "m.onnx", capsys, "--plan", str(plan), "--plan-strict")["warnings"] == [
        "plan: made for threads 7, this is 2"
    ]


def test_a_plan_of_another_model_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]):
    plan = _plan(folder / "m.onnx")
    error = _json(["stats", str(folder / "a.onnx"), "--target", "null", "--plan", str(plan)], capsys, 1)["error"]
    assert (error["code"], error["node"]) == ("E0702", "m.onnx")


def test_a_broken_plan_is_refused(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "p.toml").write_text("version = 9")
    error = _json(["stats", str(folder / "m.onnx"), "--plan", str(folder / "p.toml")], capsys, 1)["error"]
    assert error["code"] == "E0701"


def test_plans_in_python(folder: Path):
    program = fuseline.compile(folder / "a.onnx", target="null", threads=2)
    (folder / "p.toml").write_text(program.plan)
    followed = fuseline.compile(folder / "a.onnx", target="null", threads=2, plan=folder / "p.toml", plan_strict=True)
    assert followed.record.groups == program.record.groups


def test_a_plan_goes_through_opt(folder: Path, capsys: pytest.CaptureFixture[str]):
    model = folder / "a.onnx"
    assert (
        main(
            [
                "compile",
                str(model),
                "--emit",
                "padding",
                "-o",
                str(folder / "m.mlir"),
                "--target",
                "null",
                "--threads",
                "2",
            ]
        )
        == 0
    )
    arguments = ["opt", str(folder / "m.mlir"), "-p"]
    assert main([*arguments, "form-dispatch-regions{fusion=none}"]) == 0
    apart = capsys.readouterr().out.count("flow.dispatch.region")
    plan = _plan(model)
    assert main([*arguments, f'form-dispatch-regions{{fusion=none plan="{plan}"}}']) == 0
    assert capsys.readouterr().out.count("flow.dispatch.region") < apart


def test_rules_are_listed_with_those_of_a_file(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "r.py").write_text(RULE.format(body="return WhyNot('no-rule', 'apart')"))
    for command in ("compile", "opt"):
        rules = {
            rule["name"]: rule
            for rule in _json([command, "--list-rules", "--rules", str(folder / "r.py")], capsys)["rules"]
        }
        assert rules["refuse"] == {
            "name": "refuse",
            "shape": "shared",
            "after": [],
            "summary": "Keeps all apart.",
            "origin": str(folder / "r.py"),
        }
        assert rules["row-chain"]["origin"] == "built-in"
    assert main(["compile", "--list-rules"]) == 0
    assert "elementwise-epilogue" in capsys.readouterr().out


def test_a_model_is_still_asked_for(capsys: pytest.CaptureFixture[str]):
    assert "MODEL" in _json(["compile"], capsys, 2)["error"]["message"]


@pytest.mark.parametrize(
    ("body", "words"), [("return 1 / 0", "it raised ZeroDivisionError"), ("return None", "it answered None")]
)
def test_a_wrong_rule_is_named_with_the_candidate(
    body: str, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
):
    (folder / "r.py").write_text(RULE.format(body=body))
    error = _json(["stats", str(folder / "m.onnx"), "--target", "null", "--rules", str(folder / "r.py")], capsys, 1)[
        "error"
    ]
    assert (error["code"], error["node"]) == ("E0704", "refuse")
    assert words in error["message"]
    assert " -> " in error["message"]


def test_rules_are_asked_by_opt_too(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "r.py").write_text(
        RULE.format(body="return WhyNot('no-rule', 'apart by wish') if merge.producer.reduces else 3")
    )
    assert (
        main(["compile", str(folder / "m.onnx"), "--emit", "padding", "-o", str(folder / "m.mlir"), "--target", "null"])
        == 0
    )
    assert main(["opt", str(folder / "m.mlir"), "-p", "explain-fusion", "--rules", str(folder / "r.py")]) == 1
    assert "E0704" in capsys.readouterr().err
