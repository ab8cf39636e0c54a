"""What the entries of a target's file say of it, and what no entry may say."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.ir.target_description import TargetDescription
from fuseline.targets.target_file import description_of

BASE = TargetDescription("base", threads=3, scratch_bytes_limit=1000)


def _file(folder: Path, text: str) -> Path:
    path = folder / "npu.toml"
    path.write_text(text, encoding="utf-8")
    return path


def _described(folder: Path, text: str) -> TargetDescription:
    path = _file(folder, text)
    return description_of(tomllib.loads(text), path, BASE)[0]


def test_what_a_file_leaves_out_is_that_of_the_base(tmp_path: Path):
    assert _described(tmp_path, "") == BASE
    found = _described(tmp_path, 'name = "npu"\nbinding_limit = 5\n[costs]\nflops_per_ns = 400.0')
    costs = dataclasses.replace(BASE.costs, flops_per_ns=400.0)
    assert found == dataclasses.replace(BASE, name="npu", binding_limit=5, costs=costs)


def test_multiples_of_all_and_of_some_convolutions(tmp_path: Path):
    found = _described(tmp_path, "[tile_multiples]\nOH = 4\nM = 8\n[tile_multiples.depthwise]\nOC = 16")
    assert found.tile_multiples == (("OH", 4), ("M", 8))
    assert found.class_multiples == (("depthwise", (("OC", 16),)),)


def test_rules_are_files_beside_the_description_each_once(tmp_path: Path):
    found = _described(
        tmp_path, '[fusion]\nrules = ["mine.py"]\nwithout = ["row-chain", "small-ops", "row-chain"]'
    ).rules
    assert found.files == (str(tmp_path / "mine.py"),) and found.without == ("row-chain", "small-ops")
    assert found.only == () and found.locations["small-ops"] == f"{tmp_path / 'npu.toml'}:3"


@pytest.mark.parametrize(
    ("text", "message", "line"),
    [
        ("nothing = 3", "nothing is nothing that a description says", 1),
        ("class_multiples = 3", "class_multiples is nothing", 1),
        ("threads = 0", "threads is no positive integer: 0", 1),
        ('name = "a"\nthreads = true', "threads is no positive integer: True", 2),
        ("threads = 2.5", "threads is no positive integer: 2.5", 1),
        ("name = 7", "name is no text: 7", 1),
        ("multiplies_bytes = 1", "multiplies_bytes is neither true nor false: 1", 1),
        ('numerics = "loose"', "numerics cannot be 'loose'", 1),
        ("tile_multiples = 4", "tile_multiples: tile_multiples = 4", 1),
        ("[tile_multiples]\nXY = 4", "tile_multiples: XY = 4", 2),
        ("[tile_multiples]\nOH = 65537", "tile_multiples: OH = 65537", 2),
        ("[tile_multiples]\nOH = -1", "tile_multiples: OH = -1", 2),
        ("[tile_multiples.depthwise]\nIC = 4", "tile_multiples.depthwise: IC = 4", 2),
        ("[tile_multiples.pointwise]\nM = 4", "tile_multiples.pointwise: M = 4", 2),
        ("fusion = 3", "fusion is no table: 3", 1),
        ("[fusion]\nmore = ['a']", "fusion: more says nothing of rules", 2),
        ("[fusion]\nonly = []", "fusion: only = []", 2),
        ("[fusion]\nonly = ['']", "fusion: only = ['']", 2),
        ("[fusion]\nonly = 'a'", "fusion: only = 'a'", 2),
        ("[fusion]\nonly = ['a', 'b']\nwithout = ['b']", "the rule b is in only and in without", 3),
    ],
    ids=str,
)
def test_what_no_description_says_is_refused_with_its_line(text: str, message: str, line: int, tmp_path: Path):
    with pytest.raises(FuselineError) as caught:
        _described(tmp_path, text)
    assert caught.value.code == "E0501" and message in caught.value.message
    assert caught.value.node == f"{tmp_path / 'npu.toml'}:{line}"


@pytest.mark.parametrize("text", ["[tile_multiples]\nOH = 65536\nIC = 1", "[tile_multiples.pointwise]\nIC = 4"])
def test_multiples_up_to_the_largest_are_taken(text: str, tmp_path: Path):
    assert _described(tmp_path, text) != BASE
