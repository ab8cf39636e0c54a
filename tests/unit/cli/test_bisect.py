"""`fuseline bisect` as it is typed."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import onnx
import pytest

from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.passes.registry import load_pass
from fuseline.verify.bisect import slow
from tests.draws import generator
from tests.graphs.onnx_text import onnx_model
from tests.unit.verify.bisect.faults import wrong_family, wrong_merge

W = generator(__name__).standard_normal((8, 6))
TEXT = "(float[n, 8] x) => (y) { [product] p = MatMul(x, w) [bend] y = Relu(p) }"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = tmp_path / "m.onnx"
    onnx.save(onnx_model(TEXT, w=W.astype("float32")), path)
    return path


def _document(capsys: pytest.CaptureFixture[str], *words: object) -> dict[str, Any]:
    assert main([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_wrong_kernel_is_named(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with wrong_family("contraction", lambda text: text.replace("fcmp ogt", "fcmp olt")):
        found = _document(capsys, "bisect", model, "--against", "interpreter")
    assert found["culprits"][0]["kind"] == "kernel" and found["culprits"][0]["what"] == "contraction"
    assert "contraction" in found["verdict"] and found["runs"] > 1 and found["fuel"]


def test_a_program_that_is_right_has_nothing_to_look_for(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["bisect", str(model), "--against", "true"]) == 1
    assert "E0614" in capsys.readouterr().err
    assert main(["bisect", str(model), "--against", "interpreter", "--fusion", "none"]) == 1
    assert "E0614" in capsys.readouterr().err


def test_a_command_that_is_never_satisfied_leaves_no_decision(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = _document(capsys, "bisect", model, "--against", "false")
    assert found["culprits"][0]["kind"] == "needed-pass" and "exit code 1" in found["shown"] and not found["fuel"]


def test_a_compile_that_fails_is_looked_into(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kind = load_pass("collapse-dims")

    def fail(self: Any, ctx: Any, op: Any) -> None:
        raise FuselineError("E0901", "planted")

    with mock.patch.object(kind, "apply", fail):
        found = _document(capsys, "bisect", model, "--against", "interpreter")
    assert found["culprits"][0]["kind"] == "pass" and found["culprits"][0]["what"] == "collapse-dims"
    assert "E0901" in found["shown"]


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (["bisect", "none.onnx"], "E0101"),
        (["bisect", "m.fuse"], "E0501"),
        (["bisect", "MODEL", "--against", "no-such-command-here"], "E0501"),
        (["bisect", "MODEL", "--against", "other.plan"], "E0501"),
        (["bisect", "MODEL", "--from-plan", "MODEL"], "E0501"),
        (["bisect", "MODEL", "--from-plan", "no-such.plan", "--plan", "MODEL"], "E0501"),
        (["bisect", "MODEL", "--from-plan", "MODEL", "--plan", "MODEL"], "E0701"),
        (["compile", "MODEL", "--fuel", "fusion"], "E0501"),
        (["compile", "MODEL", "--fuel", "luck=3"], "E0501"),
    ],
)
def test_what_is_refused(words: list[str], code: str, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(model) if word == "MODEL" else word for word in words]) in (1, 2)
    assert code in capsys.readouterr().err


def test_fuel_is_an_option_of_a_compile(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = _document(capsys, "stats", model, "--no-cache")
    none = _document(capsys, "stats", model, "--fuel", "fusion=0")
    assert none["dispatches"] > whole["dispatches"]
    some = _document(capsys, "stats", model, "--fuel", "fusion=0", "--fuel", "kernel=0", "--decisions")
    assert any(row["code"] == "out-of-fuel" for row in some["decisions"])


@pytest.mark.parametrize("costs", [True, False])
def test_time_is_looked_into_by_the_clock(costs: bool, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A clock by which programs of one dispatch take three times as long as others, or all the same."""

    def clock(artifacts: Sequence[Any]) -> list[np.ndarray]:
        steps = [len(artifact.program.steps) for artifact in artifacts]
        return [np.full(9, 3.0 if costs and count == min(steps) < max(steps) else 1.0) for count in steps]

    with mock.patch.object(slow, "clock_of", lambda feeds, threads: clock):
        if not costs:
            assert main(["bisect", str(model), "--metric", "time"]) == 1
            assert "E0614" in capsys.readouterr().err
            return
        found = _document(capsys, "bisect", model, "--metric", "time")
    assert found["culprits"][0]["kind"] == "fusion" and found["lacking"] == "fusion" and "3.000 times" in found["shown"]
    assert found["alone"] == "gone" and "forbid = [\n" in found["plan"]


CHAIN = """(float[n, 8] x) => (y) {
    [product] p = MatMul(x, w) [bend] r = Mul(p, p) [next] q = MatMul(r, v) [round] y = Mul(q, q)
}"""


