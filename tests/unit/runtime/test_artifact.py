"""Files: saved and loaded alike, and every damage is an error with a code."""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fuseline.buffers import BufferRef, LoopOffset, Operand
from fuseline.errors import FuselineError
from fuseline.runtime import Artifact, Session, TensorSpec, load, read_artifact
from fuseline.runtime.program import HostCall, program_from_json, program_to_json

X, Y = BufferRef("input", 0), BufferRef("output", 0)
N = ("sum", ((1, "n"),))
WEIGHTS = np.random.default_rng(3).standard_normal(5000, dtype=np.float32)
INPUT = np.random.default_rng(4).standard_normal(5000, dtype=np.float32)


@pytest.fixture(scope="module")
def artifact(kit: Any) -> Artifact:
    spec = [TensorSpec(name, "float32", (5000,)) for name in "xy"]
    steps = [kit.command("add", [X, BufferRef("constant", 1), Y], 5000)]
    return kit.artifact(
        spec[:1], spec[1:], steps, [np.ones(3, np.float32), WEIGHTS], records=b"what was decided", threads=2
    )


@pytest.fixture(scope="module")
def saved(artifact: Artifact, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("artifact") / "model.fuse"
    artifact.save(path)
    return path


def _code_of(call: Callable[[], Any]) -> str:
    with pytest.raises(FuselineError) as caught:
        call()
    return caught.value.code


def test_round_trip(artifact: Artifact, saved: Path) -> None:
    loaded = read_artifact(saved, verify=True)
    assert loaded.program == artifact.program
    assert (loaded.code, dict(loaded.entries), loaded.records) == (
        artifact.code,
        dict(artifact.entries),
        b"what was decided",
    )
    session = load(saved)
    np.testing.assert_array_equal(session.run({"x": INPUT})["y"], INPUT + WEIGHTS)
    assert session.records == b"what was decided"
    assert ([s.name for s in session.inputs], [s.name for s in session.outputs], session.threads) == (["x"], ["y"], 2)


def test_constants_are_mapped_on_page_boundaries(saved: Path) -> None:
    constants = read_artifact(saved).constants
    assert all(constant.ctypes.data % 4096 == 0 and not constant.flags.writeable for constant in constants)


def test_symbolic_programs_and_host_calls_survive_json() -> None:
    from fuseline.runtime.program import Program
    from fuseline.scalar_code import Computed, ScalarCode, ScalarOp
    from fuseline.size_requirement import SizeRequirement

    size = ("sum", ((4, "n", ("div", N, 2)), (3, ("max", N, 7)), (-1,)))
    tensor = Operand(BufferRef("arena", 0, size), (N, 3), "int64")
    ops = (ScalarOp("size", 64, (0,)), ScalarOp("constant", 8, (-3,)), ScalarOp("element", 1, (0, 2)))
    code = ScalarCode(ops, (1, Computed("bool", (), (2,)), Computed("uint8", (1, 2), (1, 1))), (size,))
    call = HostCall("onnx", b"\x00\xffnode", (tensor, None), (tensor,), "label", 0, code)
    program = Program(
        (TensorSpec("x", "float32", (N,)),), (), (call,), size, 64, 3, {"n": (1, None), "m": (2, 9)}, 5, 6
    )
    program = program._replace(
        requirements=(
            SizeRequirement(size, 12, "a node"),
            SizeRequirement(size, 1, "c", "differ"),
            SizeRequirement(size, 5, "another", relation="at_least"),
        )
    )
    assert program_from_json(json.loads(json.dumps(program_to_json(program)))) == program


def test_an_operand_of_a_host_call_does_not_move() -> None:
    from fuseline.runtime.program import Program

    moving = Operand(BufferRef("arena"), (4,), "int64", LoopOffset(8))
    data = json.loads(json.dumps(program_to_json(Program((), (), (HostCall("onnx", b"", (moving,), ()),)))))
    with pytest.raises(ValueError, match="that moves"):
        program_from_json(data)
    data["steps"][0][3][0][3] = [0, 0, False, None, 0]
    assert program_from_json(data).steps[0] == HostCall("onnx", b"", (Operand(BufferRef("arena"), (4,), "int64"),), ())


def test_saving_replaces_the_file_and_leaves_nothing_else(artifact: Artifact, tmp_path: Path) -> None:
    path = tmp_path / "model.fuse"
    path.write_bytes(b"old")
    artifact.save(path)
    assert os.listdir(tmp_path) == ["model.fuse"] and load(path).inputs[0].name == "x"


def test_saving_where_it_cannot_be_is_coded(artifact: Artifact, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert _code_of(lambda: artifact.save(tmp_path / "file" / "m.fuse")) == "E0502"
    assert _code_of(lambda: artifact.save(tmp_path)) == "E0502"


def test_saving_makes_missing_folders(artifact: Artifact, tmp_path: Path) -> None:
    artifact.save(tmp_path / "new" / "er" / "m.fuse")
    assert load(tmp_path / "new" / "er" / "m.fuse").inputs[0].name == "x"


def test_a_failed_save_leaves_the_old_file(artifact: Artifact, tmp_path: Path) -> None:
    path = tmp_path / "model.fuse"
    path.write_bytes(b"old")
    broken = artifact._replace(constants=(*artifact.constants, object()))  # pyright: ignore[reportArgumentType]
    with pytest.raises((TypeError, AttributeError)):
        broken.save(path)
    assert path.read_bytes() == b"old" and os.listdir(tmp_path) == ["model.fuse"]


_KILLED = """
import os, sys, signal
from fuseline.runtime import read_artifact
artifact = read_artifact(sys.argv[1])
if sys.argv[3] == "at-rename":
    os.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
else:
    os.fsync = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
artifact.save(sys.argv[2])
"""


@pytest.mark.parametrize("moment", ["at-rename", "at-sync"])
def test_a_killed_save_leaves_the_old_file(saved: Path, tmp_path: Path, moment: str) -> None:
    path = tmp_path / "model.fuse"
    path.write_bytes(b"old")
    done = subprocess.run([sys.executable, "-c", _KILLED, str(saved), str(path), moment], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_bytes() == b"old"


@pytest.mark.parametrize("content", [b"", b"FUSELINE", b"\x7fELF" + bytes(200), bytes(4096)])
def test_other_files_are_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "other"
    path.write_bytes(content)
    assert _code_of(lambda: load(path)) == "E0401"


def test_missing_file_and_folder_are_refused(tmp_path: Path) -> None:
    assert _code_of(lambda: load(tmp_path / "none")) == "E0401"
    assert _code_of(lambda: load(tmp_path)) == "E0401"


def test_other_version_is_refused(saved: Path, tmp_path: Path) -> None:
    data = bytearray(saved.read_bytes())
    struct.pack_into("<I", data, 8, 99)
    (tmp_path / "m").write_bytes(data)
    assert _code_of(lambda: load(tmp_path / "m")) == "E0402"


def _rewritten(saved: Path, target: Path, change: Callable[[dict[str, Any]], Any]) -> Path:
    """The file with another header, checksums right: what a faulty writer could leave."""
    import hashlib

    data = saved.read_bytes()
    (length,) = struct.unpack_from("<Q", data, 16)
    header = json.loads(data[64 : 64 + length])
    header["producer"] = ""  # room for longer values
    change(header)
    text = json.dumps(header, separators=(",", ":")).encode().ljust(length)
    assert len(text) == length, "the changed header must fit in the room of the old one"
    start = data[:32]
    target.write_bytes(start + hashlib.sha256(start + text).digest() + text + data[64 + length :])
    return target


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda h: h.update(machine="vax"), "E0403"),
        (lambda h: h.update(cpu_features=["x9"], producer=""), "E0403"),
        (lambda h: h.pop("program"), "E0401"),
        (lambda h: h.update(program=1), "E0401"),
        (lambda h: h["program"].update(steps=[["leap"]]), "E0401"),
        (lambda h: h["program"]["steps"][0].__setitem__(0, "jump"), "E0401"),
        (lambda h: h["program"]["steps"][0][1][0][1][0].__setitem__(1, 1), "E0401"),
        (lambda h: h["program"].update(arena_bytes="n"), "E0401"),
        (lambda h: h["program"].update(inputs=[["x"]]), "E0401"),
        (lambda h: h["image"].__setitem__(0, 10**8), "E0401"),
        (lambda h: h["constants"][0].__setitem__(1, -1), "E0401"),
        (lambda h: h.update(metadata=0), "E0401"),
        (lambda h: h.update(producer=0), "E0401"),
        (lambda h: h["program"]["steps"][0][1][0].__setitem__(0, 10**7), "E0401"),
        (lambda h: h["program"]["steps"][0][1].clear(), "E0401"),
        (lambda h: h["program"]["steps"][0][1][0][1][1].__setitem__(1, 9), "E0401"),
        (lambda h: h["program"]["steps"][0][1][0][1][1].__setitem__(2, 20001), "E0401"),
        (lambda h: h["program"]["steps"][0][1][0][1][0].__setitem__(2, -4), "E0401"),
        (lambda h: h["program"]["inputs"][0].__setitem__(1, "flt32"), "E0401"),
    ],
)
def test_malformed_headers_are_refused(
    saved: Path, tmp_path: Path, change: Callable[[dict[str, Any]], Any], code: str
) -> None:
    path = _rewritten(saved, tmp_path / "m", change)
    assert _code_of(lambda: load(path)) == code


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_changed_byte_of_header_code_or_records_is_found(
    saved: Path, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    content = bytearray(saved.read_bytes())
    (length,) = struct.unpack_from("<Q", content, 16)
    header = json.loads(content[64 : 64 + length])
    regions = {"preamble": (0, 64), "header": (64, length), "image": header["image"], "records": header["records"]}
    start, size = regions[data.draw(st.sampled_from(sorted(regions)))][:2]
    position = start + data.draw(st.integers(0, size - 1))
    content[position] ^= data.draw(st.integers(1, 255))
    path = tmp_path_factory.getbasetemp() / "changed.fuse"
    path.write_bytes(content)
    assert _code_of(lambda: load(path)) in ("E0401", "E0402")


@settings(max_examples=60, deadline=None)
@given(fraction=st.floats(0, 1, exclude_max=True))
def test_any_truncation_is_found(saved: Path, tmp_path_factory: pytest.TempPathFactory, fraction: float) -> None:
    content = saved.read_bytes()
    path = tmp_path_factory.getbasetemp() / "short.fuse"
    path.write_bytes(content[: int(len(content) * fraction)])
    assert _code_of(lambda: load(path)) == "E0401"


def test_changed_weights_are_found_by_verify(saved: Path, tmp_path: Path) -> None:
    content = bytearray(saved.read_bytes())
    content[-1] ^= 1
    path = tmp_path / "weights.fuse"
    path.write_bytes(content)
    load(path)
    assert _code_of(lambda: load(path, verify=True)) == "E0401"


def test_another_machines_program_can_be_saved_and_is_refused_when_run_or_loaded(
    artifact: Artifact, tmp_path: Path
) -> None:
    foreign = artifact._replace(cpu_features=("avx9000",))
    session = Session(foreign)
    assert session.inputs == artifact.program.inputs
    for _ in range(2):
        assert _code_of(lambda: session.run({"x": INPUT})) == "E0403"
    foreign.save(tmp_path / "m")
    assert _code_of(lambda: load(tmp_path / "m")) == "E0403"


@pytest.mark.parametrize("threads", [0, -1, 257])
def test_thread_counts_out_of_range_are_refused(artifact: Artifact, threads: int) -> None:
    assert _code_of(lambda: Session(artifact, threads=threads)) == "E0501"
