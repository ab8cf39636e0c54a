"""`make fuzz` and `make fuzz-files`: what they run, what they print and keep, and where they go on."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.fuzz import __main__ as command
from tests.fuzz import campaign
from tests.fuzz.finding import Finding
from tests.fuzz.mutants import __main__ as mutants
from tests.fuzz.themed import theme_seed
from tests.fuzz.work import Result, Stage

ROOT = Path(__file__).parents[2]
COMBINATIONS = {
    f"{fusion}/{numerics}" for fusion in ("default", "none", "aggressive") for numerics in ("default", "strict", "fast")
}


def _make(*arguments: str, dry: bool = False) -> str:
    """What `make` prints: the environment is taken for installed, and Python is the one that runs this."""
    given = [
        "make",
        "--no-print-directory",
        "-o",
        ".venv/.test",
        f"BIN={Path(sys.executable).parent}",
        *(["-n"] if dry else []),
        *arguments,
    ]
    return subprocess.run(given, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def _options(module: Any, *arguments: str) -> Any:
    _, _, name, *rest = shlex.split(_make(*arguments, dry=True))
    assert name == module.__name__.removesuffix(".__main__")
    return module.parser().parse_args(rest)


def test_what_make_asks_for():
    timed, counted = _options(command, "fuzz", "SECONDS=5"), _options(command, "fuzz", "COUNT=7", "SEED=3")
    assert (timed.seconds, timed.count, timed.seed, timed.folder, timed.drawn) == (5, None, None, Path(".fuzz"), False)
    assert (counted.seconds, counted.count, counted.seed) == (None, 7, 3)
    themed = _options(command, "fuzz", "THEME=resizes", "COUNT=7", "SEED=3")
    assert (themed.theme, themed.count, themed.seed, timed.theme) == ("resizes", 7, 3, None)
    files = _options(mutants, "fuzz-files", "COUNT=7", "SEED=2", "KIND=onnx")
    assert (files.count, files.seed, files.kind) == (7, 2, ["onnx"])
    assert _options(mutants, "fuzz-files").kind is None


def test_make_fuzz(tmp_path: Path):
    last = _make("fuzz", "COUNT=1", "SEED=4", f"FUZZ={tmp_path}").splitlines()
    assert "1 graphs with" in last[-2] and "1 right; 0 unexplained" in last[-2]
    assert last[-1].count(" 1 times") == len(COMBINATIONS)
    assert json.loads((tmp_path / "state.json").read_text())["next_seed"] == 5


def _run(folder: Path, capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, dict[str, Any], str]:
    code = command.main(["--folder", str(folder), "--json", *arguments])
    out, err = capsys.readouterr()
    return code, json.loads(out), err


def test_a_second_run_goes_on_where_the_first_one_stopped(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    _, first, _ = _run(tmp_path, capsys, "--count", "2", "--seed", "7", "--drawn")
    assert (first["next_seed"], sum(first["outcomes"].values()), sum(first["combinations"].values())) == (9, 2, 2)
    code, second, _ = _run(tmp_path, capsys, "--count", "1")
    assert (second["next_seed"], second["outcomes"], second["findings"], code) == (10, {"right": 3}, [], 0)
    assert set(second["combinations"]) == COMBINATIONS and sum(second["combinations"].values()) == 2 + 9
    assert _run(tmp_path, capsys, "--seconds", "0")[1]["next_seed"] == 10


def test_a_theme_has_numbers_and_a_folder_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    _, first, _ = _run(tmp_path, capsys, "--theme", "resizes", "--count", "2", "--drawn")
    assert (first["next_seed"], first["outcomes"]) == (theme_seed("resizes", 2), {"right": 2})
    _, second, _ = _run(tmp_path, capsys, "--theme", "resizes", "--count", "1", "--drawn")
    _, again, _ = _run(tmp_path, capsys, "--theme", "resizes", "--seed", "7", "--seconds", "0")
    assert (second["next_seed"], again["next_seed"]) == (theme_seed("resizes", 3), theme_seed("resizes", 7))
    assert [path.name for path in tmp_path.iterdir()] == ["resizes"]


def _wrong(seed: int, stage: Stage) -> Result:
    return Result(Finding("wrong", f"made up for {seed}"), ("Add",), ("default/default",))


def test_a_finding_is_kept_and_makes_the_run_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(campaign, "work_seed", _wrong)
    monkeypatch.setattr(campaign, "PROGRESS", 0.0)
    code, found, said = _run(tmp_path, capsys, "--count", "2", "--seed", "7", "--drawn", "--no-shrink")
    assert (code, found["severe"], found["outcomes"]) == (1, 2, {"wrong": 2})
    assert (
        [finding["seed"] for finding in found["findings"]] == [7, 8]
        and "seed 7: wrong" in said
        and "2 graphs with 1 operators" in said
    )
    assert sorted(path.name for path in tmp_path.glob("*.onnx")) == ["wrong_7.onnx", "wrong_8.onnx"]
    assert _run(tmp_path, capsys, "--seconds", "0")[0] == 1
