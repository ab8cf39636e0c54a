"""The line of a TOML file that a message names."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.targets.file_locations import location_of

TEXT = """name = "toy"
without_ops = [
    "tanh",
    'erf',
]

[costs]
flop = 1.0
limits.root = 3

[ "caps" . x ]
[caps.pool]
most = 4
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "toy.toml"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("table", "key", "item", "line"),
    [
        ("", "name", None, 1),
        ("", "without_ops", None, 2),
        ("", "without_ops", "tanh", 3),
        ("", "without_ops", "erf", 4),
        ("costs", "", None, 7),
        ("costs", "flop", None, 8),
        ("costs.limits", "root", None, 9),
        ("caps.pool", "", None, 12),
        ("caps.pool", "most", None, 13),
    ],
)
def test_an_entry_has_a_line(path: Path, table: str, key: str, item: object, line: int) -> None:
    assert location_of(path, table, key, item) == f"{path}:{line}"
    assert location_of(path, table, key, item, short=True) == f"toy.toml:{line}"


def test_what_is_not_there_has_none(path: Path) -> None:
    assert location_of(path, "roots", "flop") == str(path)
    assert location_of(path, "", "flop") == str(path)


def test_an_item_that_is_not_there_is_at_its_entry(path: Path) -> None:
    assert location_of(path, "costs", "flop", "tanh") == f"{path}:8"


def test_a_file_that_cannot_be_read_is_named_alone(path: Path) -> None:
    assert location_of(path.parent / "none.toml", "costs", short=True) == "none.toml"
    path.write_bytes(b"\xff\xfe")
    assert location_of(path, "costs") == str(path)
