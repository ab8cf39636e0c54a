"""Sections of an artifact's file: where they are written, and which rows of a header are believed."""

from __future__ import annotations

import hashlib
from io import BytesIO
from typing import Any

import numpy as np
import pytest

from fuseline.runtime.sections import PAGE, Row, check_layout, read_row, write_sections

LENGTHS = (PAGE, 0, 3, 2 * PAGE + 1)


def _written(begin: int) -> tuple[bytes, list[bytes], list[Row], int]:
    blocks = [np.random.default_rng().bytes(length) for length in LENGTHS]
    file = BytesIO(b"h" * begin)
    rows, end = write_sections(file, blocks, begin)
    return file.getvalue(), blocks, rows, end


@pytest.mark.parametrize("begin", [0, 1, PAGE - 1, PAGE, PAGE + 1])
def test_each_section_is_read_back_from_its_page(begin: int) -> None:
    content, blocks, rows, end = _written(begin)
    assert content[:begin] == b"h" * begin and len(content) == end
    for (offset, length, digest), block in zip(rows, blocks, strict=True):
        assert offset % PAGE == 0 and content[offset : offset + length] == block
        assert digest == hashlib.sha256(block).hexdigest()


@pytest.mark.parametrize("begin", [0, 7, PAGE + 1])
def test_what_was_written_lies_as_it_must(begin: int) -> None:
    _, _, rows, end = _written(begin)
    check_layout(rows, begin, end)


@pytest.mark.parametrize("at", range(len(LENGTHS)))
@pytest.mark.parametrize("by", [-PAGE, 1, PAGE])
def test_a_section_elsewhere_is_refused(at: int, by: int) -> None:
    _, _, rows, end = _written(9)
    offset, length, digest = rows[at]
    with pytest.raises(ValueError, match="a section of"):
        check_layout([*rows[:at], (offset + by, length, digest), *rows[at + 1 :]], 9, end)


def test_bytes_of_no_section_are_refused() -> None:
    _, _, rows, end = _written(9)
    with pytest.raises(ValueError, match="the sections end at"):
        check_layout(rows, 9, end + 1)
    with pytest.raises(ValueError, match="a section of"):
        check_layout(rows, 9, end - 1)
    with pytest.raises(ValueError, match="the sections end at"):
        check_layout(rows[:-1], 9, end)


@pytest.mark.parametrize("row", [(0, -1, "d"), (0, 1.0, "d"), (True, 1, "d"), (0, 1 << 63, "d"), (0, 1, None)])
def test_what_is_no_row(row: tuple[Any, Any, Any]) -> None:
    with pytest.raises(ValueError, match="not"):
        read_row(*row)
    assert read_row(0, 1, "d") == (0, 1, "d")
