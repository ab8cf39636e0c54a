"""`check_target` finds nothing in the targets of the tree, and each fault in a target that has it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from xdsl.dialects.builtin import StringAttr

from fuseline.errors import FuselineError
from fuseline.targets.interpreter import InterpreterTarget
from fuseline.targets.null.counts import counted_kernel
from fuseline.targets.target import CONTRACT, Refusal, Target, TargetDescription
from fuseline.testing import GRAPHS, check_target
from fuseline.testing.conformance import _agrees  # pyright: ignore[reportPrivateUsage]
from fuseline.testing.graphs import feeds, graph
from tests.draws import RNG

FEW = ("product", "windows")


class Mine(Target):
    contract = CONTRACT

    def __init__(self) -> None:
        self.description = TargetDescription("mine")

    def compile_executables(self, entries: Any, resources: Any, *, splits: bool = False, merges: bool = False) -> Any:
        return [counted_kernel(entry, "mine", entry.sym_name.data) for entry in entries]

    def assemble(self, schedule: Any, kernels: Any, constants: Any, *, records: bytes, metadata: Any) -> Any:
        return "\n".join(kernels)


def _with(**methods: Any) -> Any:
    return type("Spoilt", (Mine,), methods)


@pytest.mark.parametrize("target", ["null", "interpreter"])
def test_the_targets_of_the_tree_keep_the_contract(target: str):
    assert check_target(target, seed=int(RNG.integers(1 << 30))) == []


def test_the_cpu_keeps_the_contract():
    assert check_target("cpu", graphs=("product", "rows"), threads=1) == []


def test_a_good_target_keeps_the_contract():
    assert check_target(Mine) == []


@pytest.mark.parametrize("name", GRAPHS)
def test_the_graphs_are_models(name: str):
    seed = int(RNG.integers(1 << 30))
    model = graph(name, seed)
    onnx.checker.check_model(model, full_check=True)
    assert feeds(model).keys() == {item.name for item in model.graph.input}
    assert graph(name, seed).SerializeToString() == model.SerializeToString()
    assert name == "moves" or graph(name, seed + 1).SerializeToString() != model.SerializeToString()


def _flipping() -> Any:
    asked = [0]

    def legal(self: Any, candidate: Any) -> Refusal | None:
        asked[0] += 1
        return Refusal("odd", "asked an odd number of times") if asked[0] % 2 and len(candidate.members) > 1 else None

    return legal


def _marking(self: Any, candidate: Any) -> None:
    op = candidate.members[0].op
    op.attributes["asked"] = StringAttr(str(len(op.attributes)) + op.attributes.get("asked", StringAttr("")).data)


def _late(self: Any, candidate: Any) -> None:
    time.sleep(0.01)


def _counting() -> Any:
    made = [0]

    def assemble(self: Any, *_: Any, **__: Any) -> str:
        made[0] += 1
        return f"number {made[0]}"

    return assemble


def _renaming() -> Any:
    made = [0]

    def compile_executables(self: Any, entries: Any, resources: Any, **_: Any) -> Any:
        made[0] += 1
        return [counted_kernel(entry, "mine", f"{entry.sym_name.data}_{made[0]}") for entry in entries]

    return compile_executables


@pytest.mark.parametrize(
    ("methods", "words"),
    [
        ({"legal": _flipping()}, "legal() answers otherwise when it is asked again"),
        ({"legal": _marking}, "legal() changes the ops that it is asked about"),
        ({"legal": _late}, "legal() takes"),
        ({"assemble": _counting()}, "assemble() answers otherwise when it is asked again: b'number 1'"),
        ({"compile_executables": _renaming()}, "compile_executables() answers otherwise"),
        ({"legal": lambda self, _: 1 / 0}, "E0802 [Spoilt]: legal() of a dispatch of"),
        ({"legal": lambda self, _: Refusal("never", "nothing is good enough")}, "it takes none of the graphs"),
        ({"contract": 7}, "E0801 [Spoilt]: it was written for contract 7"),
        ({"description": None, "__init__": lambda self: None}, "E0802"),
    ],
)
def test_a_fault_is_found(methods: dict[str, Any], words: str):
    found = check_target(_with(**methods), graphs=FEW)
    assert any(words in problem for problem in found), found


def test_the_line_of_a_fault_is_found():
    def make() -> Target:
        return _with(legal=lambda self, _: 1 / 0)()

    (found,) = check_target(make, graphs=("product",))
    assert "raised ZeroDivisionError: division by zero (at test_check_target.py:" in found


def test_what_one_target_remembers_is_found():
    made = [0]

    def make() -> Target:
        made[0] += 1
        number = made[0]
        return _with(assemble=lambda self, *_, **__: f"made {number}")()

    assert check_target(make, graphs=("product",)) == ["product: a second target, made alike, assembles another file"]


def test_values_between_two_steps_may_be_rounded_to_either():
    npu = Path(__file__).parents[3] / "examples" / "systolic-npu" / "npu.toml"  # sums of integers in f32
    assert check_target(f"cpu:{npu}", graphs=("integers",), seed=int(RNG.integers(1 << 30)), threads=1) == []
    right = np.round(RNG.standard_normal(400), 1)
    step = np.zeros(400)
    step[:8] = 0.05
    assert _agrees(right + step, right, stepped=True) and not _agrees(right + step, right, stepped=False)
    assert not _agrees(right + 2 * step, right, stepped=True) and not _agrees(right + 0.05, right, stepped=True)
    assert not _agrees(right[:-1], right, stepped=True) and not _agrees(right * np.nan, right, stepped=True)


def test_outputs_are_compared():
    class Wrong(InterpreterTarget):
        contract = CONTRACT

        def assemble(self, schedule: Any, kernels: Any, constants: Any, *, records: bytes, metadata: Any) -> Any:
            right = super().assemble(schedule, kernels, constants, records=records, metadata=metadata)
            return _Twice(right)

    class _Twice:
        def __init__(self, right: Any) -> None:
            self.right, self.program, self.records = right, right.program, right.records
            self.save = self.with_fallback = right.save

        def session(self, threads: int | None = None) -> Any:
            return self

        def run(self, given: Any) -> Any:
            return {name: 2 * np.asarray(array) for name, array in self.right.session().run(given).items()}

    assert check_target(Wrong, graphs=("product",)) == ["product: output z differs from the interpreter's"]


def test_what_is_no_target_is_one_line():
    assert check_target("no/such.py") == [str(_error("no/such.py"))]
    assert len(check_target(lambda: 1 / 0)) == len(check_target(lambda: None)) == 1


def _error(path: str) -> FuselineError:
    from fuseline.targets import create_target

    with pytest.raises(FuselineError) as caught:
        create_target(path)
    return caught.value


def test_the_target_of_the_documentation_keeps_the_contract(tmp_path: Path):
    page = (Path(__file__).parents[3] / "docs" / "targets.md").read_text()
    (tmp_path / "npu.py").write_text(page.partition("```python\n")[2].partition("```")[0])
    assert check_target(f"{tmp_path / 'npu.py'}:4x4") == []
