"""`fuseline opt`: text in, text out, errors with their codes."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest

from fuseline.cli.main import main

PROGRAM = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %e = tensor.empty() : tensor<4xf32>
  %d = tensor.empty() : tensor<4xf32>
  %r = linalg.map { math.exp } ins(%x : tensor<4xf32>) outs(%e : tensor<4xf32>)
  return %r : tensor<4xf32>
}
"""


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


def test_runs_passes_and_prints(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["opt", str(program), "-p", "generalize-named-ops,dead-code", "--verify-each"]) == 0
    out = capsys.readouterr().out
    assert "linalg.generic" in out and out.count("tensor.empty") == 1 and "loc(" not in out


def test_reads_standard_input_and_prints_locations(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    monkeypatch.setattr("sys.stdin", io.StringIO(PROGRAM))
    assert main(["opt", "-", "--print-locations"]) == 0
    assert 'loc("-":4:3)' in capsys.readouterr().out


def test_splits_its_input(program: Path, capsys: pytest.CaptureFixture[str]):
    program.write_text(f"{PROGRAM}// -----\n{PROGRAM}")
    assert main(["opt", str(program)]) == 1
    capsys.readouterr()
    assert main(["opt", str(program), "--split-input-file"]) == 0
    assert capsys.readouterr().out.count("// -----") == 1


@pytest.mark.parametrize(
    ("before", "behind"), [("// -----\n", ""), ("", "// -----\n\n"), ("// mine\n // -\n// -----\n", "")]
)
def test_a_part_in_which_nothing_stands_is_no_module(
    before: str, behind: str, program: Path, capsys: pytest.CaptureFixture[str]
):
    program.write_text(f"{before}{PROGRAM}// -----\n{PROGRAM}{behind}")
    assert main(["opt", str(program), "--split-input-file"]) == 0
    assert capsys.readouterr().out.count("// -----") == 1


@pytest.mark.parametrize("split", [[], ["--split-input-file"]])
@pytest.mark.parametrize("text", ["", "\n  \n", "// a comment\n"])
def test_a_file_without_ops_is_refused(text: str, split: list[str], program: Path, capsys: pytest.CaptureFixture[str]):
    program.write_text(text)
    assert main(["opt", str(program), *split]) == 1
    assert "there is no op in the text" in capsys.readouterr().err


def test_an_error_in_a_later_part_names_its_line(program: Path, capsys: pytest.CaptureFixture[str]):
    program.write_text(f"{PROGRAM}// -----\nnonsense\n")
    assert main(["opt", str(program), "--split-input-file"]) == 1
    assert "program.mlir:8" in capsys.readouterr().err


def test_writes_a_file_only_when_all_is_well(program: Path, tmp_path: Path):
    out = tmp_path / "out.mlir"
    assert main(["opt", str(program), "-o", str(out), "-p", "no-such-pass"]) == 2
    assert not out.exists()
    assert main(["opt", str(program), "-o", str(out), "-p", "cse"]) == 0
    assert out.read_text().count("tensor.empty") == 1


def test_prints_the_generic_form(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["opt", str(program), "--generic"]) == 0
    assert '"func.func"()' in capsys.readouterr().out


def test_lists_passes(capsys: pytest.CaptureFixture[str]):
    assert main(["opt", "--list-passes"]) == 0
    assert "canonicalize" in capsys.readouterr().out
    assert main(["opt", "--list-passes", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["passes"]
    assert {"name", "group", "summary"} == set(listed[0])


def test_json_holds_the_ir(program: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["opt", str(program), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["ir"].startswith("builtin.module")


@pytest.mark.parametrize(
    ("arguments", "code", "exit_code"),
    [
        (["-p", "no-such-pass"], "E0303", 2),
        (["-p", "cse{speed=1}"], "E0304", 2),
        (["-p", "cse{"], "E0304", 2),
    ],
)
def test_a_wrong_pipeline_is_a_usage_error(
    program: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: str, exit_code: int
):
    assert main(["opt", str(program), *arguments]) == exit_code
    assert code in capsys.readouterr().err


def test_what_cannot_be_read_is_a_coded_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["opt", str(tmp_path / "missing.mlir")]) == 1
    assert "E0301" in capsys.readouterr().err
    (tmp_path / "binary.mlir").write_bytes(b"\xff\xfe\x00")
    assert main(["opt", str(tmp_path / "binary.mlir")]) == 1
    assert "not UTF-8" in capsys.readouterr().err
