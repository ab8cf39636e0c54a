"""The CPU as a target: families in order, equal kernels once, what a compiled kernel says of itself."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from xdsl.dialects.func import FuncOp
from xdsl.parser import Parser

from fuseline.errors import FuselineError
from fuseline.ir.context import new_context
from fuseline.targets import create_target
from fuseline.targets.cpu import families
from fuseline.targets.cpu.families.family import Family, Refusal
from fuseline.targets.cpu.families.nests.loop_nest import LoopNest
from fuseline.targets.cpu.target import CpuTarget


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSELINE_CACHE_DIR", str(tmp_path))


def relu(rows: int, name: str = "entry") -> FuncOp:
    """max(x, 0) over `rows` x 24."""
    t = f"tensor<{rows}x24xf32>"
    identity = "affine_map<(d0, d1) -> (d0, d1)>"
    text = f"""func.func @{name}(%x: {t}) -> {t} {{
  %z = arith.constant 0.0 : f32
  %e = tensor.empty() : {t}
  %y = linalg.generic {{indexing_maps = [{identity}, {identity}], iterator_types = ["parallel", "parallel"]}}
      ins(%x : {t}) outs(%e : {t}) {{
  ^bb0(%i: f32, %o: f32):
    %m = arith.maximumf %i, %z : f32
    linalg.yield %m : f32
  }} -> {t}
  func.return %y : {t}
}}"""
    module = Parser(new_context(), text).parse_module()
    return next(op for op in module.ops if isinstance(op, FuncOp))


def test_equal_kernels_share_their_code() -> None:
    first, again, other = CpuTarget("avx2", 2).compile_executables([relu(5), relu(5, "again"), relu(6)], {})
    assert first.symbol == again.symbol
    assert first.object_code is again.object_code
    assert other.symbol != first.symbol


def test_symbols_are_in_the_objects() -> None:
    (found,) = CpuTarget("avx2").compile_executables([relu(5)], {})
    assert found.symbol.encode() in found.object_code


def test_a_kernel_describes_itself() -> None:
    (found,) = CpuTarget("avx2").compile_executables([relu(5)], {})
    assert found.family == "elementwise"
    assert (found.flops, found.bytes_read, found.bytes_written) == (5 * 24, 5 * 24 * 4, 5 * 24 * 4)
    assert found.scratch_bytes == 0
    assert "contraction" in found.notes["refused"]


def test_the_description_is_the_machine_s() -> None:
    target = CpuTarget("avx512", 3)
    assert (target.description.name, target.description.threads, target.machine.vector_bytes) == ("cpu:avx512", 3, 64)
    assert target.description.costs == target.machine.costs
    assert CpuTarget("avx2").description.threads == len(os.sched_getaffinity(0))


def test_targets_are_found_by_name() -> None:
    assert create_target("cpu:baseline", 1).description.name == "cpu:baseline"
    with pytest.raises(FuselineError) as error:
        create_target("cpu:mmx")
    assert error.value.code == "E0501"


def test_the_cache_can_be_turned_off(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FUSELINE_NO_CACHE", "1")
    CpuTarget("avx2").compile_executables([relu(5)], {})
    assert not list(tmp_path.rglob("*"))
    monkeypatch.delenv("FUSELINE_NO_CACHE")
    CpuTarget("avx2").compile_executables([relu(5)], {})
    assert len(list((tmp_path / "objects").iterdir())) == 1


def test_families_are_named_once_and_end_with_the_general_one() -> None:
    found = families.families()
    names = [family.name for family in found]
    assert len(set(names)) == len(names)
    assert names[-1] == "loop-nest"
    assert all(isinstance(family, Family) for family in found)


def test_a_dispatch_that_no_family_takes_is_our_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    class Never(LoopNest):
        def accepts(self, view: object, machine: object) -> Refusal:
            return Refusal("never", "not today")

    monkeypatch.setattr("fuseline.targets.cpu.target.families", lambda policy: [Never(policy)])
    with pytest.raises(FuselineError, match="not today") as error:
        CpuTarget("avx2").compile_executables([relu(5)], {})
    assert (error.value.code, error.value.node) == ("E0901", "entry")
