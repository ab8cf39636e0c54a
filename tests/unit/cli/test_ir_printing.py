"""`--print-ir-after`: which passes are printed, where to, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import fuseline
from fuseline.cli.ir_printing import CHANGED, ir_printer
from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.ir.text import parse_module
from fuseline.pipeline import PASS_PHASES

PROGRAM = """func.func @main(%x: tensor<4x5xf32>) -> tensor<4x5xf32> {
  %e = tensor.empty() : tensor<4x5xf32>
  %a = linalg.map { math.exp } ins(%x : tensor<4x5xf32>) outs(%e : tensor<4x5xf32>)
  %b = linalg.map { math.exp } ins(%x : tensor<4x5xf32>) outs(%e : tensor<4x5xf32>)
  %r = linalg.map { arith.addf } ins(%a, %b : tensor<4x5xf32>, tensor<4x5xf32>) outs(%e : tensor<4x5xf32>)
  return %r : tensor<4x5xf32>
}
"""
HEADING = re.compile(r"^// -----// IR after (\S+) //----- //$", re.MULTILINE)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "program.mlir"
    path.write_text(PROGRAM)
    return path


def _printed(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[list[str], str]:
    capsys.readouterr()
    assert main(arguments) == 0
    text = capsys.readouterr().err
    return HEADING.findall(text), text


def test_opt_prints_passes_that_changed_something(program: Path, capsys: pytest.CaptureFixture[str]):
    names, text = _printed(["opt", str(program), "-p", "cleanup,cse", "--print-ir-after"], capsys)
    assert names[0] == "generalize-named-ops" and names.count("cse") == 1 and "require-maps-inside" not in names
    counts = [part.count("math.exp") for part in HEADING.split(text)[2::2]]
    assert counts[names.index("cse")] == 1 and counts[names.index("cse") - 1] == 2


def test_a_log_is_read_as_modules(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["compile", str(program), "-o", str(tmp_path / "m.fuse"), "--target", "cpu", "--print-ir-after"]
    names, text = _printed(arguments, capsys)
    (tmp_path / "log.mlir").write_text(text)
    assert main(["opt", str(tmp_path / "log.mlir"), "--split-input-file", "-p", "canonicalize"]) == 0
    assert capsys.readouterr().out.count("// -----") + 1 == len(names) > 2


def test_named_passes_are_printed_whether_they_changed_something_or_not(
    program: Path, capsys: pytest.CaptureFixture[str]
):
    chosen = ["opt", str(program), "-p", "cse,dead-code,cse", "--print-ir-after=cse"]
    assert _printed(chosen, capsys)[0] == ["cse", "cse"]


def test_compile_prints_a_pass_of_every_phase_and_all_of_a_phase(program: Path, capsys: pytest.CaptureFixture[str]):
    arguments = ["compile", str(program), "-o", str(program.with_suffix(".fuse")), "--target", "cpu", "--threads", "1"]
    names, _ = _printed([*arguments, "--print-ir-after=cse,dispatch"], capsys)
    formed = [f"dispatch/{name}" for name in PASS_PHASES["dispatch"]]
    assert names == ["cleanup/cse", "layout/cse", *formed]
    assert _printed(arguments, capsys)[0] == []
    assert _printed([*arguments, "--print-ir-after=dispatch"], capsys)[0] == formed, "cached"


def test_a_stage_is_printed_on_the_way(program: Path, capsys: pytest.CaptureFixture[str]):
    names, _ = _printed(["compile", str(program), "--emit", "layout", "--print-ir-after"], capsys)
    assert names and {name.partition("/")[0] for name in names} <= {"cleanup", "layout"}


def test_files_are_numbered_and_read_back(program: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    folder = tmp_path / "new" / "ir"
    arguments = ["opt", str(program), "-p", "cleanup", "--print-ir-after", "--print-ir-to", str(folder)]
    assert _printed(arguments, capsys)[0] == []
    files = sorted(folder.iterdir())
    assert [file.name[:4] for file in files] == [f"{i:03d}_" for i in range(len(files))] and len(files) >= 2
    assert all(main(["opt", str(file)]) == 0 for file in files)
    assert files[-1].read_text().count("math.exp") == 1


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (["--print-ir-after=canonicalise"], "E0303"),
        (["--print-ir-after=canonicalize,"], "E0303"),
        (["--print-ir-to", "somewhere"], "E0501"),
        (["--print-ir-after", "--print-ir-to", "program.mlir"], "E0502"),
        (["--print-ir-after", "--print-ir-to", "program.mlir/below"], "E0502"),
    ],
    ids=str,
)
@pytest.mark.parametrize("command", ["compile", "opt"])
def test_wrong_options_are_refused_before_anything_is_written(
    command: str,
    options: list[str],
    code: str,
    program: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    monkeypatch.chdir(program.parent)
    passes = ["-p", "canonicalize"] if command == "opt" else []
    assert main([command, "program.mlir", *passes, *options]) != 0
    shown = capsys.readouterr()
    assert code in shown.err and shown.out == "" and [path.name for path in program.parent.iterdir()] == [program.name]
    assert "canonicalize" in shown.err or code != "E0303" or not options[0].endswith("canonicalise")


def test_an_observer_is_told_of_every_pass(program: Path):
    from fuseline.pipeline import PASS_PHASES

    places: list[str] = []
    fuseline.compile(program, target="null", after_pass=lambda place, _module, _ctx: places.append(place))
    assert places == ["input", *(f"{phase}/{name}" for phase, names in PASS_PHASES.items() for name in names)]


def test_without_an_option_there_is_no_observer():
    assert ir_printer(None, None, ["cse"]) is None


@pytest.mark.parametrize("after", ["dead-code , cse", "cse", CHANGED])
def test_passes_are_named_with_or_without_blanks(after: str, tmp_path: Path):
    printer = ir_printer(after, tmp_path / "ir", ["cse", "dead-code"])
    assert printer is not None
    ctx = new_context()
    module = parse_module(PROGRAM, ctx)
    for place in ("input", "layout/cse", "layout/dead-code", "layout/other"):
        printer(place, module, ctx)
    names = sorted(path.name for path in (tmp_path / "ir").iterdir())
    wanted = [f"layout_{name}.mlir" for name in ("cse", "dead-code") if name in after]
    assert names == [f"{number:03d}_{name}" for number, name in enumerate(wanted)]
    for name in names:
        heading, _, text = (tmp_path / "ir" / name).read_text().partition("\n")
        assert heading == f"// -----// IR after {name[4:-5].replace('_', '/')} //----- //"
        assert parse_module(text, new_context()).is_structurally_equivalent(module)


@pytest.mark.parametrize(
    ("word", "hint"),
    [
        ("fold-unit-dim", "did you mean fold-unit-dims?"),
        ("qqqqqq", "write --print-ir-after=PASS,PASS behind the model"),
    ],
)
def test_a_pass_that_does_not_run_is_refused_with_what_is_meant(word: str, hint: str, tmp_path: Path):
    for after in (word, f"cse,{word}"):
        with pytest.raises(FuselineError) as caught:
            ir_printer(after, tmp_path / "ir", ["cse", "fold-unit-dims"])
        error = caught.value
        assert (error.code, error.node, error.hint) == ("E0303", word, hint) and word in error.message
    assert not (tmp_path / "ir").exists()


def test_a_folder_without_a_print_is_refused(tmp_path: Path):
    with pytest.raises(FuselineError) as caught:
        ir_printer(None, tmp_path / "ir", ["cse"])
    assert caught.value.code == "E0501" and caught.value.hint == "add --print-ir-after"
    assert not (tmp_path / "ir").exists()
