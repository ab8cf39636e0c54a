"""The name of a kind of machine: the same here every time, another where anything differs that times hang on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from fuseline.runtime.cpu import machine_name
from fuseline.runtime.processors import allowed_processors
from fuseline.tuning import machine_kind as module
from fuseline.tuning.machine_kind import cache_sizes, cpu_model, described, machine_kind


def test_this_machine_has_one_name():
    assert machine_kind() == machine_kind()
    assert machine_kind().startswith(machine_name())
    count = len(allowed_processors())
    assert machine_kind().endswith(f"{count} processor" if count == 1 else f"{count} processors")


def test_fewer_processors_are_another_kind(monkeypatch: pytest.MonkeyPatch):
    usual = machine_kind()
    monkeypatch.setattr(module, "allowed_processors", lambda: list(range(1000)))
    assert machine_kind() != usual and machine_kind().endswith("1000 processors")


@pytest.mark.parametrize(
    ("text", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD   EPYC 9R14\nprocessor\t: 1\nmodel name\t: Other", "AMD EPYC 9R14"),
        ("CPU implementer\t: 0x41\nCPU part\t: 0xd40", "0xd40"),
        ("", ""),
    ],
)
def test_the_model_of_the_first_cpu(tmp_path: Path, text: str, model: str):
    (tmp_path / "cpuinfo").write_text(text)
    assert cpu_model(str(tmp_path / "cpuinfo")) == model


def test_a_machine_that_does_not_say(tmp_path: Path):
    assert cpu_model(str(tmp_path / "none")) == "" and cache_sizes(str(tmp_path / "none")) == ()
    assert described("x86_64-avx2", "", (), 2) == "x86_64-avx2 unknown CPU, caches unknown, 2 processors"


def test_caches_for_data(tmp_path: Path):
    rows = [("1", "Data", "32K"), ("1", "Instruction", "32K"), ("3", "Unified", "8192K"), ("2", "Unified", "512K")]
    for index, row in enumerate(rows):
        folder = tmp_path / f"index{index}"
        folder.mkdir()
        for part, value in zip(("level", "type", "size"), row, strict=True):
            (folder / part).write_text(value + "\n")
    os.mkdir(tmp_path / "index9")  # says nothing
    assert cache_sizes(str(tmp_path)) == (("1", "32K"), ("2", "512K"), ("3", "8192K"))
