"""Records are read from artifacts of every stored format version; damage is told."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.report.records import decode
from fuseline.runtime.artifact_records import artifact_records

STORED = sorted((Path(__file__).parent / "stored").glob("format_*.fuse"))


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_the_records_of_every_version_are_found(path: Path) -> None:
    record = decode(artifact_records(path))
    assert record.dispatches and record.threads >= 1


def test_damage_is_told(tmp_path: Path) -> None:
    assert len(STORED) >= 4
    data = STORED[0].read_bytes()
    header = json.loads(data[64 : 64 + struct.unpack_from("<8sIIQQ", data)[3]])
    at = header["records"][0]
    changed = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
    moved = data.replace(b'"records"', b'"recOrds"', 1)
    for number, (bytes_, code) in enumerate(
        ((changed, "E0401"), (moved, "E0402"), (b"FUSELINE", "E0401"), (b"x" * 100, "E0401"))
    ):
        path = tmp_path / f"{number}.fuse"
        path.write_bytes(bytes_)
        with pytest.raises(FuselineError) as caught:
            artifact_records(path)
        assert caught.value.code == code
    with pytest.raises(FuselineError, match="cannot be read"):
        artifact_records(tmp_path / "none.fuse")
