"""`fuseline tune`, mostly on a target without code, where a trial is a prediction."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import optuna
import pytest

import fuseline
from fuseline.cli.main import main
from fuseline.passes.fusion.plan import read_plan
from fuseline.verify.inputs import generate
from tests.graphs.onnx_builder import Builder
from tests.small_models import attention

FLOAT = onnx.TensorProto.FLOAT


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tune") / "attention.onnx"
    onnx.save(attention(), path)
    return path


@pytest.fixture(scope="module")
def chain(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Convolutions with poolings that the cost model keeps apart, for the threads' sake."""
    b = Builder(4)
    x = "x"
    for inner, outer, window in ((1, 8, 2), (8, 16, 3)):
        filters, bias = b.weight(outer, inner, 5, 5, scale=0.1), b.weight(outer)
        x = b.node("Relu", b.node("Conv", x, filters, bias, kernel_shape=[5, 5], pads=[2, 2, 2, 2]))
        x = b.node("MaxPool", x, kernel_shape=[window, window], strides=[window, window])
    path = tmp_path_factory.mktemp("tune") / "chain.onnx"
    onnx.save(b.model({"x": (FLOAT, (1, 1, 28, 28))}, {x: (1, 16, 4, 4)}), path)
    return path


def tuned(capsys: pytest.CaptureFixture[str], model: Path, *words: object, code: int = 0) -> dict[str, Any]:
    """The document of `tune --json`."""
    assert main(["tune", str(model), "--target", "null", "--json", *map(str, words)]) == code
    return json.loads(capsys.readouterr().out)


