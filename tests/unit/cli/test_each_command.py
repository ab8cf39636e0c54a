"""Each command by itself, on small models without native code: text, JSON, exit codes, files."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from click.testing import CliRunner, Result

from fuseline.cli.compile import compile as compile_command
from fuseline.cli.diff import diff
from fuseline.cli.errors import errors, found_code, page_text
from fuseline.cli.explain import explain
from fuseline.cli.main import guarded
from fuseline.cli.report import report
from fuseline.cli.run import run
from fuseline.cli.stats import stats
from fuseline.errors import ERROR_TITLES, FuselineError
from fuseline.report.advice import ADVICE
from tests.draws import RNG, generator
from tests.graphs.onnx_text import onnx_model
from tests.unit.report.page.test_render import blobs

NULL = ("--target", "null", "--threads", "2")
NUMPY = ("--target", "interpreter")
W = generator(__name__).standard_normal((4, 3)).astype(np.float32)
TEXT = """(float[n, 4] x) => (y, z) {
    [product] p = MatMul(x, w)
    [bend] y = Abs(p)
    [sum] z = ReduceSum(y)
}"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("models") / "m.onnx"
    onnx.save(onnx_model(TEXT, w=W), path)
    return path


def _invoke(command: click.Command, *arguments: object, code: int = 0) -> str:
    """What a command prints, both streams; `code` is its exit code as the command line would give it."""
    results: list[Result] = []

    def work() -> object:
        results.append(CliRunner().invoke(command, [str(word) for word in arguments]))
        if results[0].exception is not None and not isinstance(results[0].exception, SystemExit):
            raise results[0].exception
        return results[0].exit_code

    shown = CliRunner()
    with shown.isolation() as streams:
        found = guarded(work, command.name or "", as_json=False, debug=False)
        more = streams[0].getvalue().decode() + streams[1].getvalue().decode()
    assert found == code, (found, results[0].output, more)
    return results[0].output + more


def _document(command: click.Command, *arguments: object) -> dict[str, Any]:
    document = json.loads(_invoke(command, *arguments, "--json"))
    assert (document.pop("version"), document.pop("command")) == (1, command.name)
    return document


# -- compile -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stage", ["input", "layout", "dispatch"])
def test_a_stage_is_printed_or_written(stage: str, model: Path, tmp_path: Path) -> None:
    text = _invoke(compile_command, model, "--emit", stage, *NULL)
    assert "func.func @main" in text and text.endswith("\n")
    document = _document(compile_command, model, "--emit", stage, *NULL)
    assert document == {"model": str(model), "stage": stage, "text": document["text"]}
    assert document["text"].strip() == text.strip()
    path = tmp_path / "stage.mlir"
    written = _document(compile_command, model, "--emit", stage, "-o", path, *NULL)
    assert written == {"model": str(model), "stage": stage, "output": str(path)}
    assert "func.func @main" in path.read_text() and "fuseline.program" in path.read_text()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        ((), 2, "Missing argument 'MODEL'"),
        (("m.fuse",), 2, "compile needs the model, not an artifact"),
        (("none.onnx",), 1, "no such file"),
        (("MODEL", "--json", "-o", "-"), 2, "both write to standard output"),
        (("MODEL", "--emit", "input", "--sign", "k"), 2, "leaves nothing for --sign"),
        (("MODEL", "--emit", "nothing"), 2, "nothing"),
        (("MODEL", "--emit", "nothing"), 2, "use one of input, cleanup, "),
        (("MODEL", "--emit", "nothing"), 2, "plan, flow, kernel, llvm, asm, object"),
    ],
)
def test_a_compile_that_is_refused(arguments: tuple[str, ...], code: int, words: str, model: Path) -> None:
    given = [str(model) if word == "MODEL" else word for word in arguments]
    text = _invoke(compile_command, *given, code=code)
    assert words in " ".join(text.split())
    assert [path.name for path in model.parent.iterdir()] == ["m.onnx"]


def test_rules_are_listed_in_the_order_in_which_they_are_asked() -> None:
    names = [rule["name"] for rule in _document(compile_command, "--list-rules")["rules"]]
    lines = _invoke(compile_command, "--list-rules").splitlines()
    assert lines[0].split()[:4] == ["rule", "merges", "after", "from"]
    assert [line.split()[0] for line in lines[1:]] == names
    assert len(set(names)) == len(names) > 5


