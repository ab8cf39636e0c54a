"""A CPU described in a file: it may have less than this one, and never more."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuseline.errors import FuselineError
from fuseline.targets.cpu.described import described_cpu

LIMITS = (
    "scratch_bytes_limit",
    "image_bytes_limit",
    "band_bytes_limit",
    "binding_limit",
    "arms_limit",
    "roots_limit",
    "code_limit",
)


def _file(folder: Path, text: str) -> Path:
    path = folder / "npu.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("name", LIMITS)
def test_a_limit_may_be_as_large_as_it_is_and_no_larger(name: str, tmp_path: Path):
    most = getattr(described_cpu(_file(tmp_path, "")).description, name)
    for value in (1, most):
        found = described_cpu(_file(tmp_path, f"{name} = {value}"))
        assert getattr(found.description, name) == value
    with pytest.raises(FuselineError) as caught:
        described_cpu(_file(tmp_path, f"\n{name} = {most + 1}"))
    assert (caught.value.code, caught.value.node) == ("E0501", f"{tmp_path / 'npu.toml'}:2")
    assert caught.value.message == f"{name} is {most + 1}, kernels for a CPU have {most}"


def test_how_many_points_stream_is_what_kernels_do(tmp_path: Path):
    points = described_cpu(_file(tmp_path, "")).description.streamed_points
    assert described_cpu(_file(tmp_path, f"streamed_points = {points}")).description.streamed_points == points
    with pytest.raises(FuselineError, match=f"streamed_points is {points + 1}, kernels for a CPU have {points}"):
        described_cpu(_file(tmp_path, f"streamed_points = {points + 1}"))


def test_what_the_caller_says_counts_before_the_file(tmp_path: Path):
    path = _file(tmp_path, 'name = "npu"\nthreads = 3\nnumerics = "strict"')
    found = described_cpu(path).description
    assert (found.name, found.threads, found.numerics) == ("npu", 3, "strict")
    found = described_cpu(path, threads=2, numerics="fast").description
    assert (found.threads, found.numerics) == (2, "fast")


def test_what_a_target_lacks_is_kept(tmp_path: Path):
    assert described_cpu(_file(tmp_path, "[limits]\noperands = 4")).caps != described_cpu(_file(tmp_path, "")).caps


def test_what_no_description_says_is_refused(tmp_path: Path):
    with pytest.raises(FuselineError) as caught:
        described_cpu(_file(tmp_path, "wheels = 4"))
    assert caught.value.code == "E0501" and "wheels" in caught.value.message
