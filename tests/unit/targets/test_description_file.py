"""What files that describe targets may say, entry by entry."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.ir.costs import ASSUMED_COSTS
from fuseline.ir.target_description import TargetDescription
from fuseline.targets.description_file import MOST, costs_of, is_positive, read_toml
from fuseline.targets.dispatch_caps import ANY_DISPATCH, DispatchCaps
from fuseline.targets.null import create
from fuseline.targets.null.target import NullTarget

PATH = Path("toy.toml")


@pytest.mark.parametrize("content", [b"a =", b"\xff\xfe", b"x = " + b"[" * 20_000, b"a = 1\na = 2"])
def test_what_is_no_toml(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "toy.toml"
    path.write_bytes(content)
    with pytest.raises(FuselineError, match="is no TOML") as caught:
        read_toml(path)
    assert (caught.value.code, caught.value.node) == ("E0501", str(path))


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "none"):
        with pytest.raises(FuselineError, match="cannot read") as caught:
            read_toml(path)
        assert (caught.value.code, caught.value.node) == ("E0501", str(path))


def test_costs_that_are_given_and_those_that_are_assumed() -> None:
    costs = costs_of({"flops_per_ns": 400, "filtering_channels": 8.0}, PATH, ASSUMED_COSTS)
    assert (costs.flops_per_ns, costs.filtering_channels) == (400.0, 8)
    assert costs.launch_ns == ASSUMED_COSTS.launch_ns
    assert costs_of({"launch_ns": 5.0}, PATH, costs).flops_per_ns == 400.0
    assert costs_of({}, PATH, ASSUMED_COSTS) == ASSUMED_COSTS


@pytest.mark.parametrize("number", [0, -1.0, True, "4", float("nan"), float("inf"), MOST, 1 / MOST, None])
def test_costs_that_no_machine_has(number: object) -> None:
    with pytest.raises(FuselineError, match="costs: launch_ns is no positive number") as caught:
        costs_of({"launch_ns": number}, PATH, ASSUMED_COSTS)
    assert (caught.value.code, caught.value.node) == ("E0501", "toy.toml")


@pytest.mark.parametrize("number", [0.3, 8.5])
def test_a_fraction_of_what_is_counted(number: float) -> None:
    with pytest.raises(FuselineError, match="costs: serial_elements is no whole number"):
        costs_of({"serial_elements": number}, PATH, ASSUMED_COSTS)


def test_costs_that_are_none() -> None:
    with pytest.raises(FuselineError, match="luck is nothing that a machine costs") as caught:
        costs_of({"luck": 1.0}, PATH, ASSUMED_COSTS)
    assert "flops_per_ns" in str(caught.value.hint)
    with pytest.raises(FuselineError, match="costs is no table"):
        costs_of(3, PATH, ASSUMED_COSTS)


def test_positive_integers() -> None:
    assert [is_positive(value) for value in (1, 0, -1, True, 1.0, "1", None)] == [True] + [False] * 6


def _read(path: Path, threads: int | None = None) -> tuple[TargetDescription, DispatchCaps]:
    target = create(str(path), threads)
    assert isinstance(target, NullTarget)
    return target.description, target.caps


def _described(folder: Path, text: str) -> Path:
    path = folder / "toy.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_description_and_its_limits(tmp_path: Path) -> None:
    path = _described(
        tmp_path, 'numerics = "strict"\n[limits]\noperands = 4\nkinds = ["contraction"]\n[costs]\nlaunch_ns = 9'
    )
    description, caps = _read(path)
    assert (description.name, description.numerics, description.costs.launch_ns) == ("toy", "strict", 9.0)
    assert caps == DispatchCaps(operands=4, kinds=("contraction",))
    assert _read(_described(tmp_path, ""), threads=3)[1] == ANY_DISPATCH
    assert _read(_described(tmp_path, "threads = 2"), threads=3)[0].threads == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('numerics = "exact"', "numerics cannot be 'exact'"),
        ("numerics = 1", "numerics is no text"),
        ("limits = 3", "limits is no table"),
        ("[limits]\nwishes = 3", "wishes limits nothing"),
        ("[limits]\nmembers = 0", "members is no positive integer"),
        ("[limits]\nkinds = []", "kinds"),
        ('[limits]\nkinds = ["magic"]', "kinds"),
        ('[limits]\nelement_types = "f32"', "element_types"),
    ],
)
def test_what_a_description_cannot_say(tmp_path: Path, text: str, said: str) -> None:
    path = _described(tmp_path, text)
    with pytest.raises(FuselineError, match=said) as caught:
        _read(path)
    assert caught.value.code == "E0501" and str(caught.value.node).rpartition(":")[0] == str(path)
