"""Tables of times, from times that are known; and the tour of `make demo` on a small model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import pytest
from click.testing import CliRunner

import fuseline
from fuseline.cli import bench, demo
from fuseline.errors import FuselineError
from fuseline.interop import peers
from fuseline.report.records import DispatchRecord
from fuseline.verify.measure import paired_ratio
from tests.draws import RNG
from tests.small_models import mlp

Array = np.ndarray
TIMES = {"fuseline": np.linspace(1e-3, 2e-3, 9), "near": np.linspace(2e-3, 3e-3, 9), "far": np.linspace(9e-3, 5e-3, 9)}


class _Program:
    """Doubles its input; `inputs` as a compiled model's are."""

    threads, symbols = 3, dict[str, Any]()

    def __init__(self, path: Path) -> None:
        self.inputs = fuseline.compile(path, target="interpreter").inputs

    def run(self, feeds: Mapping[str, Array]) -> dict[str, Array]:
        return {"y": 2 * feeds["x"]}

    def bind(self, feeds: Mapping[str, Array]) -> Callable[[], object]:
        return lambda: self.run(feeds)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "m.onnx").write_bytes(mlp().SerializeToString())
    return tmp_path / "m.onnx"


@pytest.fixture
def measured(path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """One measurement with peers that are off by a tenth and by nothing, and with known times."""
    program = _Program(path)

    def load(name: str, model: Path, threads: int) -> Any:
        assert (model, threads) == (path, 3)
        factor = 2.2 if name == "near" else 2.0
        return SimpleNamespace(bind=lambda feeds: feeds, run=lambda feeds: {"y": factor * feeds["x"]})

    def times(contenders: Mapping[str, Any], *, rounds: int, progress: Callable[[int, int], None]) -> Any:
        progress(1, rounds)
        assert (list(contenders), rounds) == (["fuseline", "near", "far"], 7)
        return TIMES

    monkeypatch.setattr(peers, "load_peer", load)
    monkeypatch.setattr(bench, "interleaved", times)
    feeds = {"x": RNG.standard_normal((4, 16)).astype(np.float32)}
    return bench.measure_program(program, path, ["near", "far"], feeds, 7)  # pyright: ignore[reportArgumentType]


def test_medians_ratios_and_errors(measured: dict[str, Any]) -> None:
    assert (measured["threads"], measured["best_peer"]) == (3, "near")
    assert measured["median_seconds"] == pytest.approx({"fuseline": 1.5e-3, "near": 2.5e-3, "far": 7e-3})
    for name in ("near", "far"):
        wanted = paired_ratio(TIMES["fuseline"], TIMES[name])
        assert measured["ratios"][name] == {"value": wanted.value, "low": wanted.low, "high": wanted.high}
    assert measured["ratio_best_peer"] == measured["ratios"]["near"]["value"] < 1
    assert measured["relative_error"]["near"] == pytest.approx(0.2 / 2.2, rel=1e-4)
    assert measured["relative_error"]["far"] == 0


def test_a_row_for_each_number_of_threads(measured: dict[str, Any]) -> None:
    table = bench.result_table([measured, {**measured, "threads": 4}], ["near", "far"])
    assert [str(column.header) for column in table.columns] == ["threads", "fuseline", "near", "ratio", "far", "ratio"]
    cells = [list(column.cells) for column in table.columns]
    assert cells[0] == ["3", "4"]
    ratio = measured["ratios"]["near"]
    assert cells[3][0] == f"{ratio['value']:.3f} [{ratio['low']:.3f}, {ratio['high']:.3f}]"
    assert bench.result_table([measured], []).columns[-1].header == "fuseline"


def test_dispatches_are_told_apart_by_their_order(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Launches of one executable keep their order; what no dispatch is, is a copy."""

    def record(name: str, executable: str, flops: int) -> DispatchRecord:
        return DispatchRecord(
            name=name, executable=executable, root="r", members=[], flops=flops, bytes_read=30, bytes_written=10,
            predicted_ns=5.0,
        )  # fmt: skip

    program = fuseline.compile(path, threads=1)
    program.record.dispatches[:] = [record("d0", "e", 100), record("d1", "f", 200), record("d2", "e", 300)]
    launches = [("e", 1e-3), ("f", 2e-3), ("e", 3e-3), ("copy", 4e-3)]
    monkeypatch.setattr(bench, "compiled", lambda *_: program)
    monkeypatch.setattr(bench, "dispatch_seconds", lambda *_: launches)
    result = CliRunner().invoke(bench.bench, [str(path), "--rounds", "3", "--per-dispatch"])
    assert result.exception is None
    lines = result.output.splitlines()[-4:]
    assert [line.split()[:2] for line in lines] == [["d0", "r"], ["d1", "r"], ["d2", "r"], ["copy", "copy"]]
    interpreted = fuseline.compile(path, target="interpreter")
    monkeypatch.setattr(bench, "compiled", lambda *_: interpreted)
    refused = CliRunner().invoke(bench.bench, [str(path), "--rounds", "3", "--per-dispatch"]).exception
    assert isinstance(refused, FuselineError) and "--per-dispatch needs a target with code" in refused.message


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["m.fuse", "--vs", "onnxruntime"], "--vs needs an ONNX model"),
        (["m.onnx", "--threads", "0"], "--threads does not understand '0'"),
    ],
)
def test_a_bench_that_is_refused(arguments: list[str], words: str) -> None:
    found = CliRunner().invoke(bench.bench, arguments).exception
    assert isinstance(found, FuselineError) and words in found.message


def test_the_tour(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("onnxruntime")
    topology = tmp_path / demo.TOPOLOGY
    topology.parent.mkdir(parents=True)
    onnx.save(mlp(), topology)
    monkeypatch.setattr(onnx, "__file__", str(tmp_path / "__init__.py"))
    demo.demo()
    text = capsys.readouterr().out
    titles = [line[3:].split()[0] for line in text.splitlines() if line.startswith("== ")]
    assert titles == ["compiled", "statistics", "why", "artifact:", "outputs", "time"]
    assert text.startswith("model: light_resnet50.onnx of the onnx wheel")
    assert "largest difference" in text and "onnxruntime  " in text


def test_the_tour_ends_with_an_exit_code(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def failing() -> None:
        raise FuselineError("E0101", "no wheel")

    monkeypatch.setattr(demo, "demo", failing)
    with pytest.raises(SystemExit) as stop:
        demo.main()
    assert stop.value.code == 1
    assert "E0101" in capsys.readouterr().err