# -- run ---------------------------------------------------------------------------------------------------------------


def test_feeds_are_read_and_outputs_are_shown(model: Path, tmp_path: Path) -> None:
    x = RNG.standard_normal((3, 4)).astype(np.float32)
    np.save(tmp_path / "x.npy", x)
    arguments = (model, "--input", f"x=@{tmp_path / 'x.npy'}", *NUMPY)
    y = np.abs(x @ W)
    document = _document(run, *arguments)
    first, second = document["outputs"]
    assert (document["model"], document["check"]) == (str(model), [])
    assert (first["name"], first["dtype"], first["shape"]) == ("y", "float32", [3, 3])
    np.testing.assert_allclose(first["first"], y.reshape(-1)[:6], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(first["mean"], y.mean(), rtol=1e-4)
    np.testing.assert_allclose(second["first"], y.sum(), rtol=1e-5)
    lines = _invoke(run, *arguments, "--output", tmp_path / "out").splitlines()
    assert [line.split(" [")[0] for line in lines] == ["y: float32[3x3]", "z: float32[1x1]"]
    np.testing.assert_allclose(np.load(tmp_path / "out" / "y.npy"), y, rtol=1e-5, atol=1e-6)


def test_a_check_is_shown(model: Path) -> None:
    pytest.importorskip("onnxruntime")
    shown = _invoke(run, model, "--check", "onnxruntime", "--shape", "n=3", *NUMPY)
    assert shown.count("check y: error ") == shown.count("check z: error ") == 1
    assert {row["output"] for row in _document(run, model, "--check", "onnxruntime", *NUMPY)["check"]} == {"y", "z"}
    text = _invoke(run, model, "--check", "onnxruntime", "--tolerance", "-1", *NUMPY, code=1)
    assert "E0601" in text
    assert "no peer is called 'nobody'" in _invoke(run, model, "--check", "nobody", *NUMPY, code=2)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--input", "q=@x.npy"), 2, "E0201"),
        (("--input", "q"), 2, "E0501"),
        (("--input", "x=@none.npy"), 2, "E0206"),
        (("--trusted", "k"), 2, "--trusted is for artifacts"),
        (("--shape", "m=3"), 2, "E0108"),
        (("--json", "--output", "-"), 2, "both write to standard output"),
    ],
)
def test_a_run_that_is_refused(arguments: tuple[str, ...], code: int, words: str, model: Path) -> None:
    assert words in _invoke(run, model, *arguments, *NUMPY, code=code)


def test_generated_feeds_depend_on_the_seed(model: Path) -> None:
    first, again, other = (_document(run, model, "--seed", seed, *NUMPY)["outputs"][0] for seed in (1, 1, 2))
    assert first == again != other


# -- stats, explain, report, diff --------------------------------------------------------------------------------------


def test_statistics_with_tables(model: Path) -> None:
    plain = _document(stats, model, *NULL)
    assert (plain["model"], plain["target"], plain["threads"], plain["warnings"]) == (str(model), "null", 2, [])
    assert not {"dispatch_table", "decisions"} & plain.keys()
    full = _document(stats, model, "--dispatches", "--decisions", *NULL)
    assert len(full["dispatch_table"]) == full["dispatches"] == plain["dispatches"]
    assert full["edges"]["fused"] == sum(item["verdict"] == "fused" for item in full["decisions"])
    short, long = _invoke(stats, model, *NULL), _invoke(stats, model, "--dispatches", "--decisions", *NULL)
    assert "dispatches" in short and full["dispatch_table"][0]["name"] not in short.split()
    first = full["dispatch_table"][0]
    assert f"{first['name']}_{first['shape']}" in long.split() and "product" in long


def test_answers_about_nodes(model: Path) -> None:
    assert _document(explain, model, *NULL)["nodes"] == []
    assert "bend" in _invoke(explain, model, "bend", *NULL)
    edge = _document(explain, model, "product", "bend", *NULL)
    assert [item["verdict"] for item in edge["decisions"]] == ["fused"]
    assert edge["nodes"] == ["product", "bend"] and edge["hints"] == {}
    apart = _document(explain, model, "product", "bend", *NULL, "--fusion", "none")
    assert {item["verdict"] for item in apart["decisions"]} == {"missed"}
    assert apart["hints"].keys() == {item["code"] for item in apart["decisions"]}
    assert not _document(explain, model, "product", "bend", *NULL, "--filter-rule", "^nothing$")["decisions"]
    assert "at most two nodes, not 3" in _invoke(explain, model, "a", "b", "c", *NULL, code=2)
    assert "E0501" in _invoke(explain, model, "nobody", *NULL, code=2)