@pytest.fixture
def chain(tmp_path: Path) -> Path:
    path = tmp_path / "chain.onnx"
    v = generator("chain").standard_normal((6, 5)).astype("float32")
    onnx.save(onnx_model(CHAIN, w=W.astype("float32"), v=v), path)
    return path


def test_a_plan_around_the_guilty_merge_is_written(
    chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "around.plan"
    with wrong_merge("product", "bend"):
        found = _document(capsys, "bisect", chain, "--against", "interpreter", "-o", plan)
        assert found["alone"] == "gone" and found["plan"] == plan.read_text()
        assert main(["bisect", str(chain), "--against", "interpreter", "--plan", str(plan)]) == 1
        assert "E0614" in capsys.readouterr().err
    head = plan.read_text()
    assert "elementwise-epilogue: product, bend" in head and 'target = "cpu' in head and 'graph = "' in head
    whole = _document(capsys, "stats", chain)
    apart = _document(capsys, "stats", chain, "--plan", plan, "--plan-strict")
    assert apart["dispatches"] == whole["dispatches"] + 1


def test_other_merges_show_it_too(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "around.plan"
    with wrong_merge("product", "bend"), wrong_merge("next", "round"):
        assert main(["bisect", str(chain), "--against", "interpreter", "-o", str(plan)]) == 1
    told = capsys.readouterr()
    assert "still there, other merges show it too" in told.out
    assert "E0615" in told.err and "--fuel fusion=" in told.err and not plan.exists()


def test_a_merge_that_the_plan_of_the_user_forces_cannot_be_forbidden(
    chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    record = _document(capsys, "stats", chain, "--decisions")
    ends = next([row["producer"], row["consumer"]] for row in record["decisions"] if row["consumer_nodes"] == ["bend"])
    given = tmp_path / "given.plan"
    given.write_text(f"version = 1\nforce = {json.dumps([ends])}\n")
    with wrong_merge("product", "bend"):
        found = _document(capsys, "bisect", chain, "--against", "interpreter", "--plan", given)
    assert found["alone"] == "refused" and "E0701" in found["alone_detail"] and not found["plan"]
    assert "No plan forbids this merge alone" in found["verdict"]


def test_no_plan_where_no_merge_does_it(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = tmp_path / "around.plan"
    assert main(["bisect", str(model), "--against", "false", "-o", str(plan)]) == 1
    told = capsys.readouterr().err
    assert "E0615" in told and "no merge" in told and not plan.exists()
    assert main(["bisect", str(model), "--json", "-o", "-"]) == 2
    assert "E0501" in capsys.readouterr().out


def _plans(chain: Path) -> tuple[Path, Path]:
    """Each op alone, and as a compile fuses."""
    paths = chain.with_name("none.plan"), chain.with_name("whole.plan")
    for path, level in zip(paths, ("none", "default"), strict=True):
        assert main(["compile", str(chain), "--emit", "plan", "-o", str(path), "--fusion", level]) == 0
    return paths


def test_between_two_plans_the_decision_is_named(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none, whole = _plans(chain)
    around = chain.with_name("around.plan")
    words = ["bisect", chain, "--against", "interpreter", "--plan", whole, "--from-plan", none]
    capsys.readouterr()
    with wrong_merge("next", "round"):
        found = _document(capsys, *words, "-o", around)
        assert main(["bisect", str(chain), "--against", "interpreter", "--plan", str(around)]) == 1
        assert "E0614" in capsys.readouterr().err
    (culprit,) = found["culprits"]
    assert culprit["kind"] == "join" and {"next", "round"} <= set(culprit["nodes"])
    assert found["plans"] == [str(none), str(whole)] and found["alone"] == "gone" and not found["fuel"]
    assert around.read_text() == found["plan"] and "without the decision" in found["plan"]


def test_between_two_plans_a_command_and_time_tell(chain: Path, capsys: pytest.CaptureFixture[str]) -> None:
    none, whole = map(str, _plans(chain))
    capsys.readouterr()
    assert main(["bisect", str(chain), "--against", "false", "--plan", whole, "--from-plan", none]) == 1
    assert "leave --from-plan out" in capsys.readouterr().err
    assert main(["bisect", str(chain), "--against", "true", "--plan", whole, "--from-plan", whole]) == 1
    assert "E0614" in capsys.readouterr().err

    def clock(artifacts: Sequence[Any]) -> list[np.ndarray]:
        return [np.full(9, float(len(artifact.program.steps))) for artifact in artifacts]

    with mock.patch.object(slow, "clock_of", lambda feeds, threads: clock):
        found = _document(
            capsys, "bisect", chain, "--metric", "time", "--plan", none, "--from-plan", whole, "--threads", 1
        )
        assert (
            found["culprits"][0]["kind"] == "split" and found["alone"] == "gone" and "times as long" in found["shown"]
        )
        assert main(["bisect", str(chain), "--metric", "time", "--plan", whole, "--from-plan", none]) == 1
