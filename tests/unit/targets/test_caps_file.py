"""The table `[limits]` of a target's file: what it says, and what is refused with its line."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.targets.caps_file import caps_of

FULL = """name = "npu"
[limits]
members = 8
operands = 4
kinds = ["convolution", "elementwise", "elementwise"]
roots = ["convolution"]
without_ops = ["tanh", "erf"]
[limits.convolution]
element_types = ["i8", "i32"]
"""


def _caps(text: str, tmp_path: Path):
    path = tmp_path / "npu.toml"
    path.write_text(text)
    return caps_of(tomllib.loads(text)["limits"], path)


def test_what_is_written_is_what_holds(tmp_path: Path):
    caps = _caps(FULL, tmp_path)
    assert (caps.members, caps.operands, caps.results) == (8, 4, None)
    assert caps.kinds == ("convolution", "elementwise") and caps.roots == ("convolution",)
    assert caps.without_ops == ("tanh", "erf")
    ((kind, inner),) = caps.of_kind
    assert kind == "convolution" and inner.element_types == ("i8", "i32")
    assert caps.locations["members"].endswith(":3") and caps.locations["without_ops.erf"].endswith(":7")


@pytest.mark.parametrize(("entry", "line", "words"), [
    ("members = 0", 3, "no positive integer"),
    ("members = 2.5", 3, "no positive integer"),
    ("members = true", 3, "no positive integer"),
    ("widgets = 3", 3, "widgets limits nothing"),
    ('roots = "convolution"', 3, "roots = 'convolution'"),
    ("roots = []", 3, "roots = []"),
    ('without_ops = ["tahn"]', 3, "with 'tahn', which is none"),
    ('ops = ["tanh", "exp"]\nwithout_ops = ["tanh"]', 4, "tanh is in ops and in without_ops"),
    ('kinds = ["elementwise"]\nroots = ["convolution"]', 4, "convolution is limited, and none of kinds"),
    ('kinds = ["elementwise"]\n[limits.convolution]\nops = ["exp"]', 4, "convolution is limited, and none of kinds"),
    ("[limits.convolution]\nmembers = -1", 4, "no positive integer"),
    ("[limits.convolution]\nroots = 3", 4, "roots limits nothing"),
    ("convolution = 3", 3, "is no table"),
])  # fmt: skip
def test_what_is_refused(entry: str, line: int, words: str, tmp_path: Path):
    with pytest.raises(FuselineError) as raised:
        _caps(f'name = "npu"\n[limits]\n{entry}\n', tmp_path)
    error = raised.value
    assert error.code == "E0501" and words in error.message
    assert f"npu.toml:{line}" in str(error)


def test_names_that_are_near_are_told(tmp_path: Path):
    with pytest.raises(FuselineError) as raised:
        _caps('[limits]\nwithout_ops = ["tahn"]', tmp_path)
    assert raised.value.hint is not None and "tanh" in raised.value.hint
