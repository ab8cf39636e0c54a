"""Files come to a worker by content: whole, once, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fuseline.cache import folder
from fuseline.cluster import sending
from fuseline.cluster.admission import wanted
from fuseline.cluster.connect import connected
from fuseline.cluster.sending import send
from fuseline.cluster.shipment import Shipment, shipment
from fuseline.cluster.shipped_files import cache_place, missing_files, place_of, take_piece
from fuseline.cluster.team import Team
from fuseline.errors import FuselineError
from tests.draws import RNG


@pytest.fixture
def sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shipment:
    """Two files of a folder that the worker does not have."""
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(sending, "PIECE_BYTES", 1000)
    source = tmp_path / "source"
    (source / "w").mkdir(parents=True)
    (source / "m.onnx").write_bytes(RNG.bytes(2500))
    (source / "w" / "data").write_bytes(b"")
    return msgspec.structs.replace(shipment(source / "m.onnx", ["w/data"]), folder=str(tmp_path / "elsewhere"))


def _call(function: Callable[..., Any], *arguments: Any) -> Any:
    """As a worker is asked: an exception is an answer."""
    try:
        return function(*arguments)
    except Exception as problem:  # noqa: BLE001
        return problem


def _left(tmp_path: Path) -> list[str]:
    return [path.name for path in (tmp_path / "cache" / folder.SHIPPED).iterdir() if path.suffix == ".tmp"]


def test_files_are_sent_once(sent: Shipment, tmp_path: Path):
    source = tmp_path / "source"
    assert place_of(sent) is None and missing_files(sent) == ["m.onnx", "w/data"]
    assert send(sent, _call, source) == 2500
    place = place_of(sent)
    assert place is not None and place == cache_place(sent) / "m.onnx"
    assert place.read_bytes() == (source / "m.onnx").read_bytes()
    assert (place.parent / "w" / "data").read_bytes() == b"" and not _left(tmp_path)
    assert send(sent, _call, source) == 0
    place.unlink()  # the cache may drop files
    assert missing_files(sent) == ["m.onnx"] and send(sent, _call, source) == 2500


def test_what_is_there_by_content_is_not_sent(sent: Shipment, tmp_path: Path):
    here = msgspec.structs.replace(sent, folder=str(tmp_path / "source"))
    assert place_of(here) == tmp_path / "source" / "m.onnx" and send(here, _call) == 0
    (tmp_path / "source" / "m.onnx").write_bytes(RNG.bytes(2500))
    assert place_of(here) is None


def test_a_file_that_changed_is_refused(sent: Shipment, tmp_path: Path):
    (tmp_path / "source" / "m.onnx").write_bytes(RNG.bytes(2500))
    with pytest.raises(FuselineError) as raised:
        send(sent, _call, tmp_path / "source")
    assert raised.value.code == "E1104" and place_of(sent) is None and not _left(tmp_path)
    (tmp_path / "source" / "m.onnx").write_bytes(RNG.bytes(70))
    with pytest.raises(FuselineError) as raised:
        send(sent, _call, tmp_path / "source")
    assert raised.value.code == "E1104" and not _left(tmp_path)
    (tmp_path / "source" / "m.onnx").unlink()
    with pytest.raises(FuselineError) as raised:
        send(sent, _call, tmp_path / "source")
    assert raised.value.code == "E0101"


def test_a_worker_that_breaks_off(sent: Shipment, tmp_path: Path):
    def call(function: Callable[..., Any], *arguments: Any) -> Any:
        if function is take_piece and arguments[3]:
            return OSError("gone")
        return _call(function, *arguments)

    with pytest.raises(FuselineError) as raised:
        send(sent, call, tmp_path / "source")
    assert raised.value.code == "E1104" and "gone" in raised.value.message and not _left(tmp_path)


def test_a_cache_that_cannot_be_written(sent: Shipment, tmp_path: Path):
    (tmp_path / "cache").mkdir(exist_ok=True)
    (tmp_path / "cache" / folder.SHIPPED).rmdir() if (tmp_path / "cache" / folder.SHIPPED).exists() else None
    (tmp_path / "cache" / folder.SHIPPED).write_text("a file")
    with pytest.raises(FuselineError) as raised:
        send(sent, _call, tmp_path / "source")
    assert raised.value.code == "E1104"


def test_the_cache_counts_them_and_drops_them(sent: Shipment, tmp_path: Path):
    send(sent, _call, tmp_path / "source")
    found = [entry for entry in folder.entries() if entry.kind == folder.SHIPPED]
    assert sum(entry.bytes for entry in found) == 2500
    folder.clear()
    assert place_of(sent) is None


@pytest.mark.slow
def test_over_a_real_connection(sent: Shipment, tmp_path: Path):
    """Two workers that share a cache: the first is sent what both then have."""
    with connected("local") as client:
        team = Team(client, wanted("null"))
        team.gather()
        counts = [send(sent, team.caller(address), tmp_path / "source") for address in team.members]
        places: dict[str, Any] = team.ask(place_of, sent, workers=list(team.members))
    assert sum(counts) == 2500 and set(places.values()) == {place_of(sent)} != {None}
