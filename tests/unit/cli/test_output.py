"""Where a command's result goes."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from fuseline.cli.output import deliver, is_stdout, refuse_two_documents
from fuseline.errors import FuselineError


def test_a_file_in_full(tmp_path: Path) -> None:
    path = tmp_path / "out"
    for content, expected in (("größer", "größer".encode()), (b"\x00\xff", b"\x00\xff")):
        deliver(path, content)
        assert path.read_bytes() == expected
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"kept")
    for place in (tmp_path, tmp_path / "file" / "out"):
        with pytest.raises(FuselineError) as caught:
            deliver(place, b"x")
        assert caught.value.code == "E0502"
    assert (tmp_path / "file").read_bytes() == b"kept"


def test_standard_output_takes_bytes_and_text(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    deliver(Path("-"), b"\x00\xff")
    deliver(Path("-"), "ä")
    assert capfdbinary.readouterr().out == b"\x00\xff" + "ä".encode()


def test_what_stands_in_for_standard_output_may_take_text_only(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    deliver(Path("-"), "ä".encode())
    assert stream.getvalue() == "ä"


def test_which_place_is_standard_output() -> None:
    assert [is_stdout(place) for place in (Path("-"), Path("./-x"), None)] == [True, False, False]


def test_one_document_only_goes_to_standard_output() -> None:
    with pytest.raises(FuselineError, match="both write to standard output") as caught:
        refuse_two_documents(Path("-"), as_json=True)
    assert caught.value.code == "E0501"
    refuse_two_documents(Path("-"), as_json=False)
    refuse_two_documents(Path("out"), as_json=True)
    refuse_two_documents(None, as_json=True)