def test_a_target_without_code_is_predicted(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plan = tmp_path / "t.plan"
    found = tuned(capsys, chain, "--budget", "12 trials", "-o", plan)
    best = found["trials"][found["best"]]
    assert found["kept"] == "tuned" and best["relative"] < 1 and len(found["trials"]) <= 12
    assert found["confirmed"] is None and found["failures"].keys() <= {"E0702", "E0703"}
    record = fuseline.compile(chain, target="null", plan=plan).record
    assert sum(dispatch.predicted_ns for dispatch in record.dispatches) == pytest.approx(best["seconds"] * 1e9)
    assert [change.knob for change in record.tuned] == [change["knob"] for change in found["changes"]]


def test_memory_may_be_what_counts(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    given = ("--budget", "10 trials", "--objective", "transient_bytes,time", "-o", tmp_path / "t.plan")
    found = tuned(capsys, model, *given)
    values = [found["trials"][number]["values"] for number in found["front"]]
    assert values and values == sorted(values)
    assert all(found["trials"][0]["values"][0] >= first for first, _ in values)


def test_text_says_what_was_found(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    plan, page = tmp_path / "t.plan", tmp_path / "t.html"
    assert (
        main(["tune", str(chain), "--target", "null", "--budget", "10 trials", "-o", str(plan), "--report", str(page)])
        == 0
    )
    shown = capsys.readouterr()
    assert re.search(r"10 trials in .*the budget is spent", shown.out) and "gained by itself" in shown.out
    assert "best" in shown.err and "study: " in shown.err
    text = page.read_text()
    assert text.count("<svg") >= 1 and "http" not in text.replace("http://www.w3.org", "")
    assert read_plan(plan).tuned is not None


def test_a_recorded_search_is_replayed(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    log, first, second = (tmp_path / name for name in ("log", "a.plan", "b.plan"))
    ours = tuned(capsys, model, "--budget", "6 trials", "--seed", 5, "--record", log, "-o", first)
    again = tuned(capsys, model, "--replay", log, "-o", second)
    assert again["trials"] == ours["trials"] and again["seed"] == 5
    assert second.read_text() == first.read_text()


def test_a_search_that_goes_on_keeps_its_seed(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    given = ("--storage", tmp_path / "s.db", "-o", tmp_path / "t.plan")
    tuned(capsys, model, "--budget", "2 trials", "--seed", 5, *given)
    words = ["tune", str(model), "--target", "null", "--resume", "--seed", "7", "--budget", "3 trials"]
    assert main([*words, *map(str, given)]) == 0
    assert "--seed 7 is not used" in capsys.readouterr().err


@pytest.mark.slow
def test_another_model_does_not_replay(model: Path, chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    log, plan = tmp_path / "log", tmp_path / "t.plan"
    tuned(capsys, model, "--budget", "6 trials", "--record", log, "-o", plan)
    before = plan.read_bytes()
    error = tuned(capsys, chain, "--replay", log, "-o", plan, code=1)["error"]
    assert error["code"] == "E1002" and plan.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "code", "exit_code"),
    [
        (["--budget", "soon"], "E0501", 2),
        (["--space", "plan,order"], "E0501", 2),
        (["--objective", "speed"], "E0501", 2),
        (["--resume"], "E1001", 1),
        (["--storage", "FILE"], "E1001", 1),
        (["--replay", "FILE"], "E1002", 1),
        (["--record", "FILE"], "E0502", 1),
        (["--replay", "FILE", "--resume"], "E0501", 2),
    ],
)
def test_bad_input_is_coded_and_nothing_is_written(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: str, exit_code: int
):
    other, plan = tmp_path / "other.txt", tmp_path / "t.plan"
    other.write_text("something else\n" * 50)
    plan.write_text("mine")
    given = [str(other) if word == "FILE" else word for word in words]
    error = tuned(capsys, model, "--budget", "3 trials", "-o", plan, *given, code=exit_code)["error"]
    assert error["code"] == code
    assert plan.read_text() == "mine" and other.read_text() == "something else\n" * 50


def test_a_missing_package_is_one_line(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("fuseline.tuning.extra.find_spec", lambda name: None)
    error = tuned(capsys, model, "-o", tmp_path / "t.plan", code=1)["error"]
    assert error["code"] == "E0503" and error["hint"] == "pip install 'fuseline[tune]'"


def begun(model: Path, folder: Path, *words: str) -> subprocess.Popen[bytes]:
    """`fuseline tune` as a process, in a session of its own."""
    command = [sys.executable, "-m", "fuseline", "tune", str(model), "--target", "null", *words]
    environment = {**os.environ, "FUSELINE_CACHE_DIR": str(folder / "cache")}
    return subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )


def wait_for_trials(file: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    """Until so many trials are told."""
    end = time.monotonic() + 200
    while time.monotonic() < end and process.poll() is None:
        if file.exists() and told(file) >= count:
            return
        time.sleep(0.05)
    raise AssertionError(process.communicate())


def told(file: Path) -> int:
    """How many trials of the only study are over."""
    try:
        storage = f"sqlite:///{file}"
        (name,) = optuna.get_all_study_names(storage)
        trials = optuna.load_study(study_name=name, storage=storage).get_trials(deepcopy=False)
    except Exception:  # noqa: BLE001 - it is being made
        return 0
    return sum(trial.state.is_finished() for trial in trials)


def test_a_killed_search_goes_on_with_nothing_lost(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file, plan = tmp_path / "s.db", tmp_path / "t.plan"
    process = begun(model, tmp_path, "--budget", "1000 trials", "--storage", str(file), "-o", str(plan))
    wait_for_trials(file, 4, process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    before = told(file)
    assert not plan.exists() and before >= 4
    total = before + 2
    found = tuned(capsys, model, "--budget", f"{total} trials", "--storage", file, "--resume", "-o", plan)
    whole = tuned(capsys, model, "--budget", f"{total} trials", "--storage", tmp_path / "w.db", "-o", plan)
    assert [row["changes"] for row in found["trials"]] == [row["changes"] for row in whole["trials"]]
    assert [row["number"] for row in found["trials"]] == list(range(total)) and told(file) == total


@pytest.mark.slow
def test_ctrl_c_keeps_the_best(model: Path, tmp_path: Path):
    file, plan = tmp_path / "s.db", tmp_path / "t.plan"
    process = begun(model, tmp_path, "--budget", "1000 trials", "--storage", str(file), "-o", str(plan), "--json")
    wait_for_trials(file, 3, process)
    os.killpg(process.pid, signal.SIGINT)
    out, problem = process.communicate(timeout=200)
    assert process.returncode == 130, problem
    found = json.loads(out)
    assert found["ended"] == "interrupted" and len(found["trials"]) >= 3
    fuseline.compile(model, target="null", plan=plan)


def test_on_the_machine_end_to_end(chain: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A few trials that are compiled, checked and timed; what is found computes what the interpreter does."""
    plan = tmp_path / "t.plan"
    words = ["--budget", "4 trials", "--space", "plan,dedup,threads", "--rounds", "3", "-o", str(plan), "--json"]
    assert main(["tune", str(chain), *words]) == 0
    found = json.loads(capsys.readouterr().out)
    assert len(found["trials"]) == 4 and found["machine"] != "none"
    assert {row["state"] for row in found["trials"]} <= {"complete", "pruned", "failed"}
    program, oracle = fuseline.compile(chain, plan=plan), fuseline.compile(chain, target="interpreter")
    feeds = generate(oracle.inputs, seed=1)
    for name, expected in oracle.run(feeds).items():
        assert np.ptp(expected) > 0
        np.testing.assert_allclose(program.run(feeds)[name], expected, rtol=1e-3, atol=1e-5)
