"""Measuring a machine, writing what was found, and compiling for a machine that a file describes."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import fuseline
from fuseline.cli.machine import description
from fuseline.cli.main import main
from fuseline.errors import FuselineError
from fuseline.ir.costs import ASSUMED_COSTS, ASSUMED_SIZE, MachineCosts, assumed_size
from fuseline.ir.dim import floor_div, mul, symbol
from fuseline.ir.work_costs import WorkCosts
from fuseline.targets import create_target
from fuseline.targets.cpu.isa import machine
from fuseline.targets.cpu.isa.description import Machine
from fuseline.targets.cpu.isa.description_file import machine_of
from fuseline.targets.description_file import read_toml
from fuseline.tuning import machine as tuning
from fuseline.tuning.machine import Figure, Measurement, measured
from tests.small_models import mlp


def _machine_in(path: Path) -> Machine:
    return machine_of(read_toml(path), path)[0]


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch):
    """Sizes and times that make figures of no worth, at once."""
    for name, value in (("UNCACHED", 1 << 12), ("CACHED", 1 << 9), ("BATCH_SECONDS", 0.0), ("BATCHES", 1)):
        monkeypatch.setattr(tuning, name, value)


@pytest.mark.usefixtures("hasty")
def test_every_figure_is_measured_or_kept():
    told: list[tuple[str, int, int]] = []
    figures = Measurement(fuseline.compile, progress=lambda *step: told.append(step)).figures(ASSUMED_COSTS)
    assert [figure.name for figure in figures] == list(MachineCosts.__slots__)
    found = {figure.name: figure.measured for figure in figures if figure.measured is not None}
    assert len(found) >= 8 and all(value > 0 for value in found.values())
    assert [name for name, _, _ in told] == list(found) or {name for name, _, _ in told} == set(found)
    assert all(figure.assumed == getattr(ASSUMED_COSTS, figure.name) for figure in figures)


def test_measured_figures_replace_assumed_ones():
    figures = [Figure("flops_per_ns", 50.0, 61.23456, "how"), Figure("launch_ns", 200.0, None, "kept")]
    assert measured(ASSUMED_COSTS, figures) == MachineCosts(flops_per_ns=61.2)


def test_what_is_written_describes_the_same_machine(tmp_path: Path):
    path, costs = tmp_path / "m.toml", MachineCosts(flops_per_ns=61.2, serial_elements=5000)
    work_costs = WorkCosts(launch=123.0, product=0.0071)
    path.write_text(description(machine("avx2"), costs, work_costs))
    assert _machine_in(path).costs == costs and _machine_in(path).name == "avx2"
    described = create_target(f"cpu:{path}", 2).description
    assert described.costs == costs and described.work_costs == work_costs


def test_a_description_without_isa_is_this_cpu(tmp_path: Path):
    path = tmp_path / "m.toml"
    path.write_text("l2_bytes = 4096\n")
    found = _machine_in(path)
    assert (found.name, found.l2_bytes, found.costs) == (machine().name, 4096, machine().costs)


def _scaled(figure: float, scale: float) -> float:
    """What is counted stays a whole number."""
    return max(1, round(figure * scale)) if isinstance(figure, int) else figure * scale


def test_programs_for_a_described_machine_compute_the_same(tmp_path: Path):
    """Figures a hundred times off change what is fused and how it is cut, never what is computed."""
    x = np.random.default_rng(0).standard_normal((4, 16), dtype=np.float32)
    expected = fuseline.compile(mlp(), threads=2).run({"x": x})
    for scale in (0.01, 100.0):
        path = tmp_path / f"{scale}.toml"
        numbers = {name: _scaled(getattr(ASSUMED_COSTS, name), scale) for name in MachineCosts.__slots__}
        path.write_text("[costs]\n" + "".join(f"{name} = {value}\n" for name, value in numbers.items()))
        found = fuseline.compile(mlp(), target=f"cpu:{path}", threads=2).run({"x": x})
        for name, array in expected.items():
            np.testing.assert_allclose(found[name], array, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("text", "entry"),
    [
        ("isa = 'avx9'", "avx9"), ("isa = 3", "isa"), ("l2_bytes = -1", "l2_bytes"), ("l2_bytes = 1.5", "l2_bytes"),
        ("clock = 3", "clock"),
        ("costs = 3", "costs"), ("[costs]\nwarp_ns = 1", "warp_ns"), ("[costs]\nlaunch_ns = 0", "launch_ns"),
        ("[costs]\nlaunch_ns = -2.0", "launch_ns"),
        ("[costs]\nlaunch_ns = inf", "launch_ns"), ("[costs]\nlaunch_ns = nan", "launch_ns"),
        ("[costs]\nlaunch_ns = true", "launch_ns"),
        ("[costs]\nflops_per_ns = 1e30", "flops_per_ns"), ("[costs]\nflops_per_ns = 'fast'", "flops_per_ns"),
        ("work_costs = 3", "work_costs"), ("[work_costs]\nwarp = 1", "warp"), ("[work_costs]\nlaunch = 0", "launch"),
        ("[costs", "TOML"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("target", ["cpu", "null"])
def test_an_impossible_machine_is_refused_by_name(tmp_path: Path, target: str, text: str, entry: str):
    path = tmp_path / "m.toml"
    path.write_text(text)
    if target == "null" and "costs" not in text:
        return  # a description of another kind: test_description_file
    with pytest.raises(FuselineError) as caught:
        create_target(f"{target}:{path}")
    assert caught.value.code == "E0501" and entry in caught.value.message and str(path) in str(caught.value.node)


def test_a_missing_description_is_refused(tmp_path: Path):
    with pytest.raises(FuselineError, match="cannot read") as caught:
        create_target(f"cpu:{tmp_path / 'none.toml'}")
    assert caught.value.code == "E0501"


def test_costs_reach_a_target_without_code(tmp_path: Path):
    path = tmp_path / "npu.toml"
    path.write_text("threads = 4\n[costs]\nlaunch_ns = 5000\n[work_costs]\nlaunch = 4000\n")
    described = create_target(f"null:{path}").description
    assert described.costs == MachineCosts(launch_ns=5000.0) and described.work_costs == WorkCosts(launch=4000.0)


@pytest.mark.usefixtures("hasty")
def test_the_command_prints_a_table_or_json_and_writes_a_description(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    path = tmp_path / "deep" / "m.toml"
    assert main(["machine", "--write", str(path)]) == 0
    assert "flops_per_ns" in capsys.readouterr().out and _machine_in(path).costs != machine().costs
    assert main(["machine", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["command"] == "machine" and {figure["name"] for figure in document["figures"]} == set(
        MachineCosts.__slots__
    )
    assert main(["machine", "--json", "--write", "-"]) == 2
    assert main(["machine", "--isa", "z80"]) == 2


def test_sizes_without_a_bound_are_taken_for_one_number():
    n = symbol("n")
    assert assumed_size(n) == ASSUMED_SIZE and assumed_size(mul(n, 3)) == 3 * ASSUMED_SIZE
    assert assumed_size(symbol("m", 1, 40)) == 40 and assumed_size(7) == 7
    assert assumed_size(symbol("k", 1000)) == 1000 and assumed_size(floor_div(n, 1000)) == 1