@pytest.mark.parametrize("form", ["yaml", "jsonl"])
def test_remarks(form: str, model: Path, tmp_path: Path) -> None:
    text = _invoke(explain, model, "--remarks", form, *NULL)
    assert text.startswith("--- !" if form == "yaml" else "{")
    _invoke(explain, model, "--remarks", form, "-o", tmp_path / "r", *NULL)
    written = (tmp_path / "r").read_text().splitlines(keepends=True)
    assert "".join(line for line in written if not line.startswith("DebugLoc:")) == text
    assert (
        (tmp_path / "r.nodes.txt").exists() == (form == "yaml") == any(line.startswith("DebugLoc:") for line in written)
    )
    for option in ("--remarks-filter", "--filter-rule", "--filter-code", "--filter-node"):
        assert len(_invoke(explain, model, "--remarks", form, option, "^nothing$", *NULL)) < len(text)
        assert f"{option} is no regular expression" in _invoke(explain, model, option, "(", *NULL, code=2)


def test_a_page(model: Path, tmp_path: Path) -> None:
    page = tmp_path / "new" / "page.html"
    document = _document(report, model, "-o", page, *NULL)
    assert document == {"model": str(model), "output": str(page), "bytes": page.stat().st_size}
    assert any("product" in node["name"] for node in blobs(page.read_text())["main"]["sides"][0]["sources"])
    assert _invoke(report, model, "-o", page, *NULL).strip() == str(page)
    assert "both write" in _invoke(report, model, "-o", "-", "--json", *NULL, code=2)


def test_differences(model: Path, tmp_path: Path) -> None:
    assert _invoke(diff, model, model, *NULL).strip() == "no difference"
    saved = tmp_path / "s.json"
    saved.write_text(_invoke(stats, model, "--dispatches", "--decisions", "--json", *NULL, "--fusion", "none"))
    better = _document(diff, saved, model, *NULL, "--fail-if", "more-dispatches")
    assert better["failed"] == {} and better["statistics"]["dispatches"][0] > better["statistics"]["dispatches"][1]
    shown = _invoke(diff, model, saved, *NULL, "--fail-if", "any", "--fail-if", "more-dispatches", code=1)
    assert "fail-if any: they differ" in shown and "fail-if more-dispatches: " in shown
    assert "E0501" in _invoke(diff, saved, saved, "--fusion", "none", code=2)


# -- errors ------------------------------------------------------------------------------------------------------------


def test_all_codes_with_their_pages() -> None:
    document = _document(errors)
    assert [item["code"] for item in document["errors"]] == list(ERROR_TITLES)
    assert [item["code"] for item in document["why_not"]] == list(ADVICE)
    assert all(item["page"].startswith(f"# {item['code']}") for item in document["errors"])
    text = _invoke(errors)
    assert all(f"{code}  {title}" in text for code, title in ERROR_TITLES.items())
    assert all(f"  {reason}" in text for reason in ADVICE)


@pytest.mark.parametrize("code", ["E0101", "two-roots"])
def test_one_page(code: str) -> None:
    document = _document(errors, code)
    (item,) = [*document["errors"], *document["why_not"]]
    assert (item["code"], item["page"]) == (code, page_text(code))
    assert _invoke(errors, code).strip() == page_text(code).strip()


@pytest.mark.parametrize(("text", "hint"), [("two-rots", "two-roots"), ("qqqqqq", "`fuseline errors` lists them")])
def test_what_is_no_code(text: str, hint: str) -> None:
    with pytest.raises(FuselineError, match="nothing has the code") as caught:
        found_code(text)
    assert caught.value.hint is not None and hint in caught.value.hint


def test_pages_of_codes_without_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[page_text.__module__], "_page", lambda *_: None)
    assert page_text("E0101") == f"# E0101: {ERROR_TITLES['E0101']}\n"
    assert page_text("two-roots") == f"# two-roots\n\nTo change it: {ADVICE['two-roots']}.\n"
